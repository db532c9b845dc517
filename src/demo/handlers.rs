//! The shop: deliveries of a world's events, at least once and in any order, to an honest handler and
//! to a naive one, and the rows that both leave behind. Pure; `books.rs` writes the rows.
//!
//! The local side is written here as a real team would have it, not by the project's own way of
//! applying: a reconciliation must not be checked with the code that it would correct by.

use super::desk::{Delivery, Desk};
use super::faults::{ExtraEvent, Planted, Sabotage};
use super::payment::Payment;
use super::random::Rng;
use super::world::{Event, WANTED_TYPES, World};
use crate::record::{EffectKind, InboxStatus, SECOND_US, Status};
use std::collections::{BTreeMap, HashMap};

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
    let mut desk = Desk::new(payment, sabotage);
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
