//! The lists that are paged. None of them has an `updated` filter: what happens late to an old
//! object is found through refunds, disputes, payouts and balance transactions by their own time.

use crate::provider::Stream;
use std::time::Duration;

/// The version that every request pins (`Stripe-Version`). Events keep the version that they were
/// made with, whatever is asked for.
pub const API_VERSION: &str = "2026-08-26.dahlia";

/// `GET /v1/events` reaches back 30 days, for lists and for single events.
const EVENT_MEMORY: Duration = Duration::from_hours(30 * 24);

const WITH_BALANCE: &[(&str, &str)] = &[("expand[]", "data.balance_transaction")];

const fn stream(
    name: &'static str,
    path: &'static str,
    query: &'static [(&'static str, &'static str)],
) -> Stream {
    Stream { name, path, query, memory: None, by_id_path: path }
}

/// Every list that a run pages, events first.
///
/// Source: <https://docs.stripe.com/api> and the official `OpenAPI` file of [`API_VERSION`].
pub const STREAMS: &[Stream] = &[
    Stream { memory: Some(EVENT_MEMORY), ..stream("events", "/v1/events", &[]) },
    stream("charges", "/v1/charges", WITH_BALANCE),
    stream("refunds", "/v1/refunds", WITH_BALANCE),
    stream("disputes", "/v1/disputes", &[]),
    stream("balance_transactions", "/v1/balance_transactions", &[]),
    stream("payouts", "/v1/payouts", WITH_BALANCE),
    stream("invoices", "/v1/invoices", &[("expand[]", "data.payments")]),
    stream("checkout_sessions", "/v1/checkout/sessions", &[]),
    stream("payment_intents", "/v1/payment_intents", &[]),
];

/// Lists beside the streams that a run asks, and does without: what they say is told only where they may be read.
pub const SIDE_LISTS: &[(&str, &str)] = &[
    ("webhook_endpoints", "/v1/webhook_endpoints?limit=1"),
    ("invoice_payments", "/v1/invoice_payments?limit=1"),
];

/// The permission of a restricted key that reads a list, as the dashboard calls it.
///
/// Source: the page of a restricted key, and <https://docs.stripe.com/keys#limit-access>.
#[must_use]
pub fn permission_of(list: &str) -> &'static str {
    match list {
        "events" => "Events",
        "charges" | "refunds" => "Charges and Refunds",
        "disputes" => "Disputes",
        "balance_transactions" => "Balance transaction sources",
        "payouts" => "Payouts",
        "invoices" | "invoice_payments" => "Invoices",
        "checkout_sessions" => "Checkout Sessions",
        "payment_intents" => "PaymentIntents",
        "webhook_endpoints" => "Webhook Endpoints",
        _ => "the resource of that name",
    }
}

/// A payment intent or a payout: nothing leads on from it.
#[must_use]
pub fn is_final_root(id: &str) -> bool {
    id.starts_with("pi_") || id.starts_with("po_")
}

/// The stream of that name.
#[must_use]
pub fn stream_named(name: &str) -> Option<&'static Stream> {
    STREAMS.iter().find(|stream| stream.name == name)
}
