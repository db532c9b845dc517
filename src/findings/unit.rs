//! A unit: one effect kind of one object, what the provider has of it against what the books have.
//!
//! The one thing to get right: a local row counts for exactly one unit. A row that names the event of
//! another payment counts there (and is misattributed), and the rows that undo it follow it.

use super::Group;
use crate::record::{
    EffectKind, InboxStatus, LocalEffect, ProviderEffect, ProviderEvent, Scope, Status, Tracks,
};
use std::collections::{BTreeMap, BTreeSet};

/// A local row after its corrections are netted into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row's id; a team's statement may repeat it.
    pub effect_id: String,
    /// What was booked, signed as it moves the balance.
    pub booked_minor: i64,
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
    /// Net local rows with something left, in currencies with something left, in booking order.
    pub rows: Vec<Row>,
    /// Rows of the unit that are not corrections: how many lines the books have of it.
    pub lines: usize,
    /// Time and id of the row that was booked first, and of the one that was booked last.
    pub booked: Option<[(i64, String); 2]>,
    /// Per currency: the provider's and the local signed total over all time, where one is not 0.
    pub totals: BTreeMap<String, (i64, i64)>,
    /// Events that announce it, by (creation, id).
    pub announcements: Vec<Announcement>,
    /// Rows that name one of these events and are booked on another root, with what undoes them.
    pub elsewhere: Vec<LocalEffect>,
    /// Per currency: the signed total of the rows that are booked elsewhere, where it is not 0.
    pub elsewhere_totals: BTreeMap<String, i64>,
    /// Per currency: the provider's and the local signed total inside the window, rows that are booked
    /// elsewhere included.
    pub in_window: BTreeMap<String, (i64, i64)>,
    /// Most that may be captured, where the provider says.
    pub authorized_minor: Option<i64>,
    /// Whether any side of it lies in the window.
    pub touches_window: bool,
    /// The latest movement or booking of it inside the window, Unix µs.
    pub judged_at_us: Option<i64>,
    /// Whether the provider has any record of the group.
    pub is_object_known: bool,
    /// The payment's status at the provider, where a record says one.
    pub provider_status: Option<Status>,
}

impl Unit {
    /// Whether money moved at the provider.
    #[must_use]
    pub fn has_provider(&self) -> bool {
        self.totals.values().any(|(provider, _)| *provider != 0)
    }

    /// Whether the books have anything left of it.
    #[must_use]
    pub fn has_local(&self) -> bool {
        self.totals.values().any(|(_, local)| *local != 0)
    }

    /// Whether both sides' totals over all time are the same in every currency.
    #[must_use]
    pub fn is_agreed(&self) -> bool {
        self.totals.values().all(|(provider, local)| provider == local)
    }

    /// The provider's signed total in the unit's currency.
    #[must_use]
    pub fn expected_minor(&self) -> i64 {
        self.totals.get(self.currency()).map_or(0, |(provider, _)| *provider)
    }

    /// The local signed total in the unit's currency.
    #[must_use]
    pub fn found_minor(&self) -> i64 {
        self.totals.get(self.currency()).map_or(0, |(_, local)| *local)
    }

    /// The provider's currency, else the rows', else that of the rows booked elsewhere; the first in
    /// alphabetical order where there are several.
    #[must_use]
    pub fn currency(&self) -> &str {
        let of_provider = self.totals.iter().find(|(_, (provider, _))| *provider != 0);
        let of_rows = || self.totals.keys().next();
        of_provider
            .map(|(currency, _)| currency)
            .or_else(of_rows)
            .or_else(|| self.elsewhere_totals.keys().next())
            .map_or("", String::as_str)
    }

