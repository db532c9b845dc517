//! The target `http`: events delivered once more to the team's own handler, and the local state read again.
//!
//! The one thing to get right: what the handler answers proves nothing. Only what the team's own statements show counts,
//! before a delivery (then there is none) and after it.

use super::asking::{AskProvider, Why, withheld};
use super::carry_out::{History, Outcomes, RowOutcome, Tally, Work, fetch_states, record};
use super::in_database_status::{local_state, wanted};
use super::money::{event_keys, file};
use super::post::{Answered, Handler, Parcel};
use super::targets::{booked, named, provider_minor};
use super::there::{is_lost, lost_text};
use crate::apply::payment::{check_absent, shows, status_of};
use crate::apply::state::{Fetched, Freshness, Verdict, judge};
use crate::config::{Settings, Side};
use crate::correction::Correction;
use crate::findings::Action;
use crate::gather::{Dialect, Inbox, LocalBooks, Moment, Team};
use crate::provider::stripe;
use crate::record::{EventKey, Fact, Window};
use crate::store::chain;
use crate::store::lease::Lease;
use crate::store::operating;
use crate::store::states::ObjectKey;
use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

const ALWAYS: Window = Window { from_us: i64::MIN, until_us: i64::MAX };
/// Corrections between two entries of our history.
const BATCH_ROWS: usize = 50;
/// The word in the history of a row whose events are about to be delivered.
const DELIVERING: &str = "delivering";
/// First and longest wait between two looks at the local state.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// What became of a row, and why where that is no plain yes.
type Done = (RowOutcome, Option<String>);

/// What the local state says of a row before anything is delivered.
enum Look {
    /// It is there.
    There,
    /// It is not, and may be delivered.
    Missing,
    /// Something else is there, or a person's word.
    Ended(Done),
}

/// What carrying out needs of one batch.
struct Batch<'a> {
    work: Work<'a>,
    settings: &'a Settings,
    books: &'a LocalBooks,
    inbox: Option<&'a Inbox>,
    fetched: BTreeMap<ObjectKey, Fetched>,
    verify_within: Duration,
}

/// Carries rows out by delivering their events.
///
/// # Errors
/// When the handler's settings cannot be used, or a database or the provider fails. What was carried out before is
/// recorded.
pub(super) async fn carry_out(
    work: Work<'_>,
    settings: &Settings,
    rows: &[Correction],
    provider: &impl AskProvider,
) -> Result<Tally> {
    let http = settings.targets.http.as_ref().context("there is no [corrections.http]")?;
    let handler = Handler::new(settings, http, work.run_id)?;
    let dialect = Dialect::stripe(stripe::exponent);
    let books = LocalBooks::open(settings, work.store, dialect, ALWAYS).await?;
    let books = books.context("there is no local side to read again")?;
    let inbox = match &settings.inbox {
        Side::Database(_) => Inbox::open(settings).await?,
        Side::Store | Side::Absent => None,
    };
    let mut tally = Tally::default();
    for rows in rows.chunks(BATCH_ROWS) {
        let batch = Batch {
            work,
            settings,
            books: &books,
            inbox: inbox.as_ref(),
            fetched: BTreeMap::new(),
            verify_within: http.verify_within,
        };
        carry_out_batch(batch, &handler, http.concurrency, rows, provider, &mut tally).await?;
    }
    Ok(tally)
}

