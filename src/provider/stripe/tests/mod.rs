//! What records give as facts. Bodies have the shape of the provider's own, shortened.

mod cases;
mod events;
mod hostile;

use super::*;
use crate::record::{Alias, Note, ProviderEffect, ProviderEvent, ProviderState, Status};
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z in seconds.
pub(super) const T: i64 = 1_767_225_600;
pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400;

/// January 2026 in UTC, seen ten days after its end; everything is booked but fees.
pub(super) fn reading() -> Reading {
    Reading {
        scope: Scope::new("stripe", "", "live"),
        window: Window { from_us: T * SECOND, until_us: (T + 31 * DAY) * SECOND },
        basis: Basis::Created,
        wanted: None,
        effects: EffectKind::ALL.into_iter().filter(|kind| *kind != EffectKind::Fee).collect(),
        intent: None,
        now_us: (T + 41 * DAY) * SECOND,
        settle_delay_us: 300 * SECOND,
        grace: true,
    }
}

pub(super) fn charge() -> Value {
    json!({
        "id": "ch_1", "object": "charge", "amount": 5000, "amount_captured": 5000, "amount_refunded": 0,
        "application_fee_amount": null, "billing_details": {"email": "buyer@example.com"}, "captured": true,
        "balance_transaction": balance("txn_1", "charge", 5000, 205),
        "created": T + 60, "currency": "usd", "customer": "cus_1", "disputed": false, "livemode": true,
        "metadata": {"order_id": "o-17"}, "outcome": {"risk_score": 12}, "paid": true, "payment_intent": "pi_1",
        "refunded": false, "status": "succeeded",
    })
}

pub(super) fn balance(id: &str, kind: &str, amount: i64, fee: i64) -> Value {
    json!({
        "id": id, "object": "balance_transaction", "amount": amount, "available_on": T + 2 * DAY,
        "created": T + 90, "currency": "usd", "exchange_rate": null, "fee": fee, "fee_details": [],
        "net": amount - fee, "reporting_category": kind, "source": "ch_1", "status": "available", "type": kind,
    })
}

pub(super) fn refund() -> Value {
    json!({
        "id": "re_1", "object": "refund", "amount": 1000, "balance_transaction": "txn_2", "charge": "ch_1",
        "created": T + 3600, "currency": "usd", "metadata": {}, "payment_intent": "pi_1", "reason": null,
        "status": "succeeded",
    })
}

pub(super) fn dispute(status: &str, movements: &[(&str, i64, i64)]) -> Value {
    let movements: Vec<Value> =
        movements.iter().map(|(kind, amount, fee)| balance("txn_3", kind, *amount, *fee)).collect();
    json!({
        "id": "dp_1", "object": "dispute", "amount": 8000, "balance_transactions": movements, "charge": "ch_1",
        "created": T + 100, "currency": "usd", "livemode": true, "metadata": {}, "payment_intent": "pi_1",
        "reason": "fraudulent", "status": status,
    })
}

pub(super) fn payout() -> Value {
    json!({
        "id": "po_1", "object": "payout", "amount": 9000, "arrival_date": T + 35 * DAY,
        "balance_transaction": "txn_4", "created": T + 30 * DAY, "currency": "usd", "livemode": true,
        "status": "paid",
    })
}

pub(super) fn invoice() -> Value {
    json!({
        "id": "in_1", "object": "invoice", "amount_due": 5000, "amount_overpaid": 0, "amount_paid": 5000,
        "amount_paid_off_stripe": 0, "created": T, "currency": "usd", "livemode": true, "status": "paid",
        "payments": {"object": "list", "has_more": false, "url": "/v1/invoice_payments", "data": [{
            "id": "inpay_1", "object": "invoice_payment", "amount_paid": 5000, "is_default": true,
            "invoice": "in_1", "status": "paid", "payment": {"type": "payment_intent", "payment_intent": "pi_1"},
        }]},
    })
}

pub(super) fn session() -> Value {
    json!({
        "id": "cs_1", "object": "checkout.session", "amount_total": 5000, "created": T, "currency": "usd",
        "invoice": null, "livemode": true, "mode": "payment", "payment_intent": "pi_1", "payment_status": "paid",
        "status": "complete",
    })
}

