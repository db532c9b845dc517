//! The provider's wire form of a payment's objects, as they are at a given second.
//!
//! Shapes follow Stripe's public `OpenAPI` description of 2026 (`charge`, `refund`, `dispute`,
//! `payment_intent`, `invoice`, `checkout.session`, `balance_transaction`, `payout`, `event`);
//! events of old API versions have the older place of the link between invoice and payment.

use super::payment::{Charge, Dispute, Outcome, Payment, Refund, settled_minor, settlement};
use serde_json::{Value, json};

/// The API version in which lists are answered.
pub const VERSION_NEW: &str = "2026-08-26.dahlia";
/// The API version of some events, before the invoice's link to its payment moved.
pub const VERSION_OLD: &str = "2023-10-16";
/// A second after every other: objects as they are now.
pub const NOW_S: i64 = i64::MAX;

/// What a balance transaction is about.
pub struct Movement<'a> {
    /// `txn_…`.
    pub id: &'a str,
    /// `charge`, `refund`, `refund_failure`, `adjustment`, `payout`.
    pub kind: &'static str,
    /// `charge`, `refund`, `dispute`, …
    pub category: &'static str,
    /// The object that moved the balance.
    pub source: &'a str,
    /// In the object's currency, signed as it moves the balance.
    pub amount_minor: i64,
    /// The object's currency.
    pub currency: &'static str,
    /// In the settlement currency.
    pub fee_minor: i64,
    /// Unix s.
    pub created_s: i64,
}

/// A balance transaction, in the settlement currency.
#[must_use]
pub fn balance_transaction(movement: &Movement<'_>) -> Value {
    let (settled_in, _, _, rate) = settlement(movement.currency);
    let amount = settled_minor(movement.currency, movement.amount_minor);
    let fee_details = if movement.fee_minor == 0 {
        json!([])
    } else {
        json!([{ "amount": movement.fee_minor, "application": null, "currency": settled_in, "description": "Stripe processing fees", "type": "stripe_fee" }])
    };
    json!({
        "id": movement.id, "object": "balance_transaction", "amount": amount,
        "available_on": movement.created_s + 172_800, "balance_type": "payments",
        "created": movement.created_s, "currency": settled_in, "description": null,
        "exchange_rate": rate, "fee": movement.fee_minor, "fee_details": fee_details,
        "net": amount - movement.fee_minor, "reporting_category": movement.category,
        "source": movement.source, "status": "available", "type": movement.kind,
    })
}

/// The charge that succeeded, as at `at_s`.
#[must_use]
pub fn charge(payment: &Payment, charge: &Charge, at_s: i64, is_old: bool) -> Value {
    let captured_minor = payment.captured_minor_at(at_s);
    let refunded_minor = payment.refunded_minor_at(at_s);
    let is_disputed = payment.dispute.as_ref().is_some_and(|dispute| dispute.created_s <= at_s);
    let is_captured = captured_minor > 0;
    let status = if charge.is_delayed && !is_captured { "pending" } else { "succeeded" };
    let mut object = charge_base(payment, &charge.id, charge.created_s);
    let is_refunded = is_captured && refunded_minor == captured_minor;
    set(&mut object, "amount_captured", json!(captured_minor));
    set(&mut object, "amount_refunded", json!(refunded_minor));
    set(&mut object, "balance_transaction", json!(is_captured.then_some(&charge.transaction)));
    set(&mut object, "captured", json!(is_captured || charge.is_delayed));
    set(&mut object, "disputed", json!(is_disputed));
    set(&mut object, "paid", json!(status == "succeeded"));
    set(&mut object, "refunded", json!(is_refunded));
    set(&mut object, "status", json!(status));
    if is_old {
        set(&mut object, "invoice", json!(payment.invoice));
        set(
            &mut object,
            "dispute",
            json!(payment.dispute.as_ref().filter(|_| is_disputed).map(|dispute| &dispute.id)),
        );
    }
    object
}

/// A charge that failed.
#[must_use]
pub fn failed_charge(payment: &Payment, id: &str, created_s: i64) -> Value {
    let mut object = charge_base(payment, id, created_s);
    set(&mut object, "failure_code", json!("card_declined"));
    set(&mut object, "failure_message", json!("Your card was declined."));
    set(&mut object, "captured", json!(false));
    set(&mut object, "paid", json!(false));
    set(&mut object, "status", json!("failed"));
    object
}

