//! One payment, asked for at this moment: what a status correction writes is never older than that.

use super::{ProviderSide, fetch_whole};
use crate::provider::stripe::{self, Reading};
use crate::provider::{Cancel, Client, Failing, Lookup};
use crate::record::{Fact, Status};
use crate::store::{self, Store};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Streams whose records say something about a payment's status.
const SPEAKING: [&str; 3] = ["charges", "disputes", "payment_intents"];

/// A payment's status as the provider has it just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshState {
    /// Status.
    pub status: Status,
    /// Refunded so far, minor units, where the provider says.
    pub refunded_minor: Option<i64>,
    /// Provider time of the status, Unix µs.
    pub at_us: i64,
}

/// Reads every record of a payment again, those included that no run has seen, and says its status; `None` when the provider does not
/// answer for one of them.
///
/// # Errors
/// When the provider cannot be talked to at all, or the store fails.
pub async fn fetch_state(
    store: &Store,
    client: &Client,
    reading: &Reading,
    root_id: &str,
    cancel: &Cancel,
) -> Result<Option<FreshState>> {
    let roots = BTreeSet::from([root_id.to_owned()]);
    let side = ProviderSide { store, reading };
    let whole = fetch_whole(side, client, &roots, cancel).await?;
    if !whole.unanswered.is_empty() {
        return Ok(None);
    }
    let aliases = store::aliases_of_roots(store, &reading.scope, &roots).await?;
    let mut by_stream: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for id in aliases.into_iter().map(|alias| alias.alias_id).chain(roots.iter().cloned()) {
        let stream = stripe::stream_of_id(&id).filter(|stream| SPEAKING.contains(stream));
        if let Some(stream) = stream.filter(|_| !whole.found.contains(&id)) {
            by_stream.entry(stream).or_default().insert(id);
        }
    }
    for (name, ids) in by_stream {
        let Some(stream) = stripe::stream_named(name) else { continue };
        let lookup = Lookup { store, client, scope: &reading.scope, stream, cancel };
        let answered = lookup.by_id(&ids, Failing::Together).await?;
        if !answered.unanswered.is_empty() {
            return Ok(None);
        }
    }
    let (facts, _) = side.whole_objects(&roots).await?;
    let mut best: Option<(Status, i64)> = None;
    let mut refunded_minor = None;
    for fact in facts {
        if let Fact::ProviderState(state) = fact
            && state.root_id == root_id
        {
            best = best.max(Some((state.status, state.at_us)));
            refunded_minor = refunded_minor.max(state.refunded_minor);
        }
    }
    Ok(best.map(|(status, at_us)| FreshState { status, refunded_minor, at_us }))
}
