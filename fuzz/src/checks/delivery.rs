//! What must hold of every delivery, whoever made it.

use super::endpoints::Endpoint;
use super::reference::{is_genuine, sign, signatures, signed_at_s};
use super::request::Request;
use super::{Outcome, number};
use recon::config::Secret;
use recon::receive::{
    EVENTS_MAX, Refusal, Reply, TEXT_BYTES_MAX, Verified, authenticate, certificate_url, verify,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// A refusal is one byte: there is no room in it for anything of a delivery or of a secret.
const _: () = assert!(size_of::<Refusal>() == 1);
/// Longest challenge that is sent back, bytes.
const CHALLENGE_MAX: usize = 1_024;

/// A delivery as text, with the right signature put in where it asks for one.
pub fn check(endpoint: &Endpoint, data: &[u8]) -> Outcome {
    let mut request = Request::parse(data);
    sign(endpoint, &mut request);
    let secrets = endpoint.secrets();
    let slot = authenticated(endpoint, &secrets, &request);
    let verdict = verified(endpoint, &secrets, &request);
    assert_eq!(verdict, verified(endpoint, &secrets, &request), "{}: read twice", endpoint.name);
    match (&slot, &verdict) {
        (Ok(slot), Ok(verified)) => assert_eq!(*slot, verified.secret_slot, "{}", endpoint.name),
        (Err(left), right) => assert_eq!(Some(left), right.as_ref().err(), "{}", endpoint.name),
        (Ok(_), Err(_)) => {}
    }
    if slot.is_ok() {
        only_the_provider_signs(endpoint, &request);
    }
    match verdict {
        Ok(verified) => {
            usable(endpoint, &request, &verified);
            Outcome::Accepted
        }
        Err(refusal) => {
            assert!(Refusal::ALL.contains(&refusal) && (400..=503).contains(&refusal.status()));
            Outcome::Refused
        }
    }
}

fn authenticated(endpoint: &Endpoint, secrets: &[Secret], request: &Request) -> Result<usize, Refusal> {
    request.with(|delivery| authenticate(&endpoint.settings, secrets, delivery, endpoint.certificate))
}

fn verified(endpoint: &Endpoint, secrets: &[Secret], request: &Request) -> Result<Verified, Refusal> {
    request.with(|delivery| verify(&endpoint.settings, secrets, delivery, endpoint.certificate))
}

/// What was accepted is genuine by the reference, in time, and not so with one bit turned or by another secret.
fn only_the_provider_signs(endpoint: &Endpoint, request: &Request) {
    let name = endpoint.name;
    assert!(is_genuine(endpoint, request), "{name}: accepted, and not genuine");
    if let Some(age_max_s) = endpoint.settings.age_max_s {
        let signed_at_s = signed_at_s(endpoint, request).expect("a time of signing");
        let age_us = i128::from(request.at_us) - i128::from(signed_at_s) * 1_000_000;
        assert!(age_us.unsigned_abs() <= u128::from(age_max_s) * 1_000_000, "{name}: {age_us} µs old");
    }
    let secrets = endpoint.secrets();
    let seed = number(&request.body) ^ number(request.url.as_bytes());
    // Twilio signs a form's fields, so that two spellings are one value, but JSON by its hash.
    let is_body_signed = endpoint.is_body_signed || (name == "twilio" && is_json(request));
    if is_body_signed && !request.body.is_empty() {
        let mut turned = request.clone();
        turn(&mut turned.body, seed);
        let answer = authenticated(endpoint, &secrets, &turned);
        assert!(answer.is_err(), "{name}: a bit of the body is turned");
    }
    let mut turned = request.clone();
    for right in signatures(endpoint, request) {
        let mut bytes = right.clone().into_bytes();
        turn_low(&mut bytes, seed);
        let wrong = String::from_utf8(bytes).expect("ASCII stays ASCII");
        turned.replace_in_headers(&right, &wrong);
        turned.body = super::request::replaced(&turned.body, right.as_bytes(), wrong.as_bytes());
    }
    if turned != *request {
        let answer = authenticated(endpoint, &secrets, &turned);
        assert!(answer.is_err(), "{name}: a bit of the signature is turned");
    }
    for (what, changed) in with_other_signed_parts(endpoint, request) {
        let answer = authenticated(endpoint, &secrets, &changed);
        assert!(answer.is_err(), "{name}: {what} is signed, and was changed");
    }
    if !endpoint.other.is_empty() {
        let other = [Secret::new(endpoint.other.clone())];
        let answer = authenticated(endpoint, &other, request);
        assert_eq!(answer, Err(Refusal::WrongSignature), "{name}: another secret");
        // A rotation: the slot moves, and nothing else.
        let slot = authenticated(endpoint, &secrets, request);
        let both: Vec<Secret> = other.into_iter().chain(endpoint.secrets()).collect();
        assert_eq!(authenticated(endpoint, &both, request), slot.map(|slot| slot + 1), "{name}: rotation");
    }
    if name == "paypal" {
        let url = request.with(|delivery| certificate_url(delivery).map(str::to_owned));
        let host = url.expect("a host of PayPal").to_ascii_lowercase();
        let host =
            host.strip_prefix("https://").and_then(|rest| rest.split('/').next()).unwrap_or("").to_owned();
        let host = host.split(['?', '#']).next().unwrap_or("");
        assert!(host.ends_with(".paypal.com"), "the certificate is elsewhere");
    }
}

/// The delivery with another time, id or address, and the signature that it had.
fn with_other_signed_parts(endpoint: &Endpoint, request: &Request) -> Vec<(&'static str, Request)> {
    let mut changed = Vec::new();
    if let Some(time_s) = signed_at_s(endpoint, request) {
        let mut other = request.clone();
        other.replace_in_headers(&time_s.to_string(), &(time_s + 1).to_string());
        changed.extend((other != *request).then_some(("the time", other)));
    }
    for name in ["webhook-id", "paypal-transmission-id", "x-request-id"] {
        let is_signed = match endpoint.name {
            "standard_webhooks" => name == "webhook-id",
            "paypal" => name == "paypal-transmission-id",
            "mercado_pago" => name == "x-request-id",
            _ => false,
        };
        if let Some(value) = request.only(name).filter(|_| is_signed) {
            let mut other = request.clone();
            other.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
            other.headers.push((name.to_owned(), format!("{value}x").into_bytes()));
            changed.push(("an id", other));
        }
    }
    if ["square", "twilio", "hmac"].contains(&endpoint.name) {
        changed.push(("the address", Request { url: format!("{}x", request.url), ..request.clone() }));
    }
    changed
}

fn turn(bytes: &mut [u8], seed: u64) {
    let at = usize::try_from(seed % (bytes.len() as u64 * 8)).expect("a place in it");
    bytes[at / 8] ^= 1 << (at % 8);
}

/// Turns one of the low seven bits, so that text stays text.
fn turn_low(bytes: &mut [u8], seed: u64) {
    let at = usize::try_from(seed % (bytes.len() as u64 * 7)).expect("a place in it");
    bytes[at / 7] ^= 1 << (at % 7);
}

fn is_json(request: &Request) -> bool {
    request.only("content-type").is_some_and(|media| media.starts_with("application/json"))
}

/// The events can be kept under their keys, and the answer can be sent.
fn usable(endpoint: &Endpoint, request: &Request, verified: &Verified) {
    let name = endpoint.name;
    assert!(verified.events.len() <= EVENTS_MAX, "{name}");
    let mut end = 0;
    for found in &verified.events {
        assert!(!found.event_id.is_empty(), "{name}: an empty id");
        for text in [&found.event_id, &found.event_type, &found.account] {
            let is_usable = text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control);
            assert!(is_usable, "{name}: a text that no column holds");
        }
        assert!(["live", "test"].contains(&found.mode.as_str()), "{name}: a mode");
        assert!(end <= found.body.start && found.body.end <= request.body.len(), "{name}: a range");
        end = found.body.end;
        let bytes = &request.body[found.body.clone()];
        let is_batch = verified.events.len() > 1 || found.body != (0..request.body.len());
        if is_batch {
            assert!(serde_json::from_slice::<&RawValue>(bytes).is_ok(), "{name}: an item that is no JSON");
        }
        let whole = serde_json::from_slice::<Value>(bytes);
        let is_too_deep = |error: &serde_json::Error| error.to_string().starts_with("recursion limit");
        let may_be_form = ["twilio", "github", "slack"].contains(&name) && !is_json(request);
        let is_lost = !may_be_form && whole.as_ref().is_err_and(is_too_deep);
        assert!(!is_lost, "{name}: kept, and too deep to be read");
        // Some numbers and texts that are JSON are none to this reader.
        if let Ok(whole) = whole {
            says_so(endpoint, &whole, &found.event_id);
            if name == "mercado_pago" {
                points_where_the_query_does(&request.url, &whole);
            }
        }
    }
    let body = verified.reply.body();
    let is_plain = body.len() <= CHALLENGE_MAX && !body.chars().any(char::is_control);
    assert!(is_plain && [200, 204].contains(&verified.reply.status()), "{name}: a reply");
    if verified.events.is_empty() {
        let is_handshake = matches!(verified.reply, Reply::Challenge(_) | Reply::Pong | Reply::NoContent);
        assert!(is_handshake, "{name}: neither events nor a handshake");
    }
}