fn charge_base(payment: &Payment, id: &str, created_s: i64) -> Value {
    let email = format!("customer.{}@example.com", &payment.customer[payment.customer.len() - 6..]);
    json!({
        "id": id, "object": "charge", "amount": payment.amount_minor, "amount_captured": 0,
        "amount_refunded": 0, "application": null, "application_fee": null,
        "application_fee_amount": null, "balance_transaction": null,
        "billing_details": {
            "address": { "city": "São Paulo", "country": "BR", "line1": "Rua das Flores 12", "line2": null, "postal_code": "01310-100", "state": "SP" },
            "email": email, "name": payment.customer_name, "phone": "+55 11 5550-0100", "tax_id": null,
        },
        "calculated_statement_descriptor": "EXAMPLE SHOP", "captured": false, "created": created_s,
        "currency": payment.currency, "customer": payment.customer, "description": null,
        "disputed": false, "failure_balance_transaction": null, "failure_code": null,
        "failure_message": null, "fraud_details": {}, "livemode": true,
        "metadata": { "order_id": payment.order_id }, "on_behalf_of": null,
        "outcome": { "advice_code": null, "network_advice_code": null, "network_decline_code": null, "network_status": "approved_by_network", "reason": null, "risk_level": "normal", "seller_message": "Payment complete.", "type": "authorized" },
        "paid": false, "payment_intent": payment.intent_id, "payment_method": "pm_1Example00000000000000",
        "payment_method_details": {
            "card": { "brand": "visa", "checks": { "address_line1_check": "pass", "address_postal_code_check": "pass", "cvc_check": "pass" }, "country": "BR", "exp_month": 12, "exp_year": 2031, "fingerprint": "Xt5EWLLDS7FJjR1c", "funding": "credit", "last4": "4242", "network": "visa", "three_d_secure": null, "wallet": null },
            "type": "card",
        },
        "receipt_email": null, "receipt_number": null, "refunded": false, "review": null,
        "shipping": null, "source_transfer": null, "statement_descriptor": null,
        "statement_descriptor_suffix": null, "status": "pending", "transfer_data": null,
        "transfer_group": null,
    })
}

/// A refund, as at `at_s`.
#[must_use]
pub fn refund(payment: &Payment, charge: &Charge, refund: &Refund, at_s: i64) -> Value {
    let has_failed = refund.failed_s.is_some_and(|failed_s| failed_s <= at_s);
    let status = match (has_failed, refund.succeeded_s <= at_s) {
        (true, _) => "failed",
        (false, true) => "succeeded",
        (false, false) => "pending",
    };
    let mut object = json!({
        "id": refund.id, "object": "refund", "amount": refund.amount_minor,
        "balance_transaction": refund.transaction, "charge": charge.id, "created": refund.created_s,
        "currency": payment.currency,
        "destination_details": { "card": { "reference": "7823947", "reference_status": "available", "reference_type": "acquirer_reference_number", "type": "refund" }, "type": "card" },
        "metadata": { "order_id": payment.order_id }, "payment_intent": payment.intent_id,
        "reason": "requested_by_customer", "receipt_number": null, "source_transfer_reversal": null,
        "status": status, "transfer_reversal": null,
    });
    if has_failed {
        set(&mut object, "failure_reason", json!("expired_or_canceled_card"));
        set(&mut object, "failure_balance_transaction", json!(refund.failure_transaction));
    }
    object
}

/// The word of a dispute's status at `at_s`.
fn dispute_status(dispute: &Dispute, at_s: i64) -> &'static str {
    match dispute.outcome {
        Outcome::Inquiry => "warning_needs_response",
        Outcome::Won(decided_s) if decided_s <= at_s => "won",
        Outcome::Lost(decided_s) if decided_s <= at_s => "lost",
        _ => "needs_response",
    }
}

