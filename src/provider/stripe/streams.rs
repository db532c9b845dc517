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
    by_id_path: &'static str,
    query: &'static [(&'static str, &'static str)],
) -> Stream {
    Stream { name, path, query, memory: None, by_id_path }
}

/// Every list that a run pages, events first.
///
/// Source: <https://docs.stripe.com/api> and the official `OpenAPI` file of [`API_VERSION`].
pub const STREAMS: &[Stream] = &[
    Stream { memory: Some(EVENT_MEMORY), ..stream("events", "/v1/events", "/v1/events/{id}", &[]) },
    stream("charges", "/v1/charges", "/v1/charges/{id}", WITH_BALANCE),
    stream("refunds", "/v1/refunds", "/v1/refunds/{id}", WITH_BALANCE),
    stream("disputes", "/v1/disputes", "/v1/disputes/{id}", &[]),
    stream("balance_transactions", "/v1/balance_transactions", "/v1/balance_transactions/{id}", &[]),
    stream("payouts", "/v1/payouts", "/v1/payouts/{id}", WITH_BALANCE),
    stream("invoices", "/v1/invoices", "/v1/invoices/{id}", &[("expand[]", "data.payments")]),
    stream("checkout_sessions", "/v1/checkout/sessions", "/v1/checkout/sessions/{id}", &[]),
    stream("payment_intents", "/v1/payment_intents", "/v1/payment_intents/{id}", &[]),
];

/// The stream of that name.
#[must_use]
pub fn stream_named(name: &str) -> Option<&'static Stream> {
    STREAMS.iter().find(|stream| stream.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_record_is_read_with_the_same_expansions() {
        let charges = stream_named("charges").unwrap();
        assert_eq!(charges.path_of("ch_1"), "/v1/charges/ch_1");
        assert_eq!(charges.path_of("../events?x"), "/v1/charges/%2E%2E%2Fevents%3Fx");
        assert_eq!(charges.query_of_one(), vec![("expand[]", "balance_transaction")]);
        assert_eq!(stream_named("events").unwrap().memory, Some(Duration::from_hours(720)));
        assert_eq!(stream_named("customers"), None);
    }
}
