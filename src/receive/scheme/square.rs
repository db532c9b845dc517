//! Square: `x-square-hmacsha256-signature`, base64 HMAC-SHA256 of `{notification URL}{body}`; no time in it.
//!
//! The URL is the one that was registered, byte for byte. Source: square-python-sdk
//! `src/square/utils/webhooks_helper.py`.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, filled, object, rfc3339_us, text, usable};
use crate::receive::crypto::{is_same, sha256_mac, slot_of, to_base64, unbase64};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use serde::Deserialize;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("x-square-hmacsha256-signature")?;
    let given = unbase64(header).ok_or(Refusal::MalformedSignature)?;
    slot_of(asked.secrets, |secret| {
        let made = sha256_mac(secret, &[asked.delivery.url.as_bytes(), asked.delivery.body]);
        is_same(&given, made.as_ref())
    })
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    let made = sha256_mac(signing.secret, &[signing.delivery.url.as_bytes(), signing.delivery.body]);
    headers([("x-square-hmacsha256-signature", to_base64(made))])
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    event_id: Field<'a>,
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    merchant_id: Field<'a>,
    #[serde(borrow)]
    created_at: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Wire<'_> = object(body)?;
    let event_type = text(wire.r#type).unwrap_or_default();
    let mut found = event(asked.settings, body, text(wire.event_id), event_type)?;
    if let Some(merchant) = filled(wire.merchant_id) {
        found.account = usable(merchant)?;
    }
    found.created_us = rfc3339_us(wire.created_at);
    Ok(Reading::of(found))
}
