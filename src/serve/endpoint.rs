//! The endpoints of the receiver, from `[[provider]]`.

use super::described::{hmac, paypal};
use crate::config::{EndpointKind, EndpointSettings, Secret, Unusable};
use crate::receive::{Scheme, Settings, check_secrets};
use std::collections::BTreeMap;

/// One `POST /webhooks/{provider}`.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider's name, the last part of the path.
    pub name: String,
    /// How deliveries are verified.
    pub settings: Settings,
    /// Secrets that may have signed.
    pub secrets: Vec<Secret>,
    /// The URL under which the provider calls, where it is signed.
    pub public_url: Option<String>,
}

/// The endpoints that can take deliveries, by name. Providers without secrets have none.
///
/// # Errors
/// When a secret cannot be used, or there is no endpoint at all.
pub fn endpoints(configured: &[EndpointSettings]) -> Result<BTreeMap<String, Endpoint>, Unusable> {
    let mut endpoints = BTreeMap::new();
    for one in configured {
        let needs_secret = one.kind != EndpointKind::PayPal;
        if needs_secret && one.secrets.is_empty() {
            tracing::warn!(
                provider = one.name,
                "{} has no webhook_secrets: its deliveries are not taken",
                one.name
            );
            continue;
        }
        let scheme = scheme_of(one)?;
        refuse_unverifiable(one, &scheme)?;
        check_secrets(&scheme, &one.secrets).map_err(|why| {
            Unusable::new(
                format!("[[provider]] {}: webhook_secrets: {why}", one.name),
                "copy it from the provider's page of this endpoint",
            )
        })?;
        let mut settings = Settings::new(scheme, &one.mode);
        if settings.age_max_s.is_some() {
            settings.age_max_s = u32::try_from(one.tolerance.as_secs()).ok();
        }
        let endpoint = Endpoint {
            name: one.name.clone(),
            settings,
            secrets: one.secrets.clone(),
            public_url: one.public_url.clone(),
        };
        endpoints.insert(one.name.clone(), endpoint);
    }
    if endpoints.is_empty() {
        return Err(Unusable::new(
            "no [[provider]] has webhook_secrets: there is nothing to receive",
            "write webhook_secrets = [{ env = \"STRIPE_WEBHOOK_SECRET\" }]",
        ));
    }
    Ok(endpoints)
}

/// What is signed must be known here: without it no delivery of the provider could be verified, but one over what stands
/// in its place could.
fn refuse_unverifiable(one: &EndpointSettings, scheme: &Scheme) -> Result<(), Unusable> {
    let signs_url = match scheme {
        Scheme::Twilio | Scheme::Square => true,
        Scheme::Hmac(hmac) => hmac.signed.has_url(),
        _ => false,
    };
    if signs_url && one.public_url.is_none() {
        return Err(Unusable::new(
            format!("[[provider]] {}: webhook_url is missing, and it is part of what is signed", one.name),
            "write the URL as the provider calls it, such as webhook_url = \"https://pay.example.com/webhooks/twilio\"",
        ));
    }
    match scheme {
        Scheme::Hmac(hmac) if hmac.signed.has_timestamp() && hmac.timestamp_header.is_none() => {
            Err(Unusable::new(
                format!(
                    "[[provider]] {}: signature: signed names {{timestamp}}, and there is no timestamp_header",
                    one.name
                ),
                "name the header that the time stands in",
            ))
        }
        _ => Ok(()),
    }
}

/// How an endpoint's deliveries are signed.
///
/// # Errors
/// When what describes it cannot be used.
pub fn scheme_of(one: &EndpointSettings) -> Result<Scheme, Unusable> {
    let is_described = matches!(one.kind, EndpointKind::PayPal | EndpointKind::Hmac);
    if !is_described && !one.signature.is_empty() {
        return Err(Unusable::new(
            format!("[[provider]] {}: signature means nothing for {}", one.name, one.kind.as_str()),
            "leave it out",
        ));
    }
    Ok(match one.kind {
        EndpointKind::Stripe => Scheme::Stripe,
        EndpointKind::GitHub => Scheme::GitHub,
        EndpointKind::Shopify => Scheme::Shopify,
        EndpointKind::Twilio => Scheme::Twilio,
        EndpointKind::Slack => Scheme::Slack,
        EndpointKind::Discord => Scheme::Discord,
        EndpointKind::MercadoPago => Scheme::MercadoPago,
        EndpointKind::Asaas => Scheme::Asaas,
        EndpointKind::PagBank => Scheme::PagBank,
        EndpointKind::Adyen => Scheme::Adyen,
        EndpointKind::Paddle => Scheme::Paddle,
        EndpointKind::Square => Scheme::Square,
        EndpointKind::StandardWebhooks => Scheme::StandardWebhooks,
        EndpointKind::PayPal => Scheme::PayPal(paypal(one)?),
        EndpointKind::Hmac => Scheme::Hmac(hmac(one)?),
    })
}
