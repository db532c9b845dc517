//! One endpoint of each scheme, with keys that exist for tests only.

use super::reference::{base64, public_key};
use recon::config::Secret;
use recon::receive::{Encoding, Hash, HmacScheme, PayPal, Place, Scheme, Settings, Template, TrustedRoot};
use recon::record::hex;

pub const ED25519_SEED: [u8; 32] = [7; 32];
pub const ADYEN_KEY: &str = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
pub const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub const PAYPAL_WEBHOOK: &str = "WH-5WC17236HU3125339";
pub const PAYPAL_CHAIN: &[u8] = include_bytes!("../../../tests/receive/paypal/chain.pem");
const PAYPAL_ROOT: &[u8] = include_bytes!("../../../tests/receive/paypal/root.pem");
/// The public key of the first certificate of the chain (PKCS #1, DER).
pub const PAYPAL_KEY: &[u8] = include_bytes!("../../../tests/receive/paypal/leaf_key.der");

/// What is told to the verifier of a scheme.
pub struct Endpoint {
    pub name: &'static str,
    pub settings: Settings,
    /// The secret that signs; empty for `PayPal`.
    pub secret: String,
    /// One of the same form that never signs.
    pub other: String,
    /// Whether every bit of the body is signed.
    pub is_body_signed: bool,
    pub certificate: Option<&'static [u8]>,
}

/// Every scheme: the names are those of the targets.
pub const NAMES: [&str; 15] = [
    "stripe",
    "github",
    "shopify",
    "twilio",
    "slack",
    "discord",
    "mercado_pago",
    "asaas",
    "pagbank",
    "adyen",
    "paddle",
    "square",
    "paypal",
    "standard_webhooks",
    "hmac",
];

impl Endpoint {
    /// The endpoint of this name, if it is one.
    pub fn named(name: &str) -> Option<Self> {
        let name = NAMES.into_iter().find(|known| *known == name)?;
        let (scheme, secret, other) = scheme(name);
        let is_body_signed = !["twilio", "mercado_pago", "asaas", "adyen"].contains(&name);
        let certificate = (name == "paypal").then_some(PAYPAL_CHAIN);
        let settings = Settings::new(scheme, "live");
        Some(Self { name, settings, secret, other, is_body_signed, certificate })
    }

    /// What signs: the shared secret, and for Standard Webhooks the public key beside it.
    pub fn secrets(&self) -> Vec<Secret> {
        let mut secrets = vec![self.secret.clone()];
        if self.name == "standard_webhooks" {
            secrets.push(format!("whpk_{}", base64(&public_key())));
        }
        secrets.retain(|secret| !secret.is_empty());
        secrets.into_iter().map(Secret::new).collect()
    }
}

fn scheme(name: &str) -> (Scheme, String, String) {
    let (scheme, secret, other) = match name {
        "stripe" => (Scheme::Stripe, "whsec_test_secret", "whsec_other_secret"),
        "github" => (Scheme::GitHub, "It's a Secret to Everybody", "It's another"),
        "shopify" => (Scheme::Shopify, "hush", "hash"),
        "twilio" => (Scheme::Twilio, "12345", "12346"),
        "slack" => (Scheme::Slack, "8f742231b10e8888abcd99yyyzzz85a5", "8f742231b10e8888abcd99yyyzzz85a6"),
        "mercado_pago" => (Scheme::MercadoPago, "your_secret_key_here", "your_other_key_here"),
        "asaas" => (Scheme::Asaas, "a-token-that-we-chose", "another-that-we-chose"),
        "pagbank" => (Scheme::PagBank, "B1E2-token", "B1E3-token"),
        "adyen" => {
            (Scheme::Adyen, ADYEN_KEY, "74F490DD33F7327BAECC88B2947C011FC02D014A473AAA33A8EC93E4DC069174")
        }
        "paddle" => (Scheme::Paddle, "VALID_SECRET", "OTHER_SECRET"),
        "square" => (Scheme::Square, "Ibxx_5AKakO-3qeNVR61Dw", "Ibxx_5AKakO-3qeNVR61Dx"),
        "standard_webhooks" => {
            (Scheme::StandardWebhooks, STANDARD_SECRET, "whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        }
        "hmac" => (Scheme::Hmac(any_hmac()), "b3RoZXIgc2VjcmV0", "b3RoZXIgc2VjcmV1"),
        "discord" => return (Scheme::Discord, hex(&public_key()), "00".repeat(32)),
        _ => {
            let roots = TrustedRoot::from_pem(PAYPAL_ROOT);
            let scheme = Scheme::PayPal(PayPal { webhook_id: PAYPAL_WEBHOOK.to_owned(), roots });
            return (scheme, String::new(), String::new());
        }
    };
    (scheme, secret.to_owned(), other.to_owned())
}

fn any_hmac() -> HmacScheme {
    HmacScheme {
        signature_header: "X-Signature".to_owned(),
        prefix: "sha512=".to_owned(),
        hash: Hash::Sha512,
        encoding: Encoding::Base64,
        secret_encoding: Encoding::Base64,
        timestamp_header: Some("X-Time".to_owned()),
        signed: Template::parse("{method}\n{url}\n{timestamp}\n{body}").expect("a template"),
        event_id: Some(Place::Field(vec!["meta".to_owned(), "id".to_owned()])),
        event_type: Some(Place::Header("X-Event".to_owned())),
    }
}
