//! A seeded month of a Stripe account: objects, events, and the truth about the money.
//!
//! The one thing to get right: the truth stands here, made from the stories and not from the wire
//! form, so that a reader of the wire form can be held against it. Same arguments, same bytes.

use super::payment::{Flow, Payment};
use super::random::Rng;
use super::story::{self, CURRENCIES, Cast, Customer, Story};
use super::timeline::{self, Draft, Meaning};
use super::wire::{self, NOW_S};
use crate::record::{EffectKind, SECOND_US, Status};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A list of the provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the list of that name in the provider's API reference")]
pub enum Stream {
    Events,
    Charges,
    Refunds,
    Disputes,
    BalanceTransactions,
    Payouts,
    Invoices,
    CheckoutSessions,
    PaymentIntents,
}

impl Stream {
    /// Every list.
    pub const ALL: [Self; 9] = [
        Self::Events,
        Self::Charges,
        Self::Refunds,
        Self::Disputes,
        Self::BalanceTransactions,
        Self::Payouts,
        Self::Invoices,
        Self::CheckoutSessions,
        Self::PaymentIntents,
    ];

    /// The path after `/v1/`.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Charges => "charges",
            Self::Refunds => "refunds",
            Self::Disputes => "disputes",
            Self::BalanceTransactions => "balance_transactions",
            Self::Payouts => "payouts",
            Self::Invoices => "invoices",
            Self::CheckoutSessions => "checkout/sessions",
            Self::PaymentIntents => "payment_intents",
        }
    }
}

/// An object as its list shows it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Id.
    pub id: String,
    /// Creation, Unix s.
    pub created_s: i64,
    /// Order of creation within a second.
    pub sequence: u64,
    /// Wire form.
    pub body: Arc<str>,
    /// A field that is only shown where it is asked for: name and wire form.
    pub includable: Option<(&'static str, Arc<str>)>,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// `evt_…`.
    pub id: String,
    /// Event type.
    pub kind: &'static str,
    /// Unix s.
    pub created_s: i64,
    /// Order of creation within a second.
    pub sequence: u64,
    /// Index of its payment in [`World::payments`]; `None` for noise.
    pub payment: Option<usize>,
    /// The id that it is about.
    pub subject: String,
    /// What it means.
    pub meaning: Meaning,
    /// The payment's status after it.
    pub status: Option<Status>,
    /// Endpoints that have not acknowledged it.
    pub pending_webhooks: u32,
    /// Wire form.
    pub body: Arc<str>,
}

/// A movement of money that truly happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthEffect {
    /// Kind.
    pub kind: EffectKind,
    /// The group.
    pub root_id: String,
    /// The charge, refund, dispute or payout.
    pub object_id: String,
    /// Magnitude, minor units.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: &'static str,
    /// When the balance moved, Unix s.
    pub occurred_s: i64,
}

/// A month of an account.
#[derive(Clone, Debug)]
pub struct World {
    /// The seed it grew from.
    pub seed: u64,
    /// Connected account; empty for the platform.
    pub account: String,
    /// Now, Unix µs, a whole second.
    pub now_us: i64,
    /// First instant of the window that the month fills, Unix µs.
    pub from_us: i64,
    /// First instant after it: the settle delay before now.
    pub until_us: i64,
    /// Payments; never reordered.
    pub payments: Vec<Payment>,
    /// Objects by list, newest first; the list of events stands in `events`.
    pub records: BTreeMap<Stream, Vec<Record>>,
    /// Events, newest first, also those that the provider no longer lists.
    pub events: Vec<Event>,
    /// Every movement of money.
    pub truth: Vec<TruthEffect>,
    /// Status of each payment by root id.
    pub states: BTreeMap<String, Status>,
    pub(super) rng: Rng,
    customers: Vec<Customer>,
    sequence: u64,
}

const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3_600;
/// Days before now at which the window begins: beyond the provider's memory of events, so that
/// every run also meets what can no longer be listed.
const WINDOW_DAYS: i64 = 33;
/// Days for which the provider lists events (docs.stripe.com/api/events, 2026).
pub const EVENT_RETENTION_DAYS: i64 = 30;
/// Seconds before now at which the window ends.
const SETTLE_S: i64 = 300;

