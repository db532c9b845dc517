//! What each provider would have signed, written a second time.
//!
//! Nothing of the program's own verification is used, so that both must be wrong in the same way to agree on a forgery.
//! Where the two could read one delivery differently, this one is the more generous: it only says what is certainly
//! not genuine.

use super::endpoints::{ADYEN_KEY, ED25519_SEED, Endpoint, PAYPAL_KEY, PAYPAL_WEBHOOK, STANDARD_SECRET};
use super::request::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use recon::record::hex;
use ring::hmac::{self, Algorithm, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA512};
use ring::signature::{Ed25519KeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Marks where the right signature is put in.
pub const MARK: &str = "{signature}";

/// The texts that may stand as the signature of this delivery; several where the provider has several ways.
pub fn signatures(endpoint: &Endpoint, request: &Request) -> Vec<String> {
    let body = request.body.as_slice();
    let key = endpoint.secret.as_bytes();
    match endpoint.name {
        "stripe" => timed(request, "stripe-signature", ',', "t", |t| sha256(key, &[t, b".", body])),
        "github" => vec![sha256(key, &[body])],
        "shopify" => vec![base64(&mac(HMAC_SHA256, key, &[body]))],
        "twilio" => twilio(request, key),
        "slack" => {
            let time = request.only("x-slack-request-timestamp").unwrap_or_default();
            vec![sha256(key, &[b"v0:", time.as_bytes(), b":", body])]
        }
        "discord" => {
            let time = request.only("x-signature-timestamp").unwrap_or_default();
            vec![hex(ed25519().sign(&[time.as_bytes(), body].concat()).as_ref())]
        }
        "mercado_pago" => mercado_pago(request, key),
        "asaas" => vec![endpoint.secret.clone()],
        "pagbank" => vec![hex(&Sha256::digest([key, b"-", body].concat()))],
        "adyen" => adyen_items(body).into_iter().map(|item| item.right).collect(),
        "paddle" => timed(request, "paddle-signature", ';', "ts", |t| sha256(key, &[t, b":", body])),
        "square" => vec![base64(&mac(HMAC_SHA256, key, &[request.url.as_bytes(), body]))],
        "standard_webhooks" => standard(request),
        "hmac" => {
            let time = request.only("x-time").unwrap_or_default();
            let head = format!("POST\n{}\n{time}\n", request.url);
            vec![base64(&mac(HMAC_SHA512, &unbase64(&endpoint.secret), &[head.as_bytes(), body]))]
        }
        _ => Vec::new(),
    }
}

/// Puts the right signatures where the marks are.
pub fn sign(endpoint: &Endpoint, request: &mut Request) {
    let right = signatures(endpoint, request);
    if endpoint.name == "adyen" {
        for text in right {
            if let Some(at) = super::request::position(&request.body, MARK.as_bytes()) {
                request.body.splice(at..at + MARK.len(), text.into_bytes());
            }
        }
    } else if let Some(first) = right.first() {
        request.replace_in_headers(MARK, first);
        if let Some(second) = right.get(1) {
            request.replace_in_headers("{second}", second);
        }
    }
}

/// Whether the delivery carries a signature that its provider could have made.
pub fn is_genuine(endpoint: &Endpoint, request: &Request) -> bool {
    let right = signatures(endpoint, request);
    let is_one = |given: &str| right.iter().any(|text| text == given);
    let header = |name: &str| request.only(name).unwrap_or_default();
    match endpoint.name {
        "stripe" => {
            header("stripe-signature").split(',').any(|item| item.strip_prefix("v1=").is_some_and(is_one))
        }
        "paddle" => {
            header("paddle-signature").split(';').any(|item| item.strip_prefix("h1=").is_some_and(is_one))
        }
        "mercado_pago" => {
            let header = header("x-signature").replace(' ', "");
            header.split(',').any(|item| item.strip_prefix("v1=").is_some_and(is_one))
        }
        "github" => header("x-hub-signature-256").strip_prefix("sha256=").is_some_and(is_one),
        "shopify" => is_one(&header("x-shopify-hmac-sha256")) || is_one(&header("shopify-hmac-sha256")),
        "twilio" => is_one(&header("x-twilio-signature")),
        "slack" => header("x-slack-signature").strip_prefix("v0=").is_some_and(is_one),
        "discord" => is_one(&header("x-signature-ed25519")),
        "asaas" => is_one(&header("asaas-access-token")),
        "pagbank" => is_one(&header("x-authenticity-token")),
        "adyen" => {
            let items = adyen_items(&request.body);
            !items.is_empty() && items.iter().all(|item| item.given == item.right)
        }
        "square" => is_one(&header("x-square-hmacsha256-signature")),
        "standard_webhooks" => {
            let header = request.only("webhook-signature").unwrap_or_else(|| header("svix-signature"));
            let is_right = |item: &str| {
                item.strip_prefix("v1,").is_some_and(|given| right.first().is_some_and(|text| text == given))
                    || item
                        .strip_prefix("v1a,")
                        .is_some_and(|given| right.get(1).is_some_and(|text| text == given))
            };
            header.split(' ').any(is_right)
        }
        "hmac" => header("x-signature").strip_prefix("sha512=").is_some_and(is_one),
        "paypal" => is_of_paypal(request),
        other => panic!("no reference for {other}"),
    }
}

/// The time of signing that the delivery states, where its scheme signs a time: Unix seconds, or milliseconds at
/// Mercado Pago, which has no limit of age.
pub fn signed_at_s(endpoint: &Endpoint, request: &Request) -> Option<i64> {
    let text = match endpoint.name {
        "stripe" => item(&request.only("stripe-signature")?, ',', "t")?,
        "paddle" => item(&request.only("paddle-signature")?, ';', "ts")?,
        "slack" => request.only("x-slack-request-timestamp")?,
        "standard_webhooks" => {
            request.only("webhook-timestamp").or_else(|| request.only("svix-timestamp"))?
        }
        "hmac" => request.only("x-time")?,
        "discord" => request.only("x-signature-timestamp")?,
        "mercado_pago" => item(&request.only("x-signature")?.replace(' ', ""), ',', "ts")?,
        _ => return None,
    };
    text.parse().ok()
}

fn item(header: &str, separator: char, name: &str) -> Option<String> {
    let mut items = header.split(separator).filter_map(|item| item.split_once('='));
    items.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
}

fn timed(
    request: &Request,
    header: &str,
    separator: char,
    name: &str,
    made: impl Fn(&[u8]) -> String,
) -> Vec<String> {
    let header = request.only(header).unwrap_or_default();
    item(&header, separator, name).map(|time| made(time.as_bytes())).into_iter().collect()
}

fn twilio(request: &Request, key: &[u8]) -> Vec<String> {
    let settings = request.only("x-twilio-webhooks-signature-settings").unwrap_or_default().to_uppercase();
    let algorithm =
        if settings.contains("HMAC_SHA256") { HMAC_SHA256 } else { HMAC_SHA1_FOR_LEGACY_USE_ONLY };
    let (_, query) = request.url.split_once('?').unwrap_or_default();
    let hash = format!("bodySHA256={}", hex(&Sha256::digest(&request.body)));
    let is_hashed = query.split(['&', '#']).any(|field| field == hash);
    let pairs: BTreeSet<(String, String)> = form_urlencoded::parse(&request.body).into_owned().collect();
    let fields: String = pairs.into_iter().flat_map(|(name, value)| [name, value]).collect();
    let mut urls = vec![request.url.clone()];
    if let Some((scheme, rest)) = request.url.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        urls.push(format!("{scheme}://{authority}:{port}{path}"));
        urls.extend(authority.rsplit_once(':').map(|(host, _)| format!("{scheme}://{host}{path}")));
    }
    // A body that the URL has the hash of is signed by the URL; every other one as a form.
    let texts = urls.iter().flat_map(|url| {
        let is_json = is_hashed || request.body.is_empty();
        [Some(format!("{url}{fields}")), is_json.then(|| url.clone())].into_iter().flatten()
    });
    let mut right: Vec<String> = texts.map(|text| base64(&mac(algorithm, key, &[text.as_bytes()]))).collect();
    if is_hashed && right.len() > 1 {
        right.swap(0, 1);
    }
    right
}

