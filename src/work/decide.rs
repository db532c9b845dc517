//! What is to be done about one event, from what it stands for and what the provider said. Pure.

use super::fetch::{Fetched, Said};
use super::grounds::Grounds;
use super::read::{Subject, place};
use crate::apply::{Aliases, Effect, Request};
use crate::provider::stripe::{Reading, stream_of_id};
use crate::record::{EffectKey, EffectKind, EventKey, NoteKind, ProviderEffect, Scope, Status};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It ends as `ignored` for this reason.
    Ignore(&'static str),
    /// It ends as a dead letter.
    Bury(String),
    /// The provider did not say: it waits, however often.
    Wait(String),
    /// This attempt failed; the last one buries it.
    Fail(String),
    /// It is to be applied.
    Do(Box<Deed>),
}

/// Where a status comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Asked for; asking began then, Unix µs.
    Fetched(i64),
    /// The event's own object.
    Event,
}

/// What applying one event means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Scope.
    pub scope: Scope,
    /// The payment.
    pub root_id: String,
    /// What the event is about.
    pub object_id: String,
    /// The effect that it announces; `None`: a status.
    pub kind: Option<EffectKind>,
    /// When the provider made it, Unix µs.
    pub created_us: i64,
    /// Its effects; none where the provider has none of them any more.
    pub requests: Vec<Request>,
    /// The effect that the provider took back: where it is booked, that is undone.
    pub undoes: Option<EffectKey>,
    /// The charge whose credit must be booked first.
    pub after_credit_of: Option<String>,
    /// The status that the event's own object says.
    pub own_status: Option<Status>,
    /// The status to write, and where it comes from.
    pub word: Option<(Said, Source)>,
    /// When the provider was asked, Unix µs; `None` where the event's own object is what counts.
    pub asked_us: Option<i64>,
    /// The provider's records that say so; none where the event's own object is what counts.
    pub grounds: Grounds,
    /// Why its messages are not sent; empty where they are.
    pub suppressed: String,
}

/// What every deed of a batch shares.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// How records are read.
    pub reading: &'a Reading,
    /// Now, Unix µs.
    pub now_us: i64,
}

/// Decides. `fetched` is given where the subject's object was asked for; `root_id` is the end of its aliases.
#[must_use]
pub fn decide(
    common: Common<'_>,
    key: &EventKey,
    replayed_for: &str,
    subject: &Subject,
    root_id: &str,
    fetched: Option<&Fetched>,
) -> Plan {
    if let Some(plan) = fetched.and_then(|fetched| silence(subject, fetched)) {
        return plan;
    }
    let effects = effects(subject, root_id, fetched);
    let announced = |kind| effects.iter().any(|effect| effect.kind == kind);
    if let (Some(kind), Some(fetched)) = (subject.kind, fetched)
        && !announced(kind)
        && let Some(plan) = unclear(subject, root_id, fetched)
    {
        return plan;
    }
    if let Some(plan) = fetched.and_then(|fetched| contradicted(common, subject, root_id, fetched)) {
        return plan;
    }
    let requests: Vec<Request> =
        effects.iter().map(|effect| request(common, key, root_id, subject, effect)).collect();
    let word = match fetched {
        Some(fetched) => fetched.states.get(root_id).map(|said| (*said, Source::Fetched(fetched.began_us))),
        None => subject.own.state.as_ref().map(|state| {
            let said = Said {
                status: state.status,
                at_us: state.at_us.max(subject.created_us),
                refunded_minor: state.refunded_minor,
            };
            (said, Source::Event)
        }),
    };
    Plan::Do(Box::new(Deed {
        scope: key.scope.clone(),
        root_id: root_id.to_owned(),
        object_id: subject.object_id.clone(),
        kind: subject.kind,
        created_us: subject.created_us,
        undoes: undone(common, key, subject, fetched),
        after_credit_of: needed_charge(common, subject, &requests),
        requests,
        own_status: subject.own.status(),
        asked_us: fetched.map(|fetched| fetched.began_us),
        word,
        grounds: fetched.and_then(|fetched| fetched.grounds.get(root_id)).cloned().unwrap_or_default(),
        suppressed: replayed_for.to_owned(),
    }))
}

/// Every id that the event itself names.
fn named(subject: &Subject) -> impl Iterator<Item = &String> {
    let aliases = subject.aliases.iter().flat_map(|alias| [&alias.alias_id, &alias.root_id]);
    [&subject.object_id, &subject.root_id].into_iter().chain(aliases)
}

