//! Planted faults: each is one payment that goes wrong in one known way, with exactly what a run must
//! find about it. Worked out here from the stories alone; no rule and no comparison is asked.
//!
//! The one thing to get right: a fault is one root cause. Everything that follows from it (a stale
//! status behind a missing effect) belongs to the same expected finding.

mod books;
mod missing;
mod quiet;
mod wrong;

use super::payment::Payment;
use super::random::Rng;
use super::story::{self, Story};
use super::world::World;
use crate::record::{EffectKind, InboxStatus, Status};

/// A way to go wrong, or to look wrong and be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each name says it; what is expected of it stands where it is planted")]
pub enum Fault {
    MissedPayment,
    MissedRefund,
    MissedDispute,
    NotSubscribed,
    DeadLetter,
    Parked,
    MarkedProcessed,
    PendingTooLong,
    OlderThanEvents,
    RefundWithoutEvents,
    DuplicateDelivery,
    DuplicateTypes,
    DuplicateTriple,
    DuplicateRefund,
    ChargedTwiceForOrder,
    ChargedTwiceForInvoice,
    Misattributed,
    OrphanUnknown,
    OrphanFailedRefund,
    AmountFactor100,
    AmountFactor10,
    AmountRounding,
    AmountAuthorised,
    AmountOther,
    RefundCumulative,
    OtherCurrency,
    StalePending,
    StalePaid,
    StaleDispute,
    PaidAfterRefunded,
    UnknownEvent,
    TestEvent,
    UnknownType,
    BookedAfterWindow,
    BookedInWindow,
    HarmlessDuplicates,
    HarmlessOrder,
    HarmlessSibling,
    HarmlessReversal,
    HarmlessEdge,
    InFlightYoung,
    InFlightRetried,
}

impl Fault {
    /// Every fault that must be found.
    pub const LOUD: [Self; 35] = [
        Self::MissedPayment,
        Self::MissedRefund,
        Self::MissedDispute,
        Self::NotSubscribed,
        Self::DeadLetter,
        Self::Parked,
        Self::MarkedProcessed,
        Self::PendingTooLong,
        Self::OlderThanEvents,
        Self::RefundWithoutEvents,
        Self::DuplicateDelivery,
        Self::DuplicateTypes,
        Self::DuplicateTriple,
        Self::DuplicateRefund,
        Self::ChargedTwiceForOrder,
        Self::ChargedTwiceForInvoice,
        Self::Misattributed,
        Self::OrphanUnknown,
        Self::OrphanFailedRefund,
        Self::AmountFactor100,
        Self::AmountFactor10,
        Self::AmountRounding,
        Self::AmountAuthorised,
        Self::AmountOther,
        Self::RefundCumulative,
        Self::OtherCurrency,
        Self::StalePending,
        Self::StalePaid,
        Self::StaleDispute,
        Self::PaidAfterRefunded,
        Self::UnknownEvent,
        Self::TestEvent,
        Self::UnknownType,
        Self::BookedAfterWindow,
        Self::BookedInWindow,
    ];

    /// Every scene that looks wrong and must not be found.
    pub const QUIET: [Self; 7] = [
        Self::HarmlessDuplicates,
        Self::HarmlessOrder,
        Self::HarmlessSibling,
        Self::HarmlessReversal,
        Self::HarmlessEdge,
        Self::InFlightYoung,
        Self::InFlightRetried,
    ];
}

/// What a run must find.
///
/// Amounts are minor units, signed as they move the balance; an empty cell and 0 say the same. For
/// `currency_mismatch` the found amount is money of another currency and the difference is the whole
/// expected amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Kind, the contract's word.
    pub kind: &'static str,
    /// Cause; `None` where the contract names none for the kind, so that any word may stand there.
    pub cause: Option<&'static str>,
    /// The object that it is about.
    pub object_id: String,
    /// The effect kind, for findings about money.
    pub effect: Option<EffectKind>,
    /// Lower-case ISO code; empty where there is no money.
    pub currency: String,
    /// The provider's amount.
    pub expected_minor: Option<i64>,
    /// The local amount.
    pub found_minor: Option<i64>,
    /// Provider minus local.
    pub difference_minor: Option<i64>,
    /// The provider's status, for findings about states.
    pub expected_state: Option<Status>,
    /// The local status, for findings about states.
    pub found_state: Option<Status>,
}

