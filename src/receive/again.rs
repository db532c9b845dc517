//! A kept event as a delivery once more: its own bytes and ids, and a signature made now.
//!
//! The one thing to get right: the bytes are those that were kept. Where one delivery held several events, an item is put
//! between the brackets that it came in; nothing of it is written anew.

use super::delivery::Delivery;
use super::scheme::{
    adyen, asaas, github, hmac, mercado_pago, paddle, pagbank, shopify, slack, square, standard_webhooks,
    stripe, twilio,
};
use super::settings::Scheme;
use crate::config::Secret;
use crate::record::{SECOND_US, sha256_hex};
use std::collections::BTreeMap;

/// Twilio's field of the URL for the hash of a body that is no form.
const BODY_HASH: &str = "bodySHA256";

/// What is kept of a delivery with its event.
#[derive(Clone, Copy)]
pub struct Kept<'a> {
    /// The event's bytes.
    pub body: &'a [u8],
    /// Headers by their names in lower case.
    pub headers: &'a BTreeMap<String, String>,
    /// The URL that was called.
    pub url: &'a str,
    /// `live` or `test`.
    pub mode: &'a str,
}

/// A delivery that is ready to be sent. It has no `Debug`: it holds a signature and a body.
pub struct Again {
    /// Where to, with the query that the provider's call had.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the signature was made now. Else it is the provider's own, as it came: only the provider holds that key.
    pub is_fresh: bool,
}

/// What a scheme's file signs with. `delivery` has the headers as they came, and the URL and body as they are sent.
pub(super) struct Signing<'a> {
    pub secret: &'a str,
    /// Unix seconds.
    pub at_s: String,
    pub delivery: &'a Delivery<'a>,
}

/// The headers that a signature needs.
pub(super) type Headers = Vec<(String, String)>;

/// Names in lower case, with their values.
pub(super) fn headers<'n>(of: impl IntoIterator<Item = (&'n str, String)>) -> Headers {
    of.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
}

/// Makes a kept event a delivery to `to`, signed with the first of the secrets at `now_us`.
#[must_use]
pub fn again(scheme: &Scheme, secrets: &[Secret], kept: Kept<'_>, to: &str, now_us: i64) -> Again {
    let body = whole(scheme, kept);
    let url = called(scheme, kept, to, &body);
    let came: Vec<(&str, &[u8])> =
        kept.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let delivery =
        Delivery { method: "POST", url: &url, headers: &came, body: &body, received_at_us: now_us };
    let fresh = secrets.first().and_then(|secret| {
        let at_s = now_us.div_euclid(SECOND_US).to_string();
        sign(scheme, &Signing { secret: secret.reveal(), at_s, delivery: &delivery })
    });
    let is_fresh = fresh.is_some();
    let mut all = kept.headers.clone();
    all.entry("content-type".into()).or_insert_with(|| "application/json".into());
    all.extend(fresh.unwrap_or_default());
    Again { url, headers: all.into_iter().collect(), body, is_fresh }
}

/// `None` where it cannot be made.
fn sign(scheme: &Scheme, signing: &Signing<'_>) -> Option<Headers> {
    Some(match scheme {
        Scheme::Stripe => stripe::sign(signing),
        Scheme::GitHub => github::sign(signing),
        Scheme::Shopify => shopify::sign(signing)?,
        Scheme::Twilio => twilio::sign(signing)?,
        Scheme::Slack => slack::sign(signing),
        Scheme::MercadoPago => mercado_pago::sign(signing)?,
        Scheme::Asaas => asaas::sign(signing),
        Scheme::PagBank => pagbank::sign(signing),
        Scheme::Adyen => adyen::sign(),
        Scheme::Paddle => paddle::sign(signing),
        Scheme::Square => square::sign(signing),
        Scheme::StandardWebhooks => standard_webhooks::sign(signing)?,
        Scheme::Hmac(hmac) => hmac::sign(signing, hmac)?,
        Scheme::Discord | Scheme::PayPal(_) => return None,
    })
}

/// The body of a delivery that holds this event alone.
fn whole(scheme: &Scheme, kept: Kept<'_>) -> Vec<u8> {
    match scheme {
        Scheme::Adyen => adyen::wrapped(kept.body, kept.mode),
        Scheme::Twilio if kept.body.starts_with(b"{") => [b"[", kept.body, b"]"].concat(),
        _ => kept.body.to_vec(),
    }
}

/// The URL with the query of the provider's call: Mercado Pago signs a value in it, and Twilio a hash of the body.
fn called(scheme: &Scheme, kept: Kept<'_>, to: &str, body: &[u8]) -> String {
    let query = kept.url.split_once('?').map_or("", |(_, query)| query);
    let mut fields: Vec<String> = query
        .split('&')
        .filter(|field| !field.is_empty() && field.split('=').next() != Some(BODY_HASH))
        .map(str::to_owned)
        .collect();
    if matches!(scheme, Scheme::Twilio) && body.starts_with(b"[") {
        fields.push(format!("{BODY_HASH}={}", sha256_hex(body)));
    }
    let mut url = to.to_owned();
    for field in fields {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&field);
    }
    url
}
