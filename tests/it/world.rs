//! A small world of facts, what the engine's rules say of it, and the six relations that the rules in
//! SQL read. The one thing to get right: a group holds what the comparison promises to load (see
//! `Group`), and nothing else.

use recon::findings::{Context, Finding, Group, Intents, Judgement, Kind, Unread, judge, unknown_event};
use recon::record::{
    EffectKind, InboxEvent, LocalEffect, LocalState, Note, ProviderEffect, ProviderEvent, ProviderState,
    Scope, Status, Window,
};
use std::collections::{BTreeMap, BTreeSet};

pub const WINDOW: Window = Window { from_us: 1_000, until_us: 2_000 };

pub const CONTEXT: Context = Context {
    window: WINDOW,
    pending_since_us: i64::MAX,
    has_event_leg: true,
    provider_was_asked: true,
    unread: Unread::NONE,
};

/// Facts as they are gathered: object ids may be any alias.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub provider_events: Vec<ProviderEvent>,
    pub inbox_events: Vec<InboxEvent>,
    pub provider_effects: Vec<ProviderEffect>,
    pub local_effects: Vec<LocalEffect>,
    pub provider_states: Vec<ProviderState>,
    pub local_states: Vec<LocalState>,
    pub notes: Vec<Note>,
    /// Ids that anchor effects of their own, per group.
    pub parts: BTreeMap<(Scope, String), BTreeSet<String>>,
}

pub type Key = (Scope, String);

/// The columns that every rule in SQL returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    pub kind: String,
    pub cause: String,
    pub provider: String,
    pub account: String,
    pub mode: String,
    pub object_id: String,
    pub effect: String,
    pub currency: String,
    pub expected_minor: Option<i64>,
    pub found_minor: Option<i64>,
    pub expected_state: String,
    pub found_state: String,
}

impl From<&Finding> for Line {
    fn from(finding: &Finding) -> Self {
        let word = |status: Option<Status>| status.map_or("", Status::as_str).to_owned();
        Self {
            kind: finding.kind.to_string(),
            cause: finding.cause.clone(),
            provider: finding.scope.provider.to_string(),
            account: finding.scope.account.to_string(),
            mode: finding.scope.mode.to_string(),
            object_id: finding.object_id.clone(),
            effect: finding.effect.map_or("", EffectKind::as_str).to_owned(),
            currency: finding.currency.clone(),
            expected_minor: finding.expected_minor,
            found_minor: finding.found_minor,
            expected_state: word(finding.expected_state),
            found_state: word(finding.found_state),
        }
    }
}

impl World {
    /// Every group, as the comparison hands it over.
    pub fn groups(&self) -> BTreeMap<Key, Group> {
        let key = |scope: &Scope, root_id: &str| (scope.clone(), root_id.to_owned());
        let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
        let mut roots_of_event: BTreeMap<Key, BTreeSet<String>> = BTreeMap::new();
        let mut events: BTreeMap<Key, Vec<&ProviderEvent>> = BTreeMap::new();
        for event in &self.provider_events {
            let group = groups.entry(key(&event.scope, &event.root_id)).or_default();
            group.provider_events.push(event.clone());
            let roots = roots_of_event.entry(key(&event.scope, &event.event_id)).or_default();
            roots.insert(event.root_id.clone());
            events.entry(key(&event.scope, &event.event_id)).or_default().push(event);
        }
        for effect in &self.provider_effects {
            groups
                .entry(key(&effect.scope, &effect.root_id))
                .or_default()
                .provider_effects
                .push(effect.clone());
        }
        for state in &self.provider_states {
            groups.entry(key(&state.scope, &state.root_id)).or_default().provider_states.push(state.clone());
        }
        for state in &self.local_states {
            groups.entry(key(&state.scope, &state.root_id)).or_default().local_states.push(state.clone());
        }
        for note in &self.notes {
            groups.entry(key(&note.scope, &note.root_id)).or_default().notes.push(note.clone());
        }
        // A row is with its own root and with every root whose event it, a copy of it, or the row that it
        // undoes names.
        let identity = |row: &LocalEffect| {
            let id = if row.corrects_effect_id.is_empty() { &row.effect_id } else { &row.corrects_effect_id };
            (row.scope.clone(), row.root_id.clone(), row.kind, id.clone())
        };
        let mut named: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for row in self.local_effects.iter().filter(|row| row.corrects_effect_id.is_empty()) {
            if let Some(roots) = roots_of_event.get(&key(&row.scope, &row.event_id)) {
                named.entry(identity(row)).or_default().extend(roots.iter().cloned());
            }
        }
        for row in &self.local_effects {
            let mut roots = named.get(&identity(row)).cloned().unwrap_or_default();
            roots.insert(row.root_id.clone());
            for root_id in roots {
                groups.entry(key(&row.scope, &root_id)).or_default().local_effects.push(row.clone());
            }
        }
        let mut inbox: BTreeMap<Key, Vec<&InboxEvent>> = BTreeMap::new();
        for row in &self.inbox_events {
            inbox.entry(key(&row.scope, &row.event_id)).or_default().push(row);
        }
        for ((scope, root_id), group) in &mut groups {
            let called: BTreeSet<&str> =
                group.local_effects.iter().map(|row| row.event_id.as_str()).collect();
            let called: Vec<&str> = called.into_iter().collect();
            let foreign = called.iter().filter_map(|id| events.get(&key(scope, id))).flatten();
            group
                .provider_events
                .extend(foreign.filter(|event| event.root_id != *root_id).map(|event| (*event).clone()));
            let ids: BTreeSet<String> =
                group.provider_events.iter().map(|event| event.event_id.clone()).collect();
            let held = ids.iter().filter_map(|id| inbox.get(&key(scope, id))).flatten();
            group.inbox_events = held.map(|row| (*row).clone()).collect();
            group.parts = self.parts.get(&key(scope, root_id)).cloned().unwrap_or_default();
        }
        groups
    }

