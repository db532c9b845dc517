//! Shopify: `X-Shopify-Hmac-Sha256`, base64 HMAC-SHA256 of the body with the app's client secret; no time in it.
//!
//! Every header also exists without `X-`, and the SDK prefers that spelling; where both stand they must agree. `Event-Id`
//! is the same over retries and over several subscriptions; because one act of a merchant sets off several
//! topics, the topic is part of the key. Headers are not signed. Sources: shopify-api-ruby
//! `lib/shopify_api/webhooks/request.rb`; shopify.dev/docs/apps/build/webhooks/ignore-duplicates.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Reading, event, instant_us, object, usable};
use crate::receive::crypto::{is_same, sha256_mac, slot_of, to_base64, unbase64};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use serde::Deserialize;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = header(asked, "hmac-sha256")?.ok_or(Refusal::MissingSignature)?;
    let given = unbase64(header).ok_or(Refusal::MalformedSignature)?;
    slot_of(asked.secrets, |secret| is_same(&given, sha256_mac(secret, &[asked.delivery.body]).as_ref()))
}

/// In the spelling in which it came.
pub fn sign(signing: &Signing<'_>) -> Option<Headers> {
    let made = to_base64(sha256_mac(signing.secret, &[signing.delivery.body]));
    let is_new = signing.delivery.header("shopify-hmac-sha256").ok()?.is_some();
    Some(headers([(if is_new { "shopify-hmac-sha256" } else { "x-shopify-hmac-sha256" }, made)]))
}

/// A header in either spelling.
fn header<'a>(asked: &Asked<'a>, name: &str) -> Result<Option<&'a str>, Refusal> {
    let new = asked.delivery.header(&format!("shopify-{name}"))?;
    let old = asked.delivery.header(&format!("x-shopify-{name}"))?;
    match (new, old) {
        (Some(new), Some(old)) if new != old => Err(Refusal::MalformedHeader),
        (new, old) => Ok(new.or(old)),
    }
}

/// The body makes no part of the key; it must only be JSON.
#[derive(Deserialize)]
struct Anything {}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    object::<Anything>(body)?;
    let topic = header(asked, "topic")?.unwrap_or_default();
    let event_id = match header(asked, "event-id")? {
        Some(id) => Some(format!("{id}:{topic}")),
        // Without an event id the delivery's own, which is the same over its retries.
        None => header(asked, "webhook-id")?.map(|id| format!("webhook:{id}")),
    };
    let mut found = event(asked.settings, body, event_id, topic.to_owned())?;
    if let Some(shop) = header(asked, "shop-domain")? {
        found.account = usable(shop.to_owned())?;
    }
    found.created_us = header(asked, "triggered-at")?.and_then(instant_us);
    Ok(Reading::of(found))
}
