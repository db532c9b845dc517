//! Effects and states that the books hold wrongly, and events that nobody can explain.

use super::{DAY_S, Expected, ExtraEvent, Fault, HOUR_S, Planted, Sabotage, charge_of, listed, stage};
use crate::demo::story::{self, Story};
use crate::demo::timeline;
use crate::demo::world::World;
use crate::record::{EffectKind, Status};

pub(super) fn plant(world: &mut World, fault: Fault) -> Planted {
    match fault {
        Fault::AmountAuthorised => authorised(world, fault),
        Fault::RefundCumulative => cumulative(world, fault),
        Fault::OtherCurrency => other_currency(world, fault),
        Fault::StalePending => stale(world, fault, Story::Paid, Status::Paid, Status::Pending),
        Fault::StalePaid => stale(world, fault, Story::RefundedPart, Status::PartiallyRefunded, Status::Paid),
        Fault::StaleDispute => stale(world, fault, Story::DisputeLost, Status::DisputeLost, Status::Disputed),
        Fault::PaidAfterRefunded => paid_after_refunded(world, fault),
        Fault::UnknownEvent | Fault::TestEvent => foreign_event(world, fault),
        Fault::UnknownType => unknown_type(world, fault),
        _ => other_amount(world, fault),
    }
}

/// The right effect with another number.
fn other_amount(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let rng = &mut world.rng;
    let (currency, amount, booked, cause) = match fault {
        Fault::AmountFactor100 => {
            let hundreds = rng.between(3, 600);
            ("jpy", hundreds * 100, rng.pick(&[hundreds, hundreds * 10_000]), "factor=100")
        }
        Fault::AmountFactor10 => {
            let tens = rng.between(100, 6_000);
            ("kwd", tens * 10, rng.pick(&[tens, tens * 100]), "factor=10")
        }
        Fault::AmountRounding => {
            let currency = rng.pick(&["usd", "eur", "brl"]);
            let amount = story::amount(rng, currency);
            (currency, amount, amount + rng.pick(&[-1, 1]), "rounding")
        }
        _ => {
            let currency = rng.pick(&["usd", "eur", "brl"]);
            let amount = story::amount(rng, currency);
            (currency, amount, amount + rng.between(2, 400), "")
        }
    };
    let mut planted = stage(world, fault, Story::Paid, span, |cast| {
        cast.currency = currency;
        cast.amount_minor = amount;
    });
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(books_as(&charge, booked, currency));
    let sides = (amount, booked);
    let expected = Expected::money("amount_mismatch", EffectKind::Credit, &charge, currency, sides);
    planted.expected.push(expected.because(cause));
    planted
}

fn books_as(object_id: &str, amount_minor: i64, currency: &'static str) -> Sabotage {
    let as_object_id = object_id.to_owned();
    Sabotage::BooksAs { object_id: object_id.to_owned(), amount_minor, currency, as_object_id }
}

/// A part was captured; what was authorised is booked.
fn authorised(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::CapturedPart, span, |_| {});
    let (charge, captured, currency) = charge_of(world, &planted);
    let booked = world.payments[planted.payment].amount_minor;
    planted.sabotage.push(books_as(&charge, booked, currency));
    let kind = EffectKind::Credit;
    let expected = Expected::money("amount_mismatch", kind, &charge, currency, (captured, booked));
    planted.expected.push(expected.because(""));
    planted
}

/// The second refund is booked as the running total.
fn cumulative(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::RefundedTwice, span, |cast| {
        cast.currency = "usd";
        cast.amount_minor = 20_000;
    });
    let refunds = world.payments[planted.payment].refunds.clone();
    let (first, second) = (refunds[0].amount_minor, refunds[1].amount_minor);
    planted.sabotage.push(books_as(&refunds[1].id, first + second, "usd"));
    let sides = (-second, -first - second);
    let kind = EffectKind::Refund;
    planted.expected.push(Expected::money("amount_mismatch", kind, &refunds[1].id, "usd", sides));
    planted
}

/// The same number with another label: of the right currency the books hold nothing.
fn other_currency(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let (right, wrong) = world.rng.pick(&[("jpy", "usd"), ("brl", "usd"), ("usd", "eur"), ("eur", "brl")]);
    let amount = story::amount(&mut world.rng, right);
    let mut planted = stage(world, fault, Story::Paid, span, |cast| {
        cast.currency = right;
        cast.amount_minor = amount;
    });
    let (charge, amount, _) = charge_of(world, &planted);
    planted.sabotage.push(books_as(&charge, amount, wrong));
    let mut expected =
        Expected::money("currency_mismatch", EffectKind::Credit, &charge, right, (amount, amount));
    expected.difference_minor = Some(amount);
    planted.expected.push(expected);
    planted
}

/// Every effect is booked; the status was last written by an older event.
fn stale(world: &mut World, fault: Fault, story: Story, provider: Status, local: Status) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, story, span, |_| {});
    planted.sabotage.push(Sabotage::NaiveTimes(1));
    planted.sabotage.push(Sabotage::StateEndsAs(local, -1));
    planted.expected.push(Expected::state("stale_state", &planted.root_id, provider, local));
    planted
}

/// A late "paid" came hours after the full refund and set the status back.
fn paid_after_refunded(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::RefundedFull, span, |_| {});
    planted.sabotage.push(Sabotage::NaiveTimes(1));
    planted.sabotage.push(Sabotage::StateEndsAs(Status::Paid, 2 * HOUR_S));
    let (kind, root) = ("forbidden_transition", &planted.root_id);
    let expected = Expected::state(kind, root, Status::Refunded, Status::Paid);
    planted.expected.push(expected.because("paid_after_refunded"));
    planted
}

/// An event in the inbox that the provider does not know, or one of its test mode.
fn foreign_event(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let is_test = fault == Fault::TestEvent;
    let event_id = world.rng.id("evt");
    let at_s = world.rng.between(world.events_from_s() + 4 * DAY_S, world.until_s() - DAY_S);
    let kind = if is_test { "charge.succeeded" } else { "payment_intent.succeeded" };
    let object = world.rng.id(if is_test { "ch" } else { "pi" });
    let body = serde_json::json!({
        "id": event_id, "object": "event", "api_version": "2026-08-26.dahlia", "created": at_s,
        "data": { "object": { "id": object, "object": if is_test { "charge" } else { "payment_intent" }, "amount": 1000, "currency": "usd", "livemode": !is_test, "status": "succeeded" } },
        "livemode": !is_test, "pending_webhooks": 0, "request": { "id": null, "idempotency_key": null }, "type": kind,
    });
    let mode = if is_test { "test" } else { "live" };
    let kind_found = if is_test { "wrong_scope" } else { "unknown_event" };
    planted.expected.push(Expected::plain(kind_found, &event_id));
    let body = body.to_string();
    planted.sabotage.push(Sabotage::Inbox(ExtraEvent { event_id, kind, mode, body, at_s }));
    planted
}

/// An event of a type that nobody has heard of.
fn unknown_type(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |cast| {
        if cast.flow == crate::demo::payment::Flow::ChargeOnly {
            cast.flow = crate::demo::payment::Flow::Direct;
        }
    });
    let payment = world.payments[planted.payment].clone();
    let draft = timeline::teleported(&payment, span.start_s + HOUR_S);
    world.add_event(Some(planted.payment), &payment, draft);
    let charge_id = payment.charge.as_ref().map_or(String::new(), |charge| charge.id.clone());
    planted.expected.push(Expected::plain("unknown_shape", &charge_id).because("unknown_type"));
    planted
}
