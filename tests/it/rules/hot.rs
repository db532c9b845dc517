//! Hot objects: nothing may compare every row of an object with every other.

use super::generate::inbox_row;
use crate::random::Random;
use crate::world::World;
use recon::record::{
    EffectKind, LocalEffect, LocalState, ProviderEffect, ProviderEvent, ProviderState, Scope, Status, Tracks,
};

/// Payments so hot that comparing every row with every other would never end: one credit that is booked
/// `facts` times, one payment with many refunds, one with many status events; and quiet ones.
pub fn hot_world(facts: u64) -> World {
    let mut world = World::default();
    let scope = Scope::new("hot", "", "live");
    let mut random = Random::new(facts);
    for number in 0..facts / 50 {
        hot_payment(
            &mut random,
            &mut world,
            &scope,
            &format!("pi_{number}"),
            [1, u64::from(number % 3 == 0), 0],
        );
    }
    hot_payment(&mut random, &mut world, &scope, "pi_booked", [facts, 1, 0]);
    hot_payment(&mut random, &mut world, &scope, "pi_refunded", [1, facts / 5, 0]);
    hot_payment(&mut random, &mut world, &scope, "pi_told", [1, 0, facts / 5]);
    world
}

/// One credit that is booked `bookings` times, refunds with one event and mostly one row each, and status
/// events that are mostly held.
fn hot_payment(
    random: &mut Random,
    world: &mut World,
    scope: &Scope,
    root_id: &str,
    [bookings, refunds, told]: [u64; 3],
) {
    let charge = root_id.replace("pi_", "ch_");
    let effect = |kind, object_id: &str, amount_minor| ProviderEffect {
        scope: scope.clone(),
        root_id: root_id.to_owned(),
        object_id: object_id.to_owned(),
        kind,
        amount_minor,
        currency: "usd".to_owned(),
        occurred_at_us: 1_400,
        intent: String::new(),
        in_window: true,
    };
    let event = |tracks, object_id: &str, event_id: &str| ProviderEvent {
        scope: scope.clone(),
        root_id: root_id.to_owned(),
        object_id: object_id.to_owned(),
        event_id: event_id.to_owned(),
        event_type: "some.type".to_owned(),
        tracks,
        created_us: 1_400,
        wanted: true,
        settled: true,
    };
    let row = |kind, object_id: &str, amount_minor, number: u64, event_id: &str| LocalEffect {
        scope: scope.clone(),
        root_id: root_id.to_owned(),
        object_id: object_id.to_owned(),
        effect_id: format!("{kind}-{object_id}-{number}"),
        kind,
        amount_minor,
        currency: "usd".to_owned(),
        applied_at_us: 1_500 + i64::try_from(number % 7).unwrap(),
        event_id: event_id.to_owned(),
        corrects_effect_id: String::new(),
        in_window: true,
    };
    let paid = format!("evt_{root_id}");
    world.provider_effects.push(effect(EffectKind::Credit, &charge, 500));
    world.provider_events.push(event(Tracks::Effect(EffectKind::Credit), &charge, &paid));
    inbox_row(random, world, scope, &paid);
    if random.chance(95) {
        world
            .local_effects
            .extend((0..bookings).map(|number| row(EffectKind::Credit, &charge, 500, number, &paid)));
    }
    for number in 0..refunds {
        let refund = format!("re_{root_id}_{number}");
        let event_id = format!("evt_{refund}");
        world.provider_effects.push(effect(EffectKind::Refund, &refund, 1));
        world.provider_events.push(event(Tracks::Effect(EffectKind::Refund), &refund, &event_id));
        if random.chance(98) {
            inbox_row(random, world, scope, &event_id);
        }
        if random.chance(98) {
            world.local_effects.push(row(EffectKind::Refund, &refund, 1, number, &event_id));
        }
        world.parts.entry((scope.clone(), root_id.to_owned())).or_default().insert(refund);
    }
    for number in 0..told {
        let event_id = format!("evt_{root_id}_{number}");
        world.provider_events.push(event(Tracks::State, root_id, &event_id));
        if random.chance(98) {
            inbox_row(random, world, scope, &event_id);
        }
    }
    world.provider_states.push(ProviderState {
        scope: scope.clone(),
        root_id: root_id.to_owned(),
        object_id: charge,
        status: Status::Paid,
        refunded_minor: None,
        authorized_minor: Some(500),
        at_us: 1_400,
    });
    world.local_states.push(LocalState {
        scope: scope.clone(),
        root_id: root_id.to_owned(),
        object_id: root_id.to_owned(),
        status: if random.chance(95) { Status::Paid } else { Status::Pending },
        refunded_minor: None,
        updated_at_us: 1_500,
        changed_by: String::new(),
    });
}
