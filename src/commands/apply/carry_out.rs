//! Carries corrections out, batch by batch: each batch is one transaction that reads again what it is
//! about to change, goes through the door, and appends what became of every row.
//!
//! The one thing to get right: whatever was read before the write lock was taken is read again under
//! it, except the provider's word, which cannot wait inside of a transaction.

use super::asking::{AskProvider, Why, withheld};
use super::money;
use crate::apply::state::{Fetched, Freshness, Verdict, judge};
use crate::correction::Correction;
use crate::findings::Action;
use crate::store::chain;
use crate::store::lease::Lease;
use crate::store::states::{self, ObjectKey, State};
use crate::store::{LOCK_ATTEMPTS, Store, is_busy};
use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, stream};
use sqlx::{Any, AnyConnection, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Corrections per transaction: large enough that pages of indexes with random keys are written a few
/// times and not once for each row, small enough that others wait for the lock well under a second.
const BATCH_ROWS: usize = 10_000;
/// Objects fetched at a time; the client below limits the rate.
const FETCHES_AT_ONCE: usize = 8;
/// Who a status row names after `set_state`.
const CHANGED_BY: &str = "recon";

/// What became of one correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowOutcome {
    /// Carried out now.
    Applied,
    /// The effect stands under another key, which was adopted; no amount changed.
    Adopted,
    /// This very correction was carried out before.
    AlreadyApplied,
    /// What it would change is no longer as the run saw it.
    StateMoved,
    /// A person changed the status later.
    ManualOverride,
    /// The provider could not be asked, or no run has the event's bytes.
    NotFetched,
    /// The effect is booked with another amount or currency, or was booked and taken back.
    Conflicts,
    /// The team's database or handler would not take it; nothing of it is kept.
    Refused,
    /// The handler said yes, and the local state does not show it.
    NotVerified,
    /// The handler could not be reached, or failed.
    Failed,
}

impl RowOutcome {
    /// Every outcome, in report order.
    pub const ALL: [Self; 10] = [
        Self::Applied,
        Self::Adopted,
        Self::AlreadyApplied,
        Self::StateMoved,
        Self::ManualOverride,
        Self::NotFetched,
        Self::Conflicts,
        Self::Refused,
        Self::NotVerified,
        Self::Failed,
    ];

    /// Whether the correction stands in the books now.
    #[must_use]
    pub const fn is_carried_out(self) -> bool {
        matches!(self, Self::Applied | Self::Adopted | Self::AlreadyApplied)
    }

    /// The word in the history and on the last line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Adopted => "adopted",
            Self::AlreadyApplied => "already_applied",
            Self::StateMoved => "state_moved",
            Self::ManualOverride => "manual_override",
            Self::NotFetched => "not_fetched",
            Self::Conflicts => "conflicts",
            Self::Refused => "refused",
            Self::NotVerified => "not_verified",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for RowOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What became of the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<RowOutcome, u64>,
    moved: Vec<String>,
}

impl Tally {
    /// Rows with an outcome.
    #[must_use]
    pub fn count(&self, outcome: RowOutcome) -> u64 {
        self.counts.get(&outcome).copied().unwrap_or(0)
    }

    /// Adds another one to it.
    pub(super) fn merge(&mut self, other: Self) {
        for (outcome, count) in other.counts {
            *self.counts.entry(outcome).or_default() += count;
        }
        self.moved.extend(other.moved);
    }

    /// Counts one row, and says why.
    pub(super) fn count_one(&mut self, outcome: RowOutcome, line: Option<String>) {
        *self.counts.entry(outcome).or_default() += 1;
        self.moved.extend(line);
    }

    /// What is not as planned, a line for each row, in plan order.
    #[must_use]
    pub fn moved(&self) -> &[String] {
        &self.moved
    }

    fn add(&mut self, batch: Batch) {
        for outcome in batch.outcomes {
            *self.counts.entry(outcome).or_default() += 1;
        }
        self.moved.extend(batch.moved);
    }
}

/// What became of one batch.
struct Batch {
    /// In row order.
    outcomes: Vec<RowOutcome>,
    /// In row order.
    moved: Vec<String>,
}

/// What carrying out needs besides the rows.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The store.
    pub store: &'a Store,
    /// The run that planned the rows.
    pub run_id: &'a str,
    /// When that run began, Unix µs: what changed since then was not seen by it.
    pub run_started_us: i64,
    /// Now, Unix µs.
    pub now_us: i64,
    /// Whether the inbox is recon's own, so that a replayed event is filed there.
    pub inbox_is_ours: bool,
    /// Whether a message that is not sent is kept for each effect that is booked, because live effects send one.
    pub keeps_messages: bool,
    /// The lease, where one is held: work stops when it is lost.
    pub lease: Option<&'a Lease>,
}

