//! `[provider.signature]`: what the kinds `hmac` and `paypal` need to be told.

use crate::config::{EndpointSettings, Unusable, suggestion};
use crate::receive::{Encoding, Hash, HmacScheme, PayPal, Place, Template, TrustedRoot};
use std::path::Path;

const HMAC_KEYS: [&str; 9] = [
    "header",
    "prefix",
    "hash",
    "encoding",
    "secret_encoding",
    "timestamp_header",
    "signed",
    "event_id",
    "event_type",
];
const PAYPAL_KEYS: [&str; 2] = ["webhook_id", "roots"];
/// Where Debian keeps the roots that its users trust.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A scheme that signs by HMAC.
pub(super) fn hmac(endpoint: &EndpointSettings) -> Result<HmacScheme, Unusable> {
    refuse_unknown(endpoint, &HMAC_KEYS)?;
    let text = |key: &str| endpoint.signature.get(key).map(String::as_str);
    let hash = match text("hash").unwrap_or("sha256") {
        "sha1" => Hash::Sha1,
        "sha256" => Hash::Sha256,
        "sha512" => Hash::Sha512,
        _ => return Err(bad(endpoint, "hash must be \"sha1\", \"sha256\" or \"sha512\"")),
    };
    let encoding = |key: &str, default: Encoding| match text(key) {
        None => Ok(default),
        Some("hex") => Ok(Encoding::Hex),
        Some("base64") => Ok(Encoding::Base64),
        Some("plain") if key == "secret_encoding" => Ok(Encoding::Plain),
        Some(_) => Err(bad(endpoint, &format!("{key} must be \"hex\" or \"base64\""))),
    };
    let signed = Template::parse(text("signed").unwrap_or("{body}"))
        .map_err(|why| bad(endpoint, &format!("signed {why}")))?;
    Ok(HmacScheme {
        signature_header: text("header").ok_or_else(|| bad(endpoint, "header is missing"))?.to_owned(),
        prefix: text("prefix").unwrap_or_default().to_owned(),
        hash,
        encoding: encoding("encoding", Encoding::Hex)?,
        secret_encoding: encoding("secret_encoding", Encoding::Plain)?,
        timestamp_header: text("timestamp_header").map(str::to_owned),
        signed,
        event_id: text("event_id").map(|place| read_place(endpoint, place)).transpose()?,
        event_type: text("event_type").map(|place| read_place(endpoint, place)).transpose()?,
    })
}

/// The webhook at `PayPal` and the roots that its certificates may lead to.
pub(super) fn paypal(endpoint: &EndpointSettings) -> Result<PayPal, Unusable> {
    refuse_unknown(endpoint, &PAYPAL_KEYS)?;
    let webhook_id = endpoint.signature.get("webhook_id").filter(|id| !id.is_empty());
    let webhook_id =
        webhook_id.ok_or_else(|| bad(endpoint, "webhook_id is missing: the WH-… of its dashboard"))?;
    let path = endpoint.signature.get("roots").map_or(SYSTEM_ROOTS, String::as_str);
    let pem = std::fs::read(Path::new(path))
        .map_err(|error| bad(endpoint, &format!("roots cannot be read from {path}: {error}")))?;
    let roots = TrustedRoot::from_pem(&pem);
    if roots.is_empty() {
        return Err(bad(endpoint, &format!("roots: {path} holds no certificate")));
    }
    Ok(PayPal { webhook_id: webhook_id.clone(), roots })
}

/// `header:X-Event-Id` or `body:data.id`.
fn read_place(endpoint: &EndpointSettings, text: &str) -> Result<Place, Unusable> {
    match text.split_once(':') {
        Some(("header", name)) if !name.is_empty() => Ok(Place::Header(name.to_owned())),
        Some(("body", path)) if !path.is_empty() => {
            Ok(Place::Field(path.split('.').map(str::to_owned).collect()))
        }
        _ => Err(bad(endpoint, "event_id and event_type are written as header:NAME or body:PATH")),
    }
}

fn refuse_unknown(endpoint: &EndpointSettings, known: &[&str]) -> Result<(), Unusable> {
    match endpoint.signature.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(Unusable::new(
            format!("[[provider]] {}: unknown setting `{key}` in signature", endpoint.name),
            suggestion(key, known),
        )),
    }
}

fn bad(endpoint: &EndpointSettings, why: &str) -> Unusable {
    Unusable::new(format!("[[provider]] {}: signature: {why}", endpoint.name), "see docs/receiving.md")
}
