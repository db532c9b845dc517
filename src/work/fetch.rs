//! Asks the provider for the objects that events are about, and for what hangs on them, each once for a whole
//! batch.
//!
//! The one thing to get right: what is not answered for is neither there nor gone; its event waits.

use super::grounds::{Grounds, fingerprint};
use super::read::Subject;
use crate::gather::ProviderSide;
use crate::provider::stripe::{self, Reading};
use crate::provider::{Cancel, Client, Failing, FetchError, Lookup, Stream};
use crate::record::{EffectKind, Fact, Note, NoteKind, ProviderEffect, Scope, Status};
use crate::store::{self, Store};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Links that are followed from an event's object: session → invoice → payment intent → charge.
const LEVELS: usize = 4;

/// Ids to ask for, by stream.
type Wanted = BTreeMap<&'static str, BTreeSet<String>>;

/// The provider's word on a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Status: the highest that any of its records says.
    pub status: Status,
    /// The provider's time of it, Unix µs.
    pub at_us: i64,
    /// Refunded so far, minor units, where the provider says.
    pub refunded_minor: Option<i64>,
}

/// What the provider said of the objects of a batch.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Effects by payment.
    pub effects: BTreeMap<String, Vec<ProviderEffect>>,
    /// Status by payment.
    pub states: BTreeMap<String, Said>,
    /// Notes on records that were not understood, by the record's id.
    pub notes: BTreeMap<String, Note>,
    /// Ids that the provider does not know.
    pub unknown: BTreeSet<String>,
    /// Ids that were not answered for, with a short cause.
    pub unanswered: BTreeMap<String, &'static str>,
    /// Ids that were asked for in vain.
    pub failed: BTreeMap<String, FetchError>,
    /// What was asked for on behalf of each id.
    pub leads: BTreeMap<String, BTreeSet<String>>,
    /// The payment that each id belongs to, where it is another id.
    pub roots: BTreeMap<String, String>,
    /// The charges of each payment.
    pub charges: BTreeMap<String, BTreeSet<String>>,
    /// Refunds and payouts that the provider says failed or were called off.
    pub over: BTreeSet<String>,
    /// The records that say so, by payment.
    pub grounds: BTreeMap<String, Grounds>,
    /// Fingerprints of what was answered, by id.
    pub answers: Grounds,
    /// What the refunds of each payment come to that are not over, minor units, pending ones included.
    pub refunds_minor: BTreeMap<String, i64>,
    /// When asking began, Unix µs.
    pub began_us: i64,
}

impl Fetched {
    /// The payment that an id belongs to.
    #[must_use]
    pub fn root_of<'a>(&'a self, id: &'a str) -> &'a str {
        self.roots.get(id).map_or(id, String::as_str)
    }

    /// These ids, and all that was asked for on their behalf.
    #[must_use]
    pub fn needed_by<'a>(&'a self, ids: impl Iterator<Item = &'a String>) -> BTreeSet<&'a String> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<&String> = ids.collect();
        while let Some(id) = open.pop() {
            if needed.insert(id) {
                open.extend(self.leads.get(id).into_iter().flatten());
            }
        }
        needed
    }
}

/// Whoever is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// Where records are kept.
    pub store: &'a Store,
    /// The provider.
    pub client: &'a Client,
    /// How its records are read.
    pub reading: &'a Reading,
    /// Raised when the work is to end.
    pub cancel: &'a Cancel,
}

