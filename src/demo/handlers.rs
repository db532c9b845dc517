//! The shop: deliveries of a world's events, at least once and in any order, to an honest handler and
//! to a naive one, and the rows that both leave behind. Pure; `books.rs` writes the rows.
//!
//! The local side is written here as a real team would have it, not by the project's own way of
//! applying: a reconciliation must not be checked with the code that it would correct by.

use super::faults::{ExtraEvent, ExtraRow, Planted, Sabotage};
use super::payment::{Outcome, Payment};
use super::random::Rng;
use super::timeline::{Change, Meaning};
use super::world::{Event, WANTED_TYPES, World};
use crate::record::{EffectKind, InboxStatus, SECOND_US, Status};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A row of `inbox_event`.
#[derive(Clone, Debug)]
pub struct InboxRow {
    /// Mode.
    pub mode: &'static str,
    /// Event id.
    pub event_id: String,
    /// Event type.
    pub kind: String,
    /// Body as received.
    pub body: std::sync::Arc<str>,
    /// First delivery, Unix µs.
    pub received_us: i64,
    /// Last delivery, Unix µs.
    pub last_us: i64,
    /// Deliveries.
    pub deliveries: i64,
    /// Status.
    pub status: InboxStatus,
}

/// A row of `ledger_entry`.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    /// Entry id.
    pub entry_id: String,
    /// The row's unique key: the effect's for the honest handler, a running number for the naive one.
    pub effect_key: String,
    /// The id that the row names: charge, payment intent, invoice, …
    pub object_id: String,
    /// Kind.
    pub kind: EffectKind,
    /// Magnitude, minor units; negative where it undoes.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: &'static str,
    /// Provider time, Unix µs.
    pub occurred_us: i64,
    /// When it was booked, Unix µs.
    pub applied_us: i64,
    /// Event, or empty.
    pub event_id: String,
    /// Entry that it undoes, or empty.
    pub corrects: String,
}

/// A row of `object_state`.
#[derive(Clone, Debug)]
pub struct StateRow {
    /// Payment intent, else charge.
    pub object_id: String,
    /// Status.
    pub status: Status,
    /// Provider time of the word, Unix µs.
    pub provider_us: i64,
    /// Last change, Unix µs.
    pub updated_us: i64,
}

/// Everything that the shop holds.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Raw events.
    pub inbox: Vec<InboxRow>,
    /// Ledger, in order of booking.
    pub ledger: Vec<LedgerRow>,
    /// Statuses.
    pub states: Vec<StateRow>,
    /// Deliveries made.
    pub deliveries: usize,
}

/// One HTTP attempt.
struct Delivery<'a> {
    event: &'a Event,
    at_us: i64,
}

/// The shop's view of one payment while its deliveries come in.
struct Desk<'a> {
    payment: &'a Payment,
    sabotage: &'a [Sabotage],
    ledger: Vec<LedgerRow>,
    booked: BTreeSet<(EffectKind, String)>,
    state: Option<StateRow>,
}

/// What the shop holds after the month.
#[must_use]
pub fn books(world: &World, planted: &[Planted], seed: u64) -> Books {
    let mut rng = Rng::new(seed ^ 0x0064_656c_6976_6572);
    let plans: HashMap<usize, &Planted> = planted.iter().map(|one| (one.payment, one)).collect();
    let mut events: Vec<Vec<&Event>> = vec![Vec::new(); world.payments.len()];
    // Oldest first, so that each payment's events stand in causal order.
    for event in world.events.iter().rev() {
        if let Some(index) = event.payment {
            events[index].push(event);
        }
    }
    let mut books = Books::default();
    for (index, payment) in world.payments.iter().enumerate() {
        let sabotage = plans.get(&index).map_or(&[][..], |plan| &plan.sabotage);
        serve(world, payment, &events[index], sabotage, &mut rng, &mut books);
    }
    books.ledger.sort_by(|a, b| (a.applied_us, &a.object_id).cmp(&(b.applied_us, &b.object_id)));
    number(&mut books.ledger);
    books
}

/// Entry ids in order of booking, and the running numbers of the naive handler's rows.
fn number(ledger: &mut [LedgerRow]) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (position, row) in ledger.iter_mut().enumerate() {
        let entry_id = format!("le_{:07}", position + 1);
        names.insert(std::mem::replace(&mut row.entry_id, entry_id.clone()), entry_id);
        if row.effect_key.is_empty() {
            row.effect_key = format!("import:{}", position + 1);
        }
    }
    for row in ledger.iter_mut().filter(|row| !row.corrects.is_empty()) {
        row.corrects = names.get(&row.corrects).cloned().unwrap_or_default();
        row.effect_key = format!("reverse:{}", row.corrects);
    }
}

