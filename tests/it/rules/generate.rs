//! Generated facts: many tiny payments in which every fault is likely, ids and times collide, and keys repeat.

use crate::random::Random;
use crate::world::{WINDOW, World};
use recon::record::{
    EffectKind, InboxEvent, InboxStatus, LocalEffect, LocalState, ProviderEffect, ProviderEvent,
    ProviderState, Scope, Status, Tracks,
};

const CURRENCIES: [&str; 6] = ["usd", "usd", "usd", "usd", "jpy", "eur"];
const AMOUNTS: [i64; 9] = [0, 1, 99, 100, 100, 100, 1_000, 10_000, 60];

/// A world of its own for each seed; every scope of it carries the seed in the provider's name.
pub fn world(seed: u64) -> World {
    let mut random = Random::new(seed);
    let mut world = World::default();
    let provider = format!("seed{seed}");
    let scopes = [("", "live"), ("acct_1", "live"), ("", "test")];
    for (account, mode) in scopes.iter().take(1 + usize::try_from(random.below(3)).unwrap()) {
        let scope = Scope::new(&provider, account, mode);
        for number in 0..=random.below(4) {
            Payment { random: &mut random, world: &mut world, scope: &scope, number }.generate();
        }
        add_strangers(&mut random, &mut world, &scope);
    }
    world
}

struct Payment<'a> {
    random: &'a mut Random,
    world: &'a mut World,
    scope: &'a Scope,
    number: u64,
}

