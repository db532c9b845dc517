//! Readers of bodies, which stand hostile input: every limit is named, and nothing here can panic.
//!
//! Only what makes the key is read. A field of another kind than expected is absent, not an error, unless
//! the key needs it: a new value of a field must not cost an event.

use super::settings::Settings;
use super::verdict::{Received, Refusal, Reply};
use chrono::DateTime;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// Nesting of a JSON body at most. Below what `serde_json` reads later (128), so that what is stored can be
/// read.
pub const BODY_DEPTH_MAX: usize = 100;
/// Bytes of an event id, a type and an account at most. Index entries of PostgreSQL end at about 2,700.
pub const TEXT_BYTES_MAX: usize = 255;
/// Events in one body at most.
pub const EVENTS_MAX: usize = 500;
/// Fields of a form at most.
pub const FORM_FIELDS_MAX: usize = 1_000;

/// What a scheme reads from a verified body.
pub(super) struct Reading {
    pub events: Vec<Received>,
    pub reply: Reply,
}

impl Reading {
    /// One event, answered with 200.
    pub fn of(event: Received) -> Self {
        Self { events: vec![event], reply: Reply::Ok }
    }

    /// A handshake.
    pub fn reply(reply: Reply) -> Self {
        Self { events: Vec::new(), reply }
    }
}

/// A body that must be one JSON object, as `T`.
pub(super) fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    let text = str::from_utf8(body).map_err(|_| Refusal::MalformedBody)?;
    object_text(text)
}

/// A text that must be one JSON object, as `T`. (A reader of objects would also take a list.)
pub(super) fn object_text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refusal> {
    if !text.trim_start().starts_with('{') || depth(text.as_bytes()) > BODY_DEPTH_MAX {
        return Err(Refusal::MalformedBody);
    }
    serde_json::from_str(text).map_err(|_| Refusal::MalformedBody)
}

/// A body that must be a JSON list: its items as they stand.
pub(super) fn list(body: &[u8]) -> Result<Vec<&RawValue>, Refusal> {
    let text = str::from_utf8(body).map_err(|_| Refusal::MalformedBody)?;
    if depth(body) > BODY_DEPTH_MAX {
        return Err(Refusal::MalformedBody);
    }
    let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| Refusal::MalformedBody)?;
    if items.len() > EVENTS_MAX { Err(Refusal::TooManyEvents) } else { Ok(items) }
}

/// Deepest nesting of brackets outside of strings, whether or not the rest is JSON.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest): (usize, usize) = (0, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in json {
        if is_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A field as it stands. `null` is the same as absent.
pub(super) type Field<'a> = Option<&'a RawValue>;

/// The text of a string, or the digits of an integer: ids are text, and a large one keeps every digit.
pub(super) fn text(field: Field<'_>) -> Option<String> {
    let raw = field?.get();
    if raw.starts_with('"') {
        return serde_json::from_str(raw).ok();
    }
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer.then(|| raw.to_owned())
}

/// [`text`], where an empty one is absent too.
pub(super) fn filled(field: Field<'_>) -> Option<String> {
    text(field).filter(|text| !text.is_empty())
}

/// The text of a string, an integer, `true` or `false`; empty for everything else.
pub(super) fn word(field: Field<'_>) -> String {
    match field.map(RawValue::get) {
        Some(raw @ ("true" | "false")) => raw.to_owned(),
        _ => text(field).unwrap_or_default(),
    }
}

/// `live` or `test` from a truth value or its word.
///
/// # Errors
/// Any other value: the mode is part of the key and is not guessed.
pub(super) fn mode(field: Field<'_>) -> Result<Option<&'static str>, Refusal> {
    match field.map(RawValue::get) {
        None => Ok(None),
        Some("true" | "\"true\"") => Ok(Some("live")),
        Some("false" | "\"false\"") => Ok(Some("test")),
        Some(_) => Err(Refusal::MalformedBody),
    }
}

/// Unix seconds as µs.
pub(super) fn seconds_us(field: Field<'_>) -> Option<i64> {
    text(field)?.parse::<i64>().ok()?.checked_mul(1_000_000)
}

/// RFC 3339, with its offset, as Unix µs.
pub(super) fn rfc3339_us(field: Field<'_>) -> Option<i64> {
    instant_us(&text(field)?)
}

/// RFC 3339, with its offset, as Unix µs.
pub(super) fn instant_us(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros())
}

/// An event with the endpoint's own account and mode, made of a whole body.
///
/// # Errors
/// `NoIdentity` without an id; `UnusableIdentity` for one that no key can hold.
pub(super) fn event(
    settings: &Settings,
    body: &[u8],
    event_id: Option<String>,
    event_type: String,
) -> Result<Received, Refusal> {
    let event_id = event_id.filter(|id| !id.is_empty()).ok_or(Refusal::NoIdentity)?;
    Ok(Received {
        event_id: usable(event_id)?,
        event_type: usable(event_type)?,
        account: settings.account.clone(),
        mode: settings.mode.clone(),
        created_us: None,
        body: 0..body.len(),
    })
}

/// A text that a key column holds.
pub(super) fn usable(text: String) -> Result<String, Refusal> {
    let is_usable = text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control);
    if is_usable { Ok(text) } else { Err(Refusal::UnusableIdentity) }
}

/// Where an item lies in the body that it was read from.
pub(super) fn range_of(body: &[u8], item: &RawValue) -> Range<usize> {
    let start = item.get().as_ptr().addr().saturating_sub(body.as_ptr().addr());
    start..start + item.get().len()
}

/// A key for an event that brings none: the hash of its bytes.
pub(super) fn hashed(bytes: &[u8]) -> String {
    format!("sha256:{}", crate::record::sha256_hex(bytes))
}

/// The fields of a form, in their order.
pub(super) fn form(body: &[u8]) -> Result<Vec<(String, String)>, Refusal> {
    let fields = form_urlencoded::parse(body).into_owned();
    let fields: Vec<_> = fields.take(FORM_FIELDS_MAX + 1).collect();
    if fields.len() > FORM_FIELDS_MAX { Err(Refusal::MalformedBody) } else { Ok(fields) }
}

/// The first value of a form's field that is not empty.
pub(super) fn form_field(fields: &[(String, String)], name: &str) -> Option<String> {
    let mut named = fields.iter().filter(|(field, value)| field == name && !value.is_empty());
    named.next().map(|(_, value)| value.clone())
}
