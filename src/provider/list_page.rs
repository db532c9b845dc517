//! A page of a list as received: ids and creation times are read, bodies are kept byte for byte. Pure.

use super::Stream;
use super::chain::Ask;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Write;

/// One record of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id, not empty.
    pub id: String,
    /// Whole Unix seconds.
    pub created: i64,
    /// Its bytes as received.
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
struct ListWire<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    has_more: bool,
}

#[derive(Deserialize)]
struct HeadWire<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    created: i64,
}

/// Years 1970 to 9999, so that microseconds fit.
const CREATED_MAX: i64 = 253_402_300_800;

/// Reads a list answer into records and `has_more`.
///
/// # Errors
/// What is missing, by its place and never by what stood there.
pub fn read_page(body: &[u8]) -> Result<(Vec<Record>, bool), String> {
    let list: ListWire<'_> =
        serde_json::from_slice(body).map_err(|error| format!("no list: {}", place(&error)))?;
    let records = list.data.into_iter().enumerate().map(|(index, raw)| {
        read_record(raw.get().as_bytes()).map_err(|problem| format!("data[{index}]: {problem}"))
    });
    Ok((records.collect::<Result<_, _>>()?, list.has_more))
}

/// Reads one object.
pub(super) fn read_record(body: &[u8]) -> Result<Record, String> {
    let head: HeadWire<'_> = serde_json::from_slice(body)
        .map_err(|error| format!("no `id` and `created` in whole seconds: {}", place(&error)))?;
    if head.id.is_empty() || !(0..CREATED_MAX).contains(&head.created) {
        return Err(format!("`id` is empty or `created` is {}", head.created));
    }
    Ok(Record { id: head.id.into_owned(), created: head.created, body: body.to_vec() })
}

/// Where parsing stopped. The parser's own words may quote the body, so they are not used.
fn place(error: &serde_json::Error) -> String {
    format!("line {} column {}", error.line(), error.column())
}

/// Path and query of a page.
pub(super) fn list_path(stream: &Stream, ask: &Ask) -> String {
    let mut path =
        format!("{}?limit=100&created%5Bgte%5D={}&created%5Blt%5D={}", stream.path, ask.from, ask.until);
    for (name, value) in stream.query {
        push_pair(&mut path, '&', name, value);
    }
    if let Some(id) = &ask.after {
        push_pair(&mut path, '&', "starting_after", id);
    }
    path
}

/// Path and query of a list's newest record.
pub(super) fn newest_path(stream: &Stream) -> String {
    let mut path = format!("{}?limit=1", stream.path);
    for (name, value) in stream.query {
        push_pair(&mut path, '&', name, value);
    }
    path
}

/// Path and query of a single object.
pub(super) fn object_path(stream: &Stream, id: &str) -> String {
    let mut path = format!("{}/{}", stream.by_id_path, encode(id));
    let mut separator = '?';
    for (name, value) in stream.query.iter().filter(|(name, _)| *name == "expand[]") {
        push_pair(&mut path, separator, name, value.strip_prefix("data.").unwrap_or(value));
        separator = '&';
    }
    path
}

/// Path and query of the list of the objects that name `id` in the field `filter`.
pub(super) fn of_object_path(stream: &Stream, filter: &str, id: &str, after: Option<&str>) -> String {
    let mut path = format!("{}?limit=100", stream.path);
    push_pair(&mut path, '&', filter, id);
    for (name, value) in stream.query {
        push_pair(&mut path, '&', name, value);
    }
    if let Some(id) = after {
        push_pair(&mut path, '&', "starting_after", id);
    }
    path
}

/// Longest id that is asked for. An address that is too long would end the run, and Stripe's own ids "can
/// contain up to 255 characters" (<https://docs.stripe.com/upgrades>, *Backward-compatible changes*; ids that
/// Stripe makes are ASCII as far as we have seen, which no page promises).
const ID_BYTES_MAX: usize = 255;

/// Whether an id can be asked for as a path segment at all.
pub(super) fn is_askable(id: &str) -> bool {
    !matches!(id, "" | "." | "..") && id.len() <= ID_BYTES_MAX
}

fn push_pair(path: &mut String, separator: char, name: &str, value: &str) {
    path.push(separator);
    path.push_str(&encode(name));
    path.push('=');
    path.push_str(&encode(value));
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else if write!(encoded, "%{byte:02X}").is_err() {
            unreachable!("writing to a String cannot fail");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream = Stream {
        name: "charges",
        path: "/v1/charges",
        query: &[("expand[]", "data.balance_transaction"), ("status", "all")],
        memory: None,
        by_id_path: "/v1/charges",
    };

    #[test]
    fn bodies_are_kept_byte_for_byte() {
        let body = br#"{"object":"list","data":[ {"id":"a","created":5,"amount":1.10,"x":"\u00e9"} ],"has_more":false}"#;
        let (records, has_more) = read_page(body).unwrap();
        assert!(!has_more);
        assert_eq!(records[0].body, br#"{"id":"a","created":5,"amount":1.10,"x":"\u00e9"}"#);
        assert_eq!((records[0].id.as_str(), records[0].created), ("a", 5));
    }

    #[test]
    fn what_is_no_list_is_named_without_quoting_it() {
        for body in [
            r#"{"data":[]}"#,
            r#"{"has_more":false}"#,
            r#"{"data":[{"id":"a"}],"has_more":false}"#,
            r#"{"data":[{"id":"a","created":"secret@example.com"}],"has_more":false}"#,
            r#"{"data":[{"id":"a","created":1.5}],"has_more":false}"#,
            r#"{"data":[{"id":"","created":1}],"has_more":false}"#,
            r#"{"data":[{"id":"a","created":-1}],"has_more":false}"#,
        ] {
            let problem = read_page(body.as_bytes()).unwrap_err();
            assert!(!problem.contains("example"), "{problem}");
        }
    }

    #[test]
    fn paths_carry_bounds_and_expansions() {
        let ask = Ask { from: 10, until: 20, after: Some("ch_1&x".to_owned()) };
        assert_eq!(
            list_path(&STREAM, &ask),
            "/v1/charges?limit=100&created%5Bgte%5D=10&created%5Blt%5D=20\
             &expand%5B%5D=data.balance_transaction&status=all&starting_after=ch_1%26x"
        );
        assert_eq!(
            object_path(&STREAM, "ch/../1"),
            "/v1/charges/ch%2F..%2F1?expand%5B%5D=balance_transaction"
        );
    }
}
