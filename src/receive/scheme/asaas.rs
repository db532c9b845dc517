//! Asaas: a token that we chose, in the header `asaas-access-token`; the body is not signed.
//!
//! Only the answer 200 counts as received. `dateCreated` names no zone, so no instant is made of it. Source:
//! docs.asaas.com/docs/sobre-os-webhooks, /docs/receive-asaas-events-at-your-webhook-endpoint.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, object, text};
use crate::receive::crypto::{is_same, slot_of};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use serde::Deserialize;

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let token = asked.delivery.signature("asaas-access-token")?;
    slot_of(asked.secrets, |secret| is_same(token.as_bytes(), secret.as_bytes()))
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    headers([("asaas-access-token", signing.secret.to_owned())])
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    event: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Event<'_> = object(body)?;
    let event_type = text(wire.event).unwrap_or_default();
    Ok(Reading::of(event(asked.settings, body, text(wire.id), event_type)?))
}
