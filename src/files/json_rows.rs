//! JSON Lines: one object a line; only the wanted fields are looked at. Numbers are taken as they are spelled, so no
//! amount ever passes through a float. Pure.

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonFault {
    /// The wanted column that it is about, where it is about one.
    pub(super) column: Option<usize>,
    pub(super) message: String,
}

/// Reads the wanted fields of one line into `fields`, in the order of `columns`. A field that is missing or `null` is
/// `None`.
pub(super) fn row<'a>(
    line: &'a str,
    columns: &[String],
    fields: &mut Vec<Option<Cow<'a, str>>>,
) -> Result<(), JsonFault> {
    fields.clear();
    fields.resize(columns.len(), None);
    let mut reader = serde_json::Deserializer::from_str(line);
    let mut fault = None;
    let read = (&mut reader).deserialize_map(Wanted { columns, fields, fault: &mut fault });
    if let Some(fault) = fault {
        return Err(fault);
    }
    read.and_then(|()| reader.end()).map_err(|error| JsonFault {
        column: None,
        // serde_json's text may quote the value.
        message: format!("no JSON object ({:?} error at character {})", error.classify(), error.column())
            .to_lowercase(),
    })
}

struct Wanted<'w, 'a> {
    columns: &'w [String],
    fields: &'w mut Vec<Option<Cow<'a, str>>>,
    fault: &'w mut Option<JsonFault>,
}

/// A name that is borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Visitor<'a> for Wanted<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let mut is_seen = vec![false; self.columns.len()];
        while let Some(Name(name)) = map.next_key()? {
            let Some(column) = self.columns.iter().position(|column| *column == *name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value: &'a RawValue = map.next_value()?;
            let mut refuse = |message: &str| {
                *self.fault = Some(JsonFault { column: Some(column), message: message.to_owned() });
                M::Error::custom("refused")
            };
            if std::mem::replace(&mut is_seen[column], true) {
                return Err(refuse("stands twice in one object"));
            }
            self.fields[column] = match value.get().as_bytes().first() {
                Some(b'"') => Some(text(value).ok_or_else(|| refuse("is no valid text"))?),
                Some(b'-' | b'0'..=b'9') => Some(Cow::Borrowed(value.get())),
                Some(b'n') => None,
                _ => return Err(refuse("is neither a text nor a number")),
            };
        }
        Ok(())
    }
}

/// A text without its quotes and escapes; NUL, which CSV cannot hold either, is refused.
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    let text: String = serde_json::from_str(value.get()).ok()?;
    (!text.contains('\0')).then_some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<Option<String>>, JsonFault> {
        let columns = ["id".to_owned(), "amount".to_owned()];
        let mut fields = Vec::new();
        row(line, &columns, &mut fields)?;
        Ok(fields.into_iter().map(|field| field.map(Cow::into_owned)).collect())
    }

    #[test]
    fn numbers_are_taken_as_spelled_and_other_fields_are_passed_over() {
        let found =
            read(r#"{"x":{"id":1},"amount":19.990000000000000001,"id":"caf\u00e9","y":[1]}"#).unwrap();
        assert_eq!(found, [Some("café".to_owned()), Some("19.990000000000000001".to_owned())]);
        assert_eq!(
            read(r#"{"id":123456789012345678901234567890}"#).unwrap()[0].as_deref(),
            Some("123456789012345678901234567890")
        );
        assert_eq!(read(r#"{"id":null}"#).unwrap(), [None, None]);
    }

    #[test]
    fn what_is_no_row_is_told_without_its_values() {
        for (line, column, words) in [
            (r#"{"id":"Maria","id":"x"}"#, Some(0), "twice"),
            (r#"{"id":true}"#, Some(0), "neither"),
            (r#"{"amount":{"v":"Maria"}}"#, Some(1), "neither"),
            (r#"["Maria"]"#, None, "no json object"),
            (r#"{"id":"Maria"} x"#, None, "no json object"),
            (r#"{"id":"Maria"#, None, "no json object"),
            (r#"{"id":"\ud800"}"#, Some(0), "no valid text"),
        ] {
            let fault = read(line).unwrap_err();
            assert_eq!(fault.column, column, "{line}: {}", fault.message);
            assert!(fault.message.contains(words) && !fault.message.contains("Maria"), "{}", fault.message);
        }
    }
}