impl Payment<'_> {
    fn root(&self) -> String {
        format!("pi_{}", self.number)
    }

    /// Mostly inside the window, often equal.
    fn time(&mut self) -> i64 {
        match self.random.below(10) {
            0 => self.random.between(0, 1_000),
            1 => self.random.between(2_000, 3_000),
            2 => *self.random.pick(&[999, 1_000, 1_999, 2_000]),
            3 | 4 => 1_500,
            _ => self.random.between(1_000, 2_000),
        }
    }

    fn generate(&mut self) {
        let currency = *self.random.pick(&CURRENCIES);
        let captures = *self.random.pick(&[0, 1, 1, 1, 1, 1, 2]);
        for index in 0..captures {
            self.effect(EffectKind::Credit, &format!("ch_{}{index}", self.number), currency);
        }
        for index in 0..*self.random.pick(&[0, 0, 1, 1, 2]) {
            self.effect(EffectKind::Refund, &format!("re_{}{index}", self.number), currency);
        }
        if self.random.chance(25) {
            let dispute = format!("dp_{}", self.number);
            self.effect(EffectKind::DisputeWithdrawn, &dispute, currency);
            if self.random.chance(50) {
                self.effect(EffectKind::DisputeReinstated, &dispute, currency);
            }
        }
        if self.random.chance(10) {
            self.effect(EffectKind::Fee, &format!("ch_{}0", self.number), currency);
        }
        self.states();
        for _ in 0..self.random.below(2) {
            let tracks = *self.random.pick(&[Tracks::State, Tracks::Nothing]);
            let object = self.random.pick(&["", "cus_"]).to_string();
            let object = if object.is_empty() { object } else { format!("{object}{}", self.number) };
            self.event(tracks, &object);
        }
    }

    /// One effect at the provider (or none), its events, and what the books made of it.
    fn effect(&mut self, kind: EffectKind, object: &str, currency: &str) {
        let is_part = !matches!(kind, EffectKind::Credit | EffectKind::Fee);
        if is_part {
            let parts = self.world.parts.entry((self.scope.clone(), self.root())).or_default();
            parts.insert(object.to_owned());
        }
        let amount_minor = *self.random.pick(&AMOUNTS);
        let occurred_at_us = self.time();
        // A part that moved no money is always announced: the rules in SQL know it only from there.
        let is_there = self.random.chance(88);
        let currency = if self.random.chance(2) { *self.random.pick(&CURRENCIES) } else { currency };
        if is_there {
            let intent = self.random.below(6);
            self.world.provider_effects.push(ProviderEffect {
                scope: self.scope.clone(),
                root_id: self.root(),
                object_id: object.to_owned(),
                kind,
                amount_minor,
                currency: currency.to_owned(),
                occurred_at_us,
                intent: if intent < 4 { format!("in_{}", intent % 2) } else { String::new() },
                in_window: WINDOW.contains(occurred_at_us),
            });
        }
        let mut events = Vec::new();
        for _ in 0..*self.random.pick(&[0, 1, 1, 1, 2, 3]) {
            let about = self.alias(object, is_part);
            events.push(self.event(Tracks::Effect(kind), &about));
        }
        if is_part && !is_there {
            events.push(self.event(Tracks::Effect(kind), object));
        }
        let copies = *self.random.pick(&[0, 0, 1, 1, 1, 1, 1, 1, 2, 3]);
        let is_exact = self.random.chance(75);
        for _ in 0..copies {
            let id = if is_exact { object.to_owned() } else { self.alias(object, is_part) };
            let event_id = match self.random.below(10) {
                0 => String::new(),
                1 => format!("evt_{}", self.random.below(30)),
                _ => events.first().cloned().unwrap_or_default(),
            };
            self.row(kind, &id, amount_minor, currency, &event_id);
        }
    }

    fn alias(&mut self, object: &str, is_part: bool) -> String {
        let number = self.number;
        match self.random.below(5) {
            0 => self.root(),
            1 => format!("in_{number}"),
            2 if is_part => format!("ch_{number}0"),
            _ => object.to_owned(),
        }
    }

    fn event(&mut self, tracks: Tracks, object: &str) -> String {
        // Event ids come from a small set: one event may announce effects of several payments.
        let event_id =
            if self.random.chance(15) { self.random.below(30) } else { 100 + self.random.next() % 1_000_000 };
        let event_id = format!("evt_{event_id}");
        let created_us = if self.random.chance(30) { 1_500 } else { self.random.between(1_000, 2_000) };
        self.world.provider_events.push(ProviderEvent {
            scope: self.scope.clone(),
            root_id: self.root(),
            object_id: object.to_owned(),
            event_id: event_id.clone(),
            event_type: "some.type".to_owned(),
            tracks,
            created_us,
            wanted: self.random.chance(80),
            settled: self.random.chance(80),
        });
        if self.random.chance(65) {
            self.inbox(&event_id);
            if self.random.chance(8) {
                self.inbox(&event_id);
            }
        }
        event_id
    }

    fn inbox(&mut self, event_id: &str) {
        inbox_row(self.random, self.world, self.scope, event_id);
    }

    fn row(&mut self, kind: EffectKind, object: &str, amount_minor: i64, currency: &str, event_id: &str) {
        let amount_minor = match self.random.below(24) {
            0 => amount_minor * 100,
            1 => amount_minor * 10,
            2 => amount_minor + 1,
            3 => *self.random.pick(&AMOUNTS),
            _ => amount_minor,
        };
        let applied_at_us = self.time();
        let ids = if self.random.chance(10) { 8 } else { 1_000_000 };
        let effect_id = format!("row{}", self.random.below(ids));
        let other = format!("pi_{}", self.random.below(5));
        let row = LocalEffect {
            scope: self.scope.clone(),
            root_id: if self.random.chance(4) { other.clone() } else { self.root() },
            object_id: object.to_owned(),
            effect_id,
            kind,
            amount_minor,
            currency: if self.random.chance(6) { *self.random.pick(&CURRENCIES) } else { currency }
                .to_owned(),
            applied_at_us,
            event_id: event_id.to_owned(),
            corrects_effect_id: String::new(),
            in_window: WINDOW.contains(applied_at_us),
        };
        // A row of another payment has an object of that payment.
        let row = if row.root_id == self.root() { row } else { LocalEffect { object_id: other, ..row } };
        self.world.local_effects.push(row.clone());
        for _ in 0..*self.random.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2]) {
            self.undo(&row);
        }
    }

    fn undo(&mut self, row: &LocalEffect) {
        let applied_at_us = self.time();
        let is_whole = self.random.chance(80);
        self.world.local_effects.push(LocalEffect {
            effect_id: format!("undo{}", self.random.below(1_000_000)),
            amount_minor: if is_whole { -row.amount_minor } else { -*self.random.pick(&AMOUNTS) },
            applied_at_us,
            currency: if self.random.chance(3) { "eur".to_owned() } else { row.currency.clone() },
            event_id: if self.random.chance(50) { row.event_id.clone() } else { String::new() },
            corrects_effect_id: if self.random.chance(5) { "gone".into() } else { row.effect_id.clone() },
            in_window: WINDOW.contains(applied_at_us),
            ..row.clone()
        });
    }

    fn states(&mut self) {
        let mut said = Vec::new();
        for index in 0..*self.random.pick(&[0, 1, 1, 1, 2]) {
            let status = *self.random.pick(&Status::ALL);
            said.push(status);
            let at_us = self.time();
            self.world.provider_states.push(ProviderState {
                scope: self.scope.clone(),
                root_id: self.root(),
                object_id: format!("ch_{}{index}", self.number),
                status,
                refunded_minor: self.random.chance(50).then(|| *self.random.pick(&AMOUNTS)),
                authorized_minor: self.random.chance(50).then(|| *self.random.pick(&AMOUNTS)),
                at_us,
            });
        }
        for index in 0..*self.random.pick(&[0, 1, 1, 1, 2]) {
            let status = match said.iter().max() {
                Some(highest) if self.random.chance(40) => *highest,
                _ => *self.random.pick(&Status::ALL),
            };
            let updated_at_us = self.time();
            let repeated = self.random.chance(30);
            self.world.local_states.push(LocalState {
                scope: self.scope.clone(),
                root_id: self.root(),
                object_id: if index == 0 || repeated { self.root() } else { format!("ch_{}0", self.number) },
                status,
                refunded_minor: self.random.chance(50).then(|| *self.random.pick(&AMOUNTS)),
                updated_at_us,
                changed_by: if self.random.chance(15) { "operator".to_owned() } else { String::new() },
            });
        }
        for _ in 0..*self.random.pick(&[0, 0, 1, 2]) {
            let object = self.root();
            self.event(Tracks::State, &object);
        }
    }
}

