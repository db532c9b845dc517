//! Paddle Billing: `Paddle-Signature: ts=<s>;h1=<hex>[;h1=<hex>…]`, HMAC-SHA256 of `{ts}:{body}`.
//!
//! Two `h1` stand there while a secret is rolled. The SDK for Node allows 5 s and only looks back; a retry is signed
//! anew. Source: paddle-node-sdk `src/notifications/helpers/webhooks-validator.ts`, paddle-go-sdk `webhook_verifier.go`.

use super::stripe::parts;
use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, object, rfc3339_us, text};
use crate::receive::crypto::{check_age_s, is_same, sha256_mac, slot_of, timestamp};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use crate::record::hex;
use serde::Deserialize;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("paddle-signature")?;
    let (signed_at, candidates) = parts(header, ';', "ts", "h1")?;
    let slot = slot_of(asked.secrets, |secret| {
        let made = sha256_mac(secret, &[signed_at.as_bytes(), b":", asked.delivery.body]);
        candidates.iter().any(|candidate| is_same(candidate, made.as_ref()))
    })?;
    check_age_s(asked.delivery, timestamp(signed_at)?, asked.settings.age_max_s)?;
    Ok(slot)
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    let made = sha256_mac(signing.secret, &[signing.at_s.as_bytes(), b":", signing.delivery.body]);
    headers([("paddle-signature", format!("ts={};h1={}", signing.at_s, hex(made.as_ref())))])
}

/// `notification_id` is one destination's, and new at a replay; `event_id` is the event's.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    event_id: Field<'a>,
    #[serde(borrow)]
    event_type: Field<'a>,
    #[serde(borrow)]
    occurred_at: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Wire<'_> = object(body)?;
    let event_type = text(wire.event_type).unwrap_or_default();
    let mut found = event(asked.settings, body, text(wire.event_id), event_type)?;
    found.created_us = rfc3339_us(wire.occurred_at);
    Ok(Reading::of(found))
}
