//! `[check]`: what `recon check` cannot find out by itself about a team's own tables.

use super::document::Section;
use super::unusable::Unusable;
use super::values::shown;

/// Columns of a table under which a row exists once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKey {
    /// Its table, with its schema where it has one: `shop.webhook_events`.
    pub table: String,
    /// Its columns, at least one; the id last.
    pub columns: Vec<String>,
}

/// `[check]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckSettings {
    /// Under which an event is processed once, one for each table; none: made out from `inbox.sql`.
    pub event_key: Vec<NamedKey>,
    /// Under which an effect is booked once, one for each table; none: made out from `effects.sql`.
    pub effect_key: Vec<NamedKey>,
    /// A fault of the team's own tables is told and fails nothing.
    pub is_lenient: bool,
}

pub(super) fn read_check(root: &Section<'_>) -> Result<CheckSettings, Unusable> {
    let section = root.section("check", &["event_key", "effect_key", "own_tables"])?;
    let is_lenient = match section.text("own_tables")? {
        None | Some("fail") => false,
        Some("warn") => true,
        Some(_) => return Err(section.bad("own_tables", "must be \"fail\" or \"warn\"", "")),
    };
    Ok(CheckSettings {
        event_key: named_keys(&section, "event_key")?,
        effect_key: named_keys(&section, "effect_key")?,
        is_lenient,
    })
}

/// One `table (column, column)`, or a list of them.
fn named_keys(section: &Section<'_>, key: &str) -> Result<Vec<NamedKey>, Unusable> {
    let texts = match section.text(key) {
        Ok(text) => text.into_iter().collect(),
        Err(_) => section.texts(key)?.unwrap_or_default(),
    };
    texts.into_iter().map(|text| named_key(section, key, text)).collect()
}

/// `table (column, column)`.
fn named_key(section: &Section<'_>, key: &str, text: &str) -> Result<NamedKey, Unusable> {
    let parsed = text.trim().strip_suffix(')').and_then(|text| text.split_once('('));
    let named = parsed.map(|(table, columns)| NamedKey {
        table: table.trim().to_owned(),
        columns: columns.split(',').map(|column| column.trim().to_owned()).collect(),
    });
    let is_name = |name: &str| !name.is_empty() && !name.contains(['(', ')', '"', '`', '\'', ';']);
    match named {
        Some(named) if is_name(&named.table) && named.columns.iter().all(|column| is_name(column)) => {
            Ok(named)
        }
        _ => Err(section.bad(
            key,
            &format!("is {}, and names no key", shown(text)),
            "write the table and its columns, the id last: \"webhook_events (provider, event_id)\"; for several tables a list of such texts",
        )),
    }
}
