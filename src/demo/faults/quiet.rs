//! Scenes at the window's edges, in flight, and such that look wrong and are right.

use super::{
    DAY_S, Expected, ExtraRow, Fault, HOUR_S, Planted, Sabotage, Span, charge_of, enter, events_of, listed,
    stage,
};
use crate::demo::payment::Flow;
use crate::demo::story::{self, Story};
use crate::demo::world::World;
use crate::record::EffectKind;

pub(super) fn plant(world: &mut World, fault: Fault) -> Planted {
    match fault {
        Fault::BookedAfterWindow => booked_after_window(world, fault),
        Fault::BookedInWindow => booked_in_window(world, fault),
        Fault::HarmlessEdge => edge(world, fault),
        Fault::InFlightYoung => young(world, fault),
        Fault::InFlightRetried => retried(world, fault),
        Fault::HarmlessReversal => reversed(world, fault),
        Fault::HarmlessSibling => sibling(world, fault),
        Fault::HarmlessOrder => deliveries(world, fault, Sabotage::Reversed),
        _ => deliveries(world, fault, Sabotage::HonestTimes(4)),
    }
}

fn at(start_s: i64) -> Span {
    Span { start_s, last_s: start_s + 10 }
}

/// Money moved just inside the window and was booked just after it.
fn booked_after_window(world: &mut World, fault: Fault) -> Planted {
    let until_s = world.until_s();
    let start_s = until_s - world.rng.between(2, 40);
    let mut planted = stage(world, fault, Story::Paid, at(start_s), |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::ArrivesAt(until_s + world.rng.between(0, 60)));
    let kind = EffectKind::Credit;
    planted.expected.push(Expected::money("timing_difference", kind, &charge, currency, (amount, 0)));
    planted
}

/// Money moved just before the window and was booked inside it.
fn booked_in_window(world: &mut World, fault: Fault) -> Planted {
    let from_s = world.from_s();
    let start_s = from_s - world.rng.between(1, 60);
    let mut planted = stage(world, fault, Story::Paid, at(start_s), |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::ArrivesAt(from_s + world.rng.between(0, 60)));
    let kind = EffectKind::Credit;
    planted.expected.push(Expected::money("timing_difference", kind, &charge, currency, (0, amount)));
    planted
}

/// At the very first instant of the window, or the first one after it.
fn edge(world: &mut World, fault: Fault) -> Planted {
    let edges = [world.from_s(), world.until_s()];
    let start_s = world.rng.pick(&edges);
    let mut planted = stage(world, fault, Story::Paid, at(start_s), |_| {});
    planted.sabotage.push(Sabotage::ArrivesAt(start_s + world.rng.between(1, 60)));
    planted
}

/// Younger than the settle delay; nothing has arrived.
fn young(world: &mut World, fault: Fault) -> Planted {
    let start_s = world.until_s() + world.rng.between(1, 240);
    let mut planted = stage(world, fault, Story::Paid, at(start_s), |_| {});
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |_| true)));
    planted
}

/// Not received, and the provider is still retrying.
fn retried(world: &mut World, fault: Fault) -> Planted {
    let start_s = world.until_s() - world.rng.between(2 * HOUR_S, 2 * DAY_S);
    let cast = world.cast(Story::Paid, start_s, start_s + 10);
    let mut payment = story::tell(&mut world.rng, Story::Paid, &cast);
    payment.pending_webhooks = 1;
    let mut planted = enter(world, fault, payment);
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |_| true)));
    planted
}

/// A double booking that somebody has already undone with a compensating entry.
fn reversed(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |_| {});
    let (charge, amount, currency) = charge_of(world, &planted);
    planted.sabotage.push(Sabotage::NaiveTimes(2));
    planted.sabotage.push(Sabotage::Row(ExtraRow {
        kind: EffectKind::Credit,
        object_id: charge,
        amount_minor: -amount,
        currency,
        event_id: String::new(),
        at_s: span.last_s,
        undoes_second: true,
    }));
    planted
}

/// One of two events of a payment was lost; the other one booked it.
fn sibling(world: &mut World, fault: Fault) -> Planted {
    let span = listed(world);
    let mut planted = stage(world, fault, Story::Paid, span, |cast| {
        if cast.flow == Flow::ChargeOnly {
            cast.flow = Flow::Direct;
        }
    });
    let lost = world.rng.pick(&["charge.succeeded", "payment_intent.succeeded"]);
    planted.sabotage.push(Sabotage::Drop(events_of(world, &planted, |kind| kind == lost)));
    planted
}

/// An honest handler under hard conditions.
fn deliveries(world: &mut World, fault: Fault, sabotage: Sabotage) -> Planted {
    let stories =
        [Story::Paid, Story::RefundedFull, Story::RefundedTwice, Story::RefundFailed, Story::DisputeLost];
    let story = world.rng.pick(&stories);
    let span = listed(world);
    let mut planted = stage(world, fault, story, span, |_| {});
    planted.sabotage.push(sabotage);
    planted
}
