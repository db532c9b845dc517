//! The target `sql`: each correction is one transaction of the team's database, with its key, the team's statement, and
//! a look at the books before and after.
//!
//! The one thing to get right: the key table is the truth. What is kept there and not in our history was carried out, and
//! we were killed before we could say so.

use super::asking::{AskProvider, Why, withheld};
use super::carry_out::{History, Outcomes, RowOutcome, Tally, Work, fetch_states, record};
use super::money::{event_keys, file};
use super::targets::{booked, named, provider_minor};
use super::there::{check_taken_over, lost, lost_text, stands_unbooked};
use crate::apply::payment::{check_absent, check_moved, check_placed, check_reversal, shows, sums};
use crate::apply::state::Fetched;
use crate::config::Settings;
use crate::correction::Correction;
use crate::findings::Action;
use crate::gather::{
    Committed, Dialect, Doing, Key, KeyAnswer, Ran, TargetBooks, TargetValues, TargetWriter, Team,
};
use crate::provider::stripe;
use crate::record::{EffectKind, EventKey, decimal_from_minor};
use crate::store::inbox::ListedEvent;
use crate::store::lease::Lease;
use crate::store::states::ObjectKey;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// Corrections between two entries of our history.
const BATCH_ROWS: usize = 25;
/// How often a transaction is begun again when others were in the way.
const ATTEMPTS: u32 = 5;

/// What became of a row, and why where that is no plain yes.
pub(super) type Done = (RowOutcome, Option<String>);

/// How a transaction is to end.
pub(super) enum End {
    Keep(Done),
    LetGo(Done),
    Again,
}

/// What carrying out needs of one batch.
pub(super) struct Batch<'a> {
    pub(super) work: Work<'a>,
    pub(super) settings: &'a Settings,
    pub(super) target: &'a TargetBooks,
    pub(super) fetched: BTreeMap<ObjectKey, Fetched>,
    pub(super) events: BTreeMap<EventKey, ListedEvent>,
}

/// Carries rows out in the team's database.
///
/// # Errors
/// [`crate::config::Unusable`] when the team's statements or key table cannot be used; else when a database or the provider fails.
/// What was carried out before is recorded.
pub(super) async fn carry_out(
    work: Work<'_>,
    settings: &Settings,
    rows: &[Correction],
    provider: &impl AskProvider,
) -> Result<Tally> {
    let needed: BTreeSet<Doing> = rows.iter().map(needs).collect();
    let dialect = Dialect::stripe(stripe::exponent);
    let target = TargetBooks::open(settings, work.store, dialect, &needed).await?;
    let mut tally = Tally::default();
    for rows in rows.chunks(BATCH_ROWS) {
        carry_out_batch(work, settings, &target, rows, provider, &mut tally).await?;
    }
    Ok(tally)
}

/// The statement that a row cannot do without.
fn needs(row: &Correction) -> Doing {
    match (row.action, row.effect) {
        (Action::ReverseEntry, _) => Doing::ReverseEntry,
        (Action::SetState, _) => Doing::SetState,
        (Action::ReplayEvent, None) => Doing::FileEvent,
        _ => Doing::ApplyEffect,
    }
}

