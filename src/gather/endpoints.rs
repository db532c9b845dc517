//! Where the provider delivers to: whether that is switched off, and which types it sends.
//!
//! The one thing to get right: this only adds knowledge. A key that may not read endpoints, and a
//! provider that has none to show, say nothing about deliveries. What was read is kept, so that an
//! offline run knows what the run knew that it repeats.

use crate::provider::{Client, FetchError};
use crate::record::Scope;
use crate::store::{self, PageRecord, Store};
use anyhow::{Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;

/// An account may have 16 endpoints (<https://docs.stripe.com/webhooks>), so that one page has them all.
const PATH: &str = "/v1/webhook_endpoints?limit=100";

/// Stream and id under which the list is kept.
const KEPT_AS: &str = "webhook_endpoints";

/// What webhook endpoints say of one account's deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Every one is switched off: nothing is delivered.
    pub is_disabled: bool,
    /// Types that the enabled ones receive (`*` for all); `None` where that is not known.
    pub types: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct List {
    data: Vec<Wire>,
    has_more: bool,
}

#[derive(Deserialize)]
struct Wire {
    status: String,
    livemode: bool,
    enabled_events: Vec<String>,
}

/// Asks for an account's endpoints and keeps the answer; an account whose endpoints are not to be read is
/// kept as one that said nothing.
///
/// # Errors
/// When the provider cannot be talked to or the store cannot be written.
pub async fn fetch_endpoints(store: &Store, client: &Client, scope: &Scope) -> Result<()> {
    let asked_at_us = client.timing().now_us();
    let body = match client.get(KEPT_AS, PATH, &scope.account).await {
        Ok(body) => body,
        Err(
            error @ (FetchError::Forbidden { .. } | FetchError::NotFound { .. } | FetchError::Refused { .. }),
        ) => {
            tracing::debug!("webhook endpoints are not read: {error}");
            b"null".to_vec()
        }
        Err(error) => return Err(error.into()),
    };
    let record = PageRecord { record_id: KEPT_AS.to_owned(), created_us: 0, asked_at_us, body };
    store.write_records(scope, KEPT_AS, &[record]).await
}

/// What the kept endpoints say of an account; `None` where they are not known or there is none.
///
/// Events of a connected account come through an endpoint of its own or through a Connect endpoint of the
/// platform, and an endpoint does not say whether it is one
/// (<https://docs.stripe.com/api/webhook_endpoints/object>). So nothing is said of a connected account while
/// any endpoint of either is enabled, and its types are not known.
///
/// # Errors
/// When the store cannot be read, or an account has more endpoints than a page.
pub async fn endpoints(store: &Store, scope: &Scope) -> Result<Option<Endpoints>> {
    let platform = Scope::new(&scope.provider, "", &scope.mode);
    let Some(mut all) = kept(store, &platform).await? else { return Ok(None) };
    if *scope == platform {
        return Ok(judge(&all, &scope.mode));
    }
    let Some(own) = kept(store, scope).await? else { return Ok(None) };
    all.extend(own);
    Ok(judge(&all, &scope.mode).map(|told| Endpoints { types: None, ..told }))
}

async fn kept(store: &Store, scope: &Scope) -> Result<Option<Vec<Wire>>> {
    let records = store::records_by_id(store, scope, &BTreeSet::from([KEPT_AS.to_owned()]), None).await?;
    let Some(record) = records.into_iter().find(|record| record.stream == KEPT_AS) else { return Ok(None) };
    let Ok(list) = serde_json::from_slice::<List>(&record.body) else {
        tracing::debug!("webhook endpoints are not known: nothing was told, or in another shape");
        return Ok(None);
    };
    if list.has_more {
        bail!("an account has more webhook endpoints than a page of 100 holds");
    }
    Ok(Some(list.data))
}

fn judge(all: &[Wire], mode: &str) -> Option<Endpoints> {
    let mut ours = all.iter().filter(|endpoint| endpoint.livemode == (mode == "live")).peekable();
    ours.peek()?;
    let enabled: Vec<&Wire> = ours.filter(|endpoint| endpoint.status != "disabled").collect();
    let types = enabled.iter().flat_map(|endpoint| endpoint.enabled_events.iter().cloned()).collect();
    let is_disabled = enabled.is_empty();
    Some(Endpoints { is_disabled, types: (!is_disabled).then_some(types) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(status: &str, livemode: bool, types: &[&str]) -> Wire {
        let enabled_events = types.iter().map(|name| (*name).to_owned()).collect();
        Wire { status: status.to_owned(), livemode, enabled_events }
    }

    #[test]
    fn c16_only_endpoints_of_the_mode_that_are_all_off_are_a_gap() {
        let off = endpoint("disabled", true, &["charge.succeeded"]);
        assert_eq!(judge(&[], "live"), None);
        let disabled = Endpoints { is_disabled: true, types: None };
        assert_eq!(judge(&[off, endpoint("enabled", false, &["*"])], "live"), Some(disabled));
        let some = [
            endpoint("disabled", true, &["charge.succeeded"]),
            endpoint("enabled", true, &["refund.created"]),
            endpoint("enabled", true, &["charge.refunded"]),
        ];
        let types = ["charge.refunded", "refund.created"].map(str::to_owned);
        let told = Endpoints { is_disabled: false, types: Some(types.into()) };
        assert_eq!(judge(&some, "live"), Some(told));
    }
}
