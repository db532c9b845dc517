//! Effects that a plan would book, asked for at the provider at this moment: a plan may be days old, and what
//! it saw can be gone since.
//!
//! The one thing to get right: what is not answered for is neither there nor gone.

use super::ProviderSide;
use crate::provider::stripe::{self, Reading};
use crate::provider::{Cancel, Client, Failing, Lookup};
use crate::record::{EffectKind, Fact, NoteKind};
use crate::store;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A record that was read less than the settle delay ago is taken as it stands, up to this long a delay: a run
/// that applies at once need not read everything twice.
const FRESH_MAX: Duration = Duration::from_mins(15);

/// An effect as a plan has it.
///
/// Every kind can change at the provider after it was seen: a refund that succeeded can fail, a paid payout can fail
/// within about five business days, an authorisation can be captured in several parts, a dispute's money goes
/// and comes back in several movements. Sources: the field texts of refund, payout, charge and dispute in
/// Stripe's `OpenAPI` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedEffect {
    /// Kind.
    pub kind: EffectKind,
    /// The object that anchors it, or the payment, where a plan means all effects of this kind together.
    pub object_id: String,
    /// The payment.
    pub root_id: String,
    /// Magnitude, minor units.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
}

/// What the provider has of an expected effect now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Just that.
    AsExpected,
    /// Something else: magnitudes in minor units by currency, empty where nothing of it is left.
    Moved(BTreeMap<String, i64>),
    /// The provider did not say; a short cause.
    NotAnswered(&'static str),
}

/// Says how each of `expected` stands, in their order. Objects are read again, several at a time, unless that
/// was done a moment ago.
///
/// # Errors
/// When the provider cannot be talked to at all, or the store fails.
pub async fn fetch_standings(
    side: ProviderSide<'_>,
    client: &Client,
    expected: &[ExpectedEffect],
    cancel: &Cancel,
) -> Result<Vec<Standing>> {
    // What the settings no longer book is still there at the provider.
    let reading = Reading { effects: EffectKind::ALL.into(), ..side.reading.clone() };
    let side = ProviderSide { reading: &reading, ..side };
    let objects = objects(side, expected).await?;
    let ids: BTreeSet<String> = objects.iter().flat_map(|of| of.keys().cloned()).collect();
    let fresh_us = i64::try_from(FRESH_MAX.as_micros()).unwrap_or(i64::MAX).min(reading.settle_delay_us);
    let stale = side.not_read_since(&ids, client.timing().now_us().saturating_sub(fresh_us)).await?;
    let mut by_stream: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (id, stream) in objects.iter().flatten().filter(|(id, _)| stale.contains(*id)) {
        by_stream.entry(stream).or_default().insert(id.clone());
    }
    let mut unanswered = BTreeMap::new();
    let mut known = ids;
    for (name, ids) in by_stream {
        let stream = stripe::stream_named(name).with_context(|| format!("there is no stream {name}"))?;
        let lookup = Lookup { store: side.store, client, scope: &reading.scope, stream, cancel };
        let answered = lookup.by_id(&ids, Failing::Together).await?;
        unanswered.extend(answered.unanswered);
        // What an earlier run kept of an object that is gone says nothing any more.
        known.retain(|id| !answered.unknown.contains(id));
    }
    let words = Words::of(side.facts_of_records(&known).await?, unanswered)?;
    expected.iter().zip(&objects).map(|(effect, objects)| words.standing(effect, objects)).collect()
}