/// Carries out `corrections` in order. `provider` is asked for what is written as its word: the status of a
/// payment, and whether an effect is still there.
///
/// # Errors
/// When the store cannot be read or written, the provider cannot be asked for the effects, or the lease was
/// lost. Batches before that stay done; carrying out the same rows again goes on from there.
pub async fn carry_out(
    work: Work<'_>,
    corrections: &[Correction],
    provider: &impl AskProvider,
) -> Result<Tally> {
    let mut tally = Tally::default();
    for batch in corrections.chunks(BATCH_ROWS) {
        if work.lease.is_some_and(Lease::is_lost) {
            bail!("the lease was lost; another run may be at work");
        }
        let mut attempt = 1;
        let done = loop {
            match carry_out_batch(work, batch, provider).await {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy(&error) => attempt += 1,
                other => break other,
            }
        };
        tally.add(done.context("carry out corrections")?);
    }
    Ok(tally)
}

async fn carry_out_batch(work: Work<'_>, batch: &[Correction], provider: &impl AskProvider) -> Result<Batch> {
    let mut connection = work.store.pool().acquire().await.context("open the store")?;
    let before = History::read(&mut connection, batch).await?;
    drop(connection);
    if batch.iter().all(|row| before.is_done(row)) {
        return Ok(Batch { outcomes: vec![RowOutcome::AlreadyApplied; batch.len()], moved: Vec::new() });
    }
    let withheld = withheld(provider, batch.iter().filter(|row| !before.is_done(row))).await?;
    let fetched = fetch_states(batch, &before, provider).await;
    let mut tx = work.store.begin_write().await?;
    let history = History::read(&mut tx, batch).await?;
    let open: Vec<&Correction> = batch.iter().filter(|row| !history.is_done(row)).collect();
    let mut outcomes: Outcomes<'_> =
        withheld.iter().map(|(correction_id, why)| (*correction_id, why.outcome())).collect();
    let may_go: Vec<&Correction> =
        open.iter().copied().filter(|row| !outcomes.contains_key(&*row.correction_id)).collect();
    outcomes.extend(money::book(&mut tx, work, &may_go).await?);
    outcomes.extend(set_states(&mut tx, work, &may_go, &outcomes, &fetched).await?);
    record(&mut tx, work, &open, &outcomes, &history).await?;
    tx.commit().await.context("commit corrections")?;
    let outcome = |row: &Correction| match outcomes.get(&*row.correction_id) {
        Some(outcome) if !history.is_done(row) => *outcome,
        _ => RowOutcome::AlreadyApplied,
    };
    let moved = open.iter().filter_map(|row| match withheld.get(&*row.correction_id) {
        Some(Why::Moved(text)) => Some(text.clone()),
        _ => None,
    });
    Ok(Batch { moved: moved.collect(), outcomes: batch.iter().map(outcome).collect() })
}

/// Outcomes by correction id.
pub(super) type Outcomes<'a> = BTreeMap<&'a str, RowOutcome>;

/// What became of a batch's rows before.
pub(super) struct History(BTreeMap<String, BTreeSet<String>>);

impl History {
    pub(super) async fn read(connection: &mut AnyConnection, batch: &[Correction]) -> Result<Self> {
        let ids: Vec<&str> = batch.iter().map(|row| &*row.correction_id).collect();
        Ok(Self(chain::outcomes(connection, &ids).await?))
    }

    /// Whether this word stands there for a row.
    pub(super) fn has(&self, row: &Correction, word: &str) -> bool {
        self.0.get(&row.correction_id).is_some_and(|words| words.contains(word))
    }

    pub(super) fn is_done(&self, row: &Correction) -> bool {
        let done = [RowOutcome::Applied, RowOutcome::Adopted, RowOutcome::AlreadyApplied];
        done.iter().any(|outcome| self.has(row, outcome.as_str()))
    }
}

/// Appends what became of each row, each outcome of a row once.
pub(super) async fn record(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    open: &[&Correction],
    outcomes: &Outcomes<'_>,
    history: &History,
) -> Result<()> {
    let mut rows = Vec::with_capacity(open.len());
    for row in open {
        let Some(outcome) = outcomes.get(&*row.correction_id) else {
            bail!("the correction {} has no outcome", row.correction_id);
        };
        if !history.has(row, outcome.as_str()) {
            rows.push(chain::Outcome {
                correction_id: &row.correction_id,
                plan_run_id: work.run_id,
                finding_id: &row.finding_id,
                action: row.action.as_str(),
                effect_key: &row.effect_key,
                outcome: outcome.as_str(),
            });
        }
    }
    chain::append(tx, &rows, work.now_us, &crate::commands::inbox::actor()).await
}