/// All deliveries of one payment's events, and what they leave behind.
fn serve(
    world: &World,
    payment: &Payment,
    events: &[&Event],
    sabotage: &[Sabotage],
    rng: &mut Rng,
    books: &mut Books,
) {
    let times = sabotage.iter().find_map(|s| match s {
        Sabotage::NaiveTimes(times) => Some(*times),
        _ => None,
    });
    let also_books = sabotage.iter().any(|s| matches!(s, Sabotage::NaiveAlsoBooks(_)));
    let is_naive = payment.is_naive || times.is_some() || also_books;
    let deliveries = deliveries(world, events, sabotage, is_naive, rng);
    books.deliveries += deliveries.len();
    let mut desk = Desk { payment, sabotage, ledger: Vec::new(), booked: BTreeSet::new(), state: None };
    let mut inbox: BTreeMap<&str, InboxRow> = BTreeMap::new();
    for delivery in &deliveries {
        let row = inbox.entry(&delivery.event.id);
        let is_first = matches!(row, std::collections::btree_map::Entry::Vacant(_));
        let row = row.or_insert_with(|| receive(delivery));
        row.last_us = delivery.at_us;
        row.deliveries += 1;
        match left_as(sabotage, &delivery.event.id) {
            Some(status) => row.status = status,
            None if delivery.event.kind == "payment_intent.teleported" => row.status = InboxStatus::Ignored,
            None if is_naive => desk.take_naively(delivery),
            None if is_first => row.status = desk.take_honestly(delivery),
            None => {}
        }
    }
    desk.import(world, rng);
    desk.finish(&deliveries);
    books.inbox.extend(inbox.into_values());
    books.ledger.append(&mut desk.ledger);
    books.states.extend(desk.state);
    books.inbox.extend(sabotage.iter().filter_map(|s| match s {
        Sabotage::Inbox(event) => Some(foreign(event)),
        _ => None,
    }));
}

fn receive(delivery: &Delivery<'_>) -> InboxRow {
    InboxRow {
        mode: "live",
        event_id: delivery.event.id.clone(),
        kind: delivery.event.kind.to_owned(),
        body: delivery.event.body.clone(),
        received_us: delivery.at_us,
        last_us: delivery.at_us,
        deliveries: 0,
        status: InboxStatus::Applied,
    }
}

fn foreign(event: &ExtraEvent) -> InboxRow {
    let at_us = event.at_s * SECOND_US;
    InboxRow {
        mode: event.mode,
        event_id: event.event_id.clone(),
        kind: event.kind.to_owned(),
        body: event.body.as_str().into(),
        received_us: at_us,
        last_us: at_us,
        deliveries: 1,
        status: InboxStatus::Ignored,
    }
}

fn left_as(sabotage: &[Sabotage], event_id: &str) -> Option<InboxStatus> {
    sabotage.iter().find_map(|one| match one {
        Sabotage::LeftAs(status, ids) if ids.iter().any(|id| id == event_id) => Some(*status),
        _ => None,
    })
}

