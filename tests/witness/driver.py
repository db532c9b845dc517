"""A shop's till: creates customers, payments, refunds and more through the official SDK.

Prints as JSON what it did, which is what the test expects recon to know.
"""

import argparse
import json

import stripe


def card(number):
    """A payment method of a test card."""
    details = {"number": number, "exp_month": 12, "exp_year": 2040, "cvc": "123"}
    return stripe.PaymentMethod.create(type="card", card=details)


def customer(index):
    """A customer who pays with a card that works."""
    person = stripe.Customer.create(email=f"buyer{index}@example.com", description=f"buyer {index}")
    method = card("4242424242424242")
    stripe.PaymentMethod.attach(method.id, customer=person.id)
    settings = {"default_payment_method": method.id}
    stripe.Customer.modify(person.id, invoice_settings=settings)
    return person.id, method.id


def pay(person, method, amount, currency, **more):
    """A payment that succeeds at once; its intent and charge."""
    intent = stripe.PaymentIntent.create(
        amount=amount, currency=currency, customer=person, payment_method=method, confirm=True, **more
    )
    charge = intent.latest_charge
    return {"intent": intent.id, "charge": charge if isinstance(charge, str) else charge.id,
            "amount": amount, "currency": currency}


def capture_later(person, method, amount, currency):
    """A payment that is authorised first and captured whole afterwards."""
    payment = pay(person, method, amount, currency, capture_method="manual")
    stripe.PaymentIntent.capture(payment["intent"])
    return payment


def decline(person, amount):
    """A payment that the bank refuses."""
    method = card("4000000000000341")
    stripe.PaymentMethod.attach(method.id, customer=person)
    try:
        pay(person, method.id, amount, "eur")
    except stripe.CardError:
        return
    raise SystemExit("the card should have been declined")


def subscribe(person, plan):
    """A subscription, whose first invoice is paid at once."""
    stripe.Subscription.create(customer=person, items=[{"plan": plan}])


def refund(payment, amount, by):
    """A refund by the charge or by the payment intent; `None` gives everything back."""
    more = {} if amount is None else {"amount": amount}
    made = stripe.Refund.create(**{by: payment["intent" if by == "payment_intent" else "charge"]}, **more)
    return {"id": made.id, "amount": made.amount, "currency": made.currency}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("--payments", type=int, default=24)
    arguments = parser.parse_args()
    stripe.api_base = arguments.base
    stripe.api_key = "sk_test_witness"
    stripe.max_network_retries = 0

    product = stripe.Product.create(name="a service")
    plan = stripe.Plan.create(amount=2_500, currency="eur", interval="month", product=product.id)
    payments, refunds = [], []
    for index in range(arguments.payments):
        person, method = customer(index)
        currency = ("eur", "usd", "jpy", "brl")[index % 4]
        take = capture_later if index % 5 == 4 else pay
        payments.append(take(person, method, 1_000 + 37 * index, currency))
        if index % 6 == 5:
            decline(person, 500 + index)
        if index % 8 == 3:
            subscribe(person, plan.id)
        if index % 3 == 1:
            refunds.append(refund(payments[-1], 100 + index, "charge"))
        if index % 6 == 1:
            refunds.append(refund(payments[-1], 50, "payment_intent"))
        if index % 7 == 2 and index % 3 != 1:  # nothing is given back twice
            refunds.append(refund(payments[-1], None, "payment_intent"))
    stripe.Payout.create(amount=12_345, currency="eur")
    balance = {}
    for movement in stripe.BalanceTransaction.list(limit=100).auto_paging_iter():
        balance[movement.currency] = balance.get(movement.currency, 0) + movement.amount
    print(json.dumps({"payments": payments, "refunds": refunds, "balance": balance}))


main()
