//! Balance transactions: when money moved and what for. They are append-only and so the surest list
//! of what a window must look at; the objects behind them give the facts.

use super::issues::Issues;
use super::output::Output;
use super::wire::{self, Raw, Read, parse_object};
use super::{Opening, ReadError, Reading};
use crate::config::Basis;
use crate::record::NoteKind;

/// Types of balance transactions, from the official `OpenAPI` file.
const TYPES: &[&str] = &[
    "adjustment",
    "advance",
    "advance_funding",
    "anticipation_repayment",
    "application_fee",
    "application_fee_refund",
    "charge",
    "climate_order_purchase",
    "climate_order_refund",
    "connect_collection_transfer",
    "contribution",
    "fee_credit_funding",
    "inbound_transfer",
    "inbound_transfer_reversal",
    "issuing_authorization_hold",
    "issuing_authorization_release",
    "issuing_dispute",
    "issuing_transaction",
    "obligation_outbound",
    "obligation_reversal_inbound",
    "payment",
    "payment_failure_refund",
    "payment_network_reserve_hold",
    "payment_network_reserve_release",
    "payment_refund",
    "payment_reversal",
    "payment_unreconciled",
    "payout",
    "payout_cancel",
    "payout_failure",
    "payout_minimum_balance_hold",
    "payout_minimum_balance_release",
    "refund",
    "refund_failure",
    "reserve_hold",
    "reserve_release",
    "reserve_transaction",
    "reserved_funds",
    "stripe_balance_payment_debit",
    "stripe_balance_payment_debit_reversal",
    "stripe_fee",
    "stripe_fx_fee",
    "tax_fee",
    "tax_fund",
    "topup",
    "topup_reversal",
    "transfer",
    "transfer_cancel",
    "transfer_failure",
    "transfer_refund",
];

/// A balance transaction that stands expanded in another record.
#[derive(Debug)]
pub(super) struct Movement {
    pub(super) created_us: Option<i64>,
    pub(super) available_us: Option<i64>,
    /// Signed, settlement currency.
    pub(super) amount_minor: Option<i64>,
    /// Signed, settlement currency: positive is taken, negative given back.
    pub(super) fee_minor: Option<i64>,
    /// Settlement currency, lower case.
    pub(super) currency: Option<String>,
    /// Whether it moves nothing but a fee.
    pub(super) is_fee: bool,
}

impl Movement {
    /// When it counts, by the basis.
    pub(super) const fn occurred_us(&self, basis: Basis) -> Option<i64> {
        match basis {
            Basis::Created => self.created_us,
            Basis::Available => self.available_us,
        }
    }
}

/// Reads a balance transaction expanded inside `field` of a record.
pub(super) fn movement(issues: &mut Issues, field: &str, json: &str) -> Option<Movement> {
    let Some(wire) = parse_object::<wire::BalanceTransaction>(json) else {
        issues.missing(field);
        return None;
    };
    let path = |name: &str| format!("{field}.{name}");
    let kind = issues.text(&path("type"), wire.kind);
    let category = issues.text(&path("reporting_category"), wire.reporting_category);
    let is_fee_type = |word: &str| matches!(word, "stripe_fee" | "stripe_fx_fee" | "tax_fee");
    Some(Movement {
        created_us: issues.instant(&path("created"), wire.created),
        available_us: issues.instant(&path("available_on"), wire.available_on),
        amount_minor: issues.whole(&path("amount"), wire.amount),
        fee_minor: issues.whole(&path("fee"), wire.fee),
        currency: issues.currency(&path("currency"), wire.currency),
        is_fee: kind.as_deref().is_some_and(is_fee_type) || category.as_deref() == Some("fee"),
    })
}

/// When the money of a record moved: by its expanded balance transaction, else by `fallback_us`.
/// Where the basis needs the balance transaction and it is not there, that is noted.
pub(super) fn occurred_us(
    reading: &Reading,
    issues: &mut Issues,
    movement: Option<&Movement>,
    fallback_us: Option<i64>,
) -> Option<i64> {
    let moved_us = movement.and_then(|movement| movement.occurred_us(reading.basis));
    if moved_us.is_none() && reading.basis == Basis::Available {
        incomplete(issues, "balance_transaction.available_on");
    }
    moved_us.or(fallback_us)
}

/// Notes a field that comes late and is not there yet.
pub(super) fn incomplete(issues: &mut Issues, field: &str) {
    let text = format!("`{field}` is not there yet; read the record again later");
    issues.add(NoteKind::IncompleteFields, "late_field", text);
}