impl<'a> Asking<'a> {
    fn lookup(self, stream: &'a Stream) -> Lookup<'a> {
        let Self { store, client, reading, cancel } = self;
        Lookup { store, client, scope: &reading.scope, stream, cancel }
    }
}

/// Asks for what these events of one scope are about.
///
/// # Errors
/// When the store fails. What the provider does not answer is told for each id.
pub async fn fetch(asking: Asking<'_>, subjects: &[&Subject]) -> Result<Fetched> {
    let scope = &asking.reading.scope;
    let side = ProviderSide { store: asking.store, reading: asking.reading };
    let mut fetched = Fetched { began_us: asking.client.timing().now_us(), ..Fetched::default() };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut wanted = first_wanted(asking.store, scope, subjects, &mut fetched).await?;
    for _ in 0..LEVELS {
        for ids in wanted.values_mut() {
            ids.retain(|id| !seen.contains(id));
        }
        wanted.retain(|_, ids| !ids.is_empty());
        if wanted.is_empty() {
            break;
        }
        let mut level = BTreeSet::new();
        for (name, ids) in &wanted {
            level.extend(ask(asking, name, ids, &mut fetched).await?);
            seen.extend(ids.iter().cloned());
        }
        side.learn(&level).await?;
        wanted = next_wanted(asking, &level, &mut fetched).await?;
    }
    let charges = charges_of_refunds(subjects, &seen, &fetched);
    if let Some(stream) = stripe::stream_named("refunds").filter(|_| !charges.is_empty()) {
        let lookup = asking.lookup(stream);
        let listed = lookup.that_name("charge", &charges, Failing::Alone).await?;
        fetched.unanswered.extend(listed.unanswered);
        fetched.failed.extend(listed.failed);
        // A list is what somebody else may have overtaken. What it names is asked for by id.
        for record in store::records_by_id(asking.store, scope, &listed.found, None).await? {
            for (_, charge) in stripe::references(&record.stream, &record.body) {
                fetched.leads.entry(charge).or_default().insert(record.record_id.clone());
            }
        }
        let mut refunds = listed.found;
        refunds.retain(|id| !seen.contains(id));
        let answered = ask(asking, stream.name, &refunds, &mut fetched).await?;
        side.learn(&answered).await?;
        seen.extend(refunds);
    }
    seen.retain(|id| !fetched.unknown.contains(id));
    conclude(asking, side, subjects, &seen, &mut fetched).await?;
    Ok(fetched)
}

/// The objects that events name, and the disputes that are known of their payments: each may hold the status.
async fn first_wanted(
    store: &Store,
    scope: &Scope,
    subjects: &[&Subject],
    fetched: &mut Fetched,
) -> Result<Wanted> {
    let mut wanted = Wanted::new();
    let mut add = |id: &str| {
        if let Some(stream) = stripe::stream_of_id(id) {
            wanted.entry(stream).or_default().insert(id.to_owned());
        }
    };
    let mut roots = BTreeSet::new();
    for subject in subjects {
        add(&subject.object_id);
        for alias in &subject.aliases {
            for id in [&alias.alias_id, &alias.root_id] {
                if stripe::stream_of_id(id) == Some("charges") {
                    add(id);
                }
            }
        }
        roots.insert(subject.root_id.clone());
    }
    for alias in store::aliases_of_roots(store, scope, &roots).await? {
        if stripe::stream_of_id(&alias.alias_id) == Some("disputes") {
            add(&alias.alias_id);
            fetched.leads.entry(alias.root_id).or_default().insert(alias.alias_id);
        }
    }
    Ok(wanted)
}

async fn ask(
    asking: Asking<'_>,
    name: &str,
    ids: &BTreeSet<String>,
    fetched: &mut Fetched,
) -> Result<BTreeSet<String>> {
    let Some(stream) = stripe::stream_named(name) else { return Ok(BTreeSet::new()) };
    let answer = asking.lookup(stream).by_id(ids, Failing::Alone).await?;
    fetched.unknown.extend(answer.unknown);
    fetched.answers.extend(answer.prints);
    fetched.unanswered.extend(answer.unanswered);
    fetched.failed.extend(answer.failed);
    Ok(answer.found)
}

/// What these records lead to on the way to a charge.
async fn next_wanted(asking: Asking<'_>, ids: &BTreeSet<String>, fetched: &mut Fetched) -> Result<Wanted> {
    let mut wanted = Wanted::new();
    for record in store::records_by_id(asking.store, &asking.reading.scope, ids, None).await? {
        let leads = fetched.leads.entry(record.record_id.clone()).or_default();
        for (stream, id) in stripe::references(&record.stream, &record.body) {
            leads.insert(id.clone());
            wanted.entry(stream).or_default().insert(id);
        }
        let facts = stripe::facts(asking.reading, &record.stream, &record.body).unwrap_or_default();
        let leads_on: &[&str] = match record.stream.as_str() {
            "checkout_sessions" => &["invoices", "payment_intents", "charges"],
            "invoices" => &["payment_intents", "charges"],
            _ => &["charges"],
        };
        for fact in facts {
            let Fact::Alias(alias) = fact else { continue };
            for id in [alias.alias_id, alias.root_id] {
                if let Some(stream) = stripe::stream_of_id(&id).filter(|stream| leads_on.contains(stream)) {
                    leads.insert(id.clone());
                    wanted.entry(stream).or_default().insert(id);
                }
            }
        }
    }
    Ok(wanted)
}

/// Charges whose refunds are listed: an event announced a refund and did not say which.
fn charges_of_refunds(subjects: &[&Subject], seen: &BTreeSet<String>, fetched: &Fetched) -> BTreeSet<String> {
    let mut charges = BTreeSet::new();
    for subject in subjects.iter().filter(|subject| subject.kind == Some(EffectKind::Refund)) {
        if stripe::stream_of_id(&subject.object_id) == Some("refunds") {
            continue;
        }
        let named = subject.aliases.iter().flat_map(|alias| [&alias.alias_id, &alias.root_id]);
        let ids = named.chain([&subject.object_id, &subject.root_id]);
        charges.extend(ids.filter(|id| stripe::stream_of_id(id) == Some("charges")).cloned());
    }
    charges.retain(|id| seen.contains(id) && !fetched.unknown.contains(id));
    charges
}

/// What all of that says of each payment.
async fn conclude(
    asking: Asking<'_>,
    side: ProviderSide<'_>,
    subjects: &[&Subject],
    seen: &BTreeSet<String>,
    fetched: &mut Fetched,
) -> Result<()> {
    let named: BTreeSet<String> = subjects
        .iter()
        .flat_map(|subject| [subject.root_id.clone(), subject.object_id.clone()])
        .chain(seen.iter().cloned())
        .collect();
    for (id, target) in
        store::resolve(asking.store, &asking.reading.scope, &named, stripe::is_final_root).await?
    {
        fetched.roots.insert(id, target.root_id);
    }
    let roots: BTreeSet<String> = named.iter().map(|id| fetched.root_of(id).to_owned()).collect();
    // Read once, so that everything that is said rests on the same records.
    let records = side.whole_records(&roots, seen).await?;
    let (answered, others): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|record| seen.contains(&record.record_id));
    for record in &answered {
        let root = fetched.root_of(&record.record_id).to_owned();
        let print = fingerprint(record);
        // A list that was asked for under a clock that is ahead may have put an older answer over this one.
        if fetched.answers.get(&record.record_id) != Some(&print) {
            fetched.unanswered.insert(record.record_id.clone(), "changed_meanwhile");
        }
        if let Some(minor) = stripe::refunded_minor(&record.stream, &record.body) {
            let sum = fetched.refunds_minor.entry(root.clone()).or_default();
            *sum = sum.saturating_add(minor);
        }
        fetched.grounds.entry(root).or_default().insert(record.record_id.clone(), print);
        let is_movement = matches!(record.stream.as_str(), "refunds" | "payouts");
        if is_movement && stripe::is_over(&record.stream, &record.body) {
            fetched.over.insert(record.record_id.clone());
        }
    }
    let mut states = Vec::new();
    for fact in side.resolved(&answered).await? {
        match fact {
            Fact::ProviderEffect(effect) => {
                fetched.effects.entry(effect.root_id.clone()).or_default().push(effect);
            }
            Fact::Note(note) if note.kind != NoteKind::NeedsReview => {
                fetched.notes.insert(note.object_id.clone(), note);
            }
            Fact::ProviderState(state) => states.push(state),
            _ => {}
        }
    }
    for id in seen.iter().filter(|id| stripe::stream_of_id(id) == Some("charges")) {
        let root = fetched.root_of(id).to_owned();
        fetched.charges.entry(root).or_default().insert(id.clone());
    }
    states.extend(side.resolved(&others).await?.into_iter().filter_map(|fact| match fact {
        Fact::ProviderState(state) => Some(state),
        _ => None,
    }));
    for state in states {
        let said = Said { status: state.status, at_us: state.at_us, refunded_minor: state.refunded_minor };
        fetched
            .states
            .entry(state.root_id)
            .and_modify(|known| {
                if (said.status, said.at_us) > (known.status, known.at_us) {
                    (known.status, known.at_us) = (said.status, said.at_us);
                }
                known.refunded_minor = known.refunded_minor.max(said.refunded_minor);
            })
            .or_insert(said);
    }
    Ok(())
}
