//! The rows of plain tables that `effects.sql` leaves out, as `unbooked.sql` gives them: the same conditions, the other way
//! round, so that a row is in one of the two files.

use super::schema::Flavour;

/// A select over one table.
pub(super) struct LeftOut {
    /// The row's id as `effects.sql` gives it.
    pub row_id: String,
    pub account: String,
    pub mode: String,
    pub object: String,
    /// What a row would be, a kind of effect.
    pub kind: &'static str,
    /// The column of its status as text and the list of words that `effects.sql` has; none where no column says it.
    pub status: Option<(String, String)>,
    /// The table with its alias.
    pub from: String,
    /// Further conditions of `effects.sql` that say whose the rows are.
    pub only: String,
}

impl LeftOut {
    pub fn select(&self, flavour: Flavour) -> String {
        let Self { row_id, account, mode, object, kind, from, only, .. } = self;
        let (word, left_out) = match &self.status {
            Some((status, list)) => (
                format!("coalesce({}, '')", flavour.text(status)),
                format!(
                    "(\n        {object} is null\n        or {status} is null\n        or {status} not in (\n        {list}\n        )\n    )"
                ),
            ),
            None => ("''".to_owned(), format!("{object} is null")),
        };
        format!(
            "select
    {row_id} as effect_id,
    'stripe' as provider,
    {account} as account,
    {mode} as mode,
    {object} as object_id,
    '{kind}' as kind,
    {word} as status
from {from}
where {left_out}{only}"
        )
    }
}
