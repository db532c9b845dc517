//! Payments asked for whole: every charge, refund and dispute of them at the provider, of any time. A window
//! cuts a payment apart, and what lies outside of it is known by chance only.
//!
//! The one thing to get right: a payment of which one list was not answered is not whole.

use super::ProviderSide;
use crate::provider::stripe;
use crate::provider::{Cancel, Client, fetch_of};
use crate::store;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What became of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// Charges, refunds and disputes, read just now.
    pub found: BTreeSet<String>,
    /// Roots of which some list was not answered.
    pub unanswered: BTreeSet<String>,
}

/// The lists that are asked for everything of a payment, by the field that names it.
const OF_INTENT: (&str, &[&str]) =
    ("payment_intent", &["charges", "refunds", "disputes", "checkout_sessions"]);
/// The same for a charge that was made without an intent.
const OF_CHARGE: (&str, &[&str]) = ("charge", &["refunds", "disputes"]);

/// Reads every charge, refund and dispute of these payments, and their checkout sessions (rows may be booked on
/// them), into the store with their aliases. A root that is
/// neither paid by an intent nor by a charge has none.
///
/// # Errors
/// When the provider cannot be talked to at all, or the store fails.
pub async fn fetch_whole(
    side: ProviderSide<'_>,
    client: &Client,
    roots: &BTreeSet<String>,
    cancel: &Cancel,
) -> Result<Whole> {
    let scope = &side.reading.scope;
    // Which roots an intent or a charge belongs to.
    let mut intents: BTreeMap<String, String> = BTreeMap::new();
    let mut charges: BTreeMap<String, String> = BTreeMap::new();
    let mut with_intent: BTreeSet<&String> = BTreeSet::new();
    let aliases = store::aliases_of_roots(side.store, scope, roots).await?;
    let all = aliases.iter().map(|alias| (&alias.alias_id, &alias.root_id));
    for (id, root) in all.chain(roots.iter().map(|root| (root, root))) {
        match stripe::stream_of_id(id) {
            Some("payment_intents") => {
                intents.insert(id.clone(), root.clone());
                with_intent.insert(root);
            }
            Some("charges") => {
                charges.insert(id.clone(), root.clone());
            }
            _ => {}
        }
    }
    charges.retain(|_, root| !with_intent.contains(root));
    let mut whole = Whole::default();
    for ((filter, streams), owners) in [(OF_INTENT, intents), (OF_CHARGE, charges)] {
        let ids: BTreeSet<String> = owners.keys().cloned().collect();
        for name in streams {
            let stream = stripe::stream_named(name).with_context(|| format!("there is no stream {name}"))?;
            let answered = fetch_of(side.store, client, scope, stream, (filter, &ids), cancel).await?;
            whole.found.extend(answered.found);
            let unanswered = answered.unanswered.into_iter().filter(|(_, cause)| *cause != "unaskable_id");
            whole.unanswered.extend(unanswered.filter_map(|(id, _)| owners.get(&id).cloned()));
        }
    }
    side.learn(&whole.found).await?;
    Ok(whole)
}