pub(super) fn payment_intent() -> Value {
    json!({
        "id": "pi_1", "object": "payment_intent", "amount": 5000, "amount_received": 5000, "created": T,
        "currency": "usd", "last_payment_error": null, "latest_charge": "ch_1", "livemode": true,
        "status": "succeeded",
    })
}

pub(super) fn event(kind: &str, object: &Value) -> Value {
    json!({
        "id": "evt_1", "object": "event", "api_version": API_VERSION, "created": T + 120,
        "data": {"object": object}, "livemode": true, "pending_webhooks": 0,
        "request": {"id": null, "idempotency_key": null}, "type": kind,
    })
}

/// A record with some of its fields replaced.
pub(super) fn with(mut record: Value, changes: &Value) -> Value {
    for (field, value) in changes.as_object().unwrap() {
        record[field] = value.clone();
    }
    record
}

pub(super) fn without(mut record: Value, field: &str) -> Value {
    record.as_object_mut().unwrap().remove(field);
    record
}

pub(super) fn read_with(reading: &Reading, stream: &str, record: &Value) -> Seen {
    let body = serde_json::to_vec(record).unwrap();
    let all = facts(reading, stream, &body).unwrap();
    assert_eq!(facts(reading, stream, &body).unwrap(), all, "the same body gives the same facts");
    let mut seen = Seen::default();
    for fact in all {
        match fact {
            Fact::ProviderEvent(event) => seen.events.push(event),
            Fact::ProviderEffect(effect) => seen.effects.push(effect),
            Fact::ProviderState(state) => seen.states.push(state),
            Fact::Alias(alias) => seen.aliases.push(alias),
            Fact::Note(note) => seen.notes.push(note),
            other => panic!("{other:?} is no fact of a provider"),
        }
    }
    seen
}

pub(super) fn read(stream: &str, record: &Value) -> Seen {
    read_with(&reading(), stream, record)
}

/// Facts by kind.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) events: Vec<ProviderEvent>,
    pub(super) effects: Vec<ProviderEffect>,
    pub(super) states: Vec<ProviderState>,
    pub(super) aliases: Vec<Alias>,
    pub(super) notes: Vec<Note>,
}

impl Seen {
    /// `kind object amount currency` of each effect.
    pub(super) fn effects(&self) -> Vec<String> {
        let show =
            |e: &ProviderEffect| format!("{} {} {} {}", e.kind, e.object_id, e.amount_minor, e.currency);
        self.effects.iter().map(show).collect()
    }

    pub(super) fn status(&self) -> Option<Status> {
        self.states.iter().map(|state| state.status).max()
    }

    /// `alias→root`, with `+` for a part.
    pub(super) fn aliases(&self) -> Vec<String> {
        let show = |a: &Alias| format!("{}→{}{}", a.alias_id, a.root_id, if a.is_part { "+" } else { "" });
        self.aliases.iter().map(show).collect()
    }

    /// Causes of the notes.
    pub(super) fn causes(&self) -> Vec<&str> {
        self.notes.iter().map(|note| note.cause.as_str()).collect()
    }
}

#[test]
fn every_sample_reads_without_a_doubt() {
    for (stream, record) in [
        ("charges", charge()),
        ("refunds", refund()),
        ("disputes", dispute("needs_response", &[("dispute", -8000, 1500)])),
        ("payouts", payout()),
        ("invoices", invoice()),
        ("checkout_sessions", session()),
        ("payment_intents", payment_intent()),
        ("balance_transactions", balance("txn_1", "charge", 5000, 205)),
        ("events", event("charge.succeeded", &charge())),
    ] {
        let seen = read(stream, &record);
        assert!(seen.notes.is_empty(), "{stream}: {:?}", seen.notes);
    }
}

