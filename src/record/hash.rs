//! SHA-256 and hexadecimal text: one spelling for ids, checksums and stored hashes.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Bytes as lower-case hexadecimal text.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

/// SHA-256 of bytes, as hexadecimal text of 64 digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// An id of 32 digits for texts in this order: the first 16 bytes of SHA-256 over each with its length before it, so that
/// no two lists of texts run together.
#[must_use]
pub fn id_of(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize()[..16])
}
