//! A group: everything known of one payment (or payout) on all sides, and its units.
//!
//! A *unit* is one effect kind of one object: what the provider has of it against the local rows of
//! it. Local rows may name the payment instead of the part; [`Group::normalise`] settles that once,
//! so that every rule (and the specification in SQL) compares by equality only.

use super::{Unit, unit};
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
    /// Events of this root, and every event that a row of `local_effects` names, whatever its root.
    pub provider_events: Vec<ProviderEvent>,
    /// Inbox rows of those events.
    pub inbox_events: Vec<InboxEvent>,
    /// Effects of this root, each of them once.
    pub provider_effects: Vec<ProviderEffect>,
    /// Rows of this root, and rows of other roots that name an event of this root, with the rows there
    /// that share the id of one of those or undo it.
    pub local_effects: Vec<LocalEffect>,
    /// Status words of this root.
    pub provider_states: Vec<ProviderState>,
    /// Local status rows of this root.
    pub local_states: Vec<LocalState>,
    /// Notes on records of this root.
    pub notes: Vec<Note>,
    /// Whether what is wrong with its money or status is never corrected without a person.
    pub needs_person: bool,
    /// An invoice whose payments have statuses that do not make one: the status here is the highest.
    pub is_mixed: bool,
    /// An invoice of whose payments a finding explains a status that lags.
    pub is_explained: bool,
}

impl Group {
    /// Rewrites object ids so that a local row and an event name the very unit that they mean.
    ///
    /// A row or event that names the payment (rather than a part of it) means the only effect of that
    /// kind, where there is one; else all effects of that kind together, under the root's id. Where the
    /// books have such a row and the provider several effects, these are compared as one. Doing it twice
    /// changes nothing.
    pub fn normalise(&mut self, root_id: &str) {
        for kind in EffectKind::ALL {
            self.normalise_kind(root_id, kind);
        }
    }

    fn normalise_kind(&mut self, root_id: &str, kind: EffectKind) {
        let effects = || self.provider_effects.iter().filter(|effect| effect.kind == kind);
        let anchors: BTreeSet<String> = effects().map(|effect| effect.object_id.clone()).collect();
        let parts = &self.parts;
        let names_payment = |id: &str| !anchors.contains(id) && !parts.contains(id);
        let is_own = |row: &LocalEffect| row.kind == kind && row.root_id == root_id;
        let has_loose_row = self.local_effects.iter().any(|row| is_own(row) && names_payment(&row.object_id));
        let is_merged = anchors.len() > 1 && has_loose_row;
        let target = match (anchors.first(), anchors.len()) {
            (Some(only), 1) => only.clone(),
            _ => root_id.to_owned(),
        };
        let moves = |id: &str| (is_merged && anchors.contains(id)) || names_payment(id);
        for row in self.local_effects.iter_mut().filter(|row| is_own(row)) {
            if moves(&row.object_id) {
                row.object_id.clone_from(&target);
            }
        }
        let tracks = Tracks::Effect(kind);
        let own_events = self.provider_events.iter_mut().filter(|event| event.root_id == root_id);
        for event in own_events.filter(|event| event.tracks == tracks) {
            if moves(&event.object_id) {
                event.object_id.clone_from(&target);
            }
        }
        for effect in self.provider_effects.iter_mut().filter(|effect| is_merged && effect.kind == kind) {
            effect.object_id.clone_from(&target);
        }
    }

    /// Sorts every list, so that no output depends on the order of the input; facts without an amount
    /// that were seen twice are kept once.
    pub fn sort(&mut self) {
        self.provider_effects.sort_unstable();
        self.local_effects.sort_unstable();
        self.provider_events.sort_unstable();
        self.provider_events.dedup();
        self.inbox_events.sort_unstable();
        self.inbox_events.dedup();
        self.provider_states.sort_unstable();
        self.provider_states.dedup();
        self.local_states.sort_unstable();
        self.local_states.dedup();
        self.notes.sort_unstable();
        self.notes.dedup();
    }

    /// The units of a normalised group, by (object, kind).
    #[must_use]
    pub fn units(&self, scope: &Scope, root_id: &str, in_window: impl Fn(i64) -> bool) -> Vec<Unit> {
        unit::units(self, scope, root_id, in_window)
    }

    /// What the inbox says of each event: the most advanced row, and the last receipt of it (Unix µs).
    #[must_use]
    pub fn inbox(&self) -> BTreeMap<&str, (InboxStatus, i64)> {
        let mut inbox: BTreeMap<&str, (InboxStatus, i64)> = BTreeMap::new();
        for row in &self.inbox_events {
            let said = inbox.entry(&row.event_id).or_insert((row.status, row.received_at_us));
            *said = (*said).max((row.status, row.received_at_us));
        }
        inbox
    }

    /// The payment's status: the highest that any record says, with the time of that word.
    #[must_use]
    pub fn provider_status(&self) -> Option<(Status, i64)> {
        self.provider_states.iter().map(|state| (state.status, state.at_us)).max()
    }
}
