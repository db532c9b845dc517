//! A claimed event becomes what it stands for. Pure.
//!
//! The one thing to get right: an event only announces. Its own object proves an effect just where that object
//! is the record that carries such money (a charge its credit, a refund itself) and its type is not one whose
//! object is fetched first; everything else is asked for.

use crate::provider::stripe::{self, Reading, tracks_of_type};
use crate::record::{
    Alias, EffectKind, Fact, Note, NoteKind, ProviderEffect, ProviderEvent, ProviderState, Status, Tracks,
};
use crate::store::work::Claimed;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What an event stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing that is ours to apply; a short word for why.
    Ignored(&'static str),
    /// It cannot be read, and trying again would not help. Names places, never content.
    Dead(String),
    /// A payment or a payout.
    Concerns(Box<Subject>),
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The payment, as far as the event itself knows it.
    pub root_id: String,
    /// The object that it is about: the anchor of the effect, or the payment where it names no anchor.
    pub object_id: String,
    /// The effect that it announces; `None`: a status.
    pub kind: Option<EffectKind>,
    /// When the provider made the event, Unix µs.
    pub created_us: i64,
    /// Ids that name the same payment.
    pub aliases: Vec<Alias>,
    /// Whether the object is asked for before anything is written.
    pub is_fetched: bool,
    /// What the event's own object says.
    pub own: Own,
}

/// What the object inside of an event says, read as a record of its stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The effects that it proves.
    pub effects: Vec<ProviderEffect>,
    /// Its word on the payment's status.
    pub state: Option<ProviderState>,
    /// Whether it is a refund or a payout: its own word is enough where it announces no effect.
    pub is_movement: bool,
    /// Whether it is one that failed or was called off, which is its end.
    pub is_over: bool,
    /// Whether a part of it could not be read, or comes later.
    pub is_partial: bool,
}

impl Own {
    /// The status that it says.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.state.as_ref().map(|state| state.status)
    }
}

/// Event types whose object is fetched first: as set, or all that announce money or may take a status back.
#[must_use]
pub fn is_fetched(setting: Option<&BTreeSet<String>>, event_type: &str) -> bool {
    if let Some(types) = setting {
        return types.contains(event_type) || types.contains("*");
    }
    let moves_money = matches!(tracks_of_type(event_type), Some(Tracks::Effect(_)));
    // A dispute that is closed and a refund that fails lead back to an earlier status; what failed was booked before.
    moves_money
        || ["refund.failed", "payout.failed"].contains(&event_type)
        || event_type.starts_with("charge.dispute.")
}

/// Reads an event of a Stripe account. `fetch` is the setting of that name.
#[must_use]
pub fn read(reading: &Reading, fetch: Option<&BTreeSet<String>>, claimed: &Claimed) -> Meaning {
    if claimed.body.is_empty() {
        return Meaning::Dead("its raw body is no longer kept".to_owned());
    }
    let facts = match stripe::facts(reading, "events", &claimed.body) {
        Ok(facts) => facts,
        Err(error) => return Meaning::Dead(error.to_string()),
    };
    let mut event = None;
    let mut aliases = Vec::new();
    for fact in facts {
        match fact {
            Fact::ProviderEvent(found) => event = Some(found),
            Fact::Alias(alias) => aliases.push(alias),
            Fact::Note(note) => {
                if let Some(meaning) = refusal(&note) {
                    return meaning;
                }
            }
            _ => {}
        }
    }
    let Some(event) = event else { return Meaning::Dead("it names no event".to_owned()) };
    if event.event_id != claimed.key.event_id {
        return Meaning::Dead("`id` is not the id that it was received under".to_owned());
    }
    let kind = match event.tracks {
        Tracks::Nothing => return Meaning::Ignored("nothing_to_apply"),
        Tracks::State => None,
        Tracks::Effect(kind) => Some(kind),
    };
    let own = own(reading, &claimed.body);
    let is_fetched = is_fetched(fetch, &event.event_type) || !proves(&own, &event, kind);
    Meaning::Concerns(Box::new(Subject {
        root_id: event.root_id,
        object_id: event.object_id,
        kind,
        created_us: event.created_us,
        aliases,
        is_fetched,
        own,
    }))
}

