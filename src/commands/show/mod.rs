//! `recon show`: the whole story of a finding's payment, in time.
//!
//! Steps: find the findings that are meant · ask each side for everything of their payment · put it into one list · mark
//! what was doubled or swapped. The one thing to get right: a side that cannot be read is said so, loudly, and the answer is
//! *incomplete*; a story with a side missing must not look whole.

mod received;

use super::Outcome;
use super::findings::{Standing, as_id, counts, described, one, standings, told};
use crate::cli::UsageError;
use crate::config::{ProviderSettings, Settings, Side};
use crate::findings::Kind;
use crate::findings::life::ActKind;
use crate::gather::{Dialect, LocalBooks, Moment, ProviderSide};
use crate::provider::stripe::{self, Reading, exponent};
use crate::record::{
    EffectKind, Fact, LocalEffect, LocalState, ProviderEffect, ProviderEvent, SECOND_US, Scope, Window,
};
use crate::report::sums::signed;
use crate::report::timeline::{Booking, Step, Teller, booked, deed, printable, render};
use crate::store::{self, Access, Store, ledger, life as kept};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// How far from something that happened to a payment its events are looked for among the kept ones.
const EVENTS_AROUND_US: i64 = 3_600 * SECOND_US;
const ALWAYS: Window = Window { from_us: i64::MIN, until_us: i64::MAX };

/// Tells it.
///
/// # Errors
/// When the store is missing, or no finding is so called.
pub async fn show(
    settings: &Settings,
    named: &str,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let zone = settings.report.time_zone;
    let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
    let found = meant(&store, settings, named, now_us).await?;
    let mut tale = Tale { settings, store: &store, now_us, steps: Vec::new(), unread: Vec::new() };
    let mut groups: BTreeMap<(Scope, String), Vec<Standing>> = BTreeMap::new();
    for row in found {
        let root = tale.root(&row).await?;
        groups.entry((row.finding.scope.clone(), root)).or_default().push(row);
    }
    let mut count = 0;
    for ((scope, root), rows) in &groups {
        tale.of_payment(scope, root, rows).await?;
        for row in rows {
            tale.of_finding(row).await?;
            count += usize::from(counts(row));
            writeln!(out, "{}", described(row, zone, now_us))?;
        }
    }
    let (steps, unread) = (tale.steps, tale.unread);
    store.close().await;
    out.write_all(render(steps, zone).as_bytes())?;
    for side in &unread {
        writeln!(out, "!! not read, so its steps are missing: {}", printable(side))?;
    }
    let outcome = if unread.is_empty() { Outcome::Clean } else { Outcome::Incomplete };
    let word = if unread.is_empty() && count > 0 { Outcome::Findings } else { outcome };
    writeln!(out, "outcome={} findings={count}", word.as_str())?;
    Ok(outcome)
}

/// The findings that a text names: one by its id, or all of an object or a payment.
async fn meant(store: &Store, settings: &Settings, named: &str, now_us: i64) -> Result<Vec<Standing>> {
    let mut connection = store.pool().acquire().await.context("open the store")?;
    if as_id(named).is_some() {
        return Ok(vec![one(&mut connection, settings, named, now_us).await?]);
    }
    let found = kept::of_object(&mut connection, named).await?;
    if found.is_empty() {
        let message = format!("no run of this store has a finding on {}", crate::config::shown(named));
        let hint =
            "name a finding by its id, or the object or payment of one; `recon findings list` shows them";
        return Err(UsageError::new(message, hint).into());
    }
    standings(&mut connection, settings, found, now_us).await
}

/// The story as far as it is told.
struct Tale<'a> {
    settings: &'a Settings,
    store: &'a Store,
    now_us: i64,
    steps: Vec<Step>,
    /// Sides that could not be read, and why.
    unread: Vec<String>,
}

