//! The compact form in which facts are spilled: length-prefixed records of varints and texts.
//!
//! A record is `length, scope, key, tag, rest`. Byte order is the only order that is ever used: since
//! every text carries its length in front, two records have the same scope and key exactly when they
//! share that prefix, so sorting whole records by their bytes brings each group together.

use anyhow::{Result, anyhow};

/// Appends an unsigned varint (LEB128).
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// The lowest eight bits.
#[inline]
const fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Appends a signed number, small magnitudes first.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Appends a text with its length.
#[inline]
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends a signed number so that byte order is the order of numbers: a byte with sign and length, then the
/// significant bytes, highest first.
#[inline]
pub(crate) fn put_ordered(out: &mut Vec<u8>, value: i64) {
    let magnitude = if value < 0 { !value } else { value };
    let skipped = magnitude.leading_zeros() / 8;
    let len = low_byte(u64::from(8 - skipped));
    out.push(if value < 0 { 0x7f - len } else { 0x80 + len });
    // All eight bytes and then fewer: a copy of a length that is known beforehand is no call.
    out.extend_from_slice(&value.rotate_left(8 * skipped).to_be_bytes());
    out.truncate(out.len() - skipped as usize);
}

/// Bytes that follow the first byte of an ordered number.
#[inline]
pub(crate) const fn ordered_len(first: u8) -> usize {
    (if first < 0x80 { 0x7f - first } else { first - 0x80 }) as usize
}

/// Reads what the `put_` functions wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// What is left.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether nothing is left.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// One byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.bytes.split_first().ok_or_else(damaged)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// An unsigned varint.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    /// A signed number.
    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A number that [`put_ordered`] wrote.
    #[inline]
    pub(crate) fn ordered(&mut self) -> Result<i64> {
        let first = self.byte()?;
        let mut value: i64 = if first < 0x80 { -1 } else { 0 };
        for _ in 0..ordered_len(first) {
            value = value << 8 | i64::from(self.byte()?);
        }
        Ok(value)
    }

    /// A text with its length.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let len = usize::try_from(self.varint()?).map_err(|_| damaged())?;
        let (text, rest) = self.bytes.split_at_checked(len).ok_or_else(damaged)?;
        self.bytes = rest;
        Ok(text)
    }
}

/// Scope number and key that a record opens with, and what follows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<'a> {
    /// Scope number and key as bytes: equal exactly for records of one group.
    pub(crate) prefix: &'a [u8],
    /// Tag and fields.
    pub(crate) rest: &'a [u8],
}

/// Splits a record after its key.
#[inline]
pub(crate) fn split(record: &[u8]) -> Result<Keyed<'_>> {
    let mut cursor = Cursor::new(record);
    cursor.varint()?;
    cursor.text()?;
    let rest = cursor.rest();
    Ok(Keyed { prefix: &record[..record.len() - rest.len()], rest })
}

/// Scope number and key of a prefix.
#[inline]
pub(crate) fn open_prefix(prefix: &[u8]) -> Result<(u32, &[u8])> {
    let mut cursor = Cursor::new(prefix);
    let scope = u32::try_from(cursor.varint()?).map_err(|_| damaged())?;
    Ok((scope, cursor.text()?))
}

/// The spilled bytes are not what was written: the disk or the memory is broken.
pub(crate) fn damaged() -> anyhow::Error {
    anyhow!("a spill file does not hold what was written to it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        let mut out = Vec::new();
        for value in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
            out.clear();
            put_signed(&mut out, value);
            put_text(&mut out, b"tail");
            let mut cursor = Cursor::new(&out);
            assert_eq!(cursor.signed().unwrap(), value);
            assert_eq!(cursor.text().unwrap(), b"tail");
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn ordered_numbers_sort_as_bytes_and_come_back() {
        let mut numbers = vec![0, 1, -1, 127, 128, -128, -129, 255, 256, -256, -257, i64::MAX, i64::MIN];
        numbers.extend((0..62).flat_map(|bits| [1_i64 << bits, -(1_i64 << bits), (1_i64 << bits) - 1]));
        numbers.sort_unstable();
        let mut before: Vec<u8> = Vec::new();
        for value in numbers {
            let mut out = Vec::new();
            put_ordered(&mut out, value);
            assert!(before <= out, "{value}");
            assert_eq!(out.len(), 1 + ordered_len(out[0]));
            assert_eq!(Cursor::new(&out).ordered().unwrap(), value);
            before = out;
        }
    }

    #[test]
    fn a_cut_record_is_an_error() {
        let mut out = Vec::new();
        put_varint(&mut out, 300);
        put_text(&mut out, b"evt_1");
        for len in 0..out.len() {
            assert!(split(&out[..len]).is_err(), "{len}");
        }
        assert!(Cursor::new(&[0xff; 10]).varint().is_err());
    }

    #[test]
    fn keys_that_only_look_alike_stay_apart() {
        let record = |scope: u64, key: &[u8], rest: &[u8]| {
            let mut out = Vec::new();
            put_varint(&mut out, scope);
            put_text(&mut out, key);
            out.extend_from_slice(rest);
            out
        };
        let (one, other) = (record(1, b"a", b"bc"), record(1, b"ab", b"c"));
        assert_ne!(split(&one).unwrap().prefix, split(&other).unwrap().prefix);
    }
}