/// The balance transactions of a dispute, in order.
#[must_use]
pub fn dispute_movements<'a>(payment: &'a Payment, dispute: &'a Dispute, at_s: i64) -> Vec<Movement<'a>> {
    let movement = |id: &'a str, amount_minor: i64, fee_minor: i64, created_s: i64| Movement {
        id,
        kind: "adjustment",
        category: if amount_minor < 0 { "dispute" } else { "dispute_reversal" },
        source: &dispute.id,
        amount_minor,
        currency: payment.currency,
        fee_minor,
        created_s,
    };
    let amount_minor = payment.captured_minor_at(NOW_S);
    let mut movements = Vec::new();
    if dispute.outcome != Outcome::Inquiry {
        movements.push(movement(&dispute.withdrawn_transaction, -amount_minor, 1500, dispute.created_s));
    }
    if let Outcome::Won(decided_s) = dispute.outcome
        && decided_s <= at_s
    {
        movements.push(movement(&dispute.reinstated_transaction, amount_minor, 0, decided_s));
    }
    movements
}

/// A dispute, as at `at_s`.
#[must_use]
pub fn dispute(payment: &Payment, charge: &Charge, dispute: &Dispute, at_s: i64) -> Value {
    let movements = dispute_movements(payment, dispute, at_s);
    let transactions: Vec<Value> = movements.iter().map(balance_transaction).collect();
    json!({
        "id": dispute.id, "object": "dispute", "amount": payment.captured_minor_at(NOW_S),
        "balance_transactions": transactions, "charge": charge.id, "created": dispute.created_s,
        "currency": payment.currency, "enhanced_eligibility_types": [],
        "evidence": { "access_activity_log": null, "billing_address": null, "customer_name": payment.customer_name, "product_description": null, "uncategorized_text": null },
        "evidence_details": { "due_by": dispute.created_s + 604_800, "has_evidence": false, "past_due": false, "submission_count": 0 },
        "is_charge_refundable": dispute.outcome == Outcome::Inquiry, "livemode": true, "metadata": {},
        "payment_intent": payment.intent_id, "reason": "fraudulent",
        "status": dispute_status(dispute, at_s),
    })
}

/// A payment intent, as at `at_s`. Call it only for payments that have one.
#[must_use]
pub fn intent(payment: &Payment, at_s: i64, is_old: bool) -> Value {
    let captured_minor = payment.captured_minor_at(at_s);
    let charge = payment.charge.as_ref().filter(|charge| charge.created_s <= at_s);
    let last_failed = payment.failed.iter().rfind(|(_, failed_s)| *failed_s <= at_s);
    let is_canceled = payment.canceled_s.is_some_and(|canceled_s| canceled_s <= at_s);
    let status = match charge {
        Some(_) if captured_minor > 0 => "succeeded",
        Some(charge) if charge.is_delayed => "processing",
        Some(_) => "requires_capture",
        None if is_canceled => "canceled",
        None => "requires_payment_method",
    };
    let is_manual = charge.is_some_and(|charge| charge.captured_s != Some(charge.created_s));
    let mut object = json!({
        "id": payment.intent_id, "object": "payment_intent", "amount": payment.amount_minor,
        "amount_capturable": if status == "requires_capture" { payment.amount_minor } else { 0 },
        "amount_details": { "tip": {} }, "amount_received": captured_minor, "application": null,
        "application_fee_amount": null,
        "automatic_payment_methods": { "allow_redirects": "always", "enabled": true },
        "canceled_at": payment.canceled_s.filter(|_| is_canceled),
        "cancellation_reason": is_canceled.then_some("abandoned"),
        "capture_method": if is_manual { "manual" } else { "automatic_async" },
        "confirmation_method": "automatic", "created": payment.created_s, "currency": payment.currency,
        "customer": payment.customer, "description": null, "last_payment_error": null,
        "latest_charge": charge.map(|charge| &charge.id).or(last_failed.map(|(id, _)| id)),
        "livemode": true, "metadata": { "order_id": payment.order_id }, "next_action": null,
        "on_behalf_of": null, "payment_method": "pm_1Example00000000000000",
        "payment_method_options": { "card": { "installments": null, "mandate_options": null, "network": null, "request_three_d_secure": "automatic" } },
        "payment_method_types": ["card"], "processing": null, "receipt_email": null, "review": null,
        "setup_future_usage": null, "shipping": null, "source": null, "statement_descriptor": null,
        "statement_descriptor_suffix": null, "status": status, "transfer_data": null,
        "transfer_group": null,
    });
    if status == "requires_payment_method" && last_failed.is_some() {
        let error = json!({ "code": "card_declined", "decline_code": "generic_decline", "message": "Your card was declined.", "type": "card_error" });
        set(&mut object, "last_payment_error", error);
    }
    if is_old {
        set(&mut object, "invoice", json!(payment.invoice));
    }
    object
}

