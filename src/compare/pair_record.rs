//! The rows of two sides, and the differences between them, in compact form.
//!
//! A row's record is `scope 0, key, currency, amount, status, side, source, line`, in forms whose byte order is the
//! order of the values. Left rows come last one first and right rows first one first: so what is paired is the
//! earliest of both sides, and what is left over the latest, without holding more than a stack.

use super::pairs::PairRow;
use crate::compact::{Cursor, damaged, ordered_len, put_ordered, put_text, put_varint};
use anyhow::Result;

const LEFT: u8 = 0;
const RIGHT: u8 = 1;
/// Bytes of the currency's number.
const CURRENCY_BYTES: usize = 2;

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of its file, as the feeds were told.
    pub source: u32,
    /// Line on which it begins, or its number where the file has no lines; from 1.
    pub line: u64,
}

/// A row of one side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seen {
    /// Number of the currency, as the feeds were told.
    pub currency: u16,
    /// Minor units.
    pub amount_minor: i64,
    /// Empty where statuses are not compared.
    pub status: String,
    /// Where it stands.
    pub place: Place,
}

/// What is wrong with a row, or with a row of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// The same row more often on the left than on the right, which has it.
    DuplicateOnLeft,
    /// The same row more often on the right than on the left, which has it.
    DuplicateOnRight,
    /// A row on the right that nothing on the left can stand for.
    MissingOnLeft,
    /// A row on the left that nothing on the right can stand for.
    MissingOnRight,
    /// Same key and currency, other amount.
    AmountDiffers,
    /// Same key, other currency.
    CurrencyDiffers,
    /// Same key, currency and amount, other status.
    StatusDiffers,
}

impl DifferenceKind {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::DuplicateOnLeft,
        Self::DuplicateOnRight,
        Self::MissingOnLeft,
        Self::MissingOnRight,
        Self::AmountDiffers,
        Self::CurrencyDiffers,
        Self::StatusDiffers,
    ];

    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateOnLeft => "duplicate_on_left",
            Self::DuplicateOnRight => "duplicate_on_right",
            Self::MissingOnLeft => "missing_on_left",
            Self::MissingOnRight => "missing_on_right",
            Self::AmountDiffers => "amount_differs",
            Self::CurrencyDiffers => "currency_differs",
            Self::StatusDiffers => "status_differs",
        }
    }
}

/// One difference between two sides: one row of one side, or one row of each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Difference {
    /// Key; parts of a key of several columns are separated by NUL, which no part holds.
    pub key: String,
    /// What is wrong.
    pub kind: DifferenceKind,
    /// The row on the left that it is about.
    pub left: Option<Seen>,
    /// The row on the right that it is about.
    pub right: Option<Seen>,
    /// For a duplicate, the row of the same side that it repeats.
    pub repeats: Option<Place>,
    /// Whether the key has rows on both sides.
    pub is_key_on_both: bool,
}

/// Appends a row's record to `out` and returns how many bytes of it are scope and key.
#[inline]
pub(super) fn put_row(out: &mut Vec<u8>, row: &PairRow<'_>) -> usize {
    put_varint(out, 0);
    put_text(out, row.key);
    let key_len = out.len();
    out.extend_from_slice(&row.currency.to_be_bytes());
    put_ordered(out, row.amount_minor);
    put_text(out, row.status);
    let sign = if row.is_left { -1 } else { 1 };
    out.push(if row.is_left { LEFT } else { RIGHT });
    put_ordered(out, sign * i64::from(row.place.source));
    put_ordered(out, sign * row.place.line.cast_signed());
    key_len
}

/// Where the parts of what follows a row's key end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) currency: usize,
    pub(super) amount: usize,
    /// Everything that makes two rows the same ends here.
    pub(super) value: usize,
    pub(super) is_left: bool,
}

/// Whether a record is of the left; `value_end` is where key and value end in it.
#[inline]
pub(super) fn is_left(record: &[u8], value_end: usize) -> Result<bool> {
    Ok(*record.get(value_end).ok_or_else(damaged)? == LEFT)
}

/// Finds the parts of what follows a row's key.
#[inline]
pub(super) fn ends(rest: &[u8]) -> Result<Ends> {
    let first = *rest.get(CURRENCY_BYTES).ok_or_else(damaged)?;
    let amount = CURRENCY_BYTES + 1 + ordered_len(first);
    let mut cursor = Cursor::new(rest.get(amount..).ok_or_else(damaged)?);
    cursor.text()?;
    let value = rest.len() - cursor.rest().len();
    let is_left = cursor.byte()? == LEFT;
    Ok(Ends { currency: CURRENCY_BYTES, amount, value, is_left })
}

fn seen(rest: &[u8]) -> Result<Seen> {
    let (currency, fields) = rest.split_first_chunk::<CURRENCY_BYTES>().ok_or_else(damaged)?;
    let mut cursor = Cursor::new(fields);
    let amount_minor = cursor.ordered()?;
    let status = text(cursor.text()?)?;
    Ok(Seen { currency: u16::from_be_bytes(*currency), amount_minor, status, place: place(cursor.rest())? })
}

/// The place that a row's record ends with, from its side on.
fn place(bytes: &[u8]) -> Result<Place> {
    let mut cursor = Cursor::new(bytes);
    cursor.byte()?;
    let source = u32::try_from(cursor.ordered()?.unsigned_abs()).map_err(|_| damaged())?;
    Ok(Place { source, line: cursor.ordered()?.unsigned_abs() })
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| damaged())
}

/// A difference, its parts as they stand in the records of its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) key: &'a [u8],
    pub(super) kind: DifferenceKind,
    pub(super) left: &'a [u8],
    pub(super) right: &'a [u8],
    /// Empty where nothing is repeated, else from the side on.
    pub(super) repeats: &'a [u8],
    pub(super) is_key_on_both: bool,
}

/// Appends the record of a difference, whose byte order is by key, then by kind.
pub(super) fn put_difference(out: &mut Vec<u8>, parts: &Parts<'_>) -> Result<()> {
    out.extend_from_slice(parts.key);
    out.push(0);
    out.push(parts.kind as u8);
    out.push(u8::from(parts.is_key_on_both));
    put_text(out, parts.left);
    put_text(out, parts.right);
    put_text(out, parts.repeats);
    out.extend_from_slice(&u32::try_from(parts.key.len())?.to_le_bytes());
    Ok(())
}

/// Reads what [`put_difference`] wrote.
pub(super) fn difference(record: &[u8]) -> Result<Difference> {
    let (record, key_len) = record.split_last_chunk::<4>().ok_or_else(damaged)?;
    let (key, rest) = record.split_at_checked(u32::from_le_bytes(*key_len) as usize).ok_or_else(damaged)?;
    let mut cursor = Cursor::new(rest);
    cursor.byte()?;
    let kind = DifferenceKind::ALL.get(usize::from(cursor.byte()?)).ok_or_else(damaged)?;
    let is_key_on_both = cursor.byte()? == 1;
    let mut side = || -> Result<Option<Seen>> {
        let rest = cursor.text()?;
        if rest.is_empty() { Ok(None) } else { seen(rest).map(Some) }
    };
    let (left, right) = (side()?, side()?);
    let repeats = cursor.text()?;
    let repeats = if repeats.is_empty() { None } else { Some(place(repeats)?) };
    Ok(Difference { key: text(key)?, kind: *kind, left, right, repeats, is_key_on_both })
}