async fn carry_out_batch(
    work: Work<'_>,
    settings: &Settings,
    target: &TargetBooks,
    rows: &[Correction],
    provider: &impl AskProvider,
    tally: &mut Tally,
) -> Result<()> {
    let mut connection = work.store.pool().acquire().await.context("open the store")?;
    let history = History::read(&mut connection, rows).await?;
    drop(connection);
    let (done, mut open): (Vec<&Correction>, Vec<&Correction>) =
        rows.iter().partition(|row| history.is_done(row));
    let lost = lost(target, &done).await?;
    for _ in lost.len()..done.len() {
        tally.count_one(RowOutcome::AlreadyApplied, None);
    }
    if open.is_empty() && lost.is_empty() {
        return Ok(());
    }
    let withheld = withheld(provider, open.iter().copied()).await?;
    let fetched = fetch_states(rows, &history, provider).await;
    let events = events(work, target, &open, provider).await?;
    let batch = Batch { work, settings, target, fetched, events };
    let mut outcomes = Outcomes::new();
    for row in &lost {
        outcomes.insert(&row.correction_id, RowOutcome::Conflicts);
        tally.count_one(RowOutcome::Conflicts, Some(lost_text(row)));
    }
    let mut failed = None;
    for row in &open {
        let done = match withheld.get(&*row.correction_id) {
            Some(why) => Ok((
                why.outcome(),
                match why {
                    Why::Moved(line) => Some(line.clone()),
                    Why::NotAnswered => None,
                },
            )),
            None => batch.one(row).await,
        };
        match done {
            Ok((outcome, line)) => {
                outcomes.insert(&row.correction_id, outcome);
                tally.count_one(outcome, line);
            }
            Err(error) => {
                failed = Some(error.context(format!("carry out {}", named(row))));
                break;
            }
        }
    }
    open.extend(&lost);
    // What was done is said even where the rest could not be.
    let said: Vec<&Correction> =
        open.into_iter().filter(|row| outcomes.contains_key(&*row.correction_id)).collect();
    let mut tx = work.store.begin_write().await?;
    file(&mut tx, work, &said, &outcomes).await?;
    let history = History::read(&mut tx, rows).await?;
    record(&mut tx, work, &said, &outcomes, &history).await?;
    tx.commit().await.context("record corrections")?;
    failed.map_or(Ok(()), Err)
}

/// The bytes of events that are to be filed.
async fn events(
    work: Work<'_>,
    target: &TargetBooks,
    open: &[&Correction],
    provider: &impl AskProvider,
) -> Result<BTreeMap<EventKey, ListedEvent>> {
    let told = open.iter().filter(|row| matches!(row.action, Action::ReplayEvent | Action::SetState));
    let keys: BTreeSet<EventKey> = told.flat_map(|row| event_keys(row)).collect();
    let is_filed = work.inbox_is_ours || (target.has_inbox() && target.can(Doing::FileEvent));
    if keys.is_empty() || !is_filed {
        return Ok(BTreeMap::new());
    }
    super::kept_events(work, provider, &keys).await
}

