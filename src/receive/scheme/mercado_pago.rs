//! Mercado Pago: `x-signature: ts=<n>,v1=<hex>`, HMAC-SHA256 of a manifest of the query's `data.id`, `x-request-id` and `ts`.
//!
//! The body is not signed, so what it says of `data.id` must be what the query says; it is a pointer, and the
//! object is fetched. A part whose value is missing is left out of the manifest whole. The documentation lower-cases an
//! id with letters and the SDK does not: both are tried. `ts` has 13 digits (ms) in the documentation and counts as
//! seconds in the SDK. QR-code notifications are not signed at all. Source: sdk-nodejs `src/utils/webhook/index.ts`.

use super::stripe::parts;
use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, filled, hashed, mode, object, rfc3339_us, usable};
use crate::receive::crypto::{check_age, is_same, sha256_mac, slot_of, timestamp};
use crate::receive::delivery::Delivery;
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use crate::record::hex;
use serde::Deserialize;

/// From here on a timestamp is in milliseconds: as seconds it would lie in the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("x-signature")?.replace(' ', "");
    let (signed_at, candidates) = parts(&header, ',', "ts", "v1")?;
    let request_id = asked.delivery.header("x-request-id")?;
    let given = data_id(asked.delivery).unwrap_or_default();
    let manifests = [given.to_lowercase(), given].map(|id| manifest(&id, request_id, signed_at));
    let slot = slot_of(asked.secrets, |secret| {
        manifests.iter().any(|manifest| {
            let made = sha256_mac(secret, &[manifest.as_bytes()]);
            candidates.iter().any(|candidate| is_same(candidate, made.as_ref()))
        })
    })?;
    let time = timestamp(signed_at)?;
    let unit_us = if time >= MILLISECONDS_FROM { 1_000 } else { 1_000_000 };
    check_age(asked.delivery, time.saturating_mul(unit_us), asked.settings.age_max_s)?;
    Ok(slot)
}

/// `ts` in seconds, as the SDK reads it.
pub fn sign(signing: &Signing<'_>) -> Option<Headers> {
    let request_id = signing.delivery.header("x-request-id").ok()?;
    let id = data_id(signing.delivery).unwrap_or_default().to_lowercase();
    let manifest = manifest(&id, request_id, &signing.at_s);
    let made = hex(sha256_mac(signing.secret, &[manifest.as_bytes()]).as_ref());
    Some(headers([("x-signature", format!("ts={},v1={made}", signing.at_s))]))
}

fn data_id(delivery: &Delivery<'_>) -> Option<String> {
    delivery.query_field("data.id").map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}

fn manifest(data_id: &str, request_id: Option<&str>, signed_at: &str) -> String {
    let part = |name: &str, value: &str| {
        if value.is_empty() { String::new() } else { format!("{name}:{value};") }
    };
    let request_id = part("request-id", request_id.unwrap_or_default());
    format!("{}{request_id}{}", part("id", data_id), part("ts", signed_at))
}

#[derive(Deserialize)]
struct Notification<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    action: Field<'a>,
    #[serde(borrow)]
    data: Field<'a>,
    #[serde(borrow)]
    user_id: Field<'a>,
    #[serde(borrow)]
    live_mode: Field<'a>,
    #[serde(borrow)]
    date_created: Field<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    id: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Notification<'_> = object(body)?;
    let data = wire.data.and_then(|data| serde_json::from_str::<Data<'_>>(data.get()).ok());
    let pointed_at = data.and_then(|data| filled(data.id)).map(|id| id.to_lowercase());
    if pointed_at.is_some() && pointed_at != data_id(asked.delivery).map(|id| id.to_lowercase()) {
        return Err(Refusal::Contradiction);
    }
    // Notifications of the Orders API have no id of their own.
    let event_id = filled(wire.id).unwrap_or_else(|| hashed(body));
    let event_type = filled(wire.action).or_else(|| filled(wire.r#type)).unwrap_or_default();
    let mut found = event(asked.settings, body, Some(event_id), event_type)?;
    if let Some(user) = filled(wire.user_id) {
        found.account = usable(user)?;
    }
    if let Some(mode) = mode(wire.live_mode)? {
        mode.clone_into(&mut found.mode);
    }
    found.created_us = rfc3339_us(wire.date_created);
    Ok(Reading::of(found))
}
