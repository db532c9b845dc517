//! A group: everything known of one payment (or payout) on all sides, and its units.
//!
//! A *unit* is one effect kind of one object: what the provider has of it against the local rows of
//! it. Local rows may name the payment instead of the part; [`Group::normalise`] settles that once,
//! so that every rule (and the specification in SQL) compares by equality only.

use crate::record::{
    EffectKind, InboxEvent, InboxStatus, LocalEffect, LocalState, Note, ProviderEffect, ProviderEvent,
    ProviderState, Scope, Status, Tracks,
};
use std::collections::{BTreeMap, BTreeSet};

/// Everything known of one root, over all time.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Ids that anchor effects of their own (refunds, disputes), effect or not.
    pub parts: BTreeSet<String>,
    /// Events of this root, and events of other roots that a local row of this root names.
    pub provider_events: Vec<ProviderEvent>,
    /// Inbox rows of those events.
    pub inbox_events: Vec<InboxEvent>,
    /// Effects of this root.
    pub provider_effects: Vec<ProviderEffect>,
    /// Rows of this root, and rows of other roots that name an event of this root.
    pub local_effects: Vec<LocalEffect>,
    /// Status words of this root.
    pub provider_states: Vec<ProviderState>,
    /// Local status rows of this root.
    pub local_states: Vec<LocalState>,
    /// Notes on records of this root.
    pub notes: Vec<Note>,
}

/// A local row after its corrections are netted into it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The row's id.
    pub effect_id: String,
    /// What is left of it, signed as it moves the balance.
    pub net_minor: i64,
    /// Currency.
    pub currency: String,
    /// When it was booked, Unix µs.
    pub applied_at_us: i64,
    /// The event that it names.
    pub event_id: String,
}

/// One event that announces a unit's effect.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The event.
    pub event: ProviderEvent,
    /// What the inbox says, and when it was received (Unix µs), where it has the event.
    pub inbox: Option<(InboxStatus, i64)>,
}

/// One effect kind of one object, both sides.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Scope.
    pub scope: Scope,
    /// Group.
    pub root_id: String,
    /// Anchor.
    pub object_id: String,
    /// Kind.
    pub kind: EffectKind,
    /// The provider's effects.
    pub provider: Vec<ProviderEffect>,
    /// Net local rows with something left, in booking order.
    pub rows: Vec<Row>,
    /// Events that announce it, by (creation, id).
    pub announcements: Vec<Announcement>,
    /// Rows that name one of these events but are booked on another root.
    pub booked_elsewhere: Vec<LocalEffect>,
    /// Per currency: the provider's and the local signed total inside the window.
    pub in_window: BTreeMap<String, (i64, i64)>,
    /// Most that may be captured, where the provider says.
    pub authorized_minor: Option<i64>,
    /// Whether any side of it lies in the window.
    pub touches_window: bool,
    /// Whether the provider has any record of the group.
    pub is_object_known: bool,
}

impl Unit {
    /// The provider's signed total, all of one currency.
    #[must_use]
    pub fn expected_minor(&self) -> i64 {
        self.provider.iter().map(|effect| effect.kind.sign() * effect.amount_minor).sum()
    }

    /// The local signed total over all currencies; meaningful where there is one.
    #[must_use]
    pub fn found_minor(&self) -> i64 {
        self.rows.iter().map(|row| row.net_minor).sum()
    }

    /// The provider's currency, else the rows'.
    #[must_use]
    pub fn currency(&self) -> &str {
        let of_rows = self.rows.first().map_or("", |row| row.currency.as_str());
        self.provider.first().map_or(of_rows, |effect| effect.currency.as_str())
    }

    /// When it happened at the provider, else when it was first booked, Unix µs.
    #[must_use]
    pub fn occurred_at_us(&self) -> i64 {
        let provider = self.provider.iter().map(|effect| effect.occurred_at_us).min();
        provider.or_else(|| self.rows.iter().map(|row| row.applied_at_us).min()).unwrap_or(0)
    }

    /// Per currency: `provider − local` inside the window, where it is not 0.
    #[must_use]
    pub fn explains(&self) -> Vec<(String, i64)> {
        self.in_window
            .iter()
            .map(|(currency, (provider, local))| (currency.clone(), provider - local))
            .filter(|(_, difference)| *difference != 0)
            .collect()
    }
}

