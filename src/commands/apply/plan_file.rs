//! A plan that comes back from review: read, and compared with what the store kept of it.
//!
//! The one thing to get right: the file only chooses rows. What is carried out is the store's own
//! copy, and a file that says anything else than that copy is refused whole.

use crate::correction::Correction;
use crate::findings::Action;
use crate::record::Status;
use crate::store::Store;
use crate::store::plans::{self, Planned};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use thiserror::Error;

/// Columns of `plan.csv`, in order.
pub const COLUMNS: [&str; 10] = [
    "correction_id",
    "finding_id",
    "action",
    "effect_key",
    "object_id",
    "currency",
    "amount_minor",
    "target_state",
    "reason",
    "allowed_by",
];

/// Why a plan is refused whole, before any write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not a plan at all.
    #[error("it is not a plan: {0}")]
    Unreadable(String),
    /// A row that no run of this store planned.
    #[error(
        "line {line}: no run of this store planned `{correction_id}`; it was edited, or the plan is another store's"
    )]
    Unknown {
        /// Line of the file.
        line: u64,
        /// What stands there as its id.
        correction_id: String,
    },
    /// A row that says something else than was planned.
    #[error("line {line}: `{column}` is not as it was planned")]
    Edited {
        /// Line of the file.
        line: u64,
        /// The first column that differs.
        column: &'static str,
    },
    /// A row that stands there twice.
    #[error("line {line}: the row stands there twice")]
    Repeated {
        /// Line of the second one.
        line: u64,
    },
    /// Rows of two runs.
    #[error("line {line}: the row is of the run {run_id}, other rows are of {other_run_id}")]
    TwoRuns {
        /// Line of the file.
        line: u64,
        /// Its run.
        run_id: String,
        /// The run of the rows before it.
        other_run_id: String,
    },
    /// The store's own copy no longer has the id that its fields give.
    #[error("line {line}: the store's copy of the plan was changed")]
    StoreEdited {
        /// Line of the file.
        line: u64,
    },
}

/// One row of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Line of the file.
    pub line: u64,
    /// The cells, as in [`COLUMNS`].
    pub cells: [String; 10],
}

/// A plan that was found to be as it was written, but for rows that a person took out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    /// The run that planned it; empty when every row was taken out.
    pub run_id: String,
    /// The rows that were left, in the file's order.
    pub corrections: Vec<Correction>,
}

/// Reads the file.
///
/// # Errors
/// When it cannot be opened. What is wrong with its contents is the inner result.
pub fn read(path: &Path) -> Result<Result<Vec<Row>, Refusal>> {
    let bytes = std::fs::read(path).with_context(|| format!("read the plan {}", path.display()))?;
    Ok(parse(&bytes))
}

/// Reads the bytes of a machine-mode `plan.csv`.
///
/// # Errors
/// When they are no plan.
pub fn parse(bytes: &[u8]) -> Result<Vec<Row>, Refusal> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let unreadable = |error: &dyn std::fmt::Display| Refusal::Unreadable(error.to_string());
    let mut reader = csv::ReaderBuilder::new().from_reader(bytes);
    let header = reader.headers().map_err(|error| unreadable(&error))?;
    if !header.iter().eq(COLUMNS) {
        return Err(Refusal::Unreadable(format!("its columns are not {}", COLUMNS.join(", "))));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells: Vec<String> = record.iter().map(str::to_owned).collect();
        let cells = cells.try_into().map_err(|_| Refusal::Unreadable(format!("line {line} is cut off")))?;
        rows.push(Row { line, cells });
    }
    Ok(rows)
}

/// The cells of a correction in `plan.csv`.
#[must_use]
pub fn cells(correction: &Correction) -> [String; 10] {
    let Correction { scope, .. } = correction;
    [
        correction.correction_id.clone(),
        correction.finding_id.clone(),
        correction.action.to_string(),
        format!("{scope}/{}", correction.effect_key),
        correction.object_id.clone(),
        correction.currency.clone(),
        correction.amount_minor.to_string(),
        correction.target_state.map_or("", Status::as_str).to_owned(),
        correction.reason.clone(),
        correction.allowed_by.clone(),
    ]
}

/// Compares a file's rows with the store's copy.
///
/// # Errors
/// When the store cannot be read. A plan that is refused is the inner result.
pub async fn review(store: &Store, rows: &[Row]) -> Result<Result<Reviewed, Refusal>> {
    let ids: Vec<&str> = rows.iter().map(|row| &*row.cells[0]).collect();
    let mut connection = store.pool().acquire().await.context("open the store")?;
    let planned = plans::planned(&mut connection, &ids).await?;
    let planned = planned.into_iter().map(|row| (row.correction.correction_id.clone(), row)).collect();
    Ok(compare(rows, planned))
}

fn compare(rows: &[Row], mut planned: BTreeMap<String, Planned>) -> Result<Reviewed, Refusal> {
    let mut reviewed = Reviewed { run_id: String::new(), corrections: Vec::with_capacity(rows.len()) };
    let mut taken = BTreeSet::new();
    for row in rows {
        let line = row.line;
        let id = &row.cells[0];
        if taken.contains(id) {
            return Err(Refusal::Repeated { line });
        }
        let Some(Planned { run_id, correction }) = planned.remove(id) else {
            // An id is 32 characters; whatever else stands there is not repeated at length.
            let correction_id = id.chars().take(40).collect();
            return Err(Refusal::Unknown { line, correction_id });
        };
        taken.insert(id);
        let written = cells(&correction);
        let differs =
            COLUMNS.into_iter().zip(row.cells.iter().zip(&written)).find(|(_, (read, was))| read != was);
        if let Some((column, _)) = differs {
            return Err(Refusal::Edited { line, column });
        }
        if correction.expected_id(&run_id) != *id || !is_whole(&correction) {
            return Err(Refusal::StoreEdited { line });
        }
        if reviewed.run_id.is_empty() {
            reviewed.run_id = run_id;
        } else if reviewed.run_id != run_id {
            return Err(Refusal::TwoRuns { line, run_id, other_run_id: reviewed.run_id });
        }
        reviewed.corrections.push(correction);
    }
    Ok(reviewed)
}

/// Whether a correction has what its action needs.
fn is_whole(correction: &Correction) -> bool {
    match correction.action {
        Action::ReplayEvent => !correction.event_ids.is_empty(),
        Action::ApplyEffect => correction.effect.is_some(),
        Action::ReverseEntry => correction.effect.is_some() && correction.effect_ids.len() == 2,
        Action::SetState => correction.target_state.is_some(),
        Action::Review | Action::None => false,
    }
}