impl Expected {
    /// A finding about money: signed amounts of both sides.
    #[must_use]
    pub fn money(
        kind: &'static str,
        effect: EffectKind,
        object: &str,
        currency: &str,
        sides: (i64, i64),
    ) -> Self {
        Self {
            kind,
            cause: None,
            object_id: object.to_owned(),
            effect: Some(effect),
            currency: currency.to_owned(),
            expected_minor: Some(sides.0),
            found_minor: Some(sides.1),
            difference_minor: Some(sides.0 - sides.1),
            expected_state: None,
            found_state: None,
        }
    }

    /// A finding about a status.
    #[must_use]
    pub fn state(kind: &'static str, object: &str, provider: Status, local: Status) -> Self {
        Self { expected_state: Some(provider), found_state: Some(local), ..Self::plain(kind, object) }
    }

    /// A finding without money.
    #[must_use]
    pub fn plain(kind: &'static str, object: &str) -> Self {
        Self {
            kind,
            cause: None,
            object_id: object.to_owned(),
            effect: None,
            currency: String::new(),
            expected_minor: None,
            found_minor: None,
            difference_minor: None,
            expected_state: None,
            found_state: None,
        }
    }

    /// The same with a cause.
    #[must_use]
    pub fn because(mut self, cause: &'static str) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Whether `recon apply` puts it right without a person's decision, by the contract's table of default corrections.
    #[must_use]
    pub fn is_correctable(&self) -> bool {
        matches!(
            self.kind,
            "missed_event"
                | "unapplied_event"
                | "missing_effect"
                | "duplicate_effect"
                | "stale_state"
                | "forbidden_transition"
        )
    }
}

/// A row that stands in the books without any handler's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraRow {
    /// Kind.
    pub kind: EffectKind,
    /// The object that it names.
    pub object_id: String,
    /// Magnitude; negative with `undoes_first`.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: &'static str,
    /// The event that it names, or empty.
    pub event_id: String,
    /// When it was booked, Unix s.
    pub at_s: i64,
    /// Whether it undoes the second row that the payment's handler booked.
    pub undoes_second: bool,
}

/// An event in the inbox that the provider did not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraEvent {
    /// Event id.
    pub event_id: String,
    /// Event type.
    pub kind: &'static str,
    /// `live` or `test`.
    pub mode: &'static str,
    /// Body.
    pub body: String,
    /// When it came, Unix s.
    pub at_s: i64,
}

/// What the local side does otherwise than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// These events never arrive.
    Drop(Vec<String>),
    /// These events arrive and end in this status, without effect and without a change of status.
    LeftAs(InboxStatus, Vec<String>),
    /// Everything is delivered so many times, and the naive handler takes it.
    NaiveTimes(u32),
    /// The naive handler books these types besides those that it should.
    NaiveAlsoBooks(&'static str),
    /// Deliveries come in the reverse order.
    Reversed,
    /// Everything is delivered several times, to the honest handler.
    HonestTimes(u32),
    /// An effect is booked with another amount, currency or object.
    BooksAs {
        /// Whose effect: charge, refund or dispute.
        object_id: String,
        /// Magnitude.
        amount_minor: i64,
        /// Lower-case ISO code.
        currency: &'static str,
        /// The object that the row names.
        as_object_id: String,
    },
    /// The nightly import leaves out the reinstated money.
    NotImported,
    /// Everything arrives at this second.
    ArrivesAt(i64),
    /// A row in the books.
    Row(ExtraRow),
    /// An event in the inbox.
    Inbox(ExtraEvent),
    /// The status ends as this, last changed so many seconds after the payment's last event.
    StateEndsAs(Status, i64),
    /// Failures of refunds are received and not acted upon.
    IgnoresRefundFailure,
}

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
/// [`deliver`](super::handlers::deliver) with the same list.
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