/// Whether the event's own object is enough to apply it.
fn proves(own: &Own, event: &ProviderEvent, kind: Option<EffectKind>) -> bool {
    match kind {
        Some(kind) => {
            let is_it = |effect: &ProviderEffect| effect.kind == kind && effect.object_id == event.object_id;
            !own.is_partial && own.effects.iter().any(is_it)
        }
        None => own.state.is_some() || (own.is_movement && !own.is_partial),
    }
}

/// What a note on the event itself makes of it.
fn refusal(note: &Note) -> Option<Meaning> {
    match note.kind {
        NoteKind::WrongScope => Some(Meaning::Ignored("wrong_scope")),
        NoteKind::UnknownShape if note.cause == "unknown_type" => Some(Meaning::Ignored("unknown_type")),
        NoteKind::UnknownShape => Some(Meaning::Dead(place(note))),
        NoteKind::IncompleteFields | NoteKind::NeedsReview => None,
    }
}

/// A note's cause and the path it names, without what stood there.
#[must_use]
pub fn place(note: &Note) -> String {
    let path = note.text.split('`').nth(1).unwrap_or_default();
    let is_path = !path.is_empty()
        && path.bytes().all(|byte| byte.is_ascii_lowercase() || b"_.[]0123456789".contains(&byte));
    if is_path { format!("{} at `{path}`", note.cause) } else { note.cause.clone() }
}

fn own(reading: &Reading, body: &[u8]) -> Own {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        object: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        object: Cow<'a, str>,
    }
    let mut own = Own::default();
    let Ok(event) = serde_json::from_slice::<Event<'_>>(body) else { return own };
    let json = event.data.object.get();
    let Ok(object) = serde_json::from_str::<Object<'_>>(json) else { return own };
    let stream = match &*object.object {
        "charge" => "charges",
        "refund" => "refunds",
        "dispute" => "disputes",
        "payout" => "payouts",
        "payment_intent" => "payment_intents",
        _ => return own,
    };
    let Ok(facts) = stripe::facts(reading, stream, json.as_bytes()) else { return own };
    own.is_movement = matches!(stream, "refunds" | "payouts");
    own.is_over = stripe::is_over(stream, json.as_bytes());
    for fact in facts {
        match fact {
            Fact::ProviderEffect(effect) => own.effects.push(effect),
            Fact::ProviderState(state) => own.state = Some(state),
            Fact::Note(note) if note.kind != NoteKind::NeedsReview => own.is_partial = true,
            _ => {}
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_announces_money_or_may_take_a_status_back_is_fetched_by_default() {
        for fetched in [
            "charge.succeeded",
            "invoice.paid",
            "refund.failed",
            "charge.dispute.closed",
            "payout.paid",
            "payout.failed",
        ] {
            assert!(is_fetched(None, fetched), "{fetched}");
        }
        for own in [
            "payment_intent.processing",
            "charge.failed",
            "payment_intent.canceled",
            "payout.canceled",
            "customer.created",
        ] {
            assert!(!is_fetched(None, own), "{own}");
        }
        let set = BTreeSet::from(["charge.failed".to_owned()]);
        assert!(is_fetched(Some(&set), "charge.failed") && !is_fetched(Some(&set), "charge.succeeded"));
    }

    #[test]
    fn an_error_names_the_place_and_never_what_stood_there() {
        let note = |text: &str| Note {
            scope: crate::record::Scope::new("stripe", "", "live"),
            root_id: String::new(),
            object_id: String::new(),
            event_ids: Vec::new(),
            kind: NoteKind::UnknownShape,
            cause: "wrong_type".to_owned(),
            text: text.to_owned(),
            at_us: 0,
        };
        assert_eq!(place(&note("`data.object.status` is `carol`")), "wrong_type at `data.object.status`");
        for text in ["events of type `Carol Jones` are not known", "something", "`` and `x`", "`Carol`"] {
            assert_eq!(place(&note(text)), "wrong_type", "{text}");
        }
    }
}
