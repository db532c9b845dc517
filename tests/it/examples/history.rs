//! A month of payments at the emulator, and the few that went wrong in the team's tables.

use recon::demo::Payment;
use recon::demo::world::{Event, Stream, TruthEffect, WANTED_TYPES, World};
use recon::record::{EffectKind, Status};

const DAY_S: i64 = 86_400;

/// The world and which of its payments go wrong; numbers are places in `world.payments`.
pub struct History {
    pub world: World,
    /// A payment that is booked twice.
    pub doubled: usize,
    /// A payment of which nothing ever came.
    pub missed: usize,
    /// A payment whose events came and failed.
    pub failed: usize,
    /// A refunded payment that still says paid.
    pub stale: usize,
}

impl History {
    /// The first seeded world in which there is one of each.
    pub fn new(now_us: i64) -> Self {
        (1..200)
            .find_map(|seed| Self::of(World::new(seed, 120, now_us)))
            .expect("a world with enough of each")
    }

    /// The first seeded world of about this many events whose every payment fits, with one of each.
    pub fn of_few(now_us: i64, events: usize, fits: impl Fn(&Payment) -> bool) -> Self {
        let worlds = (1..5_000).map(|seed| World::new(seed, events, now_us));
        let mut fitting = worlds.filter(|world| world.payments.iter().all(&fits));
        fitting.find_map(Self::of).expect("a world with enough of each")
    }

    fn of(world: World) -> Option<Self> {
        let fitting = |wanted: Status| {
            let all = world.payments.iter().enumerate();
            let found: Vec<usize> =
                all.filter(|(_, payment)| fits(&world, payment, wanted)).map(|(place, _)| place).collect();
            found
        };
        let paid = fitting(Status::Paid);
        let [doubled, missed, failed, ..] = paid[..] else { return None };
        let stale = *fitting(Status::Refunded).first()?;
        Some(Self { world, doubled, missed, failed, stale })
    }

    /// The payment that has this id.
    pub fn payment_of(&self, id: &str) -> Option<usize> {
        self.world.payments.iter().position(|payment| {
            let charge = payment.charge.as_ref().is_some_and(|charge| charge.id == id);
            let others = [&payment.intent_id, &payment.invoice, &payment.session];
            charge
                || others.iter().any(|other| other.as_deref() == Some(id))
                || payment.refunds.iter().any(|refund| refund.id == id)
                || self
                    .events_of(id)
                    .is_some_and(|of| std::ptr::eq(&raw const self.world.payments[of], payment))
        })
    }

    fn events_of(&self, id: &str) -> Option<usize> {
        self.world.events.iter().find(|event| event.id == id)?.payment
    }

    /// Events that an endpoint of the shop is sent, in the order in which they happened.
    pub fn delivered(&self) -> Vec<&Event> {
        let mut events: Vec<&Event> =
            self.world.events.iter().filter(|event| WANTED_TYPES.contains(&event.kind)).collect();
        events.sort_by_key(|event| (event.created_s, event.sequence));
        events
    }

    /// Movements of money of one kind, in order, each with the place of its payment.
    pub fn moved(&self, kind: EffectKind) -> Vec<(usize, &TruthEffect)> {
        let mut moved: Vec<(usize, &TruthEffect)> = self
            .world
            .truth
            .iter()
            .filter(|effect| effect.kind == kind)
            .filter_map(|effect| Some((self.payment_of(&effect.root_id)?, effect)))
            .collect();
        moved.sort_by_key(|(_, effect)| (effect.occurred_s, &effect.object_id));
        moved
    }

    /// The wire form of a list's objects, oldest first, each with the place of its payment.
    pub fn records(&self, stream: Stream) -> Vec<(usize, serde_json::Value)> {
        let records = self.world.records[&stream].iter().rev();
        let parsed = records.map(|record| serde_json::from_str::<serde_json::Value>(&record.body).unwrap());
        parsed
            .filter_map(|object| {
                let charge = object["charge"].as_str().or(object["id"].as_str()).unwrap().to_owned();
                let payment = object["payment_intent"].as_str().unwrap_or(&charge).to_owned();
                Some((self.payment_of(&payment).or_else(|| self.payment_of(&charge))?, object))
            })
            .collect()
    }

    /// The last second in which something happened to a payment.
    pub fn last_s(&self, payment: usize) -> i64 {
        let of = self.world.events.iter().filter(|event| event.payment == Some(payment));
        of.map(|event| event.created_s).max().unwrap_or(self.world.payments[payment].created_s)
    }
}

/// A plain payment of middle age whose every event is listed and delivered.
fn fits(world: &World, payment: &Payment, wanted: Status) -> bool {
    let now_s = world.now_us / 1_000_000;
    let age = now_s - payment.created_s;
    let is_whole = payment
        .charge
        .as_ref()
        .is_some_and(|charge| charge.captured_minor == payment.amount_minor && !charge.is_delayed);
    world.states.get(payment.root_id()) == Some(&wanted)
        && (8 * DAY_S..25 * DAY_S).contains(&age)
        && is_whole
        && payment.intent_id.is_some()
        && payment.failed.is_empty()
        && payment.dispute.is_none()
        && payment.pending_webhooks == 0
        && payment.refunds.len() == usize::from(wanted == Status::Refunded)
        && payment.refunds.iter().all(|refund| refund.has_events && refund.failed_s.is_none())
}
