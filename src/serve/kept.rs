//! Which headers of a delivery are kept with its event, so that its proof can be looked at later and a
//! repetition can carry the same ids. Named one by one: what is not named is not kept.
//!
//! The one thing to get right: no header that is itself a secret (Asaas' token, `Authorization`, cookies).

use crate::receive::{HmacScheme, Place, Scheme};
use axum::http::HeaderMap;
use std::collections::BTreeMap;

/// Bytes of one value at most; a longer one is left out.
const VALUE_BYTES_MAX: usize = 2_048;

/// The kept headers as a JSON object of names and values.
pub(super) fn kept_headers(scheme: &Scheme, headers: &HeaderMap) -> String {
    let mut names = vec!["content-type"];
    names.extend(named(scheme));
    if let Scheme::Hmac(hmac) = scheme {
        names.extend(named_by_settings(hmac));
    }
    let value = |name: &str| headers.get(name)?.to_str().ok().filter(|text| text.len() <= VALUE_BYTES_MAX);
    let kept: BTreeMap<String, &str> =
        names.into_iter().filter_map(|name| Some((name.to_ascii_lowercase(), value(name)?))).collect();
    serde_json::to_string(&kept).unwrap_or_default()
}

/// Signature, time and ids.
fn named(scheme: &Scheme) -> &'static [&'static str] {
    match scheme {
        Scheme::Stripe => &["stripe-signature"],
        Scheme::GitHub => &["x-hub-signature-256", "x-github-event", "x-github-delivery", "x-github-hook-id"],
        Scheme::Shopify => &[
            "x-shopify-hmac-sha256",
            "shopify-hmac-sha256",
            "x-shopify-topic",
            "shopify-topic",
            "x-shopify-event-id",
            "shopify-event-id",
            "x-shopify-webhook-id",
            "shopify-webhook-id",
            "x-shopify-shop-domain",
            "shopify-shop-domain",
            "x-shopify-triggered-at",
            "shopify-triggered-at",
        ],
        Scheme::Twilio => &["x-twilio-signature", "x-twilio-webhooks-signature-settings"],
        Scheme::Slack => &["x-slack-signature", "x-slack-request-timestamp"],
        Scheme::Discord => &["x-signature-ed25519", "x-signature-timestamp"],
        Scheme::MercadoPago => &["x-signature", "x-request-id"],
        // A token of ours, and a signature inside the body.
        Scheme::Asaas | Scheme::Adyen | Scheme::Hmac(_) => &[],
        // The name misleads: it is a hash of token and body.
        Scheme::PagBank => &["x-authenticity-token", "x-payload-signature"],
        Scheme::Paddle => &["paddle-signature"],
        Scheme::Square => &["x-square-hmacsha256-signature"],
        Scheme::PayPal(_) => &[
            "paypal-transmission-id",
            "paypal-transmission-time",
            "paypal-transmission-sig",
            "paypal-auth-algo",
            "paypal-cert-url",
        ],
        Scheme::StandardWebhooks => &[
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
            "svix-id",
            "svix-timestamp",
            "svix-signature",
        ],
    }
}

fn named_by_settings(hmac: &HmacScheme) -> Vec<&str> {
    let mut names = vec![hmac.signature_header.as_str()];
    names.extend(hmac.timestamp_header.as_deref());
    for place in [&hmac.event_id, &hmac.event_type] {
        if let Some(Place::Header(name)) = place {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_not_kept() {
        let mut headers = HeaderMap::new();
        for name in ["asaas-access-token", "authorization", "cookie", "stripe-signature", "Content-Type"] {
            headers.insert(axum::http::HeaderName::try_from(name).unwrap(), "value".parse().unwrap());
        }
        assert_eq!(kept_headers(&Scheme::Asaas, &headers), r#"{"content-type":"value"}"#);
        assert_eq!(
            kept_headers(&Scheme::Stripe, &headers),
            r#"{"content-type":"value","stripe-signature":"value"}"#
        );
    }
}