/// What to do where the provider did not answer for something that the event is about.
fn silence(subject: &Subject, fetched: &Fetched) -> Option<Plan> {
    let root = fetched.root_of(&subject.root_id);
    let charges = fetched.charges.get(root).into_iter().flatten();
    for id in fetched.needed_by(named(subject).chain(charges)) {
        match (fetched.failed.get(id), fetched.unanswered.get(id)) {
            // Also of an answer that is no such object: something between may have given it.
            (Some(error), _) => return Some(Plan::Wait(short(error))),
            (None, Some(cause)) => {
                return Some(Plan::Wait(format!("{id} was not answered for: {cause}")));
            }
            (None, None) => {}
        }
    }
    let id = &subject.object_id;
    fetched.unknown.contains(id).then(|| Plan::Fail(format!("the provider does not know {id}")))
}

/// What to do where the announced effect was not found because a record is not understood, or not whole yet.
fn unclear(subject: &Subject, root_id: &str, fetched: &Fetched) -> Option<Plan> {
    let charges = fetched.charges.get(root_id).into_iter().flatten();
    let note = named(subject).chain(charges).find_map(|id| fetched.notes.get(id))?;
    let text = format!("{}: {}", note.object_id, place(note));
    Some(match note.kind {
        NoteKind::IncompleteFields => Plan::Wait(text),
        NoteKind::WrongScope => Plan::Ignore("wrong_scope"),
        NoteKind::UnknownShape | NoteKind::NeedsReview => Plan::Bury(text),
    })
}

/// Streams whose records carry effects of a kind.
const fn carrier(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Credit | EffectKind::Fee => "charges",
        EffectKind::Refund => "refunds",
        EffectKind::DisputeWithdrawn | EffectKind::DisputeReinstated => "disputes",
        EffectKind::Payout => "payouts",
    }
}

/// The effects that an event announces: of its kind on its anchor, or on the whole payment where it names no anchor,
/// and the fees that came with them.
fn effects<'a>(subject: &'a Subject, root_id: &str, fetched: Option<&'a Fetched>) -> Vec<&'a ProviderEffect> {
    let Some(kind) = subject.kind else { return Vec::new() };
    let all = match fetched {
        Some(fetched) => fetched.effects.get(root_id).map(Vec::as_slice).unwrap_or_default(),
        None => &subject.own.effects,
    };
    let names_anchor = stream_of_id(&subject.object_id).is_none_or(|stream| stream == carrier(kind));
    let is_here = |effect: &&ProviderEffect| !names_anchor || effect.object_id == subject.object_id;
    let is_meant = |effect: &&ProviderEffect| {
        let stream = stream_of_id(&effect.object_id);
        effect.kind == kind
            || (effect.kind == EffectKind::Fee && stream.is_none_or(|stream| stream == carrier(kind)))
    };
    all.iter().filter(is_meant).filter(is_here).collect()
}

fn request(
    common: Common<'_>,
    key: &EventKey,
    root_id: &str,
    subject: &Subject,
    effect: &ProviderEffect,
) -> Request {
    // A payment has one credit, whatever id it was booked under; its refunds are many.
    let mut ids = Vec::new();
    if effect.kind == EffectKind::Credit {
        let roots = [root_id, &subject.root_id].into_iter().map(str::to_owned);
        let sessions = subject.aliases.iter().map(|alias| alias.alias_id.clone());
        ids.extend(roots.chain(sessions).filter(|id| {
            matches!(stream_of_id(id), Some("payment_intents" | "checkout_sessions"))
                && *id != effect.object_id
        }));
        ids.sort();
        ids.dedup();
    }
    Request {
        events: vec![key.clone()],
        key: EffectKey::of(&key.scope, effect.kind, &effect.object_id),
        effect: Effect {
            kind: effect.kind,
            object_id: effect.object_id.clone(),
            aliases: Aliases { ids, booked_since_us: i64::MIN },
            amount_minor: effect.amount_minor,
            currency: effect.currency.clone(),
            occurred_at_us: effect.occurred_at_us,
            applied_at_us: common.now_us,
            corrects_entry_id: String::new(),
            run_id: String::new(),
            reason: String::new(),
        },
    }
}

/// The kind of effect of the refund or payout that an event is about, where the books hold such.
fn movement(common: Common<'_>, subject: &Subject) -> Option<EffectKind> {
    let kind = match stream_of_id(&subject.object_id)? {
        "refunds" => EffectKind::Refund,
        "payouts" => EffectKind::Payout,
        _ => return None,
    };
    common.reading.effects.contains(&kind).then_some(kind)
}

