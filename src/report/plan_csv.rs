//! `plan.csv`: the corrections that a person reviews, written and read back.
//!
//! The one thing to get right: a person may delete rows and nothing else. Reading is strict about
//! form; whether a row is still the row that was planned is decided by the caller, who compares each
//! [`PlanRow`] with [`PlanRow::of`] the stored correction of that id.

use super::Exponent;
use super::cell::{Cell, Column, Holds, Style};
use super::read::{Table, TableRow, quote, read as read_table};
use super::sheet::Sheet;
use crate::correction::Correction;
use crate::findings::Action;
use crate::record::{Status, minor_from_decimal};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// Columns of `plan.csv`.
pub const COLUMNS: [Column; 10] = [
    Column::new("correction_id", Holds::Id),
    Column::new("finding_id", Holds::Id),
    Column::new("action", Holds::Text),
    Column::new("effect_key", Holds::Id),
    Column::new("object_id", Holds::Id),
    Column::new("currency", Holds::Text),
    Column::new("amount_minor", Holds::Minor),
    Column::new("target_state", Holds::Text),
    Column::new("reason", Holds::Text),
    Column::new("allowed_by", Holds::Text),
];

const ACTIONS: [Action; 4] =
    [Action::ReplayEvent, Action::ApplyEffect, Action::ReverseEntry, Action::SetState];

/// One row of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// Hash of the correction.
    pub correction_id: String,
    /// The finding that it answers.
    pub finding_id: String,
    /// A correctable action.
    pub action: Action,
    /// `provider/account/mode/kind:object`.
    pub effect_key: String,
    /// The object.
    pub object_id: String,
    /// Lower-case ISO code, empty where no money moves.
    pub currency: String,
    /// Signed minor units that the local balance moves by; 0 where no money moves.
    pub amount_minor: i64,
    /// Status to set.
    pub target_state: Option<Status>,
    /// Why.
    pub reason: String,
    /// `review` or `auto`.
    pub allowed_by: String,
}

impl PlanRow {
    /// The row of a correction.
    #[must_use]
    pub fn of(correction: &Correction) -> Self {
        Self {
            correction_id: correction.correction_id.clone(),
            finding_id: correction.finding_id.clone(),
            action: correction.action,
            effect_key: format!("{}/{}", correction.scope, correction.effect_key),
            object_id: correction.object_id.clone(),
            currency: correction.currency.clone(),
            amount_minor: correction.amount_minor,
            target_state: correction.target_state,
            reason: correction.reason.clone(),
            allowed_by: correction.allowed_by.clone(),
        }
    }

    /// Its cells in machine form, as in [`COLUMNS`].
    #[must_use]
    pub fn cells(&self) -> [String; 10] {
        [
            self.correction_id.clone(),
            self.finding_id.clone(),
            self.action.to_string(),
            self.effect_key.clone(),
            self.object_id.clone(),
            self.currency.clone(),
            self.amount_minor.to_string(),
            self.target_state.map_or("", Status::as_str).to_owned(),
            self.reason.clone(),
            self.allowed_by.clone(),
        ]
    }

    /// Decimals of its currency.
    fn decimals(&self, exponent: Exponent<'_>) -> u32 {
        let provider = self.effect_key.split('/').next().unwrap_or("");
        exponent(provider, &self.currency)
    }
}

/// The file's bytes and row count, in the order given.
///
/// # Errors
/// When the CSV writer refuses.
pub fn render(corrections: &[Correction], style: Style, exponent: Exponent<'_>) -> Result<(Vec<u8>, u64)> {
    let mut sheet = Sheet::new(style, &COLUMNS)?;
    for row in corrections.iter().map(PlanRow::of) {
        sheet.push(&[
            Cell::Id(&row.correction_id),
            Cell::Id(&row.finding_id),
            Cell::Text(row.action.as_str()),
            Cell::Id(&row.effect_key),
            Cell::Id(&row.object_id),
            Cell::Text(&row.currency),
            Cell::Minor(row.amount_minor, row.decimals(exponent)),
            Cell::Text(row.target_state.map_or("", Status::as_str)),
            Cell::Text(&row.reason),
            Cell::Text(&row.allowed_by),
        ])?;
    }
    sheet.finish()
}