    /// What the engine's rules say: of each group, of events that the provider does not know, of intents.
    pub fn judge(&self, context: &Context) -> (Vec<(Key, Judgement)>, Vec<Finding>) {
        let groups = self.groups();
        let mut intents = Intents::default();
        let mut judged = Vec::new();
        for ((scope, root_id), group) in groups {
            let mut normal = group.clone();
            normal.normalise(&root_id);
            intents.add(&scope, &root_id, &normal);
            judged.push(((scope.clone(), root_id.clone()), judge(context, &scope, &root_id, group)));
        }
        let mut findings = intents.findings();
        let known: BTreeSet<(&Scope, &str)> =
            self.provider_events.iter().map(|event| (&event.scope, event.event_id.as_str())).collect();
        let strange =
            self.inbox_events.iter().filter(|row| !known.contains(&(&row.scope, row.event_id.as_str())));
        let strange: BTreeMap<_, _> = strange.map(|row| ((&row.scope, &row.event_id), row)).collect();
        findings.extend(strange.into_values().map(unknown_event));
        (judged, findings)
    }

    /// Everything found, as the rules in SQL say it.
    pub fn lines(&self) -> BTreeSet<Line> {
        let (judged, findings) = self.judge(&CONTEXT);
        let of_groups = judged.iter().flat_map(|(_, judgement)| &judgement.findings);
        of_groups.chain(&findings).filter(|finding| is_in_sql(finding.kind)).map(Line::from).collect()
    }

    /// The facts as the six relations have them: object ids name the unit that they mean, and of the local
    /// statuses only those that touch the window.
    pub fn normalised(&self) -> Self {
        let mut world = Self { inbox_events: self.inbox_events.clone(), ..Self::default() };
        for ((_, root_id), mut group) in self.groups() {
            group.normalise(&root_id);
            let has_own_event = group.provider_events.iter().any(|event| event.root_id == root_id);
            let touches =
                has_own_event || group.provider_states.iter().any(|said| WINDOW.contains(said.at_us));
            let events = group.provider_events.into_iter().filter(|event| event.root_id == root_id);
            world.provider_events.extend(events);
            world.local_effects.extend(group.local_effects.into_iter().filter(|row| row.root_id == root_id));
            world.provider_effects.extend(group.provider_effects);
            world.provider_states.extend(group.provider_states);
            let states = group.local_states.into_iter();
            world.local_states.extend(states.filter(|row| touches || WINDOW.contains(row.updated_at_us)));
        }
        world
    }

    pub fn extend(&mut self, other: Self) {
        self.provider_events.extend(other.provider_events);
        self.inbox_events.extend(other.inbox_events);
        self.provider_effects.extend(other.provider_effects);
        self.local_effects.extend(other.local_effects);
        self.provider_states.extend(other.provider_states);
        self.local_states.extend(other.local_states);
        self.notes.extend(other.notes);
        self.parts.extend(other.parts);
    }
}

/// Whether a kind can be said as a comparison of sets.
pub fn is_in_sql(kind: Kind) -> bool {
    RULES.iter().any(|(name, _)| *name == kind.as_str())
}

macro_rules! rule {
    ($kind:literal) => {
        ($kind, include_str!(concat!("../../queries/rules/", $kind, ".sql")))
    };
}

/// The specification: kind and statement.
pub const RULES: [(&str, &str); 14] = [
    rule!("missed_event"),
    rule!("unapplied_event"),
    rule!("missing_effect"),
    rule!("duplicate_effect"),
    rule!("duplicate_charge"),
    rule!("misattributed_effect"),
    rule!("orphan_effect"),
    rule!("amount_mismatch"),
    rule!("currency_mismatch"),
    rule!("stale_state"),
    rule!("forbidden_transition"),
    rule!("unknown_event"),
    rule!("conflicting_event"),
    rule!("timing_difference"),
];

macro_rules! view {
    ($name:literal) => {
        include_str!(concat!("../../queries/rules/views/", $name, ".sql"))
    };
}

/// What the rules share, in the order in which it is made.
pub const VIEWS: [&str; 15] = [
    view!("01_status_rank"),
    view!("02_placed_row"),
    view!("03_amount"),
    view!("04_judged_amount"),
    view!("05_unit"),
    view!("06_differing_row"),
    view!("07_provider_status"),
    view!("08_differing_unit"),
    view!("09_heard_event"),
    view!("10_delivery"),
    view!("11_status_delivery"),
    view!("12_explained_payment"),
    view!("13_compared_status"),
    view!("14_lagging_status"),
    view!("15_unexplained_status"),
];