#[test]
fn a_charge_gives_credit_state_and_its_names() {
    let record = with(charge(), &json!({"invoice": "in_1"}));
    let seen = read("charges", &record);
    assert_eq!(seen.effects(), ["credit ch_1 5000 usd"]);
    assert_eq!(seen.effects[0].root_id, "pi_1");
    assert_eq!(seen.effects[0].occurred_at_us, (T + 90) * SECOND);
    assert_eq!(seen.effects[0].intent, "in_1");
    assert_eq!(seen.aliases(), ["ch_1→pi_1", "in_1→pi_1"]);
    assert_eq!((seen.status(), seen.states[0].refunded_minor), (Some(Status::Paid), Some(0)));
    assert_eq!(seen.states[0].authorized_minor, Some(5000));

    let configured = Reading { intent: Some("metadata.order_id".to_owned()), ..reading() };
    assert_eq!(read_with(&configured, "charges", &record).effects[0].intent, "o-17");
    let elsewhere = Reading { intent: Some("customer".to_owned()), ..reading() };
    assert_eq!(read_with(&elsewhere, "charges", &record).effects[0].intent, "cus_1");
    let nowhere = Reading { intent: Some("metadata.none".to_owned()), ..reading() };
    assert_eq!(read_with(&nowhere, "charges", &without(record, "invoice")).effects[0].intent, "pi_1");
}

#[test]
fn a_charge_without_payment_intent_is_its_own_group() {
    let seen = read("charges", &with(charge(), &json!({"payment_intent": null})));
    assert_eq!(seen.effects[0].root_id, "ch_1");
    assert!(seen.aliases.is_empty());
}

#[test]
fn a_charge_that_took_no_money_is_no_credit() {
    for (change, status) in [
        (json!({"status": "failed", "captured": false, "amount_captured": 0}), Status::Failed),
        (json!({"status": "pending", "captured": false, "amount_captured": 0}), Status::Pending),
        (json!({"captured": false, "amount_captured": 0}), Status::Pending),
        (
            json!({"captured": false, "amount_captured": 0, "refunded": true, "amount_refunded": 5000}),
            Status::Canceled,
        ),
    ] {
        let seen = read("charges", &with(charge(), &change));
        assert!(seen.effects.is_empty(), "{change}");
        assert_eq!(seen.status(), Some(status), "{change}");
        assert!(seen.notes.is_empty(), "{change}");
    }
}

#[test]
fn a_fee_that_is_not_there_yet_is_noted_only_where_fees_are_booked() {
    let record = with(charge(), &json!({"balance_transaction": null}));
    assert!(read("charges", &record).notes.is_empty());
    let with_fees = Reading { effects: EffectKind::ALL.into_iter().collect(), ..reading() };
    let seen = read_with(&with_fees, "charges", &record);
    assert_eq!(seen.notes[0].kind, NoteKind::IncompleteFields);
    assert_eq!(seen.causes(), ["late_field"]);
    assert_eq!(seen.effects[0].occurred_at_us, (T + 60) * SECOND);
    assert_eq!(
        read_with(&with_fees, "charges", &charge()).effects(),
        ["credit ch_1 5000 usd", "fee ch_1 205 usd"]
    );
}

#[test]
fn a_refund_is_an_effect_only_while_it_has_succeeded() {
    for (status, is_effect) in [
        ("succeeded", true),
        ("pending", false),
        ("requires_action", false),
        ("failed", false),
        ("canceled", false),
    ] {
        let seen = read("refunds", &with(refund(), &json!({"status": status})));
        assert_eq!(!seen.effects.is_empty(), is_effect, "{status}");
        assert!(seen.notes.is_empty(), "{status}");
        assert_eq!(seen.aliases(), ["re_1→pi_1+", "ch_1→pi_1"], "{status}");
    }
    let by_charge = read("refunds", &with(refund(), &json!({"payment_intent": null})));
    assert_eq!(by_charge.aliases(), ["re_1→ch_1+"]);
    assert_eq!(by_charge.effects[0].root_id, "ch_1");
}

