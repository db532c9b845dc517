//! Stories: how a payment's life goes. A story is asked for by name and told with random details.

use super::payment::{Charge, Dispute, Flow, Outcome, Payment, Refund, settled_minor};
use super::random::Rng;

/// How a payment's life goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// Paid at once.
    Paid,
    /// One or two failed attempts, then paid.
    PaidAfterFailure,
    /// A method that decides days later.
    PaidLater,
    /// Every attempt failed.
    Failed,
    /// Given up by the customer.
    Canceled,
    /// Authorised, not captured.
    Authorised,
    /// Authorised, captured in full later.
    CapturedFull,
    /// Authorised, a part captured, the rest released.
    CapturedPart,
    /// Given back in full.
    RefundedFull,
    /// Given back in part.
    RefundedPart,
    /// Given back in two parts.
    RefundedTwice,
    /// Given back, and the refund failed days later.
    RefundFailed,
    /// A question of the bank.
    Inquiry,
    /// Disputed, undecided.
    Disputed,
    /// Disputed, won.
    DisputeWon,
    /// Disputed, lost.
    DisputeLost,
}

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 86_400;

/// Currencies of the account's customers.
pub const CURRENCIES: [&str; 5] = ["usd", "eur", "brl", "jpy", "kwd"];

const NAMES: [&str; 12] = [
    "Ana Souza",
    "Bruno Lima",
    "Chloé Martin",
    "Dai Tanaka",
    "Eva \"Evi\" Braun",
    "Faisal Al-Sabah",
    "Grace O'Neill",
    "=HYPERLINK(\"http://example.com\",\"Henk\")",
    "Inês Araújo",
    "João, o Moço",
    "Kim\u{a0}Lee",
    "Lúcia\nPrado",
];

/// A customer: id and name.
#[derive(Clone, Debug)]
pub struct Customer {
    /// `cus_…`.
    pub id: String,
    /// Name.
    pub name: String,
}

impl Customer {
    /// A new customer.
    pub fn new(rng: &mut Rng) -> Self {
        Self { id: rng.id("cus"), name: rng.pick(&NAMES).to_owned() }
    }
}

/// What a story is told about.
#[derive(Clone, Debug)]
pub struct Cast {
    /// Flow.
    pub flow: Flow,
    /// Currency.
    pub currency: &'static str,
    /// Authorised amount, minor units.
    pub amount_minor: i64,
    /// Who pays.
    pub customer: Customer,
    /// First second of the story.
    pub start_s: i64,
    /// Everything in it happens before this second.
    pub last_s: i64,
}

/// An ordinary amount in minor units: whole yen, dinar with a last digit of 0 (the provider asks for it).
pub fn amount(rng: &mut Rng, currency: &str) -> i64 {
    match currency {
        "kwd" => rng.between(100, 6_000) * 10,
        "jpy" => rng.between(300, 60_000),
        _ => rng.between(500, 40_000),
    }
}

/// Tells a story.
pub fn tell(rng: &mut Rng, story: Story, cast: &Cast) -> Payment {
    let mut payment = begin(rng, cast);
    let at_s = cast.start_s;
    match story {
        Story::Failed => payment.failed = failures(rng, at_s, cast.last_s),
        Story::Canceled => {
            if rng.per_mille(500) {
                payment.failed = failures(rng, at_s, cast.last_s);
            }
            let after_s = payment.failed.last().map_or(at_s, |(_, failed_s)| *failed_s);
            payment.canceled_s = Some(later(rng, after_s, cast.last_s, DAY_S));
        }
        Story::PaidAfterFailure => {
            payment.failed = failures(rng, at_s, cast.last_s);
            let after_s = payment.failed.last().map_or(at_s, |(_, failed_s)| *failed_s);
            let paid_s = later(rng, after_s, cast.last_s, HOUR_S);
            payment.charge = Some(charge(rng, cast, paid_s, Some(paid_s), cast.amount_minor));
        }
        Story::Authorised => payment.charge = Some(charge(rng, cast, at_s, None, 0)),
        Story::PaidLater | Story::CapturedFull | Story::CapturedPart => {
            let captured_s = later(rng, at_s, cast.last_s, 3 * DAY_S);
            let captured_minor = match story {
                Story::CapturedPart => part(rng, cast.currency, cast.amount_minor),
                _ => cast.amount_minor,
            };
            let mut captured = charge(rng, cast, at_s, Some(captured_s), captured_minor);
            captured.is_delayed = story == Story::PaidLater;
            payment.charge = Some(captured);
        }
        _ => payment.charge = Some(charge(rng, cast, at_s, Some(at_s), cast.amount_minor)),
    }
    afterwards(rng, story, cast, &mut payment);
    payment
}

