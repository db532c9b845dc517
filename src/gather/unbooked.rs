//! What stands in a team's tables and is no effect: the rows that `effects.sql` leaves out, as the optional `unbooked.sql`
//! gives them. Asked for by id only, before something is booked.
//!
//! The one thing to get right: a row that is there under another status is neither booked nor missing. Whoever books a
//! second one beside it books twice as soon as the first is put right.

use super::columns::{Columns, Contract, RowReader, Scopes};
use super::local::{LocalBooks, refuse_unmapped};
use super::reader::Reader;
use super::source::{FILTER_IDS, Source};
use super::statement::Statement;
use crate::config::{Unusable, shown, suggestion};
use crate::record::{EffectKind, Scope, Status};
use crate::store::{known_as, resolve};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Its file in the folder of queries.
pub const UNBOOKED_FILE: &str = "unbooked.sql";
pub(super) const UNBOOKED: Contract = Contract {
    required: &["effect_id", "provider", "account", "mode", "object_id", "kind", "status"],
    one_of: &[],
    optional: &[],
    row_id: "effect_id",
};
const OBJECT: &str = "object_id";
/// The words of all its rows: how many rows have each, and how many of those have no id.
const WORDS: &str = "select q.status as status, count(*) as row_count, \
    sum(case when q.object_id is null or q.object_id = '' then 1 else 0 end) as without_id";

/// A row that is there and not booked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unbooked {
    /// Scope.
    pub scope: Scope,
    /// The payment.
    pub root_id: String,
    /// The object that it names; the payment, where it names that by any of its ids.
    pub object_id: String,
    /// Id of the team's row.
    pub effect_id: String,
    /// What it would be.
    pub kind: EffectKind,
    /// The team's word for how it stands; empty where there is none.
    pub status: String,
}

impl Unbooked {
    /// Whether it is the row of this effect of this object, or names its payment as a whole.
    #[must_use]
    pub fn is_of(&self, scope: &Scope, kind: EffectKind, object_id: &str, root_id: &str) -> bool {
        let is_named = self.object_id == object_id || self.object_id == root_id;
        self.kind == kind && is_named && self.scope == *scope
    }
}

/// A word of the rows that are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The team's word; empty where there is none.
    pub word: String,
    /// Rows that have it.
    pub rows: u64,
    /// Those among them that name no object.
    pub rows_without_id: u64,
    /// What the word means, where anything says so.
    pub status: Option<Status>,
}

impl LeftOut {
    /// Whether the word says that money came in, so that its rows should be booked.
    #[must_use]
    pub fn means_money(&self) -> bool {
        self.status.is_some_and(means_money)
    }
}

const fn means_money(status: Status) -> bool {
    !matches!(status, Status::Pending | Status::Failed | Status::Canceled)
}

/// What a word means: the team's map first, then our own words.
pub(super) fn meaning(status_map: &BTreeMap<String, Status>, word: &str) -> Option<Status> {
    status_map.get(word).copied().or_else(|| word.parse().ok())
}

/// The statement, where the team has one.
///
/// # Errors
/// [`Unusable`] when it does not keep the contract.
pub(super) async fn statement(source: &Source, queries: &Path) -> Result<Option<(Statement, Columns)>> {
    if !queries.join(UNBOOKED_FILE).is_file() {
        return Ok(None);
    }
    source.statement(queries, UNBOOKED_FILE, &[], &UNBOOKED, &[OBJECT]).await.map(Some)
}