#[test]
fn a_payout_is_an_effect_only_while_it_is_paid() {
    assert_eq!(read("payouts", &payout()).effects(), ["payout po_1 9000 usd"]);
    for status in ["pending", "in_transit", "failed", "canceled"] {
        let seen = read("payouts", &with(payout(), &json!({"status": status})));
        assert!(seen.effects.is_empty() && seen.notes.is_empty(), "{status}");
    }
    let unknown = read("payouts", &with(payout(), &json!({"status": "teleported"})));
    assert_eq!(unknown.causes(), ["unknown_value"]);
    let forint = read("payouts", &with(payout(), &json!({"currency": "huf", "amount": 9050})));
    assert_eq!(forint.causes(), ["impossible_amount"]);
    assert!(read("payouts", &with(payout(), &json!({"currency": "twd"}))).notes.is_empty());
    let debit = read("payouts", &with(payout(), &json!({"amount": -9000})));
    assert_eq!((debit.causes(), debit.effects.len()), (vec!["negative_amount"], 0));
}

#[test]
fn a_payment_intent_gives_the_payments_status() {
    let failed = json!({"code": "card_declined"});
    for (status, error, expected) in [
        ("requires_payment_method", Value::Null, Status::Pending),
        ("requires_payment_method", failed, Status::Failed),
        ("requires_action", Value::Null, Status::Pending),
        ("processing", Value::Null, Status::Pending),
        ("requires_capture", Value::Null, Status::Pending),
        ("canceled", Value::Null, Status::Canceled),
        ("succeeded", Value::Null, Status::Paid),
    ] {
        let change = json!({"status": status, "last_payment_error": error});
        let seen = read("payment_intents", &with(payment_intent(), &change));
        assert_eq!(seen.status(), Some(expected), "{status}");
        assert_eq!(seen.aliases(), ["ch_1→pi_1"]);
    }
    let old = without(payment_intent(), "latest_charge");
    let old = with(old, &json!({"charges": {"object": "list", "data": [{"id": "ch_9"}, {"id": "ch_8"}]}}));
    assert_eq!(read("payment_intents", &old).aliases(), ["ch_9→pi_1"]);
}

#[test]
fn a_session_leads_to_its_payment_or_to_its_invoice() {
    assert_eq!(read("checkout_sessions", &session()).aliases(), ["cs_1→pi_1"]);
    let subscription = json!({"payment_intent": null, "invoice": "in_1", "mode": "subscription"});
    assert_eq!(read("checkout_sessions", &with(session(), &subscription)).aliases(), ["cs_1→in_1"]);
    let unpaid = json!({"payment_intent": null, "payment_status": "unpaid", "status": "open"});
    let seen = read("checkout_sessions", &with(session(), &unpaid));
    assert!(seen.aliases.is_empty() && seen.notes.is_empty());
    let lost = read("checkout_sessions", &with(session(), &json!({"payment_intent": null})));
    assert_eq!(lost.causes(), ["missing_reference"]);
}

#[test]
fn records_point_to_what_must_be_read_besides() {
    let of = |stream: &str, record: &Value| references(stream, &serde_json::to_vec(record).unwrap());
    let one = |stream, id: &str| vec![(stream, id.to_owned())];
    assert_eq!(of("refunds", &refund()), one("charges", "ch_1"));
    assert_eq!(of("disputes", &dispute("lost", &[])), one("charges", "ch_1"));
    assert_eq!(of("invoices", &invoice()), one("payment_intents", "pi_1"));
    assert_eq!(of("events", &event("charge.succeeded", &charge())), vec![]);
    for (kind, source, expected) in [
        ("charge", "ch_1", one("charges", "ch_1")),
        ("payment", "py_1", one("charges", "py_1")),
        ("payment_refund", "pyr_1", one("refunds", "pyr_1")),
        ("refund_failure", "re_1", one("refunds", "re_1")),
        ("payment_failure_refund", "py_1", one("charges", "py_1")),
        ("adjustment", "du_1", one("disputes", "du_1")),
        ("adjustment", "adj_1", vec![]),
        ("payout_failure", "po_1", one("payouts", "po_1")),
        ("stripe_fee", "ch_1", vec![]),
    ] {
        let record = with(balance("txn_9", kind, -100, 0), &json!({"source": source}));
        assert_eq!(of("balance_transactions", &record), expected, "{kind} {source}");
    }
    assert_eq!(references("refunds", b"not json"), vec![]);
    assert_eq!(references("nothing", b"{}"), vec![]);
}
