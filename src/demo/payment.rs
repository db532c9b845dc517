//! One payment's whole life at the provider, in compact form. The wire form is made from it, for
//! any instant of that life (`wire.rs`), so that an event shows its object as it was then.

use crate::record::Status;

/// How the customer came to pay; decides which ids and event types speak of the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// A payment intent.
    Direct,
    /// An invoice of a subscription, with its payment intent.
    Invoice,
    /// A checkout session, with its payment intent.
    Checkout,
    /// An old integration: a charge without payment intent.
    ChargeOnly,
}

/// How a dispute stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A question of the bank; no money moves.
    Inquiry,
    /// Money withdrawn, undecided.
    Open,
    /// Decided for us at this second, money reinstated.
    Won(i64),
    /// Decided against us at this second.
    Lost(i64),
}

/// The charge that succeeded, or waits to be captured.
#[derive(Clone, Debug)]
pub struct Charge {
    /// `ch_…`.
    pub id: String,
    /// Creation, Unix s.
    pub created_s: i64,
    /// When the money was captured, Unix s; `None` while only authorised.
    pub captured_s: Option<i64>,
    /// Captured amount; at most the payment's amount.
    pub captured_minor: i64,
    /// Balance transaction of the capture.
    pub transaction: String,
    /// Fee in the settlement currency.
    pub fee_minor: i64,
    /// Whether the method decides later (boleto): pending until it is captured.
    pub is_delayed: bool,
}

/// A refund.
#[derive(Clone, Debug)]
pub struct Refund {
    /// `re_…`.
    pub id: String,
    /// Amount in the charge's currency.
    pub amount_minor: i64,
    /// Creation, Unix s.
    pub created_s: i64,
    /// When it succeeded; its creation for most.
    pub succeeded_s: i64,
    /// When it failed after all.
    pub failed_s: Option<i64>,
    /// Its balance transaction.
    pub transaction: String,
    /// The balance transaction that gave the money back after the failure.
    pub failure_transaction: String,
    /// Whether the provider ever sent events about it; some objects come without any.
    pub has_events: bool,
}

impl Refund {
    /// Whether it holds at this second.
    #[must_use]
    pub fn holds_at(&self, at_s: i64) -> bool {
        self.succeeded_s <= at_s && self.failed_s.is_none_or(|failed_s| at_s < failed_s)
    }
}

/// A dispute over the whole charge.
#[derive(Clone, Debug)]
pub struct Dispute {
    /// `dp_…`.
    pub id: String,
    /// Creation, Unix s.
    pub created_s: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// Balance transaction of the withdrawal.
    pub withdrawn_transaction: String,
    /// Balance transaction of the reinstatement.
    pub reinstated_transaction: String,
}

/// A payment.
#[derive(Clone, Debug)]
pub struct Payment {
    /// How the customer came to pay.
    pub flow: Flow,
    /// Lower-case ISO code.
    pub currency: &'static str,
    /// Authorised amount in minor units.
    pub amount_minor: i64,
    /// `pi_…`; `None` for [`Flow::ChargeOnly`].
    pub intent_id: Option<String>,
    /// `cus_…`.
    pub customer: String,
    /// The customer's name, as sensitive as a real one for tests of what may be printed.
    pub customer_name: String,
    /// `metadata.order_id`: what the customer meant to buy.
    pub order_id: String,
    /// `in_…`.
    pub invoice: Option<String>,
    /// A second payment intent that also paid the invoice.
    pub invoice_also_paid_by: Option<String>,
    /// `cs_…`.
    pub session: Option<String>,
    /// Whether its events have the shape from before 2025 (`invoice.payment_intent`).
    pub has_old_shape: bool,
    /// Creation, Unix s.
    pub created_s: i64,
    /// Failed attempts: charge id and second.
    pub failed: Vec<(String, i64)>,
    /// The charge, where one succeeded.
    pub charge: Option<Charge>,
    /// When it was given up.
    pub canceled_s: Option<i64>,
    /// Refunds in order of creation.
    pub refunds: Vec<Refund>,
    /// The dispute.
    pub dispute: Option<Dispute>,
    /// Whether the provider's events of it were delivered to the naive handler.
    pub is_naive: bool,
    /// Webhook endpoints that have not acknowledged its events.
    pub pending_webhooks: u32,
}

impl Payment {
    /// The id of the group: the payment intent, else the charge.
    #[must_use]
    pub fn root_id(&self) -> &str {
        match (&self.intent_id, &self.charge) {
            (Some(id), _) => id,
            (None, Some(charge)) => &charge.id,
            (None, None) => self.failed.first().map_or("", |(id, _)| id),
        }
    }

    /// Refunded in all at this second: `amount_refunded`.
    #[must_use]
    pub fn refunded_minor_at(&self, at_s: i64) -> i64 {
        self.refunds.iter().filter(|refund| refund.holds_at(at_s)).map(|refund| refund.amount_minor).sum()
    }

    /// Captured at this second: `amount_captured`.
    #[must_use]
    pub fn captured_minor_at(&self, at_s: i64) -> i64 {
        let captured = self.charge.as_ref().filter(|charge| charge.captured_s.is_some_and(|s| s <= at_s));
        captured.map_or(0, |charge| charge.captured_minor)
    }

    /// The payment's status at this second, as the provider's objects say it.
    #[must_use]
    pub fn status_at(&self, at_s: i64) -> Status {
        if let Some(dispute) = self.dispute.as_ref().filter(|dispute| dispute.created_s <= at_s) {
            match dispute.outcome {
                Outcome::Lost(decided_s) if decided_s <= at_s => return Status::DisputeLost,
                Outcome::Won(decided_s) if decided_s <= at_s => {}
                Outcome::Inquiry => {}
                _ => return Status::Disputed,
            }
        }
        let captured = self.captured_minor_at(at_s);
        if captured > 0 {
            return match self.refunded_minor_at(at_s) {
                0 => Status::Paid,
                refunded if refunded < captured => Status::PartiallyRefunded,
                _ => Status::Refunded,
            };
        }
        if self.canceled_s.is_some_and(|s| s <= at_s) {
            return Status::Canceled;
        }
        let is_authorised = self.charge.as_ref().is_some_and(|charge| charge.created_s <= at_s);
        if !is_authorised && self.failed.iter().any(|(_, failed_s)| *failed_s <= at_s) {
            return Status::Failed;
        }
        Status::Pending
    }
}

/// What one unit of a currency becomes in the balance: (settlement currency, numerator, denominator
/// on minor units, the rate as the provider prints it).
///
/// Yen and dinar settle in dollars, as in an account without balances in them.
#[must_use]
pub fn settlement(currency: &'static str) -> (&'static str, i64, i64, Option<f64>) {
    match currency {
        "jpy" => ("usd", 67, 100, Some(0.0067)),
        "kwd" => ("usd", 325, 1000, Some(3.25)),
        own => (own, 1, 1, None),
    }
}

/// An amount in the settlement currency's minor units, cut towards zero.
#[must_use]
pub fn settled_minor(currency: &'static str, amount_minor: i64) -> i64 {
    let (_, numerator, denominator, _) = settlement(currency);
    amount_minor * numerator / denominator
}
