//! What an endpoint knows before a delivery comes: scheme, account, mode, age, and whether its secrets can be used.

use super::crypto::unhex;
use super::scheme::hmac::HmacScheme;
use super::scheme::paypal::PayPal;
use super::scheme::standard_webhooks;
use crate::config::Secret;
use thiserror::Error;

/// How far from the time of receipt a signature may be made, seconds, where a scheme renews it at every attempt.
const AGE_MAX_S: u32 = 300;
/// Bytes of an Ed25519 public key.
const ED25519_KEY_BYTES: usize = 32;

/// How a provider signs, and what its bodies look like. One file each in `scheme/`.
#[derive(Clone, Debug)]
pub enum Scheme {
    /// Stripe snapshot events.
    Stripe,
    /// GitHub repositories, organisations and apps.
    GitHub,
    /// Shopify apps.
    Shopify,
    /// Twilio: forms, and JSON bodies by their hash in the URL.
    Twilio,
    /// Slack: events, slash commands and interactions.
    Slack,
    /// Discord webhook events.
    Discord,
    /// Mercado Pago notifications ("webhooks"; the older IPN is not signed).
    MercadoPago,
    /// Asaas: a token of ours in a header.
    Asaas,
    /// `PagBank` orders and charges.
    PagBank,
    /// Adyen standard webhooks: every item signed by itself.
    Adyen,
    /// Paddle Billing.
    Paddle,
    /// Square.
    Square,
    /// `PayPal`, by certificate.
    PayPal(PayPal),
    /// Standard Webhooks (Svix and many more).
    StandardWebhooks,
    /// Any other that signs by HMAC.
    Hmac(HmacScheme),
}

impl Scheme {
    /// The allowed age of a signature where nobody sets one.
    ///
    /// `None` where the signature has no time in it, and where it has but is not known to be renewed at each
    /// attempt (Mercado Pago, Discord, `PayPal`): there a limit would refuse the very retries that matter, and
    /// a repeated delivery changes nothing anyway, as its key is kept for ever.
    #[must_use]
    pub fn default_age_max_s(&self) -> Option<u32> {
        match self {
            Self::Stripe | Self::Slack | Self::Paddle | Self::StandardWebhooks => Some(AGE_MAX_S),
            Self::Hmac(hmac) => hmac.timestamp_header.is_some().then_some(AGE_MAX_S),
            _ => None,
        }
    }
}

/// Settings of one endpoint.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the provider signs.
    pub scheme: Scheme,
    /// The account of events whose body names none; `""` is the platform account.
    pub account: String,
    /// `live` or `test`: the mode of events whose body says none.
    pub mode: String,
    /// Allowed distance between signing and receipt, both ways and inclusive, seconds; `None` allows any.
    pub age_max_s: Option<u32>,
}

impl Settings {
    /// Settings with the platform account and the scheme's own age.
    #[must_use]
    pub fn new(scheme: Scheme, mode: &str) -> Self {
        let age_max_s = scheme.default_age_max_s();
        Self { scheme, account: String::new(), mode: mode.to_owned(), age_max_s }
    }
}

/// A secret that can never match. It names the slot and not the secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("secret {slot} {why}")]
pub struct UnusableSecret {
    /// Which secret, from 1; 0 when there is none at all.
    pub slot: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

/// Checks at the start that every secret can be used, so that a typing error is not found by refusing live
/// deliveries.
///
/// # Errors
/// The first secret that does not have its scheme's form, or that there is none (slot 0). `PayPal` has none and needs
/// none.
pub fn check_secrets(scheme: &Scheme, secrets: &[Secret]) -> Result<(), UnusableSecret> {
    if secrets.is_empty() && !matches!(scheme, Scheme::PayPal(_)) {
        return Err(UnusableSecret { slot: 0, why: "is missing: nothing could be verified" });
    }
    for (at, secret) in secrets.iter().enumerate() {
        if let Some(why) = fault(scheme, secret.reveal()) {
            return Err(UnusableSecret { slot: at + 1, why });
        }
    }
    Ok(())
}

fn fault(scheme: &Scheme, secret: &str) -> Option<&'static str> {
    if secret.is_empty() {
        return Some("is empty: anybody could sign with it");
    }
    let (is_usable, why) = match scheme {
        Scheme::Adyen => (unhex(&secret.to_ascii_lowercase()).is_some(), "is not hexadecimal"),
        Scheme::Discord => (
            unhex(&secret.to_ascii_lowercase()).is_some_and(|key| key.len() == ED25519_KEY_BYTES),
            "is no public key: 64 hexadecimal digits",
        ),
        Scheme::StandardWebhooks => {
            (standard_webhooks::Key::of(secret).is_some(), "is neither whsec_ nor whpk_ with base64")
        }
        Scheme::Hmac(hmac) => (hmac.key(secret).is_some(), "is not in the encoding that the scheme names"),
        Scheme::PayPal(_) => (false, "has no use: the scheme works by certificate"),
        _ => (true, ""),
    };
    (!is_usable).then_some(why)
}