/// Reads a plan, in either style.
///
/// # Errors
/// When the file is not a plan of ours, a value is not one that we write, a correction stands twice,
/// or the decimal amount of a spreadsheet plan no longer equals its minor units. Names row and column.
pub fn read(bytes: &[u8], exponent: Exponent<'_>) -> Result<Vec<PlanRow>> {
    let table = read_table(&COLUMNS, bytes)?;
    let mut rows: Vec<PlanRow> = Vec::with_capacity(table.rows.len());
    let mut first_at: BTreeMap<String, usize> = BTreeMap::new();
    for raw in &table.rows {
        let row = plan_row(&table, raw)?;
        check_decimal(&table, raw, &row, exponent)?;
        if let Some(first) = first_at.insert(row.correction_id.clone(), raw.number) {
            bail!("{}: the correction of row {first} again", table.place(raw, "correction_id"));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn plan_row(table: &Table, raw: &TableRow) -> Result<PlanRow> {
    let text = |column: &str| table.cell(raw, column).to_owned();
    let needed = |column: &str| {
        let value = text(column);
        if value.is_empty() {
            bail!("{}: empty", table.place(raw, column));
        }
        Ok(value)
    };
    let action = text("action");
    let action = ACTIONS.into_iter().find(|known| known.as_str() == action).with_context(|| {
        format!("{}: {} is no action that can be applied", table.place(raw, "action"), quote(&action))
    })?;
    let target = text("target_state");
    let target_state = if target.is_empty() {
        None
    } else {
        let unknown = || format!("{}: {} is no status", table.place(raw, "target_state"), quote(&target));
        Some(target.parse::<Status>().ok().with_context(unknown)?)
    };
    Ok(PlanRow {
        correction_id: needed("correction_id")?,
        finding_id: needed("finding_id")?,
        action,
        effect_key: needed("effect_key")?,
        object_id: needed("object_id")?,
        currency: text("currency"),
        amount_minor: table.minor(raw, "amount_minor")?,
        target_state,
        reason: text("reason"),
        allowed_by: needed("allowed_by")?,
    })
}

/// Somebody who edits the amount that they can read must not be left with the one that they cannot.
fn check_decimal(table: &Table, raw: &TableRow, row: &PlanRow, exponent: Exponent<'_>) -> Result<()> {
    let Some(decimal) = raw.decimals.first() else { return Ok(()) };
    if minor_from_decimal(decimal, row.decimals(exponent)) == Ok(row.amount_minor) {
        return Ok(());
    }
    bail!(
        "{}: {} is not amount_minor {}; rows may be deleted, not edited",
        table.place(raw, "amount_decimal"),
        quote(decimal),
        row.amount_minor
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Locale;
    use crate::record::{EffectKind, Scope, iso_exponent};

    fn exponent(_provider: &str, currency: &str) -> u32 {
        iso_exponent(currency)
    }

    fn plan() -> Vec<Correction> {
        let base = Correction {
            correction_id: "c0ffee".to_owned(),
            finding_id: "00367901234567890323".to_owned(),
            scope: Scope::new("stripe", "", "live"),
            action: Action::ApplyEffect,
            effect_key: "credit:ch_1".to_owned(),
            object_id: "ch_1".to_owned(),
            root_id: "pi_1".to_owned(),
            effect: Some(EffectKind::Credit),
            currency: "brl".to_owned(),
            amount_minor: 123_450,
            target_state: None,
            reason: "=no event, \"none\"".to_owned(),
            allowed_by: "review".to_owned(),
            event_ids: Vec::new(),
            effect_ids: Vec::new(),
            occurred_at_us: 0,
        };
        let state = Correction {
            correction_id: "1E5".to_owned(),
            action: Action::SetState,
            effect_key: "state:pi_2".to_owned(),
            object_id: "pi_2".to_owned(),
            effect: None,
            currency: String::new(),
            amount_minor: 0,
            target_state: Some(Status::Refunded),
            ..base.clone()
        };
        vec![base, state]
    }

    fn file(style: Style) -> String {
        String::from_utf8(render(&plan(), style, &exponent).unwrap().0).unwrap()
    }

    #[test]
    fn a_plan_is_read_back_in_every_style() {
        let rows: Vec<PlanRow> = plan().iter().map(PlanRow::of).collect();
        assert_eq!(rows[0].effect_key, "stripe//live/credit:ch_1");
        for style in [Style::Machine, Style::Spreadsheet(Locale::En), Style::Spreadsheet(Locale::PtBr)] {
            assert_eq!(read(file(style).as_bytes(), &exponent).unwrap(), rows, "{style:?}");
        }
    }

    #[test]
    fn what_a_spreadsheet_does_to_a_plan_is_accepted() {
        let rows: Vec<PlanRow> = plan().iter().map(PlanRow::of).collect();
        let saved = file(Style::Spreadsheet(Locale::PtBr));
        let (header, rest) = saved.split_once("\r\n").unwrap();
        let second = rest.split_once("\r\n").unwrap().1;
        let deleted = format!("{header}\r\n{second}");
        assert_eq!(read(deleted.as_bytes(), &exponent).unwrap(), rows[1..]);
        let emptied = format!("{header}\r\n;;;;;;;;;;\r\n{second}");
        assert_eq!(read(emptied.as_bytes(), &exponent).unwrap(), rows[1..]);
        let shortened = saved.replace("1234,50", "1234,5").replace("\r\n", "\n").replace('\u{feff}', "");
        assert_eq!(read(shortened.as_bytes(), &exponent).unwrap(), rows);
        assert_eq!(read(format!("{header}\r\n").as_bytes(), &exponent).unwrap(), []);
    }

    #[test]
    fn every_other_edit_is_an_error_that_names_row_and_column() {
        let machine = file(Style::Machine);
        let sheet = file(Style::Spreadsheet(Locale::En));
        let row = machine.lines().nth(1).unwrap().to_owned();
        let cases = [
            (
                machine.replace("123450", "1234.5"),
                "row 2, column amount_minor: \"1234.5\" is not a whole number of minor units",
            ),
            (
                machine.replace("123450", "+123450"),
                "row 2, column amount_minor: \"+123450\" is not a whole number of minor units",
            ),
            (
                machine.replace("set_state", "set_stat"),
                "row 3, column action: \"set_stat\" is no action that can be applied",
            ),
            (
                machine.replace("set_state", "review"),
                "row 3, column action: \"review\" is no action that can be applied",
            ),
            (
                machine.replace("refunded", "Refunded"),
                "row 3, column target_state: \"Refunded\" is no status",
            ),
            (machine.replace("c0ffee", ""), "row 2, column correction_id: empty"),
            (format!("{machine}{row}\n"), "row 4, column correction_id: the correction of row 2 again"),
            (machine.replace(",review\n", "\n"), "row 2 has 9 cells, the header has 10"),
            (machine.replace("object_id", "object"), "row 1, column 5: \"object\" instead of `object_id`"),
            (
                machine.replace("allowed_by\n", "allowed_by,more\n"),
                "row 1: unknown columns after `allowed_by`",
            ),
            (
                sheet.replace("1234.50", "9999.50"),
                "row 2, column amount_decimal: \"9999.50\" is not amount_minor 123450; rows may be deleted, not edited",
            ),
            (String::new(), "it is empty, without even a header"),
        ];
        for (text, message) in cases {
            assert_eq!(read(text.as_bytes(), &exponent).unwrap_err().to_string(), message);
        }
        let bytes = [machine.as_bytes(), b"\xe7\xe3o,,,,,,,,,\n"].concat();
        assert_eq!(read(&bytes, &exponent).unwrap_err().to_string(), "row 4 is not UTF-8 CSV text");
    }
}