async fn carry_out_batch(
    mut batch: Batch<'_>,
    handler: &Handler,
    concurrency: usize,
    rows: &[Correction],
    provider: &impl AskProvider,
    tally: &mut Tally,
) -> Result<()> {
    let work = batch.work;
    let mut connection = work.store.pool().acquire().await.context("open the store")?;
    let history = History::read(&mut connection, rows).await?;
    drop(connection);
    let (carried_out, mut open): (Vec<&Correction>, Vec<&Correction>) =
        rows.iter().partition(|row| history.is_done(row));
    let lost = batch.lost(&carried_out).await?;
    if open.is_empty() && lost.is_empty() {
        for _ in rows {
            tally.count_one(RowOutcome::AlreadyApplied, None);
        }
        return Ok(());
    }
    let withheld = withheld(provider, open.iter().copied()).await?;
    batch.fetched = fetch_states(rows, &history, provider).await;
    let conflict = |row: &&Correction| (RowOutcome::Conflicts, Some(lost_text(row)));
    let mut done: BTreeMap<&str, Done> =
        lost.iter().map(|row| (&*row.correction_id, conflict(row))).collect();
    let mut missing: Vec<&Correction> = Vec::new();
    for row in &open {
        let look = match withheld.get(&*row.correction_id) {
            Some(Why::Moved(line)) => Look::Ended((RowOutcome::StateMoved, Some(line.clone()))),
            Some(Why::NotAnswered) => Look::Ended((RowOutcome::NotFetched, None)),
            None => batch.look(row).await?,
        };
        match look {
            // An earlier delivery of ours did it, after we stopped looking.
            Look::There if history.has(row, DELIVERING) => {
                done.insert(&row.correction_id, (RowOutcome::Applied, None));
            }
            Look::There => {
                let line = format!("{}: it is in the books by now", named(row));
                done.insert(&row.correction_id, (RowOutcome::StateMoved, Some(line)));
            }
            Look::Ended(ended) => drop(done.insert(&row.correction_id, ended)),
            Look::Missing => missing.push(row),
        }
    }
    let parcels = batch.parcels(&missing, provider, &mut done).await?;
    announce(work, &missing, &history, &done).await?;
    let delivered = batch.deliver_all(handler, concurrency, &missing, &parcels).await;
    let mut failed = None;
    for (row, outcome) in delivered {
        match outcome {
            Ok(outcome) => drop(done.insert(&row.correction_id, outcome)),
            Err(error) => failed = failed.or(Some(error.context(format!("carry out {}", named(row))))),
        }
    }
    open.extend(lost);
    let outcomes: Outcomes<'_> = done.iter().map(|(id, (outcome, _))| (*id, *outcome)).collect();
    let said: Vec<&Correction> =
        open.iter().copied().filter(|row| outcomes.contains_key(&*row.correction_id)).collect();
    let mut tx = work.store.begin_write().await?;
    file(&mut tx, work, &said, &outcomes).await?;
    let history = History::read(&mut tx, rows).await?;
    record(&mut tx, work, &said, &outcomes, &history).await?;
    tx.commit().await.context("record corrections")?;
    for row in rows {
        match done.remove(&*row.correction_id) {
            Some((outcome, line)) => tally.count_one(outcome, line),
            None if history.is_done(row) => tally.count_one(RowOutcome::AlreadyApplied, None),
            None => {}
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Says in the history that events are about to be delivered: that cannot be taken back, and a kill may come between it
/// and its record.
async fn announce(
    work: Work<'_>,
    missing: &[&Correction],
    history: &History,
    done: &BTreeMap<&str, Done>,
) -> Result<()> {
    let rows: Vec<chain::Outcome<'_>> = missing
        .iter()
        .filter(|row| !done.contains_key(&*row.correction_id) && !history.has(row, DELIVERING))
        .map(|row| chain::Outcome {
            correction_id: &row.correction_id,
            plan_run_id: work.run_id,
            finding_id: &row.finding_id,
            action: row.action.as_str(),
            effect_key: &row.effect_key,
            outcome: DELIVERING,
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    if work.lease.is_some_and(Lease::is_lost) {
        bail!("the lease was lost; another run may be at work");
    }
    let mut tx = work.store.begin_write().await?;
    chain::append(&mut tx, &rows, work.now_us, &crate::commands::inbox::actor()).await?;
    tx.commit().await.context("record what is about to be delivered")
}

impl Batch<'_> {
    /// What the local state says of a row now.
    async fn look(&self, row: &Correction) -> Result<Look> {
        let there = |is_there| if is_there { Look::There } else { Look::Missing };
        if row.action == Action::ReplayEvent && row.effect.is_none() {
            return Ok(there(self.has_events(row).await?));
        }
        let team = self.payment(row).await?;
        if let Some((kind, minor)) = booked(row)? {
            let provider = provider_minor(self.work, self.settings, row, kind).await?;
            if shows(&team.effects, row, kind, minor, provider) {
                return Ok(Look::There);
            }
            return Ok(match check_absent(&team.effects, row, kind, provider) {
                Ok(()) => Look::Missing,
                Err(why) => Look::Ended((RowOutcome::StateMoved, Some(format!("{}: {why}", named(row))))),
            });
        }
        let root: ObjectKey = (row.scope.clone(), row.root_id.clone());
        let Some(fetched) = self.fetched.get(&root).copied() else {
            return Ok(Look::Ended((RowOutcome::NotFetched, None)));
        };
        let current = status_of(&team.states, row);
        let wanted = wanted(fetched, current);
        let started_us = self.work.run_started_us;
        Ok(match judge(local_state(current).as_ref(), &wanted, Freshness::JustNow, started_us) {
            Verdict::Same => Look::There,
            Verdict::Write => Look::Missing,
            Verdict::ManualOverride => Look::Ended((RowOutcome::ManualOverride, None)),
            Verdict::Refused => {
                let line = format!("{}: no step leads from its status to the provider's", named(row));
                Look::Ended((RowOutcome::StateMoved, Some(line)))
            }
        })
    }

    /// What the history says was carried out, and the local state does not show any more.
    async fn lost<'r>(&self, rows: &[&'r Correction]) -> Result<Vec<&'r Correction>> {
        let mut lost = Vec::new();
        for row in rows {
            if let Some((kind, _)) = booked(row)?
                && is_lost(&self.payment(row).await?, row, kind)
            {
                lost.push(*row);
            }
        }
        Ok(lost)
    }

    async fn payment(&self, row: &Correction) -> Result<Team> {
        let ids = BTreeSet::from([row.object_id.clone(), row.root_id.clone()]);
        let mut team = Team::default();
        let mut moment = Moment::begin(Some(self.books), None).await?;
        moment.effects_of(&row.scope, &ids, &mut |fact| team.keep(fact)).await?;
        moment.states_of(&row.scope, &ids, &mut |fact| team.keep(fact)).await?;
        moment.end().await?;
        Ok(team)
    }

    /// Whether the inbox has every event of a row.
    async fn has_events(&self, row: &Correction) -> Result<bool> {
        let ids: BTreeSet<String> = row.event_ids.iter().cloned().collect();
        let mut found = BTreeSet::new();
        if let Some(inbox) = self.inbox {
            let mut keep = |fact| {
                if let Fact::InboxEvent(event) = fact {
                    found.insert(event.event_id);
                }
                Ok(())
            };
            let mut moment = Moment::begin(None, Some(inbox)).await?;
            moment.events_of(&row.scope, &ids, &mut keep).await?;
            moment.end().await?;
        } else if self.work.inbox_is_ours {
            let keys = event_keys(row);
            let mut connection = self.work.store.pool().acquire().await.context("open the store")?;
            let known = crate::store::inbox::known(&mut connection, &keys.iter().collect::<Vec<_>>()).await?;
            found.extend(known.into_iter().map(|key| key.event_id));
        }
        Ok(found == ids)
    }

    /// What is delivered for each row, oldest first. A row of which somebody lacks the bytes is `not_fetched`.
    async fn parcels<'r>(
        &self,
        missing: &[&'r Correction],
        provider: &impl AskProvider,
        done: &mut BTreeMap<&'r str, Done>,
    ) -> Result<BTreeMap<&'r str, Vec<Parcel>>> {
        let keys: BTreeSet<EventKey> = missing.iter().flat_map(|row| event_keys(row)).collect();
        let mut known: BTreeMap<EventKey, Parcel> = BTreeMap::new();
        for key in &keys {
            if let Some(parcel) = self.received(key).await? {
                known.insert(key.clone(), parcel);
            }
        }
        let absent: BTreeSet<EventKey> = keys.into_iter().filter(|key| !known.contains_key(key)).collect();
        for (key, event) in super::kept_events(self.work, provider, &absent).await? {
            let parcel = Parcel::of(&key, event.body, BTreeMap::new(), String::new());
            known.insert(key, parcel);
        }
        let mut parcels = BTreeMap::new();
        for row in missing {
            let of_row: Option<Vec<Parcel>> =
                event_keys(row).iter().map(|key| known.get(key).cloned()).collect();
            match of_row {
                Some(mut of_row) if !of_row.is_empty() => {
                    of_row.sort_by(|one, other| one.order().cmp(&other.order()));
                    parcels.insert(&*row.correction_id, of_row);
                }
                Some(_) => {
                    let line = format!("{}: no event announces it, so nothing can be delivered", named(row));
                    done.insert(&row.correction_id, (RowOutcome::Refused, Some(line)));
                }
                None => {
                    let line = format!("{}: nobody has the bytes of its events", named(row));
                    done.insert(&row.correction_id, (RowOutcome::NotFetched, Some(line)));
                }
            }
        }
        Ok(parcels)
    }

    /// An event as it was received, where its bytes are kept.
    async fn received(&self, key: &EventKey) -> Result<Option<Parcel>> {
        if let Some(inbox) = self.inbox {
            let body = inbox.body(&key.scope, &key.event_id).await?;
            return Ok(body.map(|body| Parcel::of(key, body, BTreeMap::new(), String::new())));
        }
        let mut connection = self.work.store.pool().acquire().await.context("open the store")?;
        let is_known = !crate::store::inbox::known(&mut connection, &[key]).await?.is_empty();
        drop(connection);
        if !self.work.inbox_is_ours || !is_known {
            return Ok(None);
        }
        let raw = operating::raw(self.work.store, key).await?;
        Ok(raw.body.map(|body| Parcel::of(key, body, raw.headers, raw.url)))
    }

    /// Delivers, several payments at a time; what belongs to one payment one after the other, as it happened.
    async fn deliver_all<'r>(
        &self,
        handler: &Handler,
        concurrency: usize,
        missing: &[&'r Correction],
        parcels: &BTreeMap<&'r str, Vec<Parcel>>,
    ) -> Vec<(&'r Correction, Result<Done>)> {
        let mut payments: BTreeMap<ObjectKey, Vec<&'r Correction>> = BTreeMap::new();
        for row in missing.iter().filter(|row| parcels.contains_key(&*row.correction_id)) {
            payments.entry((row.scope.clone(), row.root_id.clone())).or_default().push(row);
        }
        let one_payment = |mut rows: Vec<&'r Correction>| async move {
            rows.sort_by_key(|row| row.occurred_at_us);
            let mut done = Vec::with_capacity(rows.len());
            for row in rows {
                let of_row = parcels.get(&*row.correction_id).map_or(&[][..], Vec::as_slice);
                done.push((row, self.deliver(handler, row, of_row).await));
            }
            done
        };
        let all = stream::iter(payments.into_values()).map(one_payment).buffered(concurrency);
        all.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    /// Delivers the events of one row, and looks until the local state shows it.
    async fn deliver(&self, handler: &Handler, row: &Correction, parcels: &[Parcel]) -> Result<Done> {
        let mut answers = Vec::with_capacity(parcels.len());
        for parcel in parcels {
            answers.push(handler.deliver(parcel).await?);
        }
        let worst = answers.iter().max().cloned().unwrap_or(Answered::Yes(0));
        // Who says no has done nothing that would show later.
        let within = if matches!(worst, Answered::Yes(_)) { self.verify_within } else { Duration::ZERO };
        let until = Instant::now() + within;
        let [mut wait, longest] = LOOK_AGAIN;
        let last = loop {
            match self.look(row).await? {
                Look::There => return Ok((RowOutcome::Applied, None)),
                seen if Instant::now() >= until => break seen,
                Look::Ended(_) | Look::Missing => {}
            }
            tokio::time::sleep(wait.min(until.saturating_duration_since(Instant::now()))).await;
            wait = longest.min(wait * 2);
        };
        let seen = match last {
            // What is there now, and was not before the delivery, is what the handler made of it.
            Look::Ended((RowOutcome::StateMoved, Some(line))) => {
                return Ok((RowOutcome::NotVerified, Some(format!("{line}, since it was delivered"))));
            }
            Look::Ended(done) => return Ok(done),
            Look::There | Look::Missing => {
                format!("{} s later the local state does not show it", within.as_secs())
            }
        };
        let (outcome, said) = match worst {
            Answered::Yes(status) => {
                (RowOutcome::NotVerified, format!("the handler answered {status}, and {seen}"))
            }
            Answered::No(status) => (RowOutcome::Refused, format!("the handler refused it with {status}")),
            Answered::Failed(why) => (RowOutcome::Failed, why),
        };
        Ok((outcome, Some(format!("{}: {said}", named(row)))))
    }
}