/// The words of all rows that are left out, sorted.
///
/// # Errors
/// When the database cannot be read, or the table takes longer than a statement may.
pub(super) async fn words(
    source: &Source,
    statement: &Statement,
    status_map: &BTreeMap<String, Status>,
) -> Result<Vec<LeftOut>> {
    let sql = format!("{WORDS} from (\n{}\n) q group by q.status", statement.sql());
    let mut reader = source.reader().await?;
    let mut rows = reader.rows(&statement.file, sql, Vec::new()).await?;
    let names = ["status", "row_count", "without_id"].map(str::to_owned);
    let contract = Contract { required: &["status", "row_count"], optional: &["without_id"], ..UNBOOKED };
    let columns = Columns::find(&statement.file, &Contract { row_id: "status", ..contract }, &names)?;
    let mut found: BTreeMap<String, LeftOut> = BTreeMap::new();
    while let Some(row) = rows.next().await? {
        let row = columns.row(&row, 1);
        let word = row.text("status")?;
        let count = |name| -> Result<u64, Unusable> {
            Ok(row.integer(name)?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
        };
        let (rows, rows_without_id) = (count("row_count")?, count("without_id")?);
        let status = meaning(status_map, &word);
        // A null and an empty word are one.
        let left = found.entry(word.clone()).or_insert(LeftOut { word, rows: 0, rows_without_id: 0, status });
        left.rows += rows;
        left.rows_without_id += rows_without_id;
    }
    drop(rows);
    reader.end().await?;
    Ok(found.into_values().collect())
}

impl LocalBooks {
    /// Rows of all time that stand under one of `ids`, or another id of the same payment, and are not booked, sorted.
    ///
    /// # Errors
    /// [`Unusable`] when a row does not keep the contract, has a word that nothing maps, or one that means money; else
    /// when reading fails.
    pub(super) async fn unbooked_of(
        &self,
        reader: &mut Reader,
        scope: &Scope,
        ids: &BTreeSet<String>,
    ) -> Result<Vec<Unbooked>> {
        let Some((statement, columns)) = &self.unbooked else { return Ok(Vec::new()) };
        let ids = known_as(&self.store, scope, ids).await?;
        let ids: Vec<&str> = ids.iter().map(String::as_str).filter(|id| self.source.can_hold(id)).collect();
        let (mut found, mut scopes) = (Vec::new(), Scopes::default());
        let (mut unmapped, mut of_money) = (BTreeSet::new(), BTreeSet::new());
        for batch in ids.chunks(FILTER_IDS) {
            let sql = statement.filtered(OBJECT, batch.len());
            let binds = super::source::window_binds(statement, self.source.all_time(), batch);
            let mut rows = reader.rows(&statement.file, sql, binds).await?;
            let mut number = 0;
            while let Some(row) = rows.next().await? {
                number += 1;
                let row = columns.row(&row, number);
                if !row.is_wanted(Some((OBJECT, batch)))? || row.scope(&mut scopes)? != *scope {
                    continue;
                }
                let row = unbooked(&row, &mut scopes)?;
                match meaning(&self.status_map, &row.status) {
                    Some(status) if means_money(status) => {
                        of_money.insert((row.status.clone(), status));
                    }
                    None if !row.status.is_empty() => {
                        unmapped.insert(row.status.clone());
                    }
                    _ => {}
                }
                found.push(row);
            }
        }
        refuse_unmapped(&statement.file, &unmapped)?;
        refuse_money(&statement.file, &of_money)?;
        let objects: BTreeSet<String> = found.iter().map(|row| row.object_id.clone()).collect();
        let known = resolve(&self.store, scope, &objects, self.dialect.is_final).await?;
        for row in &mut found {
            let Some(target) = known.get(&row.object_id) else { continue };
            row.root_id.clone_from(&target.root_id);
            if !target.is_part && !self.is_anchor(row.kind, &row.object_id) {
                row.object_id.clone_from(&target.root_id);
            }
        }
        found.sort();
        Ok(found)
    }
}

fn unbooked(row: &RowReader<'_>, scopes: &mut Scopes) -> Result<Unbooked, Unusable> {
    let object_id = row.key("object_id")?;
    let word = row.key("kind")?;
    let kind = word.parse::<EffectKind>().map_err(|()| {
        let known = EffectKind::ALL.map(EffectKind::as_str);
        row.bad(
            "kind",
            &format!("is {}, which is no kind of effect", shown(&word)),
            suggestion(&word, &known),
        )
    })?;
    Ok(Unbooked {
        scope: row.scope(scopes)?,
        root_id: object_id.clone(),
        object_id,
        effect_id: row.key("effect_id")?,
        kind,
        status: row.text("status")?,
    })
}

/// The map says that money came in, and `effects.sql` leaves the rows out: one of them is wrong.
fn refuse_money(file: &str, words: &BTreeSet<(String, Status)>) -> Result<(), Unusable> {
    let Some((word, status)) = words.first() else { return Ok(()) };
    let listed: Vec<String> = words.iter().map(|(word, _)| shown(word)).collect();
    Err(Unusable::new(
        format!(
            "{file}: effects.sql leaves out rows whose status is {}, and {} means {status}: they would be taken for missing",
            listed.join(", "),
            shown(word)
        ),
        "add the words to the lists in effects.sql and unbooked.sql, or map them in [local.status_map] to pending, failed or canceled",
    ))
}
