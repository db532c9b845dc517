//! Providers: one pure file each (wire → facts, streams, state ranks); `client.rs` and `pager.rs` are the
//! only HTTP out.

pub mod stripe;

use std::time::Duration;

/// A list that the provider pages, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its name in coverage, records and errors.
    pub name: &'static str,
    /// Path of the list, from the API root.
    pub path: &'static str,
    /// Query pairs of every page, besides limit, cursor and time bounds.
    pub query: &'static [(&'static str, &'static str)],
    /// How far back it can be listed; `None` means for ever.
    pub memory: Option<Duration>,
    /// Path of one record, with `{id}` where its id goes.
    pub by_id_path: &'static str,
}

impl Stream {
    /// Path of one record. The id is percent-encoded wherever it is not a plain word, so that it
    /// cannot lead to another path.
    #[must_use]
    pub fn path_of(&self, id: &str) -> String {
        let mut encoded = String::with_capacity(id.len());
        for byte in id.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
                encoded.push(char::from(byte));
            } else {
                encoded.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        }
        self.by_id_path.replace("{id}", &encoded)
    }

    /// Query pairs for one record: those of a page, with expansions counted from the record
    /// itself (`data.balance_transaction` → `balance_transaction`).
    #[must_use]
    pub fn query_of_one(&self) -> Vec<(&'static str, &'static str)> {
        self.query.iter().map(|(key, value)| (*key, value.strip_prefix("data.").unwrap_or(value))).collect()
    }
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0').to_ascii_uppercase()
}