/// The id is the one that an ordinary reader of JSON sees, where the scheme takes it from one field.
fn says_so(endpoint: &Endpoint, whole: &Value, event_id: &str) {
    let field = match endpoint.name {
        "stripe" | "asaas" | "paypal" => "/id",
        "paddle" | "square" => "/event_id",
        "hmac" => "/meta/id",
        _ => return,
    };
    match whole.pointer(field) {
        Some(Value::String(text)) => assert_eq!(text, event_id, "{}", endpoint.name),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {
            let is_same = number.to_string() == event_id || event_id == "-0";
            assert!(is_same, "{}: {number} is not {event_id}", endpoint.name);
        }
        Some(Value::Number(_)) => {}
        other => panic!("{}: {event_id} came from {other:?}", endpoint.name),
    }
}

/// Mercado Pago signs the query and not the body: what the body points at is what is signed.
fn points_where_the_query_does(url: &str, whole: &Value) {
    let Some(Value::String(id)) = whole.pointer("/data/id") else { return };
    let (_, query) = url.split('#').next().and_then(|url| url.split_once('?')).unwrap_or_default();
    let signed = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "data.id");
    let signed = signed.map(|(_, value)| value.trim().to_lowercase()).unwrap_or_default();
    assert!(id.is_empty() || id.to_lowercase() == signed, "mercado_pago: {id} is not {signed}");
}