impl Batch<'_> {
    async fn one(&self, row: &Correction) -> Result<Done> {
        for _ in 0..ATTEMPTS {
            if self.work.lease.is_some_and(Lease::is_lost) {
                bail!("the lease was lost; another run may be at work");
            }
            let mut writer = self.target.begin().await?;
            match self.within(&mut writer, row).await? {
                End::Keep(done) => {
                    if writer.commit().await? == Committed::Done {
                        return Ok(done);
                    }
                }
                End::LetGo(done) => {
                    writer.let_go().await?;
                    return Ok(done);
                }
                End::Again => writer.let_go().await?,
            }
        }
        bail!("others wrote the same rows of the team's database {ATTEMPTS} times; apply again")
    }

    /// Everything in the transaction: the key, a look, the statements, another look.
    async fn within(&self, writer: &mut TargetWriter<'_>, row: &Correction) -> Result<End> {
        let ids = BTreeSet::from([row.object_id.clone(), row.root_id.clone()]);
        let key = self.key(row);
        match writer.take(&key).await? {
            KeyAnswer::Taken => {}
            KeyAnswer::Again => return Ok(End::Again),
            // We were killed after it was kept, and before we could say so.
            KeyAnswer::Held(by) if by == row.correction_id => {
                return Ok(End::LetGo((RowOutcome::AlreadyApplied, None)));
            }
            KeyAnswer::Held(by) => return self.held(writer, row, &ids, &by).await,
        }
        let before = writer.payment(&row.scope, &ids).await?;
        match row.action {
            Action::SetState => self.set_state(writer, row, &before, &ids).await,
            Action::ReverseEntry => self.reverse(writer, row, &before, &ids).await,
            _ => self.book(writer, row, &before, &ids).await,
        }
    }

    /// A status may be set more than once in a payment's life; an effect exists once.
    fn key<'r>(&'r self, row: &'r Correction) -> Key<'r> {
        let effect_key = match row.action {
            Action::SetState => format!("{}/{}", named(row), row.correction_id),
            _ => named(row),
        };
        Key {
            effect_key,
            correction_id: &row.correction_id,
            run_id: self.work.run_id,
            applied_at_us: self.work.now_us,
        }
    }

    /// The key was taken by another correction: either its effect stands, or somebody took it back since.
    async fn held(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        ids: &BTreeSet<String>,
        by: &str,
    ) -> Result<End> {
        let now = writer.payment(&row.scope, ids).await?;
        let stands = match booked(row)? {
            Some((kind, minor)) => {
                let provider = provider_minor(self.work, self.settings, row, kind).await?;
                shows(&now.effects, row, kind, minor, provider)
            }
            None => row.effect.is_none_or(|kind| check_reversal(&now.effects, row, kind).is_err()),
        };
        let line = format!("{}: carried out before by the correction {by}", named(row));
        Ok(End::LetGo(if stands {
            (RowOutcome::StateMoved, Some(line))
        } else {
            (RowOutcome::Conflicts, Some(format!("{line}, and undone since: a person decides")))
        }))
    }

    async fn book(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        before: &Team,
        ids: &BTreeSet<String>,
    ) -> Result<End> {
        let mut values = self.values(row);
        if row.effect.is_none() && !self.target.has_inbox() {
            let line =
                format!("{}: [inbox] is another database, so no statement can file the event", named(row));
            return Ok(End::LetGo((RowOutcome::Refused, Some(line))));
        }
        if let Some((kind, minor)) = booked(row)? {
            let provider = provider_minor(self.work, self.settings, row, kind).await?;
            if let Err(why) = check_absent(&before.effects, row, kind, provider) {
                return Ok(moved(row, &why));
            }
            if let Some(end) = stands_unbooked(self.target, row, kind, before) {
                return Ok(end);
            }
            amount(&mut values, &row.currency, minor);
            match writer.run(Doing::ApplyEffect, &values).await? {
                Ran::Done => {}
                other => return Ok(refused(row, other)),
            }
            let after = writer.payment(&row.scope, ids).await?;
            if let Err(why) = check_moved(&before.effects, &after.effects, (kind, &row.currency), minor) {
                return Ok(not_as_planned(row, Doing::ApplyEffect, &why));
            }
            let placed = check_placed(&before.effects, &after.effects, row);
            if let Err(why) = placed.and_then(|()| check_taken_over(&after.unbooked, row, kind)) {
                return Ok(not_as_planned(row, Doing::ApplyEffect, &why));
            }
            if let Some(end) = self.follow(writer, row, &after, &mut values, ids).await? {
                return Ok(end);
            }
        }
        if row.action == Action::ReplayEvent
            && let Some(end) = self.file(writer, row, &mut values).await?
        {
            return Ok(end);
        }
        // What sets a status and files an event may have moved money, too.
        let last = writer.payment(&row.scope, ids).await?;
        let as_planned = match booked(row)? {
            Some((kind, minor)) => check_moved(&before.effects, &last.effects, (kind, &row.currency), minor),
            None if sums(&last.effects) == sums(&before.effects) => Ok(()),
            None => Err("effects.sql shows that money moved".to_owned()),
        };
        if let Err(why) = as_planned {
            let doing = if row.target_state.is_some() { Doing::SetState } else { Doing::MarkEvent };
            return Ok(not_as_planned(row, doing, &why));
        }
        Ok(End::Keep((RowOutcome::Applied, None)))
    }

    async fn reverse(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        before: &Team,
        ids: &BTreeSet<String>,
    ) -> Result<End> {
        let kind = row.effect.context("a reversal has no kind of effect")?;
        let excess = match check_reversal(&before.effects, row, kind) {
            Ok(excess) => excess,
            Err(why) => return Ok(moved(row, &why)),
        };
        let mut values = self.values(row);
        amount(&mut values, &excess.currency, excess.amount_minor);
        let [kept, taken] = &*row.effect_ids else { bail!("a reversal names no two rows") };
        values.text("kept_effect_id", kept);
        values.text("effect_id", taken);
        match writer.run(Doing::ReverseEntry, &values).await? {
            Ran::Done => {}
            other => return Ok(refused(row, other)),
        }
        let after = writer.payment(&row.scope, ids).await?;
        let moved = (kind, &*row.currency);
        if let Err(why) = check_moved(&before.effects, &after.effects, moved, -excess.amount_minor) {
            return Ok(not_as_planned(row, Doing::ReverseEntry, &why));
        }
        if !after.effects.iter().any(|local| local.effect_id == *kept) {
            return Ok(not_as_planned(row, Doing::ReverseEntry, &format!("the row {kept} is gone, too")));
        }
        Ok(End::Keep((RowOutcome::Applied, None)))
    }

    /// Files or marks the events of a replay in the team's inbox, where the team wrote how.
    pub(super) async fn file(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        values: &mut TargetValues,
    ) -> Result<Option<End>> {
        let ids: BTreeSet<String> = row.event_ids.iter().cloned().collect();
        let Some(received) = writer.received(&row.scope, &ids).await? else { return Ok(None) };
        for key in event_keys(row) {
            let doing = if received.contains(&key.event_id) { Doing::MarkEvent } else { Doing::FileEvent };
            let is_moved =
                row.effect.is_none() && row.action == Action::ReplayEvent && doing == Doing::MarkEvent;
            if is_moved {
                return Ok(Some(moved(row, "the event is in the inbox by now")));
            }
            if !self.target.can(doing) {
                continue;
            }
            values.text("event_id", &key.event_id);
            if doing == Doing::FileEvent {
                let Some(event) = self.events.get(&key) else {
                    let line = format!("{}: nobody has the bytes of {}", named(row), key.event_id);
                    return Ok(Some(End::LetGo((RowOutcome::NotFetched, Some(line)))));
                };
                values.text("event_type", &event.event_type);
                // As it came or not at all: what is no text can be bound as bytes only.
                if let Ok(text) = std::str::from_utf8(&event.body) {
                    values.text("body", text);
                }
                values.bytes("body_bytes", &event.body);
            }
            match writer.run(doing, values).await? {
                Ran::Done => {}
                other => return Ok(Some(refused(row, other))),
            }
        }
        Ok(None)
    }

    /// What every statement may name.
    pub(super) fn values(&self, row: &Correction) -> TargetValues {
        let mut values = TargetValues::default();
        let texts = [
            ("effect_key", named(row)),
            ("correction_id", row.correction_id.clone()),
            ("run_id", self.work.run_id.to_owned()),
            ("reason", row.reason.clone()),
            ("provider", row.scope.provider.to_string()),
            ("account", row.scope.account.to_string()),
            ("mode", row.scope.mode.to_string()),
            ("object_id", row.object_id.clone()),
            ("root_id", row.root_id.clone()),
            ("kind", row.effect.map_or("", EffectKind::as_str).to_owned()),
            ("currency", row.currency.clone()),
            ("event_id", row.event_ids.first().cloned().unwrap_or_default()),
        ];
        for (name, text) in texts {
            values.text(name, &text);
        }
        values.integer("occurred_at_us", Some(row.occurred_at_us));
        values.integer("applied_at_us", Some(self.work.now_us));
        values
    }
}

fn amount(values: &mut TargetValues, currency: &str, minor: i64) {
    values.integer("amount_minor", Some(minor));
    values.text("amount", &decimal_from_minor(minor, stripe::exponent(currency)));
}

pub(super) fn moved(row: &Correction, why: &str) -> End {
    End::LetGo((RowOutcome::StateMoved, Some(format!("{}: {why}", named(row)))))
}

pub(super) fn not_as_planned(row: &Correction, doing: Doing, why: &str) -> End {
    let line =
        format!("{}: {} did something else, and nothing of it is kept: {why}", named(row), doing.file());
    End::LetGo((RowOutcome::Refused, Some(line)))
}

pub(super) fn refused(row: &Correction, ran: Ran) -> End {
    match ran {
        Ran::Again | Ran::Done => End::Again,
        Ran::Refused(why) | Ran::Untouched(why) => {
            let line = format!("{}: nothing is kept: {why}", named(row));
            End::LetGo((RowOutcome::Refused, Some(line)))
        }
    }
}
