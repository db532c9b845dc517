//! Where the provider delivers to: whether that is switched off, and which types it sends.
//!
//! The one thing to get right: this only adds knowledge. A key that may not read endpoints, and a
//! provider that has none to show, say nothing about deliveries.

use crate::provider::{Client, FetchError};
use anyhow::{Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;

/// An account may have 16 endpoints (<https://docs.stripe.com/webhooks>), so that one page has them all.
const PATH: &str = "/v1/webhook_endpoints?limit=100";

/// What an account's webhook endpoints say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Every one is switched off: nothing is delivered.
    pub is_disabled: bool,
    /// Types that the enabled ones receive (`*` for all); `None` where none is enabled.
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

/// Asks for the platform account's endpoints of a mode; `None` where they are not to be read or there is none.
///
/// # Errors
/// When the provider cannot be talked to, or has more endpoints than a page.
pub async fn endpoints(client: &Client, mode: &str) -> Result<Option<Endpoints>> {
    let body = match client.get("webhook_endpoints", PATH, "").await {
        Ok(body) => body,
        Err(
            error @ (FetchError::Forbidden { .. } | FetchError::NotFound { .. } | FetchError::Refused { .. }),
        ) => {
            tracing::debug!("webhook endpoints are not read: {error}");
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let Ok(list) = serde_json::from_slice::<List>(&body) else {
        tracing::debug!("webhook endpoints are not read: unexpected shape");
        return Ok(None);
    };
    if list.has_more {
        bail!("the account has more webhook endpoints than a page of 100 holds");
    }
    Ok(judge(&list.data, mode))
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
