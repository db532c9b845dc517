//! A delivery as text, so that a mutation of the text is a delivery too.
//!
//! First line `SECONDS URL`, then one header a line, an empty line, and the body. Where `{signature}` stands, the right
//! signature of the rest is put in, so that a mutated body, too, gets past the check of signatures to its reader.

use super::T;
use recon::receive::Delivery;

/// A delivery that owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub at_us: i64,
    pub url: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads the text; whatever is missing is empty.
    pub fn parse(data: &[u8]) -> Self {
        let (head, body) = cut(data, b"\n\n");
        let mut lines = head.split(|byte| *byte == b'\n');
        let (at, url) = cut(lines.next().unwrap_or_default(), b" ");
        let at_s = str::from_utf8(at).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(T);
        let headers = lines.map(|line| {
            let (name, value) = cut(line, b": ");
            (String::from_utf8_lossy(name).into_owned(), value.to_vec())
        });
        Self {
            at_us: at_s.saturating_mul(1_000_000),
            url: String::from_utf8_lossy(url).into_owned(),
            headers: headers.collect(),
            body: body.to_vec(),
        }
    }

    /// Hands the delivery over as the receiver does.
    pub fn with<R>(&self, act: impl FnOnce(&Delivery<'_>) -> R) -> R {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let (url, body, received_at_us) = (&self.url, &self.body, self.at_us);
        act(&Delivery { method: "POST", url, headers: &headers, body, received_at_us })
    }

    /// The value of the only header of this name; `None` for none, several, or an empty one.
    pub fn only(&self, name: &str) -> Option<String> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let (Some((_, value)), None) = (found.next(), found.next()) else { return None };
        let text = String::from_utf8_lossy(value).trim_matches([' ', '\t']).to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Every header value with `from` replaced.
    pub fn replace_in_headers(&mut self, from: &str, to: &str) {
        for (_, value) in &mut self.headers {
            *value = replaced(value, from.as_bytes(), to.as_bytes());
        }
    }
}

/// `bytes` with every `from` replaced by `to`.
pub fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = position(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Where `part` stands first. An empty part stands nowhere.
pub fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() { None } else { bytes.windows(part.len()).position(|window| window == part) }
}

/// What stands before and after the first `separator`; all of it and nothing without one.
fn cut<'a>(bytes: &'a [u8], separator: &[u8]) -> (&'a [u8], &'a [u8]) {
    match position(bytes, separator) {
        Some(at) => (&bytes[..at], &bytes[at + separator.len()..]),
        None => (bytes, &[]),
    }
}