/// Reads a balance transaction of its own stream: it is checked, and points to its source.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::BalanceTransaction<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("balance_transaction", out.reading.now_us);
    let absent = Raw::default();
    let opening = Opening {
        stream: "balance_transactions",
        object: "balance_transaction",
        id: wire.id,
        word: wire.object,
        created: wire.created,
        livemode: absent,
        deleted: absent,
    };
    let head = opening.read(out.reading, &mut issues)?;
    let mut root_id = head.id.clone();
    if head.is_ours {
        if let Some(kind) = issues.required_text("type", wire.kind)
            && !TYPES.contains(&&*kind)
        {
            issues.unknown_value("type", &kind);
        }
        issues.instant("available_on", wire.available_on);
        issues.whole("amount", wire.amount);
        issues.whole("fee", wire.fee);
        issues.currency("currency", wire.currency);
        issues.text("reporting_category", wire.reporting_category);
        if let Some(source) = issues.reference_id("source", wire.source) {
            root_id = source;
        }
    }
    out.notes(&issues, &root_id, &head.id, None, head.created_us);
    Ok(())
}

/// Records that must be read, too, for a right answer about this one: pairs of stream and id,
/// without repetition. Empty for a body that cannot be read; [`super::facts`] says why.
#[must_use]
pub fn references(stream: &str, body: &[u8]) -> Vec<(&'static str, String)> {
    if stream == "invoices" {
        return super::parse(stream, body)
            .map_or_else(|_| Vec::new(), |wire| super::invoice::references(&wire));
    }
    let found = match stream {
        "refunds" => {
            super::parse(stream, body).ok().and_then(|wire: wire::Refund<'_>| charge_of(wire.charge))
        }
        "disputes" => {
            super::parse(stream, body).ok().and_then(|wire: wire::Dispute<'_>| charge_of(wire.charge))
        }
        "balance_transactions" => super::parse(stream, body).ok().and_then(|wire| source_of(&wire)),
        "checkout_sessions" => super::parse(stream, body).ok().and_then(|wire| invoice_of(&wire)),
        _ => None,
    };
    found.into_iter().collect()
}

/// What a refund takes, minor units, unless it failed or was called off; `None` for anything else.
#[must_use]
pub fn refunded_minor(stream: &str, body: &[u8]) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Wire {
        amount: i64,
    }
    if stream != "refunds" || super::is_over(stream, body) {
        return None;
    }
    serde_json::from_slice::<Wire>(body).ok().map(|wire| wire.amount)
}

/// The newest charge of a payment intent, for an intent that was read without its window.
#[must_use]
pub fn charge_of_intent(stream: &str, body: &[u8]) -> Option<String> {
    if stream != "payment_intents" {
        return None;
    }
    let wire: wire::PaymentIntent<'_> = super::parse(stream, body).ok()?;
    let mut quiet = Issues::new("payment_intent", i64::MAX);
    super::intent::charge_of(&mut quiet, wire.latest_charge, wire.charges).map(std::borrow::Cow::into_owned)
}

fn charge_of(charge: Raw<'_>) -> Option<(&'static str, String)> {
    match charge.reference() {
        Read::Value(charge) => Some(("charges", charge.id.into_owned())),
        _ => None,
    }
}

/// The invoice that leads from a session to its payment, where the session does not name the payment itself.
fn invoice_of(wire: &wire::Session<'_>) -> Option<(&'static str, String)> {
    match (wire.payment_intent.reference(), wire.invoice.reference()) {
        (Read::Value(_), _) => None,
        (_, Read::Value(invoice)) => Some(("invoices", invoice.id.into_owned())),
        _ => None,
    }
}

fn source_of(wire: &wire::BalanceTransaction<'_>) -> Option<(&'static str, String)> {
    let (Read::Value(source), Read::Value(kind)) = (wire.source.reference(), wire.kind.text()) else {
        return None;
    };
    let stream = match &*kind {
        "charge" | "payment" => "charges",
        "refund" | "payment_refund" | "refund_failure" | "payment_failure_refund" => "refunds",
        "payout" | "payout_cancel" | "payout_failure" => "payouts",
        // A dispute moves money as an adjustment, as some corrections do: only its id tells them apart.
        "adjustment" => stream_of_id(&source.id)?,
        _ => return None,
    };
    // `payment_failure_refund` and its like may point at the payment itself.
    Some((stream_of_id(&source.id).unwrap_or(stream), source.id.into_owned()))
}

/// The stream of an id, by the prefixes that Stripe has used for it.
#[must_use]
pub fn stream_of_id(id: &str) -> Option<&'static str> {
    match id.split_once('_')?.0 {
        "ch" | "py" => Some("charges"),
        "re" | "pyr" => Some("refunds"),
        "dp" | "du" => Some("disputes"),
        "po" => Some("payouts"),
        "pi" => Some("payment_intents"),
        "in" => Some("invoices"),
        "cs" => Some("checkout_sessions"),
        _ => None,
    }
}