impl Group {
    /// Rewrites object ids so that a local row and an event name the very unit that they mean.
    ///
    /// A row or event that names the payment (rather than a part of it) means: the only effect of
    /// that kind, where there is one; all effects of that kind together, under the root's id, where
    /// there are several. Doing it twice changes nothing.
    pub fn normalise(&mut self, root_id: &str) {
        for kind in EffectKind::ALL {
            let anchors: BTreeSet<String> = self
                .provider_effects
                .iter()
                .filter(|effect| effect.kind == kind)
                .map(|effect| effect.object_id.clone())
                .collect();
            let parts = &self.parts;
            let names_payment = |id: &str| !anchors.contains(id) && !parts.contains(id);
            let loose_rows = self
                .local_effects
                .iter()
                .any(|row| row.kind == kind && row.root_id == root_id && names_payment(&row.object_id));
            let target = match anchors.len() {
                0 => continue,
                1 => anchors.first().cloned().unwrap_or_default(),
                _ if loose_rows => root_id.to_owned(),
                _ => String::new(),
            };
            let merges = anchors.len() > 1;
            if merges && target.is_empty() {
                continue;
            }
            let moved = |id: &str| (merges && anchors.contains(id)) || names_payment(id);
            for row in self.local_effects.iter_mut().filter(|row| row.kind == kind && row.root_id == root_id)
            {
                if moved(&row.object_id) {
                    row.object_id.clone_from(&target);
                }
            }
            for event in self.provider_events.iter_mut().filter(|event| event.root_id == root_id) {
                if event.tracks == Tracks::Effect(kind) && moved(&event.object_id) {
                    event.object_id.clone_from(&target);
                }
            }
            if merges {
                for effect in self.provider_effects.iter_mut().filter(|effect| effect.kind == kind) {
                    effect.object_id.clone_from(&target);
                }
            }
        }
    }

    /// The units of a normalised group, by (object, kind).
    #[must_use]
    pub fn units(&self, scope: &Scope, root_id: &str, in_window: impl Fn(i64) -> bool) -> Vec<Unit> {
        let foreign: BTreeSet<(&str, Tracks)> = self
            .provider_events
            .iter()
            .filter(|event| event.root_id != root_id)
            .map(|event| (event.event_id.as_str(), event.tracks))
            .collect();
        let mut units = Units { group: self, scope, root_id, found: BTreeMap::new() };
        for effect in &self.provider_effects {
            let unit = units.of(&effect.object_id, effect.kind);
            if effect.in_window {
                unit.in_window.entry(effect.currency.clone()).or_default().0 +=
                    effect.kind.sign() * effect.amount_minor;
                unit.touches_window = true;
            }
            unit.provider.push(effect.clone());
        }
        let own_rows = self.local_effects.iter().filter(|row| {
            row.root_id == root_id && !foreign.contains(&(row.event_id.as_str(), Tracks::Effect(row.kind)))
        });
        for row in own_rows.clone() {
            let unit = units.of(&row.object_id, row.kind);
            if row.in_window {
                unit.in_window.entry(row.currency.clone()).or_default().1 +=
                    row.kind.sign() * row.amount_minor;
                unit.touches_window = true;
            }
        }
        for ((object_id, kind), rows) in net_rows(own_rows) {
            units.of(&object_id, kind).rows = rows;
        }
        for event in self.provider_events.iter().filter(|event| event.root_id == root_id) {
            let Tracks::Effect(kind) = event.tracks else { continue };
            let unit = units.of(&event.object_id, kind);
            unit.touches_window |= in_window(event.created_us);
            unit.announcements
                .push(Announcement { event: event.clone(), inbox: self.inbox_of(&event.event_id) });
        }
        let authorized = self.provider_states.iter().filter_map(|state| state.authorized_minor).max();
        let mut units: Vec<Unit> = units.found.into_values().collect();
        for unit in &mut units {
            unit.authorized_minor = authorized.filter(|_| unit.kind == EffectKind::Credit);
            unit.announcements.sort_by(|a, b| {
                (a.event.created_us, &a.event.event_id).cmp(&(b.event.created_us, &b.event.event_id))
            });
            self.attach_rows_booked_elsewhere(unit);
        }
        units
    }