    /// When it happened at the provider, else when it was first booked, Unix µs.
    #[must_use]
    pub fn occurred_at_us(&self) -> i64 {
        let provider = self.provider.iter().map(|effect| effect.occurred_at_us).min();
        let booked = || self.booked.as_ref().map(|[(first_us, _), _]| *first_us);
        let elsewhere = || self.elsewhere.iter().map(|row| row.applied_at_us).min();
        provider.or_else(booked).or_else(elsewhere).unwrap_or(0)
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

/// What names a local row: root, kind, row id. A correction is named by the row that it undoes.
type RowKey<'a> = (&'a str, EffectKind, &'a str);

fn key_of(row: &LocalEffect) -> RowKey<'_> {
    let names = if row.corrects_effect_id.is_empty() { &row.effect_id } else { &row.corrects_effect_id };
    (&row.root_id, row.kind, names)
}

/// Rows that name an event of another payment and none of their own, with the (root, object) that the
/// event belongs to; the first one where there are several.
fn astray_rows(group: &Group) -> BTreeMap<RowKey<'_>, (&str, &str)> {
    let mut announced: BTreeMap<(&str, EffectKind), BTreeSet<(&str, &str)>> = BTreeMap::new();
    for event in &group.provider_events {
        if let Tracks::Effect(kind) = event.tracks {
            announced.entry((&event.event_id, kind)).or_default().insert((&event.root_id, &event.object_id));
        }
    }
    let mut homes: BTreeMap<RowKey<'_>, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for row in group.local_effects.iter().filter(|row| row.corrects_effect_id.is_empty()) {
        if let Some(found) = announced.get(&(row.event_id.as_str(), row.kind)) {
            homes.entry(key_of(row)).or_default().extend(found);
        }
    }
    homes
        .into_iter()
        .filter(|(key, homes)| homes.iter().all(|(root_id, _)| *root_id != key.0))
        .filter_map(|(key, homes)| homes.first().map(|home| (key, *home)))
        .collect()
}

/// The units of a normalised group, by (object, kind).
pub(super) fn units(
    group: &Group,
    scope: &Scope,
    root_id: &str,
    in_window: impl Fn(i64) -> bool,
) -> Vec<Unit> {
    let has_own_event = group.provider_events.iter().any(|event| event.root_id == root_id);
    let is_known = has_own_event || !group.provider_effects.is_empty() || !group.provider_states.is_empty();
    let authorized = group.provider_states.iter().filter_map(|state| state.authorized_minor).max();
    let status = group.provider_status().map(|(status, _)| status);
    let mut units = Units { scope, root_id, is_known, authorized, status, found: BTreeMap::new() };
    for effect in &group.provider_effects {
        units.of(&effect.object_id, effect.kind).add_provider(effect);
    }
    let astray = astray_rows(group);
    let mut own: BTreeMap<(&str, EffectKind), Vec<&LocalEffect>> = BTreeMap::new();
    for row in &group.local_effects {
        match astray.get(&key_of(row)) {
            Some((home, object_id)) if *home == root_id => {
                units.of(object_id, row.kind).add_elsewhere(row);
            }
            None if row.root_id == root_id => {
                units.of(&row.object_id, row.kind).add_local(row);
                own.entry((&row.object_id, row.kind)).or_default().push(row);
            }
            _ => {}
        }
    }
    for ((object_id, kind), rows) in own {
        units.of(object_id, kind).rows = net_rows(&rows);
    }
    let inbox = group.inbox();
    for event in group.provider_events.iter().filter(|event| event.root_id == root_id) {
        let Tracks::Effect(kind) = event.tracks else { continue };
        let unit = units.of(&event.object_id, kind);
        unit.touches_window |= in_window(event.created_us);
        let inbox = inbox.get(event.event_id.as_str()).copied();
        unit.announcements.push(Announcement { event: event.clone(), inbox });
    }
    let mut units: Vec<Unit> = units.found.into_values().collect();
    units.iter_mut().for_each(Unit::finish);
    units
}

/// The units of a group as they are found.
struct Units<'a> {
    scope: &'a Scope,
    root_id: &'a str,
    is_known: bool,
    authorized: Option<i64>,
    status: Option<Status>,
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
            lines: 0,
            booked: None,
            totals: BTreeMap::new(),
            announcements: Vec::new(),
            elsewhere: Vec::new(),
            elsewhere_totals: BTreeMap::new(),
            in_window: BTreeMap::new(),
            authorized_minor: self.authorized.filter(|_| kind == EffectKind::Credit),
            touches_window: false,
            judged_at_us: None,
            is_object_known: self.is_known,
            provider_status: self.status,
        })
    }
}

