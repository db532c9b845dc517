//! `PagBank`: `x-authenticity-token`, the plain SHA-256 in hexadecimal of `{token}-{body}`; no time in it.
//!
//! A hash with a secret in front can be lengthened by whoever has one; the longer body is not JSON, so reading it
//! strictly refuses it. Recurring payments carry `X-Payload-Signature` instead, which is not documented. There is no
//! event id: charge, status and sums make the key. Source:
//! developer.pagbank.com.br/reference/confirmar-autenticidade-da-notificacao; the dash from public implementations.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Field, Reading, event, filled, hashed, object, text, word};
use crate::receive::crypto::{is_same, slot_of, unhex};
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use crate::record::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let Some(header) = asked.delivery.header("x-authenticity-token")? else {
        let is_recurring = asked.delivery.header("x-payload-signature")?.is_some();
        return Err(if is_recurring { Refusal::Unsupported } else { Refusal::MissingSignature });
    };
    let given = unhex(header).ok_or(Refusal::MalformedSignature)?;
    slot_of(asked.secrets, |token| is_same(&given, &hash(token, asked.delivery.body)))
}

fn hash(token: &str, body: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(token).chain_update("-").chain_update(body).finalize().into()
}

pub fn sign(signing: &Signing<'_>) -> Headers {
    headers([("x-authenticity-token", hex(&hash(signing.secret, signing.delivery.body)))])
}

/// An order with its charges, or one charge by itself.
#[derive(Deserialize)]
struct Notification<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    amount: Field<'a>,
    #[serde(borrow)]
    charges: Option<Vec<Charge<'a>>>,
}

#[derive(Deserialize)]
struct Charge<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    amount: Field<'a>,
}

#[derive(Deserialize)]
struct Amount<'a> {
    #[serde(borrow)]
    summary: Field<'a>,
}

#[derive(Deserialize)]
struct Summary<'a> {
    #[serde(borrow)]
    paid: Field<'a>,
    #[serde(borrow)]
    refunded: Field<'a>,
}

/// One event a delivery: what it says of its charges belongs together. With several charges the key is the
/// order's id with the hash of what it says of them.
pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Notification<'_> = object(body)?;
    let id = filled(wire.id).ok_or(Refusal::NoIdentity)?;
    let charges = wire.charges.unwrap_or_default();
    let (event_id, status) = match charges.as_slice() {
        [] if wire.status.is_some() => {
            (step(&id, wire.status, wire.amount), text(wire.status).unwrap_or_default())
        }
        [] => (format!("{id}:{}", hashed(body)), String::new()),
        [charge] => {
            let charge_id = filled(charge.id).ok_or(Refusal::NoIdentity)?;
            let status = text(charge.status).unwrap_or_default();
            (step(&charge_id, charge.status, charge.amount), status)
        }
        many => {
            let steps = many.iter().map(|charge| {
                let charge_id = filled(charge.id).ok_or(Refusal::NoIdentity)?;
                Ok(step(&charge_id, charge.status, charge.amount))
            });
            let steps = steps.collect::<Result<Vec<_>, Refusal>>()?.join("|");
            (format!("{id}:{}", hashed(steps.as_bytes())), String::new())
        }
    };
    Ok(Reading::of(event(asked.settings, body, Some(event_id), status)?))
}

/// `charge:status:paid:refunded`. A partial refund changes sums and may leave the status.
fn step(id: &str, status: Field<'_>, amount: Field<'_>) -> String {
    let amount = amount.and_then(|raw| serde_json::from_str::<Amount<'_>>(raw.get()).ok());
    let summary = amount.and_then(|amount| amount.summary);
    let summary = summary.and_then(|raw| serde_json::from_str::<Summary<'_>>(raw.get()).ok());
    let (paid, refunded) = summary.map_or((None, None), |summary| (summary.paid, summary.refunded));
    format!("{id}:{}:{}:{}", word(status), word(paid), word(refunded))
}
