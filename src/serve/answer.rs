//! What a provider hears. No answer repeats anything of the delivery but Slack's challenge.

use crate::receive::Reply;
use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

/// Seconds after which a provider may come again.
const RETRY_AFTER_S: &str = "2";

/// What the provider wants to hear, once its events are safe.
pub(super) fn taken(reply: &Reply) -> Response {
    let mut response = Response::new(Body::from(reply.body().to_owned()));
    *response.status_mut() = StatusCode::from_u16(reply.status()).unwrap_or(StatusCode::OK);
    if let Some(kind) = reply.content_type() {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

pub(super) fn come_again(word: &'static str) -> Response {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, word);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    response
}

/// Another method than the path knows.
pub(super) fn only(methods: &'static str) -> Response {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "wrong_method");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

/// A status with one word.
pub(super) fn plain(status: StatusCode, word: &'static str) -> Response {
    text(status, word)
}

pub(super) fn text(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
