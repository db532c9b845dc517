//! GitHub: `X-Hub-Signature-256: sha256=<hex>`, HMAC-SHA256 of the body; no time in it.
//!
//! The GUID in `X-GitHub-Delivery` stays the same when a delivery is sent again. It is not signed: who holds a
//! signed body could send it under another GUID, which the effect key stops. The old `X-Hub-Signature` (SHA-1) is ignored.
//! Source: github/docs `validating-webhook-deliveries.md`, `best-practices-for-using-webhooks.md`.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, filled, form, form_field, object, object_text};
use crate::receive::crypto::{is_same, sha256_mac, slot_of, unhex};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use crate::record::hex;
use serde::Deserialize;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let header = asked.delivery.signature("x-hub-signature-256")?;
    let given = header.strip_prefix("sha256=").and_then(unhex).ok_or(Refusal::MalformedSignature)?;
    slot_of(asked.secrets, |secret| is_same(&given, sha256_mac(secret, &[asked.delivery.body]).as_ref()))
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    let made = hex(sha256_mac(signing.secret, &[signing.delivery.body]).as_ref());
    headers([("x-hub-signature-256", format!("sha256={made}"))])
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    action: Field<'a>,
}

/// A hook's content type may be a form: the JSON is then its field `payload`, and the form is what is signed.
pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let action = if asked.delivery.is_form()? {
        let payload = form_field(&form(body)?, "payload").ok_or(Refusal::MalformedBody)?;
        filled(object_text::<Payload<'_>>(&payload)?.action)
    } else {
        filled(object::<Payload<'_>>(body)?.action)
    };
    let name = asked.delivery.header("x-github-event")?.unwrap_or_default();
    let event_type = action.map_or_else(|| name.to_owned(), |action| format!("{name}.{action}"));
    let guid = asked.delivery.header("x-github-delivery")?;
    Ok(Reading::of(event(asked.settings, body, guid.map(str::to_owned), event_type)?))
}