/// Event types that the shop's endpoint listens to. Reinstated money is not among them, as in many
/// real set-ups: the shop books it from its bank statement.
pub const WANTED_TYPES: [&str; 16] = [
    "charge.captured",
    "charge.dispute.closed",
    "charge.dispute.created",
    "charge.dispute.funds_withdrawn",
    "charge.failed",
    "charge.refunded",
    "charge.succeeded",
    "checkout.session.async_payment_succeeded",
    "checkout.session.completed",
    "invoice.paid",
    "payment_intent.canceled",
    "payment_intent.payment_failed",
    "payment_intent.succeeded",
    "refund.created",
    "refund.failed",
    "refund.updated",
];

/// Stories and how many of a thousand payments they are.
const STORIES: [(Story, u64); 16] = [
    (Story::Paid, 560),
    (Story::PaidAfterFailure, 60),
    (Story::PaidLater, 40),
    (Story::Failed, 50),
    (Story::Canceled, 25),
    (Story::Authorised, 10),
    (Story::CapturedFull, 25),
    (Story::CapturedPart, 25),
    (Story::RefundedFull, 60),
    (Story::RefundedPart, 45),
    (Story::RefundedTwice, 30),
    (Story::RefundFailed, 15),
    (Story::Inquiry, 10),
    (Story::Disputed, 15),
    (Story::DisputeWon, 15),
    (Story::DisputeLost, 15),
];

impl World {
    /// A month with about this many events, seen from `now_us` (Unix µs).
    #[must_use]
    pub fn new(seed: u64, events: usize, now_us: i64) -> Self {
        let mut world = Self::empty(seed, events, now_us);
        let payouts = (events / 60).min(90);
        world.pay_out(payouts);
        while world.events.len() < events {
            if world.rng.per_mille(350) {
                world.make_noise();
            }
            let last_s = world.until_s() - 3 * HOUR_S;
            let start_s = world.rng.between(world.from_s() + 2 * HOUR_S, last_s - HOUR_S);
            let story = world.some_story();
            world.add_story(story, start_s, last_s);
        }
        world.finish();
        world
    }

    /// An account in which so many payments were paid within the last day, and nothing else happened.
    #[must_use]
    pub fn paid(seed: u64, payments: usize, now_us: i64) -> Self {
        let mut world = Self::empty(seed, payments, now_us);
        let last_s = world.until_s() - 3 * HOUR_S;
        for _ in 0..payments {
            let start_s = world.rng.between(last_s - DAY_S, last_s - HOUR_S);
            world.add_story(Story::Paid, start_s, last_s);
        }
        world.finish();
        world
    }

    /// An account in which nothing has happened yet.
    fn empty(seed: u64, events: usize, now_us: i64) -> Self {
        let mut rng = Rng::new(seed);
        let today_s = now_us.div_euclid(SECOND_US);
        let first_day_s = (today_s - WINDOW_DAYS * DAY_S).div_euclid(DAY_S) * DAY_S;
        let customers = (0..events / 20 + 5).map(|_| Customer::new(&mut rng)).collect();
        Self {
            seed,
            account: String::new(),
            now_us: today_s * SECOND_US,
            from_us: first_day_s * SECOND_US,
            until_us: (today_s - SETTLE_S) * SECOND_US,
            payments: Vec::new(),
            records: Stream::ALL
                .into_iter()
                .filter(|stream| *stream != Stream::Events)
                .map(|s| (s, Vec::new()))
                .collect(),
            events: Vec::new(),
            truth: Vec::new(),
            states: BTreeMap::new(),
            rng,
            customers,
            sequence: 0,
        }
    }

    /// First second of the window.
    #[must_use]
    pub const fn from_s(&self) -> i64 {
        self.from_us.div_euclid(SECOND_US)
    }

    /// First second after the window.
    #[must_use]
    pub const fn until_s(&self) -> i64 {
        self.until_us.div_euclid(SECOND_US)
    }