impl Tale<'_> {
    fn step(&mut self, at_us: i64, teller: Teller, text: String) {
        self.steps.push(Step::new(at_us, teller, text));
    }

    /// The payment of a finding, by whichever of its ids the finding has.
    async fn root(&self, row: &Standing) -> Result<String> {
        let finding = &row.finding;
        let id = if finding.root_id.is_empty() { &finding.object_id } else { &finding.root_id };
        let known =
            store::resolve(self.store, &finding.scope, &BTreeSet::from([id.clone()]), stripe::is_final_root)
                .await?;
        Ok(known.get(id).map_or(id, |target| &target.root_id).clone())
    }

    async fn of_payment(&mut self, scope: &Scope, root: &str, rows: &[Standing]) -> Result<()> {
        let provider = self.settings.providers.iter().find(|one| *one.name == *scope.provider);
        let (mut effects, mut events) = (Vec::new(), BTreeMap::new());
        match provider {
            Some(provider) => {
                let reading = self.reading(provider, scope, ALWAYS);
                effects = self.records(&reading, root).await?;
                let named = rows.iter().flat_map(|row| row.finding.event_ids.clone()).collect();
                events = self.events(&reading, root, named).await?;
            }
            None => self.unread.push(format!("provider {} is not in the configuration", scope.provider)),
        }
        let (bookings, states) = match self.books(scope, root).await {
            Ok(books) => books,
            Err(error) => {
                self.unread.push(format!("the local books: {error:#}"));
                (Vec::new(), Vec::new())
            }
        };
        let mut ids: BTreeSet<String> = events.keys().cloned().collect();
        ids.extend(bookings.iter().map(|row| row.event_id.clone()).filter(|id| !id.is_empty()));
        ids.extend(rows.iter().flat_map(|row| row.finding.event_ids.clone()));
        if let Err(error) = self.inbox(scope, &ids, &events).await {
            self.unread.push(format!("the inbox: {error:#}"));
        }
        let duplicates: Vec<Vec<String>> = rows
            .iter()
            .filter(|row| row.finding.kind == Kind::DuplicateEffect.as_str())
            .map(|row| row.finding.effect_ids.clone())
            .collect();
        self.steps.extend(booked(root, &bookings, &effects, &duplicates, exponent));
        for state in states {
            let by = if state.changed_by.is_empty() {
                String::new()
            } else {
                format!(", by {}", state.changed_by)
            };
            let text = format!("status {} of {}{by}", state.status, state.object_id);
            self.step(state.updated_at_us, Teller::Effects, text);
        }
        Ok(())
    }

    fn reading(&self, provider: &ProviderSettings, scope: &Scope, window: Window) -> Reading {
        let basis = self.settings.report.basis;
        let reading = Reading::of(provider, scope.clone(), window, basis, self.now_us);
        Reading { effects: EffectKind::ALL.into(), ..reading }
    }

    /// What the provider's kept records of the payment say.
    async fn records(&mut self, reading: &Reading, root: &str) -> Result<Vec<ProviderEffect>> {
        let side = ProviderSide { store: self.store, reading };
        let (facts, aliases) = side.whole_objects(&BTreeSet::from([root.to_owned()])).await?;
        let mut ids = BTreeSet::from([root.to_owned()]);
        ids.extend(aliases.into_iter().map(|alias| alias.alias_id));
        for record in store::records_by_id(self.store, &reading.scope, &ids, None).await? {
            let what = record.stream.trim_end_matches('s').replace('_', " ");
            let text = format!("{what} {} created", record.record_id);
            self.step(record.created_us, Teller::Provider, text);
        }
        let mut effects = Vec::new();
        let mut states = BTreeSet::new();
        for fact in facts {
            match fact {
                Fact::ProviderEffect(effect) => {
                    let minor = effect.amount_minor.saturating_mul(effect.kind.sign());
                    let amount = signed(minor, exponent(&effect.currency));
                    let currency = effect.currency.to_uppercase();
                    let text =
                        format!("{} {amount} {currency}, says {}", deed(effect.kind), effect.object_id);
                    self.step(effect.occurred_at_us, Teller::Provider, text);
                    effects.push(effect);
                }
                Fact::ProviderState(state) => {
                    states.insert((state.at_us, state.status, state.object_id));
                }
                Fact::Note(note) => {
                    self.step(note.at_us, Teller::Provider, format!("{}: {}", note.object_id, note.text));
                }
                _ => {}
            }
        }
        for (at_us, status, object_id) in states {
            self.step(at_us, Teller::Provider, format!("status {status}, says {object_id}"));
        }
        Ok(effects)
    }

    /// The payment's kept events: those that are named, and those that were made when something happened to it.
    async fn events(
        &mut self,
        reading: &Reading,
        root: &str,
        named: BTreeSet<String>,
    ) -> Result<BTreeMap<String, ProviderEvent>> {
        let side = ProviderSide { store: self.store, reading };
        let mut found: BTreeMap<String, ProviderEvent> = BTreeMap::new();
        for event in side.events_by_id(&named).await? {
            found.insert(event.event_id.clone(), event);
        }
        let mut around: Vec<Window> = Vec::new();
        let mut times: Vec<i64> = self.steps.iter().map(|step| step.at_us).collect();
        times.sort_unstable();
        for at_us in times {
            let (from_us, until_us) = (at_us - EVENTS_AROUND_US, at_us + EVENTS_AROUND_US);
            match around.last_mut().filter(|last| last.until_us >= from_us) {
                Some(last) => last.until_us = until_us,
                None => around.push(Window { from_us, until_us }),
            }
        }
        for window in around {
            let reading = Reading { window, ..reading.clone() };
            let side = ProviderSide { store: self.store, reading: &reading };
            let mut keep = |fact: Fact| {
                if let Fact::ProviderEvent(event) = fact
                    && event.root_id == root
                {
                    found.insert(event.event_id.clone(), event);
                }
                Ok(())
            };
            side.scan_events(&mut keep).await?;
        }
        for event in found.values() {
            let text = format!("event {} {} on {}", event.event_id, event.event_type, event.object_id);
            self.step(event.created_us, Teller::Provider, text);
        }
        Ok(found)
    }

    /// Rows and statuses of the payment in the local books, asked for just now.
    async fn books(&self, scope: &Scope, root: &str) -> Result<(Vec<Booking>, Vec<LocalState>)> {
        let dialect = Dialect::stripe(stripe::exponent);
        let Some(books) = LocalBooks::open(self.settings, self.store, dialect, ALWAYS).await? else {
            return Ok((Vec::new(), Vec::new()));
        };
        let roots = BTreeSet::from([root.to_owned()]);
        let (mut rows, mut states): (Vec<LocalEffect>, Vec<LocalState>) = (Vec::new(), Vec::new());
        let mut keep = |fact: Fact| {
            match fact {
                Fact::LocalEffect(row) => rows.push(row),
                Fact::LocalState(state) => states.push(state),
                _ => {}
            }
            Ok(())
        };
        let mut moment = Moment::begin(Some(&books), None).await?;
        moment.effects_of(scope, &roots, &mut keep).await?;
        moment.states_of(scope, &roots, &mut keep).await?;
        moment.end().await?;
        let mut why = self.reasons(&rows).await?;
        let bookings = rows.into_iter().map(|row| Booking {
            why: why.remove(&row.effect_id).unwrap_or_default(),
            row: row.effect_id,
            kind: row.kind,
            object_id: row.object_id,
            amount_minor: row.amount_minor,
            currency: row.currency,
            applied_at_us: row.applied_at_us,
            event_id: row.event_id,
            corrects: row.corrects_effect_id,
        });
        Ok((bookings.collect(), states))
    }

    /// Which run booked a row of recon's own ledger, by row.
    async fn reasons(&self, rows: &[LocalEffect]) -> Result<BTreeMap<String, String>> {
        if self.settings.local.side != Side::Store {
            return Ok(BTreeMap::new());
        }
        let ids: BTreeSet<&str> = rows.iter().map(|row| &*row.effect_id).collect();
        let mut connection = self.store.pool().acquire().await.context("open the store")?;
        let entries = ledger::entries_by_id(&mut connection, &ids).await?;
        let corrected = entries.into_iter().filter(|entry| !entry.run_id.is_empty());
        Ok(corrected.map(|entry| (entry.entry_id, format!("correction of run {}", entry.run_id))).collect())
    }

    /// What runs and persons did about one finding.
    async fn of_finding(&mut self, row: &Standing) -> Result<()> {
        let zone = self.settings.report.time_zone;
        let finding = &row.finding;
        let short = format!("{} {}", finding.kind, &finding.finding_id[..8.min(finding.finding_id.len())]);
        self.step(finding.first_seen_us, Teller::Run, format!("{short} found for the first time"));
        for act in &row.acts {
            let is_run = matches!(act.kind, ActKind::Cleared | ActKind::Reopened);
            let teller = if is_run { Teller::Run } else { Teller::Person };
            self.step(act.at_us, teller, format!("{short} {}", told(act, zone)));
        }
        let mut connection = self.store.pool().acquire().await.context("open the store")?;
        let (planned, done) = kept::corrections(&mut connection, &finding.finding_id).await?;
        drop(connection);
        for plan in planned {
            let what = match (&*plan.target_state, &*plan.currency) {
                (state, "") => format!("{} {state}", plan.action),
                (_, currency) => {
                    let amount = signed(plan.amount_minor, exponent(currency));
                    format!("{} {amount} {}", plan.action, currency.to_uppercase())
                }
            };
            let text = format!("planned by run {}: {what} ({})", plan.run_id, plan.effect_key);
            self.step(plan.at_us, Teller::Corrections, text);
        }
        for done in done {
            let by = if done.actor.is_empty() { String::new() } else { format!(" by {}", done.actor) };
            let text = format!(
                "{} {}{by} ({}), planned by run {}",
                done.action, done.outcome, done.effect_key, done.plan_run_id
            );
            self.step(done.at_us, Teller::Corrections, text);
        }
        Ok(())
    }
}
