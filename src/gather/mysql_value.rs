//! A value of MySQL or MariaDB as it stands there. The one thing to get right: a text that is compared by its bytes
//! (`utf8mb4_bin`) has the driver's flag for *binary* as bytes do, and is told from them by its character set only.

use super::rows::{Cell, NOT_UTF8, UNREADABLE};
use sqlx::mysql::{MySqlRow, MySqlTypeInfo};
use sqlx::{MySql, Row, Type, TypeInfo, ValueRef};
use std::borrow::Cow;

pub(super) fn mysql_cell(row: &MySqlRow, place: usize) -> Result<Cell<'_>, &'static str> {
    let value = row.try_get_raw(place).map_err(|_| UNREADABLE)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let kind: MySqlTypeInfo = value.type_info().into_owned();
    if <u64 as Type<MySql>>::compatible(&kind) {
        let number: u64 = row.try_get_unchecked(place).map_err(|_| UNREADABLE)?;
        let whole = i64::try_from(number).map(Cell::Integer);
        return Ok(whole.unwrap_or_else(|_| Cell::Text(Cow::Owned(number.to_string()))));
    }
    if <i64 as Type<MySql>>::compatible(&kind) {
        return row.try_get_unchecked(place).map(Cell::Integer).map_err(|_| UNREADABLE);
    }
    let text = || row.try_get_unchecked::<&str, _>(place).map(|text| Cell::Text(Cow::Borrowed(text)));
    match kind.name() {
        "DECIMAL" | "JSON" | "SET" | "ENUM" => text().map_err(|_| NOT_UTF8),
        "FLOAT" | "DOUBLE" => Ok(Cell::Real),
        "DATE" | "TIME" | "DATETIME" | "TIMESTAMP" | "YEAR" => Ok(Cell::Time),
        "GEOMETRY" | "BIT" => Ok(Cell::Blob),
        _ if <str as Type<MySql>>::compatible(&kind) => text().map_err(|_| NOT_UTF8),
        // Ids are often kept as bytes, so that they are compared as such. `binary(20)` fills up with zeros.
        _ => Ok(match row.try_get_unchecked::<&str, _>(place) {
            Ok(text) if !text.contains('\0') => Cell::Text(Cow::Borrowed(text)),
            _ => Cell::Blob,
        }),
    }
}