    fn is_known(&self, root_id: &str) -> bool {
        let has_own_event = self.provider_events.iter().any(|event| event.root_id == root_id);
        has_own_event || !self.provider_effects.is_empty() || !self.provider_states.is_empty()
    }

    fn attach_rows_booked_elsewhere(&self, unit: &mut Unit) {
        let names_ours =
            |row: &&LocalEffect| unit.announcements.iter().any(|said| said.event.event_id == row.event_id);
        let elsewhere: Vec<LocalEffect> = self
            .local_effects
            .iter()
            .filter(|row| row.root_id != unit.root_id && row.kind == unit.kind)
            .filter(names_ours)
            .cloned()
            .collect();
        unit.booked_elsewhere = elsewhere;
    }

    /// What the inbox says of an event: the most advanced row, and the first receipt.
    #[must_use]
    pub fn inbox_of(&self, event_id: &str) -> Option<(InboxStatus, i64)> {
        let rows = self.inbox_events.iter().filter(|row| row.event_id == event_id);
        rows.map(|row| (row.status, row.received_at_us)).max()
    }

    /// The payment's status: the highest that any record says, with the time of that word.
    #[must_use]
    pub fn provider_status(&self) -> Option<(Status, i64)> {
        self.provider_states.iter().map(|state| (state.status, state.at_us)).max()
    }
}

/// The units of a group as they are found.
struct Units<'a> {
    group: &'a Group,
    scope: &'a Scope,
    root_id: &'a str,
    found: BTreeMap<(String, EffectKind), Unit>,
}

impl Units<'_> {
    fn of(&mut self, object_id: &str, kind: EffectKind) -> &mut Unit {
        self.found.entry((object_id.to_owned(), kind)).or_insert_with(|| Unit {
            scope: self.scope.clone(),
            root_id: self.root_id.to_owned(),
            object_id: object_id.to_owned(),
            kind,
            provider: Vec::new(),
            rows: Vec::new(),
            announcements: Vec::new(),
            booked_elsewhere: Vec::new(),
            in_window: BTreeMap::new(),
            authorized_minor: None,
            touches_window: false,
            is_object_known: self.group.is_known(self.root_id),
        })
    }
}

/// Nets every row with the rows that correct it; rows with nothing left are dropped.
fn net_rows<'a>(rows: impl Iterator<Item = &'a LocalEffect>) -> BTreeMap<(String, EffectKind), Vec<Row>> {
    let mut by_id: BTreeMap<(String, EffectKind), BTreeMap<&str, Row>> = BTreeMap::new();
    let mut corrections: Vec<&LocalEffect> = Vec::new();
    for row in rows {
        if !row.corrects_effect_id.is_empty() {
            corrections.push(row);
            continue;
        }
        let unit = by_id.entry((row.object_id.clone(), row.kind)).or_default();
        unit.entry(&row.effect_id).or_insert_with(|| net_row(row));
    }
    for correction in corrections {
        let unit = by_id.entry((correction.object_id.clone(), correction.kind)).or_default();
        match unit.get_mut(correction.corrects_effect_id.as_str()) {
            Some(corrected) if corrected.currency == correction.currency => {
                corrected.net_minor += correction.kind.sign() * correction.amount_minor;
            }
            _ => {
                unit.insert(&correction.effect_id, net_row(correction));
            }
        }
    }
    by_id
        .into_iter()
        .map(|(key, rows)| {
            let mut rows: Vec<Row> = rows.into_values().filter(|row| row.net_minor != 0).collect();
            rows.sort_by(|a, b| (a.applied_at_us, &a.effect_id).cmp(&(b.applied_at_us, &b.effect_id)));
            (key, rows)
        })
        .collect()
}

fn net_row(row: &LocalEffect) -> Row {
    Row {
        effect_id: row.effect_id.clone(),
        net_minor: row.kind.sign() * row.amount_minor,
        currency: row.currency.clone(),
        applied_at_us: row.applied_at_us,
        event_id: row.event_id.clone(),
    }
}
