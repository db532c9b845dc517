//! Twilio: `X-Twilio-Signature`, base64 HMAC-SHA1 of the URL and, for a form, of its fields; no time in it.
//!
//! Names are sorted, and so are the values of one name, without repeats. A JSON body is signed by its hash in
//! the URL (`bodySHA256`). Whether Twilio put the port into what it signed varies, so both are tried. A newer header
//! names HMAC-SHA256 with a key of its own. Source: twilio-python `twilio/request_validator.py`.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{
    Field, Reading, event, filled, form, form_field, hashed, list, object, object_text, range_of, rfc3339_us,
    text, usable,
};
use crate::receive::crypto::{is_same, mac, slot_of, to_base64, unbase64};
use crate::receive::delivery::Delivery;
use crate::receive::verdict::{Received, Refusal, Reply};
use crate::receive::verify::Asked;
use crate::record::sha256_hex;
use ring::hmac;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

pub fn authenticate(asked: &Asked<'_>) -> Result<usize, Refusal> {
    let delivery = asked.delivery;
    let header = delivery.signature("x-twilio-signature")?;
    let given = unbase64(header).ok_or(Refusal::MalformedSignature)?;
    let algorithm = algorithm(delivery.header("x-twilio-webhooks-signature-settings")?)?;
    let mut fields = String::new();
    let mut body_sha256 = None;
    if is_form(delivery)? {
        fields = sorted(&form(delivery.body)?);
    } else if !delivery.body.is_empty() {
        body_sha256 = Some(delivery.query_field("bodySHA256").ok_or(Refusal::WrongContentType)?);
    }
    let urls = urls(delivery.url);
    let slot = slot_of(asked.secrets, |secret| {
        let made = |url: &String| mac(algorithm, secret.as_bytes(), &[url.as_bytes(), fields.as_bytes()]);
        urls.iter().any(|url| is_same(&given, made(url).as_ref()))
    })?;
    match body_sha256 {
        Some(signed) if !is_same(signed.as_bytes(), sha256_hex(delivery.body).as_bytes()) => {
            Err(Refusal::WrongSignature)
        }
        _ => Ok(slot),
    }
}

/// A body without a content type is a form unless the URL has the hash of one that is not.
fn is_form(delivery: &Delivery<'_>) -> Result<bool, Refusal> {
    let has_hash = || delivery.query_field("bodySHA256").is_some();
    Ok(delivery.is_form()? || (delivery.media_type()?.is_empty() && !has_hash()))
}

/// Of the URL without a port tried: it is signed as it is called. The hash of a body that is no form is in it already.
pub fn sign(signing: &Signing<'_>) -> Option<Headers> {
    let delivery = signing.delivery;
    let algorithm = algorithm(delivery.header("x-twilio-webhooks-signature-settings").ok()?).ok()?;
    let fields = if is_form(delivery).ok()? { sorted(&form(delivery.body).ok()?) } else { String::new() };
    let made = mac(algorithm, signing.secret.as_bytes(), &[delivery.url.as_bytes(), fields.as_bytes()]);
    Some(headers([("x-twilio-signature", to_base64(made))]))
}

/// The algorithm that `key=…,algorithm=…` names; none is HMAC-SHA1 with the account's token.
fn algorithm(settings: Option<&str>) -> Result<hmac::Algorithm, Refusal> {
    let mut items = settings.unwrap_or_default().split(',').filter_map(|item| item.split_once('='));
    let named = items.find(|(name, value)| name.trim() == "algorithm" && !value.trim().is_empty());
    match named.map(|(_, value)| value.trim().to_ascii_uppercase()).as_deref() {
        None | Some("HMAC_SHA1") => Ok(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        Some("HMAC_SHA256") => Ok(hmac::HMAC_SHA256),
        Some(_) => Err(Refusal::Unsupported),
    }
}

/// Every name with each of its values, sorted and without repeats.
fn sorted(fields: &[(String, String)]) -> String {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in fields {
        names.entry(name).or_default().insert(value);
    }
    let pairs = names.iter().flat_map(|(name, values)| values.iter().flat_map(move |value| [*name, *value]));
    pairs.collect()
}

/// The URL with its port, without it, and as it stands.
fn urls(url: &str) -> BTreeSet<String> {
    let whole = BTreeSet::from([url.to_owned()]);
    let Some((scheme, rest)) = url.split_once("://") else { return whole };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // An IPv6 host has colons inside its brackets.
    let host_end = authority.rfind(']').or_else(|| authority.rfind('@')).map_or(0, |at| at + 1);
    let colon = authority[host_end..].rfind(':').map(|at| host_end + at);
    let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let other = colon.map_or_else(
        || format!("{scheme}://{authority}:{port}{path}"),
        |colon| format!("{scheme}://{}{path}", &authority[..colon]),
    );
    whole.into_iter().chain([other]).collect()
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    if is_form(asked.delivery)? {
        return Ok(Reading::of(of_form(asked, &form(body)?)?));
    }
    if body.is_empty() {
        let fields = form(asked.delivery.query().as_bytes())?;
        return Ok(Reading::of(of_form(asked, &fields)?));
    }
    if !body.trim_ascii_start().starts_with(b"[") {
        return Ok(Reading::of(of_cloud_event(asked, &object(body)?, body)?));
    }
    let mut events = Vec::new();
    for item in list(body)? {
        let wire: CloudEvent<'_> = object_text(item.get())?;
        let mut found = of_cloud_event(asked, &wire, item.get().as_bytes())?;
        found.body = range_of(body, item);
        events.push(found);
    }
    if events.is_empty() { Err(Refusal::NoIdentity) } else { Ok(Reading { events, reply: Reply::Ok }) }
}

/// Status callbacks have no event id: the object and the status it reached are the key. A call's status repeats
/// (`in-progress` at every step of its `TwiML`), so without a sequence number the fields' hash is part of the key.
fn of_form(asked: &Asked<'_>, fields: &[(String, String)]) -> Result<Received, Refusal> {
    let field = |names: [&str; 2]| names.iter().find_map(|name| form_field(fields, name));
    let of_message = field(["MessageSid", "SmsSid"]).zip(field(["MessageStatus", "SmsStatus"]));
    let of_call = form_field(fields, "CallSid").zip(form_field(fields, "CallStatus"));
    let hash = hashed(sorted(fields).as_bytes());
    let (event_id, event_type) = match (of_message, of_call) {
        (Some((sid, status)), _) => (format!("{sid}:{status}"), format!("message.{status}")),
        (None, Some((sid, status))) => {
            let step = form_field(fields, "SequenceNumber").unwrap_or(hash);
            (format!("{sid}:{status}:{step}"), format!("call.{status}"))
        }
        (None, None) => (hash, String::new()),
    };
    let mut found = event(asked.settings, asked.delivery.body, Some(event_id), event_type)?;
    if let Some(account) = form_field(fields, "AccountSid") {
        found.account = usable(account)?;
    }
    Ok(found)
}

/// Event Streams send `CloudEvents`, many in one body.
#[derive(Deserialize)]
struct CloudEvent<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    r#type: Field<'a>,
    #[serde(borrow)]
    time: Field<'a>,
}

fn of_cloud_event(asked: &Asked<'_>, wire: &CloudEvent<'_>, bytes: &[u8]) -> Result<Received, Refusal> {
    let event_id = filled(wire.id).unwrap_or_else(|| hashed(bytes));
    let event_type = text(wire.r#type).unwrap_or_default();
    let mut found = event(asked.settings, asked.delivery.body, Some(event_id), event_type)?;
    found.created_us = rfc3339_us(wire.time);
    Ok(found)
}