impl Unit {
    fn add_provider(&mut self, effect: &ProviderEffect) {
        let minor = effect.kind.sign() * effect.amount_minor;
        self.totals.entry(effect.currency.clone()).or_default().0 += minor;
        if effect.in_window {
            self.in_window.entry(effect.currency.clone()).or_default().0 += minor;
            self.touches_window = true;
            self.judged_at_us = self.judged_at_us.max(Some(effect.occurred_at_us));
        }
        self.provider.push(effect.clone());
    }

    fn add_local(&mut self, row: &LocalEffect) {
        let minor = row.kind.sign() * row.amount_minor;
        self.totals.entry(row.currency.clone()).or_default().1 += minor;
        self.lines += usize::from(row.corrects_effect_id.is_empty());
        let this = (row.applied_at_us, row.effect_id.clone());
        self.booked = Some(match self.booked.take() {
            Some([first, last]) => [first.min(this.clone()), last.max(this)],
            None => [this.clone(), this],
        });
        self.add_in_window(row, minor);
    }

    fn add_elsewhere(&mut self, row: &LocalEffect) {
        let minor = row.kind.sign() * row.amount_minor;
        *self.elsewhere_totals.entry(row.currency.clone()).or_default() += minor;
        self.add_in_window(row, minor);
        self.elsewhere.push(row.clone());
    }

    fn add_in_window(&mut self, row: &LocalEffect, minor: i64) {
        if row.in_window {
            self.in_window.entry(row.currency.clone()).or_default().1 += minor;
            self.touches_window = true;
            self.judged_at_us = self.judged_at_us.max(Some(row.applied_at_us));
        }
    }

    fn finish(&mut self) {
        self.totals.retain(|_, (provider, local)| *provider != 0 || *local != 0);
        self.elsewhere_totals.retain(|_, minor| *minor != 0);
        self.rows.retain(|row| self.totals.contains_key(&row.currency));
        self.announcements.sort_by(|a, b| {
            (a.event.created_us, &a.event.event_id).cmp(&(b.event.created_us, &b.event.event_id))
        });
    }
}

/// Nets every row with the rows that undo it; rows with nothing left are dropped. Where a row id is
/// repeated the correction is of the latest, so that the earliest is kept.
fn net_rows(rows: &[&LocalEffect]) -> Vec<Row> {
    let (originals, corrections): (Vec<&LocalEffect>, Vec<&LocalEffect>) =
        rows.iter().partition(|row| row.corrects_effect_id.is_empty());
    let mut net: Vec<Row> = originals.into_iter().map(net_row).collect();
    net.sort_by(|a, b| booking_order(a).cmp(&booking_order(b)));
    let latest: BTreeMap<(String, String), usize> = net
        .iter()
        .enumerate()
        .map(|(index, row)| ((row.effect_id.clone(), row.currency.clone()), index))
        .collect();
    for correction in corrections {
        let key = (correction.corrects_effect_id.clone(), correction.currency.clone());
        match latest.get(&key) {
            Some(index) => net[*index].net_minor += correction.kind.sign() * correction.amount_minor,
            None => net.push(net_row(correction)),
        }
    }
    net.retain(|row| row.net_minor != 0);
    net.sort_by(|a, b| booking_order(a).cmp(&booking_order(b)));
    net
}

fn booking_order(row: &Row) -> (i64, &str, i64, i64) {
    (row.applied_at_us, &row.effect_id, row.net_minor, row.booked_minor)
}

fn net_row(row: &LocalEffect) -> Row {
    let minor = row.kind.sign() * row.amount_minor;
    Row {
        effect_id: row.effect_id.clone(),
        booked_minor: minor,
        net_minor: minor,
        currency: row.currency.clone(),
        applied_at_us: row.applied_at_us,
        event_id: row.event_id.clone(),
    }
}
