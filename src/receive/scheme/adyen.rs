//! Adyen standard webhooks: every item carries its own HMAC-SHA256, base64, in `additionalData.hmacSignature`.
//!
//! Signed are eight values joined by `:` without escaping, and nothing else: neither `eventDate` nor `reason`, nor `live`
//! beside the items. So the body is parsed first, and only the merchant's own reference may hold a colon: one moved
//! from another value would make the same text. The key is hexadecimal. Sources: adyen-python-api-library `Adyen/util.py`;
//! docs.adyen.com/development-resources/webhooks.

use crate::receive::again::Headers;
use crate::receive::body::{
    EVENTS_MAX, Field, Reading, event, filled, mode, object, range_of, rfc3339_us, text, usable, word,
};
use crate::receive::crypto::{is_same, mac, slot_of, unbase64, unhex};
use crate::receive::verdict::{Received, Refusal, Reply};
use crate::receive::verify::Asked;
use ring::hmac;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    live: Field<'a>,
    #[serde(borrow, rename = "notificationItems")]
    items: Vec<Wrapped<'a>>,
}

#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow, rename = "NotificationRequestItem")]
    item: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    #[serde(borrow)]
    psp_reference: Field<'a>,
    #[serde(borrow)]
    original_reference: Field<'a>,
    #[serde(borrow)]
    merchant_account_code: Field<'a>,
    #[serde(borrow)]
    merchant_reference: Field<'a>,
    #[serde(borrow)]
    amount: Option<Amount<'a>>,
    #[serde(borrow)]
    event_code: Field<'a>,
    #[serde(borrow)]
    success: Field<'a>,
    #[serde(borrow)]
    event_date: Field<'a>,
    #[serde(borrow)]
    additional_data: Option<AdditionalData<'a>>,
}

#[derive(Deserialize)]
struct Amount<'a> {
    #[serde(borrow)]
    value: Field<'a>,
    #[serde(borrow)]
    currency: Field<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdditionalData<'a> {
    #[serde(borrow)]
    hmac_signature: Field<'a>,
}

impl Item<'_> {
    /// The text that is signed.
    fn signed(&self) -> Result<String, Refusal> {
        let (value, currency) = self.amount.as_ref().map_or((None, None), |of| (of.value, of.currency));
        let values = [
            self.psp_reference,
            self.original_reference,
            self.merchant_account_code,
            self.merchant_reference,
            value,
            currency,
            self.event_code,
            self.success,
        ]
        .map(word);
        let others = values.iter().enumerate().filter(|(at, _)| *at != 3);
        if others.into_iter().any(|(_, value)| value.contains(':')) {
            return Err(Refusal::MalformedBody);
        }
        Ok(values.join(":"))
    }

    fn slot(&self, asked: &Asked<'_>) -> Result<usize, Refusal> {
        let given = self.additional_data.as_ref().and_then(|data| filled(data.hmac_signature));
        let given = unbase64(&given.ok_or(Refusal::MissingSignature)?).ok_or(Refusal::MalformedSignature)?;
        let signed = self.signed()?;
        slot_of(asked.secrets, |secret| {
            unhex(&secret.to_ascii_lowercase()).is_some_and(|key| {
                is_same(&given, mac(hmac::HMAC_SHA256, &key, &[signed.as_bytes()]).as_ref())
            })
        })
    }
}

fn batch(body: &[u8]) -> Result<Batch<'_>, Refusal> {
    let batch: Batch<'_> = object(body)?;
    match batch.items.len() {
        0 => Err(Refusal::MalformedBody),
        count if count > EVENTS_MAX => Err(Refusal::TooManyEvents),
        _ => Ok(batch),
    }
}

fn item<'a>(wrapped: &Wrapped<'a>) -> Result<Item<'a>, Refusal> {
    crate::receive::body::object_text(wrapped.item.get())
}

/// The slot of the first item; one bad item refuses the delivery, for Adyen sends all of it again.
pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let batch = batch(asked.delivery.body)?;
    let slots = batch.items.iter().map(|wrapped| item(wrapped)?.slot(asked));
    let slots = slots.collect::<Result<Vec<_>, Refusal>>()?;
    slots.first().copied().ok_or(Refusal::MissingSignature)
}

/// Its signature is inside of it.
pub fn sign() -> Headers {
    Vec::new()
}

/// The delivery of one item by itself, whose bytes these are.
pub fn wrapped(item: &[u8], mode: &str) -> Vec<u8> {
    let head = format!(r#"{{"live":"{}","notificationItems":[{{"NotificationRequestItem":"#, mode == "live");
    [head.as_bytes(), item, b"}]}"].concat()
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let batch = batch(asked.delivery.body)?;
    let mode = mode(batch.live)?;
    let events = batch.items.iter().map(|wrapped| {
        let mut found = of_item(asked, &item(wrapped)?)?;
        if let Some(mode) = mode {
            mode.clone_into(&mut found.mode);
        }
        found.body = range_of(asked.delivery.body, wrapped.item);
        Ok(found)
    });
    Ok(Reading { events: events.collect::<Result<_, Refusal>>()?, reply: Reply::Accepted })
}

/// There is no event id: code, reference and success make the key (none holds a colon, see [`Item::signed`]).
fn of_item(asked: &Asked<'_>, item: &Item<'_>) -> Result<Received, Refusal> {
    let reference = filled(item.psp_reference).ok_or(Refusal::NoIdentity)?;
    let code = filled(item.event_code).ok_or(Refusal::NoIdentity)?;
    let event_id = format!("{code}:{reference}:{}", word(item.success));
    let mut found = event(asked.settings, asked.delivery.body, Some(event_id), code)?;
    if let Some(account) = text(item.merchant_account_code) {
        found.account = usable(account)?;
    }
    found.created_us = rfc3339_us(item.event_date);
    Ok(found)
}