/// The payments of an invoice: `payments` of the shape since 2025, which lists include only where asked.
#[must_use]
pub fn invoice_payments(payment: &Payment) -> Value {
    let invoice = payment.invoice.as_deref().unwrap_or("");
    let intents = payment.intent_id.iter().chain(&payment.invoice_also_paid_by);
    let data: Vec<Value> = intents
        .enumerate()
        .map(|(position, intent_id)| {
            json!({
                "id": format!("inpay_{position}{}", &invoice[3.min(invoice.len())..]), "object": "invoice_payment",
                "amount_paid": payment.amount_minor, "amount_requested": payment.amount_minor,
                "created": payment.created_s, "currency": payment.currency, "invoice": invoice,
                "is_default": position == 0, "livemode": true,
                "payment": { "payment_intent": intent_id, "type": "payment_intent" },
                "status": "paid", "status_transitions": { "canceled_at": null, "paid_at": payment.created_s },
            })
        })
        .collect();
    json!({ "object": "list", "data": data, "has_more": false, "url": "/v1/invoice_payments" })
}

/// An invoice, as at `at_s`, without its payments in the new shape.
#[must_use]
pub fn invoice(payment: &Payment, at_s: i64, is_old: bool) -> Value {
    let invoice = payment.invoice.as_deref().unwrap_or("");
    let captured_minor = payment.captured_minor_at(at_s);
    let is_paid = captured_minor > 0;
    let tail = &invoice[3.min(invoice.len())..];
    let mut object = json!({
        "id": invoice, "object": "invoice", "account_country": "US", "account_name": "Example Shop",
        "amount_due": payment.amount_minor, "amount_overpaid": 0, "amount_paid": captured_minor,
        "amount_remaining": payment.amount_minor - captured_minor, "attempt_count": 1 + payment.failed.len(),
        "attempted": true, "auto_advance": false, "billing_reason": "subscription_cycle",
        "collection_method": "charge_automatically", "created": payment.created_s,
        "currency": payment.currency, "customer": payment.customer,
        "customer_name": payment.customer_name, "customer_tax_exempt": "none", "description": null,
        "discounts": [], "ending_balance": 0,
        "lines": { "object": "list", "data": [{ "id": format!("il_{tail}"), "object": "line_item", "amount": payment.amount_minor, "currency": payment.currency, "description": "1 × Pro plan (monthly)", "discountable": true, "livemode": true, "metadata": {}, "quantity": 1 }], "has_more": false, "url": format!("/v1/invoices/{invoice}/lines") },
        "livemode": true, "metadata": { "order_id": payment.order_id }, "number": format!("EX-{}", &tail[..8.min(tail.len())]),
        "period_end": payment.created_s, "period_start": payment.created_s - 2_592_000,
        "starting_balance": 0, "status": if is_paid { "paid" } else { "open" },
        "status_transitions": { "finalized_at": payment.created_s, "marked_uncollectible_at": null, "paid_at": is_paid.then_some(payment.created_s), "voided_at": null },
        "subtotal": payment.amount_minor, "total": payment.amount_minor,
    });
    if is_old {
        let charge = payment.charge.as_ref().filter(|_| is_paid).map(|charge| &charge.id);
        set(&mut object, "payment_intent", json!(payment.intent_id));
        set(&mut object, "charge", json!(charge));
        set(&mut object, "paid", json!(is_paid));
        set(&mut object, "subscription", json!(format!("sub_{tail}")));
    } else {
        let parent = json!({ "quote_details": null, "subscription_details": { "metadata": {}, "subscription": format!("sub_{tail}") }, "type": "subscription_details" });
        set(&mut object, "parent", parent);
    }
    object
}

