//! The way of a delivery: signature first, over the bytes as they came; then what it holds.

use super::body::Reading;
use super::delivery::Delivery;
use super::scheme::{
    adyen, asaas, discord, github, hmac, mercado_pago, paddle, pagbank, paypal, shopify, slack, square,
    standard_webhooks, stripe, twilio,
};
use super::settings::{Scheme, Settings};
use super::verdict::{Refusal, Verified};
use crate::config::Secret;

/// What a scheme's file is asked about.
pub(super) struct Asked<'a> {
    pub settings: &'a Settings,
    pub secrets: &'a [Secret],
    pub delivery: &'a Delivery<'a>,
    /// PEM text of the certificate that the delivery names, where its scheme works by certificate.
    pub certificate: Option<&'a [u8]>,
}

/// Verifies a delivery and finds its events.
///
/// `certificate` is the PEM text behind [`super::certificate_url`]; only `PayPal` has one. All events of a
/// delivery are good or the whole delivery is refused.
///
/// # Errors
/// Why the delivery is refused; nothing of it may be stored then.
pub fn verify(
    settings: &Settings,
    secrets: &[Secret],
    delivery: &Delivery<'_>,
    certificate: Option<&[u8]>,
) -> Result<Verified, Refusal> {
    let asked = Asked { settings, secrets, delivery, certificate };
    let secret_slot = authenticated(&asked)?;
    let Reading { events, reply } = read(&asked)?;
    Ok(Verified { secret_slot, events, reply })
}

/// Whether the provider made this delivery: which secret signed it, from 1. Nothing of the body is read (but see Adyen).
///
/// # Errors
/// As for [`verify`], without what concerns the body.
pub fn authenticate(
    settings: &Settings,
    secrets: &[Secret],
    delivery: &Delivery<'_>,
    certificate: Option<&[u8]>,
) -> Result<usize, Refusal> {
    authenticated(&Asked { settings, secrets, delivery, certificate })
}

fn authenticated(asked: &Asked<'_>) -> Result<usize, Refusal> {
    match &asked.settings.scheme {
        Scheme::Stripe => stripe::authenticate(asked),
        Scheme::GitHub => github::authenticate(asked),
        Scheme::Shopify => shopify::authenticate(asked),
        Scheme::Twilio => twilio::authenticate(asked),
        Scheme::Slack => slack::authenticate(asked),
        Scheme::Discord => discord::authenticate(asked),
        Scheme::MercadoPago => mercado_pago::authenticate(asked),
        Scheme::Asaas => asaas::authenticate(asked),
        Scheme::PagBank => pagbank::authenticate(asked),
        Scheme::Adyen => adyen::authenticate(asked),
        Scheme::Paddle => paddle::authenticate(asked),
        Scheme::Square => square::authenticate(asked),
        Scheme::PayPal(paypal) => paypal::authenticate(asked, paypal),
        Scheme::StandardWebhooks => standard_webhooks::authenticate(asked),
        Scheme::Hmac(hmac) => hmac::authenticate(asked, hmac),
    }
}

fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    match &asked.settings.scheme {
        Scheme::Stripe => stripe::read(asked),
        Scheme::GitHub => github::read(asked),
        Scheme::Shopify => shopify::read(asked),
        Scheme::Twilio => twilio::read(asked),
        Scheme::Slack => slack::read(asked),
        Scheme::Discord => discord::read(asked),
        Scheme::MercadoPago => mercado_pago::read(asked),
        Scheme::Asaas => asaas::read(asked),
        Scheme::PagBank => pagbank::read(asked),
        Scheme::Adyen => adyen::read(asked),
        Scheme::Paddle => paddle::read(asked),
        Scheme::Square => square::read(asked),
        Scheme::PayPal(_) => paypal::read(asked),
        Scheme::StandardWebhooks => standard_webhooks::read(asked),
        Scheme::Hmac(hmac) => hmac::read(asked, hmac),
    }
}