/// The provider's word on every payment whose status a batch sets. A status that only follows from a
/// booked effect moves forward to what the run saw, and asks nobody.
pub(super) async fn fetch_states(
    batch: &[Correction],
    before: &History,
    provider: &impl AskProvider,
) -> BTreeMap<ObjectKey, Fetched> {
    let wanted: BTreeSet<ObjectKey> = batch
        .iter()
        .filter(|row| row.action == Action::SetState && !before.is_done(row))
        .map(|row| (row.scope.clone(), row.root_id.clone()))
        .collect();
    let ask = |key: ObjectKey| async {
        let answer = provider.status(&key.0, &key.1).await;
        (key, answer)
    };
    let answers: Vec<_> = stream::iter(wanted).map(ask).buffered(FETCHES_AT_ONCE).collect().await;
    let mut fetched = BTreeMap::new();
    for (key, answer) in answers {
        match answer {
            Ok(Some(state)) => drop(fetched.insert(key, state)),
            Ok(None) => {}
            Err(error) => {
                let (scope, root_id) = &key;
                tracing::warn!(%scope, root_id, "fetch the status of {root_id} ({scope}): {error:#}");
            }
        }
    }
    fetched
}

/// Writes statuses: for `set_state` rows, and for payments whose missing effect was booked just now.
async fn set_states<'a>(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    open: &[&'a Correction],
    booked: &Outcomes<'a>,
    fetched: &BTreeMap<ObjectKey, Fetched>,
) -> Result<Outcomes<'a>> {
    let is_booked = |row: &Correction| {
        matches!(booked.get(&*row.correction_id), Some(RowOutcome::Applied | RowOutcome::Adopted))
    };
    let rows: Vec<&Correction> = open
        .iter()
        .copied()
        .filter(|row| row.target_state.is_some())
        .filter(|row| row.action == Action::SetState || is_booked(row))
        .collect();
    let mut outcomes = Outcomes::new();
    let candidates = state_ids(tx, &rows).await?;
    let wanted_ids: BTreeSet<ObjectKey> = candidates.values().flatten().cloned().collect();
    let mut current = states::states(tx, &wanted_ids).await?;
    for row in rows {
        let ids = &candidates[&*row.correction_id];
        let outcome = set_one(tx, work, row, ids, &mut current, fetched).await?;
        if row.action == Action::SetState {
            outcomes.insert(&row.correction_id, outcome);
        }
    }
    Ok(outcomes)
}

async fn set_one(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    row: &Correction,
    ids: &[ObjectKey],
    current: &mut BTreeMap<ObjectKey, State>,
    fetched: &BTreeMap<ObjectKey, Fetched>,
) -> Result<RowOutcome> {
    let root: ObjectKey = (row.scope.clone(), row.root_id.clone());
    let (wanted, freshness) = match (fetched.get(&root), row.target_state) {
        (Some(fetched), _) => (*fetched, Freshness::JustNow),
        (None, Some(status)) if row.action != Action::SetState => (
            Fetched { status, refunded_minor: None, provider_time_us: row.occurred_at_us },
            Freshness::AsOfRun,
        ),
        _ => return Ok(RowOutcome::NotFetched),
    };
    let key = ids.iter().find(|key| current.contains_key(*key)).unwrap_or(&root).clone();
    match judge(current.get(&key), &wanted, freshness, work.run_started_us) {
        Verdict::Write => {}
        Verdict::Same | Verdict::Refused => return Ok(RowOutcome::StateMoved),
        Verdict::ManualOverride => return Ok(RowOutcome::ManualOverride),
    }
    let state = State {
        status: wanted.status,
        refunded_minor: wanted.refunded_minor,
        provider_time_us: wanted.provider_time_us,
        updated_at_us: work.now_us,
        changed_by: CHANGED_BY.to_owned(),
    };
    let read_at = current.get(&key).map(|state| state.updated_at_us);
    if !states::set_state(tx, &key, &state, read_at).await? {
        return Ok(RowOutcome::StateMoved);
    }
    current.insert(key, state);
    Ok(RowOutcome::Applied)
}

/// The ids under which each row's status may stand, the most exact first.
async fn state_ids(
    tx: &mut Transaction<'_, Any>,
    rows: &[&Correction],
) -> Result<BTreeMap<String, Vec<ObjectKey>>> {
    let roots: BTreeSet<&str> = rows.iter().map(|row| &*row.root_id).collect();
    let aliases = states::aliases(tx, &roots).await?;
    let mut candidates = BTreeMap::new();
    for row in rows {
        let root: ObjectKey = (row.scope.clone(), row.root_id.clone());
        let others = aliases.get(&root).into_iter().flatten().map(|alias| (row.scope.clone(), alias.clone()));
        let exact = [(row.scope.clone(), row.object_id.clone()), root.clone()];
        candidates.insert(row.correction_id.clone(), exact.into_iter().chain(others).collect());
    }
    Ok(candidates)
}
