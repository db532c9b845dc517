//! Tables of nobody's framework: which names columns commonly have, and which tables come into question.

use super::schema::{Column, Flavour, Kind, Schema, Table, is_same_name};

/// Parts of names of tables that hold money or events.
const NEAR: [&str; 12] = [
    "payment",
    "charge",
    "refund",
    "order",
    "invoice",
    "stripe",
    "webhook",
    "event",
    "transaction",
    "ledger",
    "purchase",
    "deliver",
];
/// Tables that look near and are listed.
const NEAR_MAX: usize = 12;

pub(super) const EVENT_IDS: [&str; 8] = [
    "stripe_event_id",
    "event_id",
    "provider_event_id",
    "external_event_id",
    "processor_event_id",
    "evt_id",
    "external_id",
    "stripe_id",
];
pub(super) const EVENT_TYPES: [&str; 5] = ["event_type", "type", "kind", "name", "topic"];
pub(super) const RECEIVED: [&str; 6] =
    ["received_at_us", "received_at", "created_at", "inserted_at", "created", "received"];
pub(super) const BODIES: [&str; 9] =
    ["raw_body", "body", "payload", "raw", "event_data", "data", "event", "json", "content"];
pub(super) const PROVIDERS: [&str; 4] = ["provider", "processor", "gateway", "source"];
pub(super) const ACCOUNTS: [&str; 4] =
    ["stripe_account", "stripe_account_id", "connected_account", "account"];
pub(super) const LIVE: [&str; 3] = ["livemode", "live_mode", "is_live"];
pub(super) const STATUSES: [&str; 4] = ["status", "state", "payment_status", "processing_status"];
pub(super) const DONE_FLAGS: [&str; 4] = ["processed", "is_processed", "handled", "done"];
pub(super) const DONE_INSTANTS: [&str; 4] = ["processed_at", "handled_at", "completed_at", "applied_at"];
pub(super) const ERRORS: [&str; 4] = ["exception", "last_error", "error", "error_message"];

/// Ids of Stripe's own, in the order in which they are preferred: the nearest to the money first.
pub(super) const OBJECTS: [&str; 18] = [
    "stripe_charge_id",
    "charge_id",
    "stripe_payment_intent_id",
    "payment_intent_id",
    "stripe_payment_intent",
    "payment_intent",
    "stripe_payment_id",
    "provider_payment_id",
    "external_payment_id",
    "gateway_payment_id",
    "processor_id",
    "provider_id",
    "provider_reference",
    "stripe_checkout_session_id",
    "stripe_session_id",
    "checkout_session_id",
    "external_id",
    "stripe_id",
];
pub(super) const REFUNDS: [&str; 6] =
    ["stripe_refund_id", "refund_id", "provider_refund_id", "external_refund_id", "external_id", "stripe_id"];
/// Minor units by their name.
pub(super) const MINOR: [&str; 7] = [
    "amount_minor",
    "amount_cents",
    "amount_in_cents",
    "total_cents",
    "price_cents",
    "amount_subunits",
    "total_minor",
];
/// Minor or major units by their type.
pub(super) const AMOUNTS: [&str; 4] = ["amount", "total", "total_amount", "amount_total"];
pub(super) const CURRENCIES: [&str; 3] = ["currency", "currency_code", "amount_currency"];
pub(super) const KINDS: [&str; 5] = ["kind", "entry_type", "transaction_type", "type", "direction"];
pub(super) const BOOKED: [&str; 8] = [
    "applied_at",
    "booked_at",
    "paid_at",
    "captured_at",
    "posted_at",
    "created_at",
    "inserted_at",
    "created",
];
pub(super) const CHANGED: [&str; 4] = ["status_changed_at", "updated_at", "modified_at", "updated"];
pub(super) const REFUNDED: [&str; 6] = [
    "refunded_minor",
    "refunded_cents",
    "amount_refunded_cents",
    "refunded_amount_cents",
    "amount_refunded",
    "refunded_amount",
];
pub(super) const UNDOES: [&str; 4] = ["corrects_id", "reverses_id", "reversal_of_id", "reversed_entry_id"];

/// Whether a table comes into question; those of known stacks have statements of their own.
pub(super) fn is_candidate(table: &Table) -> bool {
    const OWN: [&str; 4] = ["djstripe_", "pay_", "django_", "auth_"];
    let name = table.name.to_ascii_lowercase();
    table.schema != "stripe"
        && !OWN.iter().any(|prefix| name.starts_with(prefix))
        && NEAR.iter().any(|part| name.contains(part))
}

/// Whether a column's values decide how it is read: words, and instants whose type does not say their unit.
pub(super) fn is_worth_sampling(flavour: Flavour, column: &Column) -> bool {
    let is_one = |names: &[&str]| names.iter().any(|name| is_same_name(&column.name, name));
    let has_words = column.has_words() && (is_one(&STATUSES) || is_one(&KINDS) || is_one(&PROVIDERS));
    let is_instant = is_instant(column);
    let needs_a_look = column.kind == Kind::Integer || flavour == Flavour::Sqlite;
    has_words || (is_instant && needs_a_look)
}

/// Whether a column's name is that of an instant.
pub(super) fn is_instant(column: &Column) -> bool {
    let mut names = RECEIVED.iter().chain(&BOOKED).chain(&CHANGED);
    names.any(|name| is_same_name(&column.name, name))
}

/// Tables that look near, and what each lacks to be read.
pub(super) fn near(schema: &Schema) -> Vec<(String, String)> {
    let tables = schema.tables.iter().filter(|table| is_candidate(table));
    tables.take(NEAR_MAX).map(|table| (table.shown(), lacking(table))).collect()
}

/// A floating-point number does not hold decimal money exactly.
fn real_amount(table: &Table) -> Option<&Column> {
    let amount = table.first(&MINOR).or_else(|| table.first(&AMOUNTS));
    amount.filter(|column| column.kind == Kind::Real)
}

fn lacking(table: &Table) -> String {
    let as_inbox =
        missing(table, &[("an event's id", &EVENT_IDS), ("a type", &EVENT_TYPES), ("a time", &RECEIVED)]);
    let amounts: Vec<&str> = MINOR.iter().chain(&AMOUNTS).copied().collect();
    let as_books = missing(
        table,
        &[
            ("an id of Stripe's", &OBJECTS),
            ("an amount", &amounts),
            ("a currency", &CURRENCIES),
            ("a time", &BOOKED),
        ],
    );
    let real = real_amount(table).map(|column| format!("; its {} is a floating-point number", column.name));
    format!("as an inbox {as_inbox}; as books {as_books}{}", real.unwrap_or_default())
}

fn missing(table: &Table, wanted: &[(&str, &[&str])]) -> String {
    let lacks = wanted.iter().filter(|(_, names)| table.first(names).is_none()).map(|(what, _)| *what);
    let lacks: Vec<&str> = lacks.collect();
    if lacks.is_empty() {
        "it would do, and another was taken or its types do not fit".to_owned()
    } else {
        format!("it lacks {}", lacks.join(", "))
    }
}