pub(super) fn inbox_row(random: &mut Random, world: &mut World, scope: &Scope, event_id: &str) {
    world.inbox_events.push(InboxEvent {
        scope: scope.clone(),
        event_id: event_id.to_owned(),
        event_type: "some.type".to_owned(),
        received_at_us: random.between(1_000, 2_000),
        status: *random.pick(&InboxStatus::ALL),
        body_sha256: random.pick(&["", "aa", "aa", "bb"]).to_string(),
    });
}

/// Inbox rows and local rows that nothing at the provider stands behind.
fn add_strangers(random: &mut Random, world: &mut World, scope: &Scope) {
    for _ in 0..random.below(2) {
        let event_id = format!("evt_{}", random.below(30));
        inbox_row(random, world, scope, &event_id);
    }
    if random.chance(20) {
        let applied_at_us = random.between(0, 3_000);
        world.local_effects.push(LocalEffect {
            scope: scope.clone(),
            root_id: "ch_unknown".to_owned(),
            object_id: "ch_unknown".to_owned(),
            effect_id: format!("row{}", random.below(1_000_000)),
            kind: *random.pick(&EffectKind::ALL),
            amount_minor: *random.pick(&AMOUNTS),
            currency: random.pick(&CURRENCIES).to_string(),
            applied_at_us,
            event_id: format!("evt_{}", random.below(30)),
            corrects_effect_id: String::new(),
            in_window: WINDOW.contains(applied_at_us),
        });
    }
}
