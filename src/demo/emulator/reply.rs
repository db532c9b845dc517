//! Answers: who may ask, and the forms in which the provider says yes and no.

use super::chaos::RetryAfter;
use super::list::ApiError;
use crate::clock;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response};

pub(super) fn account_of(headers: &HeaderMap) -> Result<String, ApiError> {
    let Some(value) = headers.get("stripe-account") else { return Ok(String::new()) };
    value.to_str().map(str::to_owned).map_err(|_| no_access(""))
}

pub(super) fn no_access(account: &str) -> ApiError {
    ApiError {
        status: 403,
        kind: "invalid_request_error",
        code: "account_invalid",
        message: format!(
            "The provided key does not have access to account '{account}' (or that account does not exist)."
        ),
        param: String::new(),
    }
}

pub(super) fn is_authorised(headers: &HeaderMap, key: &str) -> bool {
    let Some(given) = headers.get("authorization").and_then(|value| value.to_str().ok()) else {
        return false;
    };
    match given.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token == key,
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("basic") => token == base64(&format!("{key}:")),
        _ => false,
    }
}

/// RFC 4648 §4, of text.
fn base64(plain: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in plain.as_bytes().chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| bits << 8 | usize::from(*chunk.get(at).unwrap_or(&0)));
        for digit in 0..4 {
            let is_padding = digit > chunk.len();
            let value = bits >> (18 - 6 * digit) & 63;
            encoded.push(if is_padding { '=' } else { char::from(DIGITS[value]) });
        }
    }
    encoded
}

pub(super) fn too_many(reason: &str, retry_after: &RetryAfter) -> Response<Body> {
    let body = r#"{"error":{"code":"rate_limit","message":"Request rate limit exceeded.","type":"invalid_request_error"}}"#;
    let mut response = json(429, body);
    let mut add = |name: &'static str, value: &str| {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    };
    add("stripe-rate-limited-reason", reason);
    match retry_after {
        RetryAfter::None => {}
        RetryAfter::Seconds(seconds) => add("retry-after", &seconds.to_string()),
        RetryAfter::Text(text) => add("retry-after", text),
        RetryAfter::Date(seconds) => {
            let at_us = clock::now_us() + i64::from(*seconds) * crate::record::SECOND_US;
            if let Some(at) = chrono::DateTime::from_timestamp_micros(at_us) {
                add("retry-after", &at.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
            }
        }
    }
    response
}

pub(super) fn cut(body: &str) -> &str {
    let mut end = body.len() * 2 / 3;
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    &body[..end]
}

pub(super) fn dropped(body: &str) -> Response<Body> {
    let parts = [Ok(Bytes::from(body.to_owned())), Err(std::io::Error::other("dropped on demand"))];
    let mut response = Response::new(Body::from_stream(futures_util::stream::iter(parts)));
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("application/json"));
    response
}

pub(super) fn json(status: u16, body: &str) -> Response<Body> {
    text(status, "application/json", body)
}

pub(super) fn text(status: u16, kind: &'static str, body: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("content-type", axum::http::HeaderValue::from_static(kind));
    headers.insert("request-id", axum::http::HeaderValue::from_static("req_emulator"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain), encoded);
        }
    }
}
