//! Effects that the books hold twice, on the wrong object, or without a reason.

use super::{
    Expected, ExtraRow, Fault, HOUR_S, Planted, Sabotage, charge_of, enter, events_of, listed, stage,
};
use crate::demo::payment::Flow;
use crate::demo::story::{self, Story};
use crate::demo::world::World;
use crate::record::EffectKind;

pub(super) fn plant(world: &mut World, fault: Fault) -> Planted {
    match fault {
        Fault::DuplicateTypes => two_types(world, fault),
        Fault::DuplicateRefund => refund_twice(world, fault),
        Fault::ChargedTwiceForOrder | Fault::ChargedTwiceForInvoice => charged_twice(world, fault),
        Fault::Misattributed => misattributed(world, fault),
        Fault::OrphanUnknown => orphan(world, fault),
        Fault::OrphanFailedRefund => failed_refund(world, fault),
        Fault::DuplicateTriple => delivered_times(world, fault, 3),
        _ => delivered_times(world, fault, 2),
    }
}

/// The same event came several times and was booked each time.
fn delivered_times(world: &mut World, fault: Fault, times: u32) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::NaiveTimes(times));
    let sides = (amount, amount * i64::from(times));
    planted.expected.push(Expected::money("duplicate_effect", EffectKind::Credit, &charge, currency, sides));
    planted
}

/// Two event types spoke of one payment, and each was booked.
fn two_types(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let flow = world.rng.pick(&[Flow::Invoice, Flow::Checkout, Flow::Direct]);
    let mut planted = stage(world, fault, Story::Paid, span, |cast| cast.flow = flow);
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::NaiveAlsoBooks(match flow {
        Flow::Invoice => "invoice.paid",
        Flow::Checkout => "checkout.session.completed",
        _ => "payment_intent.succeeded",
    }));
    let sides = (amount, amount * 2);
    planted.expected.push(Expected::money("duplicate_effect", EffectKind::Credit, &charge, currency, sides));
    planted
}

/// A refund was booked twice; its payment once.
fn refund_twice(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::RefundedPart, span, |_| {});
    let payment = &world.payments[planted.payment];
    let refund = payment.refunds[0].clone();
    let currency = payment.currency;
    planted.sabotage.push(Sabotage::Row(ExtraRow {
        kind: EffectKind::Refund,
        object_id: refund.id.clone(),
        amount_minor: refund.amount_minor,
        currency,
        event_id: String::new(),
        at_s: refund.succeeded_s + 6 * HOUR_S,
        undoes_second: false,
    }));
    let sides = (-refund.amount_minor, -2 * refund.amount_minor);
    let kind = EffectKind::Refund;
    planted.expected.push(Expected::money("duplicate_effect", kind, &refund.id, currency, sides));
    planted
}

/// The customer paid twice for one order or one invoice; the books show both payments rightly.
fn charged_twice(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let flow = if fault == Fault::ChargedTwiceForInvoice { Flow::Invoice } else { Flow::Direct };
    let mut cast = world.cast(Story::Paid, span.start_s, span.last_s);
    cast.flow = flow;
    let mut first = story::tell(&mut world.rng, Story::Paid, &cast);
    cast.flow = Flow::Direct;
    cast.start_s += world.rng.between(20, HOUR_S);
    let mut second = story::tell(&mut world.rng, Story::Paid, &cast);
    second.order_id.clone_from(&first.order_id);
    second.has_old_shape = first.has_old_shape;
    if first.invoice.is_some() {
        first.invoice_also_paid_by.clone_from(&second.intent_id);
    }
    let charge = second.charge.as_ref().map_or(String::new(), |charge| charge.id.clone());
    second.is_naive = false;
    world.add_payment(second);
    let mut planted = enter(world, fault, first);
    // The books are right: no effect of theirs differs, so the finding explains no tie-out.
    let mut expected = Expected::money(
        "duplicate_charge",
        EffectKind::Credit,
        &charge,
        cast.currency,
        (cast.amount_minor, 2 * cast.amount_minor),
    );
    expected.effect = None;
    expected.difference_minor = None;
    planted.expected.push(expected);
    planted
}

/// A payment's event was booked on another payment. The money is in the books, on the wrong object.
fn misattributed(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let other = stage(world, fault, Story::Paid, span, |_| {});
    let (other_charge, ..) = charge_of(world, &other);
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::BooksAs {
        object_id: charge.clone(),
        amount_minor: amount,
        currency,
        as_object_id: other_charge,
    });
    let kind = EffectKind::Credit;
    planted.expected.push(Expected::money("misattributed_effect", kind, &charge, currency, (amount, amount)));
    planted
}

/// A row for a charge that the provider does not know. It stands beside an ordinary payment.
fn orphan(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let kind = world.rng.pick(&[EffectKind::Credit, EffectKind::Refund]);
    let is_credit = kind == EffectKind::Credit;
    let object_id = world.rng.id(if is_credit { "ch" } else { "re" });
    let currency = world.rng.pick(&story::CURRENCIES);
    let amount = story::amount(&mut world.rng, currency);
    let signed = if is_credit { amount } else { -amount };
    planted.expected.push(Expected::money("orphan_effect", kind, &object_id, currency, (0, signed)));
    planted.sabotage.push(Sabotage::Row(ExtraRow {
        kind,
        object_id,
        amount_minor: amount,
        currency,
        event_id: String::new(),
        at_s: span.start_s + HOUR_S,
        undoes_second: false,
    }));
    planted
}

/// A refund failed after it was booked, and the failure was read and not acted upon.
fn failed_refund(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::RefundFailed, span, |_| {});
    let payment = &world.payments[planted.payment];
    let (refund, currency) = (payment.refunds[0].clone(), payment.currency);
    planted.sabotage.push(Sabotage::IgnoresRefundFailure);
    let sides = (0, -refund.amount_minor);
    let kind = EffectKind::Refund;
    planted.expected.push(Expected::money("orphan_effect", kind, &refund.id, currency, sides));
    debug_assert!(!events_of(world, &planted, |kind| kind == "refund.failed").is_empty());
    planted
}