/// When each event arrives, in order of arrival. Honest handlers get them in any order and some
/// twice; the naive one gets them in order and once, unless a fault says otherwise: what it does
/// wrong must be planted, not accidental.
fn deliveries<'a>(
    world: &World,
    events: &[&'a Event],
    sabotage: &[Sabotage],
    is_naive: bool,
    rng: &mut Rng,
) -> Vec<Delivery<'a>> {
    let mut times = 1;
    let mut arrives_s = None;
    let mut is_reversed = false;
    for one in sabotage {
        match one {
            Sabotage::NaiveTimes(count) | Sabotage::HonestTimes(count) => times = *count,
            Sabotage::ArrivesAt(second) => arrives_s = Some(*second),
            Sabotage::Reversed => is_reversed = true,
            _ => {}
        }
    }
    let is_dropped =
        |id: &String| sabotage.iter().any(|s| matches!(s, Sabotage::Drop(ids) if ids.contains(id)));
    let is_wanted = |kind: &str| WANTED_TYPES.contains(&kind) || kind == "payment_intent.teleported";
    let mut deliveries = Vec::with_capacity(events.len());
    for event in events.iter().filter(|event| is_wanted(event.kind) && !is_dropped(&event.id)) {
        let created_us = event.created_s * SECOND_US;
        let delay_us = if is_naive { 2 * SECOND_US } else { delay_us(rng) };
        // Everything ordinary has arrived before the window ends.
        let latest_us = (world.until_us - 60 * SECOND_US).max(created_us + 1);
        let first_us = match arrives_s {
            Some(second) => second * SECOND_US,
            None => (created_us + delay_us).min(latest_us),
        };
        let repeats = if times == 1 && !is_naive && rng.per_mille(60) { 2 } else { times };
        for repeat in 0..repeats {
            let again_us = i64::from(repeat) * (3 * 60 * SECOND_US + rng.between(0, 20 * 60 * SECOND_US));
            let at_us = if arrives_s.is_some() { first_us } else { (first_us + again_us).min(latest_us) };
            deliveries.push(Delivery { event, at_us });
        }
    }
    if is_reversed {
        // The last event comes first; nothing arrives before it was made.
        let newest_us = deliveries.iter().map(|delivery| delivery.at_us).max().unwrap_or(0);
        deliveries.sort_by_key(|delivery| std::cmp::Reverse(delivery.event.sequence));
        for (delivery, seconds) in deliveries.iter_mut().zip(0_i64..) {
            delivery.at_us = newest_us + seconds * SECOND_US;
        }
    }
    // Stable: what arrives at once keeps the order in which it was sent.
    deliveries.sort_by_key(|delivery| delivery.at_us);
    deliveries
}

/// Most deliveries take seconds, some hours, a few days.
fn delay_us(rng: &mut Rng) -> i64 {
    let longest_s = match rng.below(1000) {
        0..=969 => 6,
        970..=994 => 3_600,
        _ => 2 * 86_400,
    };
    rng.between(300_000, longest_s * SECOND_US)
}