/// A checkout session, as at `at_s`.
#[must_use]
pub fn session(payment: &Payment, at_s: i64) -> Value {
    let is_paid = payment.captured_minor_at(at_s) > 0;
    let is_complete = payment.charge.as_ref().is_some_and(|charge| charge.created_s <= at_s);
    json!({
        "id": payment.session, "object": "checkout.session", "allow_promotion_codes": null,
        "amount_subtotal": payment.amount_minor, "amount_total": payment.amount_minor,
        "automatic_tax": { "enabled": false, "status": null }, "cancel_url": "https://shop.example.com/cart",
        "client_reference_id": payment.order_id, "created": payment.created_s,
        "currency": payment.currency, "customer": payment.customer,
        "customer_details": { "address": null, "email": "customer@example.com", "name": payment.customer_name, "phone": null, "tax_exempt": "none", "tax_ids": [] },
        "expires_at": payment.created_s + 86_400, "invoice": payment.invoice, "livemode": true,
        "locale": null, "metadata": { "order_id": payment.order_id }, "mode": "payment",
        "payment_intent": payment.intent_id, "payment_method_types": ["card", "boleto"],
        "payment_status": if is_paid { "paid" } else { "unpaid" },
        "shipping_cost": null, "status": if is_complete { "complete" } else { "open" },
        "subscription": null, "success_url": "https://shop.example.com/thanks",
        "total_details": { "amount_discount": 0, "amount_shipping": 0, "amount_tax": 0 }, "ui_mode": "hosted", "url": null,
    })
}

/// A payout, paid.
#[must_use]
pub fn payout(
    id: &str,
    transaction: &str,
    amount_minor: i64,
    currency: &str,
    created_s: i64,
    status: &str,
) -> Value {
    json!({
        "id": id, "object": "payout", "amount": amount_minor, "application_fee": null,
        "application_fee_amount": null, "arrival_date": created_s + 172_800, "automatic": true,
        "balance_transaction": transaction, "created": created_s, "currency": currency,
        "description": "STRIPE PAYOUT", "destination": "ba_1Example00000000000000",
        "failure_balance_transaction": null, "failure_code": null, "failure_message": null,
        "livemode": true, "metadata": {}, "method": "standard", "original_payout": null,
        "payout_method": null, "reconciliation_status": "completed", "reversed_by": null,
        "source_type": "card", "statement_descriptor": null, "status": status, "type": "bank_account",
    })
}

/// Something that happens all day and moves no money.
#[must_use]
pub fn customer(id: &str, name: &str, created_s: i64) -> Value {
    json!({
        "id": id, "object": "customer", "address": { "city": "São Paulo", "country": "BR", "line1": "Rua das Flores 12", "line2": null, "postal_code": "01310-100", "state": "SP" },
        "balance": 0, "created": created_s, "currency": "usd", "default_source": null, "delinquent": false,
        "description": null, "discount": null, "email": "customer@example.com", "invoice_prefix": "EXAMPLE",
        "invoice_settings": { "custom_fields": null, "default_payment_method": "pm_1Example00000000000000", "footer": null, "rendering_options": null },
        "livemode": true, "metadata": {}, "name": name, "next_invoice_sequence": 7,
        "phone": "+55 11 5550-0100", "preferred_locales": ["pt-BR"], "shipping": null, "tax_exempt": "none", "test_clock": null,
    })
}

/// What an event's envelope says.
pub struct Envelope<'a> {
    /// `evt_…`.
    pub id: &'a str,
    /// Event type.
    pub kind: &'a str,
    /// Connected account; empty for the platform.
    pub account: &'a str,
    /// Unix s.
    pub created_s: i64,
    /// Endpoints that have not acknowledged it.
    pub pending_webhooks: u32,
    /// `api_version`.
    pub version: &'static str,
}

/// An event around an object.
#[must_use]
pub fn event(envelope: &Envelope<'_>, object: Value) -> Value {
    let mut event = json!({
        "id": envelope.id, "object": "event", "api_version": envelope.version, "created": envelope.created_s,
        "data": {}, "livemode": true, "pending_webhooks": envelope.pending_webhooks,
        "request": { "id": format!("req_{}", &envelope.id[6..]), "idempotency_key": null },
        "type": envelope.kind,
    });
    set(&mut event["data"], "object", object);
    if !envelope.account.is_empty() {
        set(&mut event, "account", json!(envelope.account));
    }
    event
}

/// Sets a field of an object.
pub fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}