fn mercado_pago(request: &Request, key: &[u8]) -> Vec<String> {
    let header = request.only("x-signature").unwrap_or_default().replace(' ', "");
    let Some(time) = item(&header, ',', "ts") else { return Vec::new() };
    let url = request.url.split('#').next().unwrap_or_default();
    let (_, query) = url.split_once('?').unwrap_or_default();
    let id = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "data.id");
    let id = id.map(|(_, value)| value.trim().to_owned()).unwrap_or_default();
    let made = |id: &str| {
        let request_id = request.only("x-request-id").unwrap_or_default();
        let parts = [("id", id), ("request-id", request_id.as_str()), ("ts", time.as_str())];
        let filled = parts.into_iter().filter(|(_, value)| !value.is_empty());
        let manifest: Vec<String> = filled.map(|(name, value)| format!("{name}:{value};")).collect();
        sha256(key, &[manifest.concat().as_bytes()])
    };
    vec![made(&id.to_lowercase()), made(&id)]
}

/// One item of an Adyen body: the signature that it has, and the one that it ought to have.
struct AdyenItem {
    given: String,
    right: String,
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

fn adyen_items(body: &[u8]) -> Vec<AdyenItem> {
    let whole: Fields<'_> = serde_json::from_slice(body).unwrap_or_default();
    let items = whole.get("notificationItems").map(|raw| raw.get());
    let items: Vec<Fields<'_>> = items.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    items
        .iter()
        .map(|wrapped| {
            let item = wrapped.get("NotificationRequestItem").map(|raw| fields(raw)).unwrap_or_default();
            let inner = |name: &str| item.get(name).map(|raw| fields(raw)).unwrap_or_default();
            let (amount, data) = (inner("amount"), inner("additionalData"));
            let text = [
                scalar(&item, "pspReference"),
                scalar(&item, "originalReference"),
                scalar(&item, "merchantAccountCode"),
                scalar(&item, "merchantReference"),
                scalar(&amount, "value"),
                scalar(&amount, "currency"),
                scalar(&item, "eventCode"),
                scalar(&item, "success"),
            ];
            let right = base64(&mac(HMAC_SHA256, &unhex(ADYEN_KEY), &[text.join(":").as_bytes()]));
            AdyenItem { given: scalar(&data, "hmacSignature"), right }
        })
        .collect()
}

fn fields(raw: &RawValue) -> Fields<'_> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// A text, an integer or a truth value as text; empty for everything else.
fn scalar(fields: &Fields<'_>, name: &str) -> String {
    let raw = fields.get(name).map_or("", |raw| raw.get());
    if raw.starts_with('"') {
        return serde_json::from_str(raw).unwrap_or_default();
    }
    let is_integer = !raw.is_empty() && raw.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if is_integer || raw == "true" || raw == "false" { raw.to_owned() } else { String::new() }
}

/// By the shared key, and by the key pair.
fn standard(request: &Request) -> Vec<String> {
    let header = |name: &str| {
        let standard = request.only(&format!("webhook-{name}"));
        standard.or_else(|| request.only(&format!("svix-{name}"))).unwrap_or_default()
    };
    let text = [format!("{}.{}.", header("id"), header("timestamp")).as_bytes(), &request.body].concat();
    let key = unbase64(STANDARD_SECRET.trim_start_matches("whsec_"));
    vec![base64(&mac(HMAC_SHA256, &key, &[&text])), base64(ed25519().sign(&text).as_ref())]
}

fn is_of_paypal(request: &Request) -> bool {
    let header = |name: &str| request.only(name).unwrap_or_default();
    let sum = request.body.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
    });
    let (id, time) = (header("paypal-transmission-id"), header("paypal-transmission-time"));
    let message = format!("{id}|{time}|{PAYPAL_WEBHOOK}|{}", !sum);
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, PAYPAL_KEY);
    key.verify(message.as_bytes(), &unbase64(&header("paypal-transmission-sig"))).is_ok()
}

/// The pair whose public half is Discord's "secret" and the second of Standard Webhooks.
pub fn ed25519() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&ED25519_SEED).expect("a seed of 32 bytes")
}

pub fn public_key() -> Vec<u8> {
    ed25519().public_key().as_ref().to_vec()
}

fn mac(algorithm: Algorithm, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, key), &parts.concat()).as_ref().to_vec()
}

fn sha256(key: &[u8], parts: &[&[u8]]) -> String {
    hex(&mac(HMAC_SHA256, key, parts))
}

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn unbase64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
