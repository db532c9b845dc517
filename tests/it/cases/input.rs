//! A case's facts in short form. Times are those of a window that begins at 1000 and ends before 2000; a fact
//! without a time is at 1500. A fact without a root is of payment `pi_1`, without a currency in `usd`.

use crate::world::{WINDOW, World};
use recon::findings::Stray;
use recon::record::{
    EffectKind, InboxEvent, InboxStatus, LocalEffect, LocalState, Note, NoteKind, ProviderEffect,
    ProviderEvent, ProviderState, Scope, Status, Tracks,
};
use serde::Deserialize;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What the case shows, for whoever reads it.
    pub about: String,
    /// Refunds and disputes of `pi_1`, with money or without.
    #[serde(default)]
    parts: Vec<String>,
    #[serde(default)]
    provider_events: Vec<EventRow>,
    #[serde(default)]
    inbox_events: Vec<InboxRow>,
    #[serde(default)]
    provider_effects: Vec<EffectRow>,
    #[serde(default)]
    local_effects: Vec<LocalRow>,
    #[serde(default)]
    provider_states: Vec<ProviderStateRow>,
    #[serde(default)]
    local_states: Vec<LocalStateRow>,
    #[serde(default)]
    notes: Vec<NoteRow>,
    /// Ranges that were not seen.
    #[serde(default)]
    gaps: Vec<GapRow>,
    /// Local rows of scopes that are not configured.
    #[serde(default)]
    strays: Vec<StrayRow>,
    /// The window is beyond the provider's memory of events: only objects can be compared.
    #[serde(default)]
    pub without_events: bool,
    /// An inbox row received after this and not processed yet is in flight.
    pub pending_since: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventRow {
    #[serde(default)]
    account: String,
    #[serde(default = "live")]
    mode: String,
    #[serde(default = "first_payment")]
    root: String,
    id: String,
    r#type: String,
    /// An effect kind, `state`, or empty.
    #[serde(default)]
    tracks: String,
    #[serde(default)]
    object: String,
    #[serde(default = "noon")]
    at: i64,
    #[serde(default = "yes")]
    wanted: bool,
    #[serde(default = "yes")]
    settled: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboxRow {
    #[serde(default)]
    account: String,
    #[serde(default = "live")]
    mode: String,
    id: String,
    #[serde(default)]
    r#type: String,
    #[serde(default = "noon")]
    at: i64,
    status: String,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EffectRow {
    #[serde(default)]
    account: String,
    #[serde(default = "live")]
    mode: String,
    #[serde(default = "first_payment")]
    root: String,
    kind: String,
    object: String,
    amount: i64,
    #[serde(default = "usd")]
    currency: String,
    #[serde(default = "noon")]
    at: i64,
    #[serde(default)]
    intent: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalRow {
    #[serde(default)]
    account: String,
    #[serde(default = "live")]
    mode: String,
    #[serde(default = "first_payment")]
    root: String,
    id: String,
    kind: String,
    object: String,
    amount: i64,
    #[serde(default = "usd")]
    currency: String,
    #[serde(default = "noon")]
    at: i64,
    #[serde(default)]
    event: String,
    #[serde(default)]
    corrects: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderStateRow {
    #[serde(default = "first_payment")]
    root: String,
    #[serde(default = "first_payment")]
    object: String,
    status: String,
    refunded: Option<i64>,
    authorized: Option<i64>,
    #[serde(default = "noon")]
    at: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalStateRow {
    #[serde(default = "first_payment")]
    root: String,
    #[serde(default = "first_payment")]
    object: String,
    status: String,
    refunded: Option<i64>,
    #[serde(default)]
    by: String,
    #[serde(default = "noon")]
    at: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteRow {
    kind: String,
    cause: String,
    object: String,
    #[serde(default)]
    events: Vec<String>,
    text: String,
    #[serde(default = "noon")]
    at: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GapRow {
    stream: String,
    from: i64,
    until: i64,
    cause: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrayRow {
    #[serde(default)]
    account: String,
    mode: String,
    object: String,
    #[serde(default)]
    event: String,
    #[serde(default)]
    row: String,
}

const fn noon() -> i64 {
    1_500
}

const fn yes() -> bool {
    true
}

fn live() -> String {
    "live".to_owned()
}

fn usd() -> String {
    "usd".to_owned()
}

fn first_payment() -> String {
    "pi_1".to_owned()
}

fn scope(account: &str, mode: &str) -> Scope {
    Scope::new("stripe", account, mode)
}

#[track_caller]
fn word<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no word of the contract"))
}

impl Input {
    pub fn world(&self) -> World {
        let mut world = World {
            provider_events: self.provider_events.iter().map(EventRow::fact).collect(),
            inbox_events: self.inbox_events.iter().map(InboxRow::fact).collect(),
            provider_effects: self.provider_effects.iter().map(EffectRow::fact).collect(),
            local_effects: self.local_effects.iter().map(LocalRow::fact).collect(),
            provider_states: self.provider_states.iter().map(ProviderStateRow::fact).collect(),
            local_states: self.local_states.iter().map(LocalStateRow::fact).collect(),
            notes: self.notes.iter().map(NoteRow::fact).collect(),
            ..World::default()
        };
        let parts = self.parts.iter().cloned().collect();
        world.parts.insert((scope("", "live"), first_payment()), parts);
        world
    }

    pub fn gaps(&self) -> Vec<(Scope, String, i64, i64, String)> {
        let gap =
            |row: &GapRow| (scope("", "live"), row.stream.clone(), row.from, row.until, row.cause.clone());
        self.gaps.iter().map(gap).collect()
    }

    pub fn strays(&self) -> Vec<Stray> {
        let stray = |row: &StrayRow| Stray {
            scope: scope(&row.account, &row.mode),
            object_id: row.object.clone(),
            event_id: row.event.clone(),
            effect_id: row.row.clone(),
            at_us: noon(),
        };
        self.strays.iter().map(stray).collect()
    }
}

impl EventRow {
    fn fact(&self) -> ProviderEvent {
        assert!(WINDOW.contains(self.at), "event {} lies outside of the window", self.id);
        ProviderEvent {
            scope: scope(&self.account, &self.mode),
            root_id: self.root.clone(),
            object_id: self.object.clone(),
            event_id: self.id.clone(),
            event_type: self.r#type.clone(),
            tracks: match &*self.tracks {
                "" => Tracks::Nothing,
                "state" => Tracks::State,
                kind => Tracks::Effect(word(kind)),
            },
            created_us: self.at,
            wanted: self.wanted,
            settled: self.settled,
        }
    }
}

impl InboxRow {
    fn fact(&self) -> InboxEvent {
        InboxEvent {
            scope: scope(&self.account, &self.mode),
            event_id: self.id.clone(),
            event_type: self.r#type.clone(),
            received_at_us: self.at,
            status: word::<InboxStatus>(&self.status),
            body_sha256: self.body.clone(),
        }
    }
}

impl EffectRow {
    fn fact(&self) -> ProviderEffect {
        ProviderEffect {
            scope: scope(&self.account, &self.mode),
            root_id: self.root.clone(),
            object_id: self.object.clone(),
            kind: word::<EffectKind>(&self.kind),
            amount_minor: self.amount,
            currency: self.currency.clone(),
            occurred_at_us: self.at,
            intent: self.intent.clone(),
            in_window: WINDOW.contains(self.at),
        }
    }
}

impl LocalRow {
    fn fact(&self) -> LocalEffect {
        LocalEffect {
            scope: scope(&self.account, &self.mode),
            root_id: self.root.clone(),
            object_id: self.object.clone(),
            effect_id: self.id.clone(),
            kind: word::<EffectKind>(&self.kind),
            amount_minor: self.amount,
            currency: self.currency.clone(),
            applied_at_us: self.at,
            event_id: self.event.clone(),
            corrects_effect_id: self.corrects.clone(),
            in_window: WINDOW.contains(self.at),
        }
    }
}

impl ProviderStateRow {
    fn fact(&self) -> ProviderState {
        ProviderState {
            scope: scope("", "live"),
            root_id: self.root.clone(),
            object_id: self.object.clone(),
            status: word::<Status>(&self.status),
            refunded_minor: self.refunded,
            authorized_minor: self.authorized,
            at_us: self.at,
        }
    }
}

impl LocalStateRow {
    fn fact(&self) -> LocalState {
        LocalState {
            scope: scope("", "live"),
            root_id: self.root.clone(),
            object_id: self.object.clone(),
            status: word::<Status>(&self.status),
            refunded_minor: self.refunded,
            updated_at_us: self.at,
            changed_by: self.by.clone(),
        }
    }
}

impl NoteRow {
    fn fact(&self) -> Note {
        Note {
            scope: scope("", "live"),
            root_id: first_payment(),
            object_id: self.object.clone(),
            event_ids: self.events.clone(),
            kind: match &*self.kind {
                "unknown_shape" => NoteKind::UnknownShape,
                "incomplete_fields" => NoteKind::IncompleteFields,
                "needs_review" => NoteKind::NeedsReview,
                "wrong_scope" => NoteKind::WrongScope,
                other => panic!("`{other}` is no kind of note"),
            },
            cause: self.cause.clone(),
            text: self.text.clone(),
            at_us: self.at,
        }
    }
}
