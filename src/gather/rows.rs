//! Rows of a side's database, whichever it is: each value as the database holds it.

use super::mysql_value::mysql_cell;
use super::sqlite::SqliteRow;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::{PgRow, PgTypeKind};
use sqlx::{Row, TypeInfo, ValueRef};
use std::borrow::Cow;

/// A value as the database holds it.
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    /// Text; also decimal numbers and ids whose type the database writes in exactly one way.
    Text(Cow<'a, str>),
    Real,
    /// A date or instant of the database's own.
    Time,
    /// Anything else.
    Blob,
}

/// One row.
pub(super) enum TeamRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
    MySql(MySqlRow),
}

/// Why a value cannot be read.
pub(super) const UNREADABLE: &str = "cannot be read";
pub(super) const NOT_UTF8: &str = "is no valid UTF-8 text";

impl TeamRow {
    /// The value at a place.
    pub fn cell(&self, place: usize) -> Result<Cell<'_>, &'static str> {
        match self {
            Self::Sqlite(row) => row.cell(place),
            Self::Postgres(row) => postgres_cell(row, place),
            Self::MySql(row) => mysql_cell(row, place),
        }
    }

    /// How this database makes Unix microseconds of a date of its own.
    pub const fn instant_hint(&self) -> &'static str {
        match self {
            Self::MySql(_) => "write `cast(unix_timestamp(…) * 1000000 as signed)` in the select",
            _ => "write `cast(extract(epoch from …) * 1000000 as bigint)` in the select",
        }
    }

    /// The bytes of a text or binary value; `None` where it is null.
    pub fn bytes(&self, place: usize) -> sqlx::Result<Option<Vec<u8>>> {
        match self {
            Self::Sqlite(row) => Ok(row.bytes(place)),
            Self::MySql(row) => row.try_get_unchecked(place),
            Self::Postgres(row) => {
                let value = row.try_get_raw(place)?;
                if value.is_null() {
                    return Ok(None);
                }
                let bytes = value.as_bytes().map_err(sqlx::Error::Decode)?;
                // `jsonb` comes with the number of its form before the text.
                let is_jsonb = value.type_info().name() == "JSONB";
                Ok(Some(bytes.get(usize::from(is_jsonb)..).unwrap_or_default().to_vec()))
            }
        }
    }
}

fn postgres_cell(row: &PgRow, place: usize) -> Result<Cell<'_>, &'static str> {
    let value = row.try_get_raw(place).map_err(|_| UNREADABLE)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let type_info = value.type_info().into_owned();
    let bytes = value.as_bytes().map_err(|_| UNREADABLE)?;
    let text = || std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| NOT_UTF8);
    Ok(match type_info.name() {
        "INT2" | "INT4" | "INT8" => Cell::Integer(whole(bytes).ok_or(UNREADABLE)?),
        "TEXT" | "VARCHAR" | "NAME" => Cell::Text(text()?),
        // Its blanks at the end are padding.
        "CHAR" => Cell::Text(Cow::Owned(text()?.trim_end_matches(' ').to_owned())),
        "NUMERIC" => Cell::Text(Cow::Owned(decimal(bytes).ok_or(UNREADABLE)?)),
        "UUID" => Cell::Text(Cow::Owned(uuid(bytes))),
        "FLOAT4" | "FLOAT8" => Cell::Real,
        "TIMESTAMPTZ" | "TIMESTAMP" | "DATE" => Cell::Time,
        _ if matches!(type_info.kind(), PgTypeKind::Enum(_)) => Cell::Text(text()?),
        _ => Cell::Blob,
    })
}

/// A whole number in network order.
fn whole(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        2 => Some(i64::from(i16::from_be_bytes(bytes.try_into().ok()?))),
        4 => Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?))),
        8 => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    text
}

/// The digits of a `numeric`: groups of four decimal digits, the first of which has the weight
/// 10000^weight, as `numeric_send` in PostgreSQL's `src/backend/utils/adt/numeric.c` writes them. `NaN`
/// and the infinities as such, which no amount is.
fn decimal(bytes: &[u8]) -> Option<String> {
    const NEGATIVE: u16 = 0x4000;
    let word = |index: usize| -> Option<u16> {
        Some(u16::from_be_bytes(bytes.get(2 * index..2 * index + 2)?.try_into().ok()?))
    };
    let (groups, weight) = (usize::from(word(0)?), word(1)?.cast_signed());
    let (sign, decimals) = (word(2)?, usize::from(word(3)?));
    if sign != 0 && sign != NEGATIVE {
        return Some("NaN or infinite".to_owned());
    }
    let group = |place: i32| -> Option<u16> {
        let index = i32::from(weight) - place;
        match usize::try_from(index) {
            Ok(index) if index < groups => word(4 + index),
            _ => Some(0),
        }
    };
    let digits = |place: i32| Some(format!("{:04}", group(place)?));
    let whole: String = (0..=i32::from(weight.max(0))).rev().map(digits).collect::<Option<_>>()?;
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let fraction_groups = i32::try_from(decimals.div_ceil(4)).ok()?;
    let fraction: String = (1..=fraction_groups).map(|place| digits(-place)).collect::<Option<_>>()?;
    let point = if decimals > 0 { "." } else { "" };
    let minus = if sign == NEGATIVE { "-" } else { "" };
    Some(format!("{minus}{whole}{point}{}", fraction.get(..decimals)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(weight: i16, sign: u16, decimals: u16, groups: &[u16]) -> Option<String> {
        let count = u16::try_from(groups.len()).unwrap();
        let head = [count, weight.cast_unsigned(), sign, decimals];
        let bytes: Vec<u8> = head.iter().chain(groups).flat_map(|word| word.to_be_bytes()).collect();
        decimal(&bytes)
    }

    #[test]
    fn decimals_are_read_digit_by_digit() {
        for (weight, sign, decimals, groups, expected) in [
            (0, 0, 2, &[19, 9900][..], "19.99"),
            (0, 0x4000, 2, &[19, 9900], "-19.99"),
            (1, 0, 2, &[1, 2345, 6000], "12345.60"),
            (-1, 0, 2, &[100], "0.01"),
            (-2, 0, 8, &[1], "0.00000001"),
            (0, 0, 2, &[], "0.00"),
            (1, 0, 0, &[2], "20000"),
            (0, 0, 3, &[7], "7.000"),
            (0, 0xc000, 0, &[], "NaN or infinite"),
        ] {
            assert_eq!(numeric(weight, sign, decimals, groups).as_deref(), Some(expected));
        }
        assert_eq!(decimal(&[0, 1, 0]), None);
    }

    #[test]
    fn uuids_are_written_as_postgres_writes_them() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(uuid(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
