"""Lists collections through the official SDK, page after page, and prints the ids of each in that order.

Reads from stdin a JSON list of [collection, {filter: value}], prints a JSON list of what each gave: a list of
ids, or the code of the error. `listing.py BASE KEY`.
"""

import json
import sys

import stripe

COLLECTIONS = {
    "events": stripe.Event,
    "charges": stripe.Charge,
    "refunds": stripe.Refund,
    "disputes": stripe.Dispute,
    "balance_transactions": stripe.BalanceTransaction,
    "payouts": stripe.Payout,
    "invoices": stripe.Invoice,
    "checkout/sessions": stripe.checkout.Session,
    "payment_intents": stripe.PaymentIntent,
}


def ask(collection, filters):
    """The ids of a collection, or of the one object that the filter `id` names, or the error in a line."""
    kind = COLLECTIONS[collection]
    try:
        if "id" in filters:
            return [kind.retrieve(filters.pop("id"), **filters).id]
        return [record.id for record in kind.list(**filters).auto_paging_iter()]
    except stripe.StripeError as error:
        return f"{type(error).__name__} {error.http_status} {error.code}"


stripe.api_base, stripe.api_key = sys.argv[1:]
stripe.max_network_retries = 0
print(json.dumps([ask(collection, filters) for collection, filters in json.load(sys.stdin)]))
