//! Standard Webhooks: `webhook-signature` holds `v1,<base64 HMAC-SHA256>` and `v1a,<base64 Ed25519>`, separated by blanks.
//!
//! Signed is `{webhook-id}.{webhook-timestamp}.{body}`. The secret `whsec_…` is base64 and is decoded first; `whpk_…` is
//! an Ed25519 public key. The id stays the same over retries, the timestamp does not. Svix names the headers `svix-…`. Source:
//! standard-webhooks `spec/standard-webhooks.md`, `libraries/`.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, object, rfc3339_us, text};
use crate::receive::crypto::{
    check_age_s, is_ed25519, is_same, mac, slot_of, timestamp, to_base64, unbase64, unbase64_secret,
};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use ring::hmac;
use serde::Deserialize;

/// Signatures in one header at most; more are not looked at.
const SIGNATURES_MAX: usize = 16;
/// Bytes of an Ed25519 public key.
const PUBLIC_KEY_BYTES: usize = 32;

/// What a secret is a key for.
pub enum Key {
    /// `v1`.
    Hmac(Vec<u8>),
    /// `v1a`.
    Ed25519(Vec<u8>),
}

impl Key {
    /// The key in a secret; `None` when it has no known form. A private key (`whsk_`) has no place here.
    pub fn of(secret: &str) -> Option<Self> {
        if let Some(public) = secret.strip_prefix("whpk_") {
            let key = unbase64_secret(public).filter(|key| key.len() == PUBLIC_KEY_BYTES)?;
            return Some(Self::Ed25519(key));
        }
        unbase64_secret(secret.strip_prefix("whsec_").unwrap_or(secret)).map(Self::Hmac)
    }
}

/// A header in the standard's spelling, else in Svix's.
fn header<'a>(asked: &Asked<'a>, name: &str) -> Result<Option<&'a str>, Refusal> {
    match asked.delivery.header(&format!("webhook-{name}"))? {
        Some(value) => Ok(Some(value)),
        None => asked.delivery.header(&format!("svix-{name}")),
    }
}

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let signatures = header(asked, "signature")?.ok_or(Refusal::MissingSignature)?;
    let id = header(asked, "id")?.ok_or(Refusal::MissingSignature)?;
    let signed_at = header(asked, "timestamp")?.ok_or(Refusal::MissingSignature)?;
    let signed_at_s = timestamp(signed_at)?;
    let given: Vec<(&str, Vec<u8>)> = signatures
        .split(' ')
        .take(SIGNATURES_MAX)
        .filter_map(|item| item.split_once(','))
        .filter_map(|(version, text)| Some((version, unbase64(text)?)))
        .collect();
    if given.is_empty() {
        return Err(Refusal::MalformedSignature);
    }
    let of_version = |name: &'static str| {
        given.iter().filter(move |(version, _)| *version == name).map(|(_, signature)| signature)
    };
    let body = asked.delivery.body;
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", signed_at.as_bytes(), b".", body];
    let slot = slot_of(asked.secrets, |secret| match Key::of(secret) {
        Some(Key::Hmac(key)) => {
            let made = mac(hmac::HMAC_SHA256, &key, &signed);
            of_version("v1").any(|signature| is_same(signature, made.as_ref()))
        }
        Some(Key::Ed25519(key)) => {
            let message = signed.concat();
            of_version("v1a").any(|signature| is_ed25519(&key, &message, signature))
        }
        None => false,
    })?;
    check_age_s(asked.delivery, signed_at_s, asked.settings.age_max_s)?;
    Ok(slot)
}

/// By the symmetric key only: of the other kind there is just the public half.
pub fn sign(signing: &Signing<'_>) -> Option<Headers> {
    let Some(Key::Hmac(key)) = Key::of(signing.secret) else { return None };
    let new = signing.delivery.header("webhook-id").ok()?;
    let id = new.or(signing.delivery.header("svix-id").ok()?)?;
    let (at_s, body) = (&signing.at_s, signing.delivery.body);
    let made = mac(hmac::HMAC_SHA256, &key, &[id.as_bytes(), b".", at_s.as_bytes(), b".", body]);
    let signature = format!("v1,{}", to_base64(made));
    Some(headers(if new.is_some() {
        [("webhook-timestamp", at_s.clone()), ("webhook-signature", signature)]
    } else {
        [("svix-timestamp", at_s.clone()), ("svix-signature", signature)]
    }))
}

/// `type` and `timestamp` of the body are the standard's advice; only the header's id is sure to be there.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    timestamp: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Event<'_> = object(body)?;
    let id = header(asked, "id")?.map(str::to_owned);
    let mut found = event(asked.settings, body, id, text(wire.r#type).unwrap_or_default())?;
    found.created_us = rfc3339_us(wire.timestamp);
    Ok(Reading::of(found))
}