impl Desk<'_> {
    /// Books by effect key, once, whatever event brings it, and keeps the status that the provider
    /// has at that time.
    fn take_honestly(&mut self, delivery: &Delivery<'_>) -> InboxStatus {
        let now_s = delivery.at_us.div_euclid(SECOND_US);
        match &delivery.event.meaning {
            Meaning::Moves(change) if self.still_holds(change, now_s) => {
                let key = (change.kind, change.object_id.clone());
                if self.booked.insert(key) {
                    self.book(delivery, change, format!("{}:{}", change.kind, change.object_id));
                }
            }
            Meaning::Undoes(change) if !self.ignores_failures() => self.undo(delivery, change),
            _ => {}
        }
        if delivery.event.status.is_none() {
            return InboxStatus::Applied;
        }
        let status = self.status_now(now_s);
        if self.state.as_ref().is_some_and(|state| state.status == status) {
            return if delivery.event.status == Some(status) {
                InboxStatus::Applied
            } else {
                InboxStatus::Superseded
            };
        }
        self.set_state(delivery, status);
        InboxStatus::Applied
    }

    /// Books whatever comes, as often as it comes, and believes each event's status.
    fn take_naively(&mut self, delivery: &Delivery<'_>) {
        let kind = delivery.event.kind;
        let is_booked =
            matches!(
                kind,
                "charge.succeeded"
                    | "charge.captured"
                    | "refund.created"
                    | "refund.updated"
                    | "charge.dispute.funds_withdrawn"
            ) || self.sabotage.iter().any(|s| matches!(s, Sabotage::NaiveAlsoBooks(also) if *also == kind));
        match &delivery.event.meaning {
            Meaning::Moves(change) if is_booked => self.book(delivery, change, String::new()),
            Meaning::Undoes(change) if kind == "refund.failed" => self.undo(delivery, change),
            _ => {}
        }
        if let Some(status) = delivery.event.status {
            self.set_state(delivery, status);
        }
    }

    /// Whether the provider, asked before booking, still says that the money moved.
    fn still_holds(&self, change: &Change, now_s: i64) -> bool {
        let refund = self.payment.refunds.iter().find(|refund| refund.id == change.object_id);
        self.ignores_failures() || refund.is_none_or(|refund| refund.holds_at(now_s))
    }

    fn status_now(&self, now_s: i64) -> Status {
        let failed_s = self.payment.refunds.iter().find_map(|refund| refund.failed_s);
        match failed_s {
            Some(failed_s) if self.ignores_failures() => self.payment.status_at(now_s.min(failed_s - 1)),
            _ => self.payment.status_at(now_s),
        }
    }

    fn ignores_failures(&self) -> bool {
        self.sabotage.contains(&Sabotage::IgnoresRefundFailure)
    }

    fn book(&mut self, delivery: &Delivery<'_>, change: &Change, effect_key: String) {
        let event = delivery.event;
        // A payment-level event names the payment; refunds and disputes are named by their own ids.
        let names_payment = change.kind == EffectKind::Credit && !event.kind.starts_with("charge.");
        let own_id = if names_payment { event.subject.clone() } else { change.object_id.clone() };
        let mut row = LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            effect_key,
            object_id: own_id,
            kind: change.kind,
            amount_minor: change.amount_minor,
            currency: change.currency,
            occurred_us: event.created_s * SECOND_US,
            applied_us: delivery.at_us,
            event_id: event.id.clone(),
            corrects: String::new(),
        };
        for one in self.sabotage {
            if let Sabotage::BooksAs { object_id, amount_minor, currency, as_object_id } = one
                && *object_id == change.object_id
            {
                row.amount_minor = *amount_minor;
                row.currency = currency;
                if as_object_id != object_id {
                    row.object_id.clone_from(as_object_id);
                    // What is booked on another object cannot have the right key.
                    row.effect_key = String::new();
                }
            }
        }
        self.ledger.push(row);
    }

    /// A compensating row for the booked one, if it was booked and not undone yet.
    fn undo(&mut self, delivery: &Delivery<'_>, change: &Change) {
        let is_its = |row: &&LedgerRow| row.object_id == change.object_id && row.kind == change.kind;
        let Some(booked) = self.ledger.iter().find(is_its).cloned() else { return };
        if self.ledger.iter().any(|row| row.corrects == booked.entry_id) {
            return;
        }
        self.ledger.push(LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            amount_minor: -booked.amount_minor,
            occurred_us: delivery.event.created_s * SECOND_US,
            applied_us: delivery.at_us,
            event_id: delivery.event.id.clone(),
            corrects: booked.entry_id.clone(),
            ..booked
        });
    }

    fn set_state(&mut self, delivery: &Delivery<'_>, status: Status) {
        self.state = Some(StateRow {
            object_id: self.payment.root_id().to_owned(),
            status,
            provider_us: delivery.event.created_s * SECOND_US,
            updated_us: delivery.at_us,
        });
    }

    /// Money that no subscribed event announces comes from the bank statement, a day later.
    fn import(&mut self, world: &World, rng: &mut Rng) {
        let Some(dispute) = &self.payment.dispute else { return };
        let Outcome::Won(won_s) = dispute.outcome else { return };
        if self.sabotage.contains(&Sabotage::NotImported) {
            return;
        }
        let applied_us = (won_s + 3_600 + rng.between(0, 43_200)) * SECOND_US;
        self.ledger.push(LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            effect_key: format!("dispute_reinstated:{}", dispute.id),
            object_id: dispute.id.clone(),
            kind: EffectKind::DisputeReinstated,
            amount_minor: self.payment.captured_minor_at(won_s),
            currency: self.payment.currency,
            occurred_us: won_s * SECOND_US,
            applied_us: applied_us.min(world.until_us - SECOND_US),
            event_id: String::new(),
            corrects: String::new(),
        });
    }

    /// Rows and statuses that no delivery explains.
    fn finish(&mut self, deliveries: &[Delivery<'_>]) {
        for one in self.sabotage {
            match one {
                Sabotage::Row(row) => self.add_row(row),
                Sabotage::StateEndsAs(status, after_s) => {
                    let word = deliveries.iter().find(|delivery| delivery.event.status == Some(*status));
                    let first = deliveries.first();
                    let (Some(first), Some(last)) = (first, deliveries.last()) else { continue };
                    let updated_us = match word {
                        _ if *after_s >= 0 => last.at_us + after_s * SECOND_US,
                        Some(delivery) => delivery.at_us,
                        None => first.at_us - SECOND_US,
                    };
                    self.set_state(word.unwrap_or(first), *status);
                    if let Some(state) = &mut self.state {
                        state.updated_us = updated_us;
                    }
                }
                _ => {}
            }
        }
    }

    fn add_row(&mut self, extra: &ExtraRow) {
        let corrects = match self.ledger.get(1) {
            Some(second) if extra.undoes_second => second.entry_id.clone(),
            _ => String::new(),
        };
        self.ledger.push(LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            effect_key: String::new(),
            object_id: extra.object_id.clone(),
            kind: extra.kind,
            amount_minor: extra.amount_minor,
            currency: extra.currency,
            occurred_us: extra.at_s * SECOND_US,
            applied_us: extra.at_s * SECOND_US,
            event_id: extra.event_id.clone(),
            corrects,
        });
    }
}
