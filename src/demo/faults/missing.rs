//! Effects that the books lack.

use super::{Expected, Fault, Planted, Sabotage, charge_of, enter, events_of, listed, stage, unlisted};
use crate::demo::story::{self, Story};
use crate::demo::world::World;
use crate::record::{EffectKind, InboxStatus};

pub(super) fn plant(world: &mut World, fault: Fault) -> Planted {
    match fault {
        Fault::MissedRefund => missed_refund(world, fault),
        Fault::MissedDispute => missed_dispute(world, fault),
        Fault::NotSubscribed => not_subscribed(world, fault),
        Fault::OlderThanEvents => older_than_events(world, fault),
        Fault::RefundWithoutEvents => refund_without_events(world, fault),
        Fault::DeadLetter => unapplied(world, fault, InboxStatus::Dead, "dead_letter"),
        Fault::Parked => unapplied(world, fault, InboxStatus::Parked, "parked"),
        Fault::MarkedProcessed => {
            unapplied(world, fault, InboxStatus::Applied, "marked_processed_without_effect")
        }
        Fault::PendingTooLong => unapplied(world, fault, InboxStatus::Received, "pending_too_long"),
        _ => missed_payment(world, fault),
    }
}

/// Every event of a payment was lost: one finding on the charge.
fn missed_payment(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |_| true)));
    let sides = (amount, 0);
    planted
        .expected
        .push(Expected::money("missed_event", EffectKind::Credit, &charge, currency, sides).because(""));
    planted
}

/// The payment is booked; every event of its refund was lost.
fn missed_refund(world: &mut World, fault: Fault) -> Planted {
    let story = world.rng.pick(&[Story::RefundedFull, Story::RefundedPart]);
    let span = listed(world);
    let mut planted = stage(world, fault, story, span, |_| {});
    let (.., currency) = charge_of(world, &planted);
    let refund = world.payments[planted.payment].refunds[0].clone();
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |kind| kind.contains("refund"))));
    let sides = (-refund.amount_minor, 0);
    planted
        .expected
        .push(Expected::money("missed_event", EffectKind::Refund, &refund.id, currency, sides).because(""));
    planted
}

/// The payment is booked; every event of its dispute was lost.
fn missed_dispute(world: &mut World, fault: Fault) -> Planted {
    let story = world.rng.pick(&[Story::Disputed, Story::DisputeLost]);
    let span = listed(world);
    let mut planted = stage(world, fault, story, span, |_| {});
    let (_, amount, currency) = charge_of(world, &planted);
    let dispute = dispute_of(world, &planted);
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |kind| kind.contains("dispute"))));
    let kind = EffectKind::DisputeWithdrawn;
    planted
        .expected
        .push(Expected::money("missed_event", kind, &dispute, currency, (-amount, 0)).because(""));
    planted
}

/// A won dispute's money came back; only a type that the endpoint does not listen to says so, and the import forgot it.
fn not_subscribed(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::DisputeWon, span, |_| {});
    let (_, amount, currency) = charge_of(world, &planted);
    let dispute = dispute_of(world, &planted);
    planted.sabotage.push(Sabotage::NotImported);
    let kind = EffectKind::DisputeReinstated;
    let expected = Expected::money("missed_event", kind, &dispute, currency, (amount, 0));
    planted.expected.push(expected.because("not_subscribed"));
    planted
}

/// Every event of a payment came and was left lying.
fn unapplied(world: &mut World, fault: Fault, status: InboxStatus, cause: &'static str) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::LeftAs(status, events_of(world, &planted, |_| true)));
    let expected = Expected::money("unapplied_event", EffectKind::Credit, &charge, currency, (amount, 0));
    planted.expected.push(expected.because(cause));
    planted
}

/// A payment that was lost so long ago that the provider no longer lists its events.
fn older_than_events(world: &mut World, fault: Fault) -> Planted {
    let span = unlisted(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |_| true)));
    let sides = (amount, 0);
    planted.expected.push(Expected::money("missing_effect", EffectKind::Credit, &charge, currency, sides));
    planted
}

/// A refund that never had an event.
fn refund_without_events(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let cast = world.cast(Story::RefundedPart, span.start_s, span.last_s);
    let mut payment = story::tell(&mut world.rng, Story::RefundedPart, &cast);
    payment.refunds[0].has_events = false;
    let refund = payment.refunds[0].clone();
    let mut planted = enter(world, fault, payment);
    let sides = (-refund.amount_minor, 0);
    let kind = EffectKind::Refund;
    planted.expected.push(Expected::money("missing_effect", kind, &refund.id, cast.currency, sides));
    planted
}

fn dispute_of(world: &World, planted: &Planted) -> String {
    world.payments[planted.payment].dispute.as_ref().map_or(String::new(), |dispute| dispute.id.clone())
}