/// The objects that each expected effect rests on, with their streams: its anchor, or every part of the payment
/// that can carry such an effect.
async fn objects(
    side: ProviderSide<'_>,
    expected: &[ExpectedEffect],
) -> Result<Vec<BTreeMap<String, &'static str>>> {
    let is_anchor = |effect: &&ExpectedEffect| {
        stripe::stream_of_id(&effect.object_id).is_none_or(|stream| carriers(effect.kind).contains(&stream))
    };
    let of_payments = expected.iter().filter(|effect| !is_anchor(effect));
    let roots: BTreeSet<String> = of_payments.map(|effect| effect.root_id.clone()).collect();
    let mut parts: BTreeMap<String, BTreeSet<String>> =
        roots.iter().map(|root| (root.clone(), BTreeSet::from([root.clone()]))).collect();
    for alias in store::aliases_of_roots(side.store, &side.reading.scope, &roots).await? {
        parts.entry(alias.root_id).or_default().insert(alias.alias_id);
    }
    let objects = expected.iter().map(|effect| {
        let carriers = carriers(effect.kind);
        if is_anchor(&effect) {
            let stream = stripe::stream_of_id(&effect.object_id).unwrap_or(carriers[0]);
            return BTreeMap::from([(effect.object_id.clone(), stream)]);
        }
        let ids = parts.get(&effect.root_id).into_iter().flatten();
        let carrying = ids.filter_map(|id| {
            let stream = stripe::stream_of_id(id).filter(|stream| carriers.contains(stream))?;
            Some((id.clone(), stream))
        });
        carrying.collect()
    });
    Ok(objects.collect())
}

/// Streams whose records carry effects of a kind.
const fn carriers(kind: EffectKind) -> &'static [&'static str] {
    match kind {
        EffectKind::Credit => &["charges"],
        EffectKind::Refund => &["refunds"],
        EffectKind::DisputeWithdrawn | EffectKind::DisputeReinstated => &["disputes"],
        EffectKind::Fee => &["charges", "disputes"],
        EffectKind::Payout => &["payouts"],
    }
}

/// What the provider said of the objects that were asked for.
struct Words {
    /// Magnitudes by object, kind and currency.
    totals: BTreeMap<(String, EffectKind), BTreeMap<String, i64>>,
    /// Objects whose records are not understood.
    unclear: BTreeSet<String>,
    /// Objects that were not answered for, with the cause.
    unanswered: BTreeMap<String, &'static str>,
}

impl Words {
    fn of(facts: Vec<Fact>, unanswered: BTreeMap<String, &'static str>) -> Result<Self> {
        let mut words = Self { totals: BTreeMap::new(), unclear: BTreeSet::new(), unanswered };
        for fact in facts {
            match fact {
                Fact::ProviderEffect(effect) => {
                    let totals = words.totals.entry((effect.object_id, effect.kind)).or_default();
                    add(totals, &effect.currency, effect.amount_minor)?;
                }
                Fact::Note(note) if note.kind != NoteKind::NeedsReview => {
                    words.unclear.insert(note.object_id);
                }
                _ => {}
            }
        }
        Ok(words)
    }

    fn standing(
        &self,
        expected: &ExpectedEffect,
        objects: &BTreeMap<String, &'static str>,
    ) -> Result<Standing> {
        if objects.is_empty() {
            return Ok(Standing::NotAnswered("no_object"));
        }
        if let Some(cause) = objects.keys().find_map(|id| self.unanswered.get(id)) {
            return Ok(Standing::NotAnswered(cause));
        }
        let mut totals = BTreeMap::new();
        for id in objects.keys() {
            for (currency, minor) in self.totals.get(&(id.clone(), expected.kind)).into_iter().flatten() {
                add(&mut totals, currency, *minor)?;
            }
        }
        let planned = BTreeMap::from([(expected.currency.clone(), expected.amount_minor)]);
        Ok(if totals == planned {
            Standing::AsExpected
        } else if objects.keys().any(|id| self.unclear.contains(id)) {
            Standing::NotAnswered("not_understood")
        } else {
            Standing::Moved(totals)
        })
    }
}

fn add(totals: &mut BTreeMap<String, i64>, currency: &str, minor: i64) -> Result<()> {
    let total = totals.entry(currency.to_owned()).or_default();
    *total = total.checked_add(minor).context("an amount leaves 64 bits")?;
    Ok(())
}
