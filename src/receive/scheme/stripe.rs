//! Stripe: `Stripe-Signature: t=<s>,v1=<hex>[,v1=<hex>…]`, HMAC-SHA256 of `{t}.{body}`.
//!
//! The key is the whole text `whsec_…`, not what it decodes to (the opposite of Standard Webhooks with the
//! same prefix). Only `v1` counts; several stand there while a secret is rolled. `t` is new at every attempt.
//! Source: stripe-python `stripe/_webhook.py`, which refuses old timestamps but no future ones; here both are.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, filled, mode, object, seconds_us, text};
use crate::receive::crypto::{check_age_s, is_same, sha256_mac, slot_of, timestamp, unhex};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use crate::record::hex;
use ring::hmac::Tag;
use serde::Deserialize;

/// Signatures in one header at most; more are not looked at.
const SIGNATURES_MAX: usize = 16;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("stripe-signature")?;
    let (signed_at, candidates) = parts(header, ',', "t", "v1")?;
    let slot = slot_of(asked.secrets, |secret| {
        let made = made(secret, signed_at, asked.delivery.body);
        candidates.iter().any(|candidate| is_same(candidate, made.as_ref()))
    })?;
    check_age_s(asked.delivery, timestamp(signed_at)?, asked.settings.age_max_s)?;
    Ok(slot)
}

fn made(secret: &str, signed_at: &str, body: &[u8]) -> Tag {
    sha256_mac(secret, &[signed_at.as_bytes(), b".", body])
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    let made = hex(made(signing.secret, &signing.at_s, signing.delivery.body).as_ref());
    headers([("stripe-signature", format!("t={},v1={made}", signing.at_s))])
}

/// The timestamp, and the signatures that are hexadecimal, of a header of `name=value` items.
///
/// # Errors
/// `MalformedSignature` without a numeric timestamp or with two, and without any signature of the version.
pub fn parts<'a>(
    header: &'a str,
    separator: char,
    time_name: &str,
    version: &str,
) -> Result<(&'a str, Vec<Vec<u8>>), Refusal> {
    let items = || header.split(separator).filter_map(|item| item.split_once('='));
    let mut times = items().filter(|(name, _)| *name == time_name).map(|(_, value)| value);
    let (Some(signed_at), None) = (times.next(), times.next()) else {
        return Err(Refusal::MalformedSignature);
    };
    timestamp(signed_at)?;
    let mut candidates = items().filter(|(name, _)| *name == version).take(SIGNATURES_MAX).peekable();
    if candidates.peek().is_none() {
        return Err(Refusal::MalformedSignature);
    }
    Ok((signed_at, candidates.filter_map(|(_, value)| unhex(value)).collect()))
}

/// The part of an event that makes its key. `created` is whole seconds and no order.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    object: Field<'a>,
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    account: Field<'a>,
    #[serde(borrow)]
    livemode: Field<'a>,
    #[serde(borrow)]
    created: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Event<'_> = object(body)?;
    if text(wire.object).as_deref() == Some("v2.core.event") {
        return Err(Refusal::Unsupported);
    }
    let mut found = event(asked.settings, body, text(wire.id), text(wire.r#type).unwrap_or_default())?;
    if let Some(account) = filled(wire.account) {
        found.account = crate::receive::body::usable(account)?;
    }
    if let Some(mode) = mode(wire.livemode)? {
        mode.clone_into(&mut found.mode);
    }
    found.created_us = seconds_us(wire.created);
    Ok(Reading::of(found))
}
