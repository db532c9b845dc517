//! Planted faults: each is one payment that goes wrong in one known way, with exactly what a run must
//! find about it. Worked out here from the stories alone; no rule and no comparison is asked.
//!
//! The one thing to get right: a fault is one root cause. Everything that follows from it (a stale
//! status behind a missing effect) belongs to the same expected finding.

mod books;
mod expected;
mod fault;
mod missing;
mod quiet;
mod wrong;

pub use expected::{Expected, ExtraEvent, ExtraRow, Sabotage};
pub use fault::Fault;

use super::payment::Payment;
use super::random::Rng;
use super::story::{self, Story};
use super::world::World;

/// A fault in a world.
#[derive(Clone, Debug)]
pub struct Planted {
    /// Which.
    pub fault: Fault,
    /// Index of the payment in [`World::payments`].
    pub payment: usize,
    /// The group.
    pub root_id: String,
    /// What must be found; empty for what must not.
    pub expected: Vec<Expected>,
    /// What the local side does.
    pub sabotage: Vec<Sabotage>,
}

/// Which faults, each so many times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix(pub Vec<(Fault, u32)>);

impl Mix {
    /// So many of each fault and of each harmless scene.
    #[must_use]
    pub fn each(count: u32) -> Self {
        Self(Fault::LOUD.into_iter().chain(Fault::QUIET).map(|fault| (fault, count)).collect())
    }

    /// So many of each fault that a plan puts right, and of each harmless scene that stays harmless however
    /// long somebody takes over it.
    #[must_use]
    pub fn correctable(count: u32) -> Self {
        let quiet = Fault::QUIET.into_iter().filter(|fault| !fault.ages());
        Self(Fault::CORRECTABLE.into_iter().chain(quiet).map(|fault| (fault, count)).collect())
    }

    /// One fault, alone.
    #[must_use]
    pub fn only(fault: Fault) -> Self {
        Self(vec![(fault, 1)])
    }

    /// So many by chance.
    #[must_use]
    pub fn random(seed: u64, count: u32) -> Self {
        let mut rng = Rng::new(seed ^ 0x6d69_785f);
        let all: Vec<Fault> = Fault::LOUD.into_iter().chain(Fault::QUIET).collect();
        let mut mix: Vec<(Fault, u32)> = Vec::new();
        for _ in 0..count {
            let fault = rng.pick(&all);
            match mix.iter_mut().find(|(known, _)| *known == fault) {
                Some((_, times)) => *times += 1,
                None => mix.push((fault, 1)),
            }
        }
        Self(mix)
    }
}

/// Adds a payment for each fault of the mix to the world and says what must be found.
///
/// The world then holds everything that the provider knows; the local side is written by
/// [`deliver`](super::deliver) with the same list.
pub fn plant(world: &mut World, seed: u64, mix: &Mix) -> Vec<Planted> {
    world.rng = Rng::new(seed ^ world.seed.rotate_left(17) ^ 0x0070_6c61_6e74);
    let mut planted = Vec::new();
    for (fault, count) in &mix.0 {
        for _ in 0..*count {
            planted.push(plant_one(world, *fault));
        }
    }
    world.finish();
    planted
}

fn plant_one(world: &mut World, fault: Fault) -> Planted {
    use Fault as F;
    match fault {
        F::MissedPayment
        | F::MissedRefund
        | F::MissedDispute
        | F::NotSubscribed
        | F::DeadLetter
        | F::Parked
        | F::MarkedProcessed
        | F::PendingTooLong
        | F::OlderThanEvents
        | F::RefundWithoutEvents => missing::plant(world, fault),
        F::DuplicateDelivery
        | F::DuplicateTypes
        | F::DuplicateTriple
        | F::DuplicateRefund
        | F::ChargedTwiceForOrder
        | F::ChargedTwiceForInvoice
        | F::Misattributed
        | F::OrphanUnknown
        | F::OrphanFailedRefund => books::plant(world, fault),
        F::AmountFactor100
        | F::AmountFactor10
        | F::AmountRounding
        | F::AmountAuthorised
        | F::AmountOther
        | F::RefundCumulative
        | F::OtherCurrency
        | F::StalePending
        | F::StalePaid
        | F::StaleDispute
        | F::PaidAfterRefunded
        | F::UnknownEvent
        | F::TestEvent
        | F::UnknownType => wrong::plant(world, fault),
        _ => quiet::plant(world, fault),
    }
}

const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3_600;

/// When a scene plays, Unix s: `start..last`.
#[derive(Clone, Copy, Debug)]
struct Span {
    start_s: i64,
    last_s: i64,
}

/// Some time well inside what the provider still lists, long enough ago for everything to have settled.
fn listed(world: &mut World) -> Span {
    let (first_s, last_s) = (world.events_from_s() + 2 * HOUR_S, world.until_s() - 4 * DAY_S);
    Span { start_s: world.rng.between(first_s, last_s - 12 * DAY_S), last_s }
}

/// Some time in the window whose events the provider no longer lists.
fn unlisted(world: &mut World) -> Span {
    let (first_s, last_s) = (world.from_s() + 2 * HOUR_S, world.events_from_s() - 5 * HOUR_S);
    Span { start_s: world.rng.between(first_s, last_s - HOUR_S), last_s }
}

/// Adds a payment and begins its entry. The naive handler is off unless the fault turns it on.
fn stage(
    world: &mut World,
    fault: Fault,
    story: Story,
    span: Span,
    edit: impl FnOnce(&mut story::Cast),
) -> Planted {
    let mut cast = world.cast(story, span.start_s, span.last_s);
    edit(&mut cast);
    let payment = story::tell(&mut world.rng, story, &cast);
    enter(world, fault, payment)
}

/// Adds a payment as it is and begins its entry.
fn enter(world: &mut World, fault: Fault, mut payment: Payment) -> Planted {
    payment.is_naive = false;
    let root_id = payment.root_id().to_owned();
    let payment = world.add_payment(payment);
    Planted { fault, payment, root_id, expected: Vec::new(), sabotage: Vec::new() }
}

/// The charge of a planted payment: id, captured amount, currency.
fn charge_of(world: &World, planted: &Planted) -> (String, i64, &'static str) {
    let payment = &world.payments[planted.payment];
    let (id, minor) = payment
        .charge
        .as_ref()
        .map_or((String::new(), 0), |charge| (charge.id.clone(), charge.captured_minor));
    (id, minor, payment.currency)
}

/// Event ids of a payment that pass a test on their type.
fn events_of(world: &World, planted: &Planted, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let own = world.events.iter().filter(|event| event.payment == Some(planted.payment));
    own.filter(|event| is_wanted(event.kind)).map(|event| event.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A practice month must be one that applying its plans can bring to `clean`, and no less than that.
    #[test]
    fn a_plan_puts_right_exactly_the_correctable_faults() {
        for fault in Fault::LOUD {
            let mut world = World::new(5, 200, 1_789_473_600_000_000);
            let planted = plant(&mut world, 5, &Mix::only(fault));
            let is_correctable = planted.iter().flat_map(|one| &one.expected).all(Expected::is_correctable);
            assert_eq!(is_correctable, Fault::CORRECTABLE.contains(&fault), "{fault:?}");
        }
    }
}