/// What to do where the provider's answer lags behind the event: a refund or payout that its own object says has
/// succeeded, and the provider neither says so nor that it is over; or one that is over and the provider does not
/// say so. Neither ever turns back, so that a later answer will agree.
fn contradicted(common: Common<'_>, subject: &Subject, root_id: &str, fetched: &Fetched) -> Option<Plan> {
    let Some(kind) = movement(common, subject) else { return lagging(common, subject, root_id, fetched) };
    let id = &subject.object_id;
    let is_it = |effect: &ProviderEffect| effect.kind == kind && effect.object_id == *id;
    let stands = fetched.effects.get(root_id).is_some_and(|effects| effects.iter().any(is_it));
    let is_over = fetched.over.contains(id);
    let says = match () {
        () if subject.own.is_over && !is_over => "is over",
        () if subject.own.effects.iter().any(is_it) && !stands && !is_over => "has succeeded",
        () => return None,
    };
    let lags = || Plan::Wait(format!("{id} {says}, and the provider does not say so yet"));
    Some(unclear(subject, root_id, fetched).unwrap_or_else(lags))
}

/// The same for money that the event's own object proves and that never goes away by itself: a credit unless the
/// payment failed, a dispute's movements, and refunds of which a charge says that there are more than are listed.
fn lagging(common: Common<'_>, subject: &Subject, root_id: &str, fetched: &Fetched) -> Option<Plan> {
    let kind = subject.kind.filter(|kind| common.reading.effects.contains(kind))?;
    let said = fetched.states.get(root_id);
    let stands = |own: &ProviderEffect| {
        let effects = fetched.effects.get(root_id).map(Vec::as_slice).unwrap_or_default();
        effects.iter().any(|effect| effect.kind == own.kind && effect.object_id == own.object_id)
    };
    let is_proven = |own: &&ProviderEffect| own.kind == kind && !fetched.over.contains(&own.object_id);
    let has_failed = said.is_some_and(|said| matches!(said.status, Status::Failed | Status::Canceled));
    let missing = subject.own.effects.iter().filter(is_proven).find(|own| !stands(own));
    let is_refund_of_it = |id: &String| stream_of_id(id) == Some("refunds") && fetched.root_of(id) == root_id;
    let more = || {
        let listed = fetched.refunds_minor.get(root_id).copied().unwrap_or_default();
        let told = said.and_then(|said| said.refunded_minor);
        // The charge itself may lag; what failed since is taken off it rightly.
        let own = subject.own.state.as_ref().and_then(|state| state.refunded_minor);
        let own = own.filter(|_| !fetched.over.iter().any(is_refund_of_it));
        kind == EffectKind::Refund && told.max(own).is_some_and(|minor| minor > listed)
    };
    let why = match missing {
        Some(own) if !has_failed => format!("{} of {} is announced", own.kind, own.object_id),
        None if more() => format!("more is refunded of {} than its refunds come to", subject.object_id),
        _ => return None,
    };
    let lags = || Plan::Wait(format!("{why}, and the provider does not say so yet"));
    Some(unclear(subject, root_id, fetched).unwrap_or_else(lags))
}

/// The refund or payout that an event is about, where the provider says that it failed or was called off, perhaps
/// after it had succeeded. One that merely has not succeeded (`pending`) undoes nothing: that may be an old answer.
fn undone(
    common: Common<'_>,
    key: &EventKey,
    subject: &Subject,
    fetched: Option<&Fetched>,
) -> Option<EffectKey> {
    let id = &subject.object_id;
    let is_over = match fetched {
        Some(fetched) => fetched.over.contains(id) && !fetched.notes.contains_key(id),
        None => subject.own.is_over && !subject.own.is_partial,
    };
    let kind = movement(common, subject).filter(|_| is_over)?;
    Some(EffectKey::of(&key.scope, kind, id))
}

/// The charge whose credit must stand in the books before this money goes back.
fn needed_charge(common: Common<'_>, subject: &Subject, requests: &[Request]) -> Option<String> {
    let gives_back = matches!(
        subject.kind?,
        EffectKind::Refund | EffectKind::DisputeWithdrawn | EffectKind::DisputeReinstated
    );
    if !gives_back || requests.is_empty() || !common.reading.effects.contains(&EffectKind::Credit) {
        return None;
    }
    named(subject).find(|id| stream_of_id(id) == Some("charges")).cloned()
}

/// An error on one line that a table can hold.
pub(super) fn short(error: &dyn std::fmt::Display) -> String {
    const CHARS_MAX: usize = 300;
    let text = format!("{error:#}");
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(CHARS_MAX).collect()
}
