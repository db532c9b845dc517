//! Payments asked for whole: every charge, refund and dispute of them at the provider, of any time. A window
//! cuts a payment apart, and what lies outside of it is known by chance only.
//!
//! The one thing to get right: a payment of which one list was not answered is not whole.

use super::ProviderSide;
use crate::provider::stripe;
use crate::provider::{ById, Cancel, Client, Failing, Lookup, fetch_invoices_of};
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
    /// Roots of which the provider will not say whether an invoice was paid with them: the key may not read
    /// the list, or the API is older than it.
    pub unnamed: BTreeSet<String>,
}

impl Whole {
    /// Adds what became of more roots.
    pub fn add(&mut self, other: Self) {
        self.found.extend(other.found);
        self.unanswered.extend(other.unanswered);
        self.unnamed.extend(other.unnamed);
    }
}

/// The lists that are asked for everything of a payment, by the field that names it.
const OF_INTENT: (&str, &[&str]) =
    ("payment_intent", &["charges", "refunds", "disputes", "checkout_sessions"]);
/// The same for a charge that was made without an intent.
const OF_CHARGE: (&str, &[&str]) = ("charge", &["refunds", "disputes"]);

/// Reads every charge, refund and dispute of these payments, and their checkout sessions and invoices (rows may
/// be booked on them), into the store with their aliases. A root that is neither paid by an intent nor by a
/// charge has none. An invoice may turn out to be paid by more payments than these: they are not asked for here.
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
    read_invoices(side, client, &intents, &mut whole, cancel).await?;
    for ((filter, streams), owners) in [(OF_INTENT, intents), (OF_CHARGE, charges)] {
        let ids: BTreeSet<String> = owners.keys().cloned().collect();
        let asked_for: BTreeSet<&String> = owners.values().collect();
        for name in streams {
            let stream = stripe::stream_named(name).with_context(|| format!("there is no stream {name}"))?;
            let lookup = Lookup { store: side.store, client, scope, stream, cancel };
            let answered = lookup.that_name(filter, &ids, Failing::Together).await?;
            let unanswered = answered.unanswered.into_keys();
            whole.unanswered.extend(unanswered.filter_map(|id| owners.get(&id).cloned()));
            // A list that leaves out what is known of the payment is not all of it.
            let of_payments = aliases.iter().filter(|alias| asked_for.contains(&alias.root_id));
            let known = of_payments.filter(|alias| stripe::stream_of_id(&alias.alias_id) == Some(name));
            let left_out = known.filter(|alias| !answered.found.contains(&alias.alias_id));
            whole.unanswered.extend(left_out.map(|alias| alias.root_id.clone()));
            whole.found.extend(answered.found);
        }
    }
    side.learn(&whole.found).await?;
    Ok(whole)
}

/// The invoices that the intents paid, or paid a part of: nothing else may name an invoice that was made before
/// the window and booked outside of it.
async fn read_invoices(
    side: ProviderSide<'_>,
    client: &Client,
    intents: &BTreeMap<String, String>,
    whole: &mut Whole,
    cancel: &Cancel,
) -> Result<()> {
    let scope = &side.reading.scope;
    let ids: BTreeSet<String> = intents.keys().cloned().collect();
    let told = fetch_invoices_of(client, scope, &ids, cancel).await?;
    for (intent, cause) in told.unanswered {
        let Some(root) = intents.get(&intent) else { continue };
        match cause {
            "unaskable_id" => {}
            "no_such_list" | "no_permission" => drop(whole.unnamed.insert(root.clone())),
            _ => drop(whole.unanswered.insert(root.clone())),
        }
    }
    let stream = stripe::stream_named("invoices").context("there is no stream invoices")?;
    let lookup = Lookup { store: side.store, client, scope, stream, cancel };
    let answered = lookup.by_id(&told.invoices, Failing::Together).await?;
    take_of_any(answered, intents, whole);
    // The session that began a subscription names neither the intent nor its charge.
    let records = store::records_by_id(side.store, scope, &told.invoices, None).await?;
    let subscriptions =
        records.iter().filter_map(|record| stripe::subscription_of_invoice(&record.body)).collect();
    let sessions =
        stripe::stream_named("checkout_sessions").context("there is no stream checkout_sessions")?;
    let lookup = Lookup { stream: sessions, ..lookup };
    let answered = lookup.that_name("subscription", &subscriptions, Failing::Together).await?;
    take_of_any(answered, intents, whole);
    Ok(())
}

/// What was read of any of these payments. Where something was not answered, which of them it belongs to is not
/// known any more.
fn take_of_any(answered: ById, intents: &BTreeMap<String, String>, whole: &mut Whole) {
    whole.found.extend(answered.found);
    if !answered.unanswered.is_empty() {
        let is_refused = answered.unanswered.values().all(|cause| *cause == "no_permission");
        let roots = if is_refused { &mut whole.unnamed } else { &mut whole.unanswered };
        roots.extend(intents.values().cloned());
    }
}