/// Refunds and disputes of a paid payment.
fn afterwards(rng: &mut Rng, story: Story, cast: &Cast, payment: &mut Payment) {
    let at_s = cast.start_s;
    match story {
        Story::RefundedFull | Story::RefundFailed => {
            let mut back = refund(rng, cast, at_s, cast.amount_minor);
            if story == Story::RefundFailed {
                back.failed_s = Some(later(rng, back.succeeded_s, cast.last_s, 5 * DAY_S));
            }
            payment.refunds.push(back);
        }
        Story::RefundedPart => {
            let amount_minor = part(rng, cast.currency, cast.amount_minor);
            payment.refunds.push(refund(rng, cast, at_s, amount_minor));
        }
        Story::RefundedTwice => {
            let first_minor = part(rng, cast.currency, cast.amount_minor);
            let first = refund(rng, cast, at_s, first_minor);
            let rest_minor = part(rng, cast.currency, cast.amount_minor - first_minor);
            let second = refund(rng, cast, first.succeeded_s, rest_minor);
            payment.refunds.extend([first, second]);
        }
        Story::Inquiry | Story::Disputed | Story::DisputeWon | Story::DisputeLost => {
            let created_s = later(rng, at_s, cast.last_s - 2, 6 * DAY_S);
            let outcome = match story {
                Story::DisputeWon => Outcome::Won(later(rng, created_s, cast.last_s, 8 * DAY_S)),
                Story::DisputeLost => Outcome::Lost(later(rng, created_s, cast.last_s, 8 * DAY_S)),
                Story::Disputed => Outcome::Open,
                _ => Outcome::Inquiry,
            };
            payment.dispute = Some(Dispute {
                id: rng.id("dp"),
                created_s,
                outcome,
                withdrawn_transaction: rng.id("txn"),
                reinstated_transaction: rng.id("txn"),
            });
        }
        _ => {}
    }
}

fn begin(rng: &mut Rng, cast: &Cast) -> Payment {
    Payment {
        flow: cast.flow,
        currency: cast.currency,
        amount_minor: cast.amount_minor,
        intent_id: (cast.flow != Flow::ChargeOnly).then(|| rng.id("pi")),
        customer: cast.customer.id.clone(),
        customer_name: cast.customer.name.clone(),
        order_id: format!("order-{}", rng.below(1 << 40)),
        invoice: (cast.flow == Flow::Invoice).then(|| rng.id("in")),
        invoice_also_paid_by: None,
        session: (cast.flow == Flow::Checkout).then(|| rng.id("cs_live")),
        has_old_shape: rng.per_mille(250),
        created_s: cast.start_s,
        failed: Vec::new(),
        charge: None,
        canceled_s: None,
        refunds: Vec::new(),
        dispute: None,
        is_naive: rng.per_mille(250),
        pending_webhooks: 0,
    }
}

fn charge(
    rng: &mut Rng,
    cast: &Cast,
    created_s: i64,
    captured_s: Option<i64>,
    captured_minor: i64,
) -> Charge {
    let settled = settled_minor(cast.currency, captured_minor);
    Charge {
        id: rng.id("ch"),
        created_s,
        captured_s,
        captured_minor,
        transaction: rng.id("txn"),
        fee_minor: if captured_minor == 0 { 0 } else { settled * 29 / 1000 + 30 },
        is_delayed: false,
    }
}

fn refund(rng: &mut Rng, cast: &Cast, after_s: i64, amount_minor: i64) -> Refund {
    // Two refunds of one second are common where a program gives back line by line.
    let created_s =
        if rng.per_mille(100) { after_s } else { later(rng, after_s, cast.last_s - 2, 5 * DAY_S) };
    let is_slow = rng.per_mille(150);
    Refund {
        id: rng.id("re"),
        amount_minor,
        created_s,
        succeeded_s: if is_slow { later(rng, created_s, cast.last_s - 1, DAY_S) } else { created_s },
        failed_s: None,
        transaction: rng.id("txn"),
        failure_transaction: rng.id("txn"),
        has_events: true,
    }
}

fn failures(rng: &mut Rng, at_s: i64, last_s: i64) -> Vec<(String, i64)> {
    let count = 1 + rng.below(2);
    let mut failed_s = at_s;
    let mut failed = Vec::new();
    for _ in 0..count {
        failed.push((rng.id("ch"), failed_s));
        failed_s = later(rng, failed_s, last_s - 10, HOUR_S);
    }
    failed
}

/// A second after `after_s`, at most `within_s` later and before `last_s`.
fn later(rng: &mut Rng, after_s: i64, last_s: i64, within_s: i64) -> i64 {
    let room_s = (last_s - after_s - 1).clamp(1, within_s);
    after_s + 1 + rng.between(0, room_s)
}

/// A part of an amount: more than nothing, less than all, and neither a tenth nor a hundredth of it
/// nor one unit beside it (which would look like another mistake).
fn part(rng: &mut Rng, currency: &str, amount_minor: i64) -> i64 {
    let step = if currency == "kwd" { 10 } else { 1 };
    let percent = rng.between(20, 80);
    (amount_minor * percent / 100 / step).max(1) * step
}