    /// First second whose events the provider still lists.
    #[must_use]
    pub const fn events_from_s(&self) -> i64 {
        self.now_us.div_euclid(SECOND_US) - EVENT_RETENTION_DAYS * DAY_S
    }

    fn some_story(&mut self) -> Story {
        let total: u64 = STORIES.iter().map(|(_, weight)| weight).sum();
        let mut ticket = self.rng.below(total);
        for (story, weight) in STORIES {
            if ticket < weight {
                return story;
            }
            ticket -= weight;
        }
        Story::Paid
    }

    /// Who plays in a story: flow, currency, amount and customer by chance, as the story allows.
    pub(super) fn cast(&mut self, story: Story, start_s: i64, last_s: i64) -> Cast {
        let rng = &mut self.rng;
        let flow = match story {
            Story::PaidLater => rng.pick(&[Flow::Checkout, Flow::Direct]),
            Story::Authorised | Story::CapturedFull | Story::CapturedPart | Story::Canceled => Flow::Direct,
            _ => rng.pick(&[
                Flow::Direct,
                Flow::Direct,
                Flow::Invoice,
                Flow::Invoice,
                Flow::Checkout,
                Flow::Checkout,
                Flow::Direct,
                Flow::ChargeOnly,
            ]),
        };
        let is_old_integration_impossible = matches!(story, Story::PaidAfterFailure | Story::Failed);
        let flow =
            if flow == Flow::ChargeOnly && is_old_integration_impossible { Flow::Direct } else { flow };
        let currency =
            if story == Story::PaidLater { "brl" } else { CURRENCIES[rng.index(CURRENCIES.len())] };
        let amount_minor = story::amount(rng, currency);
        let customer = self.customers[rng.index(self.customers.len())].clone();
        Cast { flow, currency, amount_minor, customer, start_s, last_s }
    }

    /// Adds a payment with this story; returns its index. Call [`World::finish`] afterwards.
    pub(super) fn add_story(&mut self, story: Story, start_s: i64, last_s: i64) -> usize {
        let cast = self.cast(story, start_s, last_s);
        let payment = story::tell(&mut self.rng, story, &cast);
        self.add_payment(payment)
    }

    /// Adds a payment; returns its index. Call [`World::finish`] afterwards.
    pub(super) fn add_payment(&mut self, payment: Payment) -> usize {
        let index = self.payments.len();
        for draft in timeline::drafts(&payment) {
            self.add_event(Some(index), &payment, draft);
        }
        self.add_records(&payment);
        self.add_truth(&payment);
        self.states.insert(payment.root_id().to_owned(), payment.status_at(NOW_S));
        self.payments.push(payment);
        index
    }

    /// Puts every list into the provider's order.
    pub(super) fn finish(&mut self) {
        for records in self.records.values_mut() {
            records.sort_by_key(|record| std::cmp::Reverse((record.created_s, record.sequence)));
        }
        self.events.sort_by_key(|event| std::cmp::Reverse((event.created_s, event.sequence)));
    }

    pub(super) fn add_event(&mut self, index: Option<usize>, payment: &Payment, draft: Draft) {
        let version = if payment.has_old_shape { wire::VERSION_OLD } else { wire::VERSION_NEW };
        self.push_event(index, version, payment.pending_webhooks, draft);
    }

    pub(super) fn push_event(
        &mut self,
        payment: Option<usize>,
        version: &'static str,
        pending_webhooks: u32,
        draft: Draft,
    ) {
        let id = self.rng.id("evt");
        let envelope = wire::Envelope {
            id: &id,
            kind: draft.kind,
            account: &self.account,
            created_s: draft.at_s,
            pending_webhooks,
            version,
        };
        let body = wire::event(&envelope, draft.object).to_string().into();
        let sequence = self.next_sequence();
        self.events.push(Event {
            id,
            kind: draft.kind,
            created_s: draft.at_s,
            sequence,
            payment,
            subject: draft.subject,
            meaning: draft.meaning,
            status: draft.status,
            pending_webhooks,
            body,
        });
    }

    pub(super) const fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn some_customer(&mut self) -> Customer {
        self.customers[self.rng.index(self.customers.len())].clone()
    }
}
