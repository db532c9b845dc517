//! Slack: `X-Slack-Signature: v0=<hex>`, HMAC-SHA256 of `v0:{X-Slack-Request-Timestamp}:{body}`.
//!
//! A retry header changes nothing: the first try may have failed. Source: python-slack-sdk
//! `slack_sdk/signature`, which allows 300 s both ways; docs.slack.dev/reference/events.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{
    Field, Reading, event, filled, form, form_field, hashed, object, seconds_us, text, usable,
};
use crate::receive::crypto::{check_age_s, is_same, sha256_mac, slot_of, timestamp, unhex};
use crate::receive::verdict::{Received, Refusal, Reply};
use crate::receive::verify::Asked;
use crate::record::hex;
use serde::Deserialize;

/// Bytes of a challenge at most, as it is sent back.
const CHALLENGE_BYTES_MAX: usize = 1_024;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("x-slack-signature")?;
    let signed_at = asked.delivery.signature("x-slack-request-timestamp")?;
    let given = header.strip_prefix("v0=").and_then(unhex).ok_or(Refusal::MalformedSignature)?;
    let signed_at_s = timestamp(signed_at)?;
    let slot = slot_of(asked.secrets, |secret| {
        let made = sha256_mac(secret, &[b"v0:", signed_at.as_bytes(), b":", asked.delivery.body]);
        is_same(&given, made.as_ref())
    })?;
    check_age_s(asked.delivery, signed_at_s, asked.settings.age_max_s)?;
    Ok(slot)
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    let signed: [&[u8]; 4] = [b"v0:", signing.at_s.as_bytes(), b":", signing.delivery.body];
    let made = hex(sha256_mac(signing.secret, &signed).as_ref());
    headers([
        ("x-slack-signature", format!("v0={made}")),
        ("x-slack-request-timestamp", signing.at_s.clone()),
    ])
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    challenge: Field<'a>,
    #[serde(borrow)]
    team_id: Field<'a>,
    #[serde(borrow)]
    api_app_id: Field<'a>,
    #[serde(borrow)]
    event_id: Field<'a>,
    #[serde(borrow)]
    event_time: Field<'a>,
    #[serde(borrow)]
    event: Field<'a>,
    #[serde(borrow)]
    minute_rate_limited: Field<'a>,
}

#[derive(Deserialize)]
struct Inner<'a> {
    #[serde(borrow)]
    r#type: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    if asked.delivery.is_form()? {
        return Ok(Reading::of(of_form(asked)?));
    }
    let wire: Envelope<'_> = object(body)?;
    let kind = text(wire.r#type).unwrap_or_default();
    if kind == "url_verification" {
        let challenge = filled(wire.challenge).ok_or(Refusal::MalformedBody)?;
        let is_usable = challenge.len() <= CHALLENGE_BYTES_MAX && !challenge.chars().any(char::is_control);
        return if is_usable {
            Ok(Reading::reply(Reply::Challenge(challenge)))
        } else {
            Err(Refusal::MalformedBody)
        };
    }
    let team = filled(wire.team_id).unwrap_or_default();
    let event_id = match filled(wire.event_id) {
        Some(id) => Some(id),
        // It says which minute was cut off: a gap that must not be lost.
        None if kind == "app_rate_limited" => text(wire.minute_rate_limited)
            .map(|minute| format!("{kind}:{}:{minute}", text(wire.api_app_id).unwrap_or_default())),
        None => None,
    };
    let inner = wire.event.and_then(|inner| serde_json::from_str::<Inner<'_>>(inner.get()).ok());
    let event_type = inner.and_then(|inner| text(inner.r#type)).unwrap_or(kind);
    let mut found = event(asked.settings, body, event_id, event_type)?;
    if !team.is_empty() {
        found.account = usable(team)?;
    }
    found.created_us = seconds_us(wire.event_time).or_else(|| seconds_us(wire.minute_rate_limited));
    Ok(Reading::of(found))
}

/// Slash commands and interactions: sent once, without an id, each with a `trigger_id` of its own inside.
fn of_form(asked: &Asked<'_>) -> Result<Received, Refusal> {
    let fields = form(asked.delivery.body)?;
    let kind = if form_field(&fields, "command").is_some() { "slash_command" } else { "interaction" };
    let event_id = hashed(asked.delivery.body);
    let mut found = event(asked.settings, asked.delivery.body, Some(event_id), kind.to_owned())?;
    if let Some(team) = form_field(&fields, "team_id") {
        found.account = usable(team)?;
    }
    Ok(found)
}
