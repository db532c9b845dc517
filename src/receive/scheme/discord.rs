//! Discord webhook events: Ed25519 of `{X-Signature-Timestamp}{body}` in `X-Signature-Ed25519`, hexadecimal.
//!
//! The "secret" is the app's public key. Discord sends bad signatures on purpose and drops an endpoint that
//! does not answer 401. Events have no id: the hash of the body is the key. Source: discord-api-docs
//! `developers/events/webhook-events.mdx`, `developers/interactions/overview.mdx`.

use crate::receive::body::{Field, Reading, event, hashed, instant_us, object, object_text, text};
use crate::receive::crypto::{check_age_s, is_ed25519, slot_of, timestamp, unhex};
use crate::receive::verdict::{Refusal, Reply};
use crate::receive::verify::Asked;
use serde::Deserialize;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("x-signature-ed25519")?;
    let signed_at = asked.delivery.signature("x-signature-timestamp")?;
    let given = unhex(header).ok_or(Refusal::MalformedSignature)?;
    let signed_at_s = timestamp(signed_at)?;
    let message = [signed_at.as_bytes(), asked.delivery.body].concat();
    let slot = slot_of(asked.secrets, |public_key| {
        unhex(&public_key.to_ascii_lowercase()).is_some_and(|key| is_ed25519(&key, &message, &given))
    })?;
    check_age_s(asked.delivery, signed_at_s, asked.settings.age_max_s)?;
    Ok(slot)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    event: Field<'a>,
}

#[derive(Deserialize)]
struct Inner<'a> {
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    timestamp: Field<'a>,
}

/// Type 0 is the PING of webhook events and 1 one event; without an event in it, 1 is the PING of an
/// interactions endpoint. Other interactions want an answer that only an app can give.
pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Envelope<'_> = object(body)?;
    let inner = match (text(wire.r#type).as_deref(), wire.event) {
        (Some("0"), _) => return Ok(Reading::reply(Reply::NoContent)),
        (Some("1"), None) => return Ok(Reading::reply(Reply::Pong)),
        (Some("1"), Some(inner)) => inner,
        _ => return Err(Refusal::Unsupported),
    };
    let inner: Inner<'_> = object_text(inner.get())?;
    let event_type = text(inner.r#type).unwrap_or_default();
    let mut found = event(asked.settings, body, Some(hashed(body)), event_type)?;
    found.created_us = text(inner.timestamp).and_then(|time| {
        // The documented example has no offset; it is taken as UTC.
        instant_us(&time).or_else(|| instant_us(&format!("{time}Z")))
    });
    Ok(Reading { events: vec![found], reply: Reply::NoContent })
}
