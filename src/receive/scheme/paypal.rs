//! `PayPal`: RSA with SHA-256 of `{transmission id}|{time}|{webhook id}|{CRC-32 of the body}`, by a certificate of theirs.
//!
//! The header names where the certificate lies, so whoever sends the request chooses it: it is fetched (not here) only
//! from hosts of `PayPal`, must lead to a trusted root and be made out to a name of `PayPal`. Only a 32-bit sum of
//! the body is signed, which does not stop somebody who has a signed delivery from making another body with that
//! sum: financial events are fetched again before they count. Sources: `PayPal-Python-SDK`
//! `paypalrestsdk/notifications.py`; developer.paypal.com/api/rest/webhooks/rest. That the host must be under
//! paypal.com is our rule; the SDK checks the certificate's name only.

use crate::receive::body::{Field, Reading, event, instant_us, object, rfc3339_us, text};
use crate::receive::crypto::{check_age, unbase64};
use crate::receive::delivery::Delivery;
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use serde::Deserialize;
use std::time::Duration;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert, ring};

/// Everything that `PayPal` serves lies below it.
const DOMAIN: &str = ".paypal.com";
/// Certificates in one chain at most.
const CHAIN_MAX: usize = 8;

/// What verifying needs besides the delivery.
#[derive(Clone, Debug)]
pub struct PayPal {
    /// The id that `PayPal` gave the webhook (`WH-…` in its dashboard); part of what is signed.
    pub webhook_id: String,
    /// Roots that a certificate may lead to; without any, nothing is trusted.
    pub roots: Vec<TrustedRoot>,
}

/// A root certificate.
#[derive(Clone, Debug)]
pub struct TrustedRoot(TrustAnchor<'static>);

impl TrustedRoot {
    /// A root from its DER form; `None` when it is no certificate.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let certificate = CertificateDer::from(der);
        anchor_from_trusted_cert(&certificate).ok().map(|anchor| Self(anchor.to_owned()))
    }

    /// Every root of a PEM text that can be read.
    #[must_use]
    pub fn from_pem(pem: &[u8]) -> Vec<Self> {
        let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        certificates.filter_map(|certificate| Self::from_der(&certificate)).collect()
    }
}

/// Where the certificate of a delivery lies. To be fetched over HTTPS, without following redirects, and kept by its URL.
///
/// # Errors
/// `MissingSignature` without one; `ForeignCertificate` when it is not an HTTPS URL of a host of `PayPal`.
pub fn certificate_url<'a>(delivery: &Delivery<'a>) -> Result<&'a str, Refusal> {
    let url = delivery.signature("paypal-cert-url")?;
    let rest = url.strip_prefix("https://").ok_or(Refusal::ForeignCertificate)?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    if is_plain && host.ends_with(DOMAIN) { Ok(url) } else { Err(Refusal::ForeignCertificate) }
}

pub fn authenticate(asked: &Asked<'_>, settings: &PayPal) -> Result<usize, Refusal> {
    let delivery = asked.delivery;
    let given =
        unbase64(delivery.signature("paypal-transmission-sig")?).ok_or(Refusal::MalformedSignature)?;
    let transmission_id = delivery.signature("paypal-transmission-id")?;
    let time = delivery.signature("paypal-transmission-time")?;
    let signed_at_us = instant_us(time).ok_or(Refusal::MalformedSignature)?;
    if !delivery.signature("paypal-auth-algo")?.eq_ignore_ascii_case("SHA256withRSA") {
        return Err(Refusal::Unsupported);
    }
    certificate_url(delivery)?;
    let pem = asked.certificate.ok_or(Refusal::NoCertificate)?;
    let sum = crc32(delivery.body);
    let message = format!("{transmission_id}|{time}|{}|{sum}", settings.webhook_id);
    check_certificate(pem, settings, delivery.received_at_us, message.as_bytes(), &given)?;
    check_age(delivery, signed_at_us, asked.settings.age_max_s)?;
    Ok(1)
}

/// The chain, the name, and then the signature.
fn check_certificate(
    pem: &[u8],
    settings: &PayPal,
    now_us: i64,
    message: &[u8],
    signature: &[u8],
) -> Result<(), Refusal> {
    let chain: Vec<CertificateDer<'_>> =
        CertificateDer::pem_slice_iter(pem).take(CHAIN_MAX).filter_map(Result::ok).collect();
    let (leaf, intermediates) = chain.split_first().ok_or(Refusal::UntrustedCertificate)?;
    let certificate = EndEntityCert::try_from(leaf).map_err(|_| Refusal::UntrustedCertificate)?;
    let roots: Vec<TrustAnchor<'_>> = settings.roots.iter().map(|root| root.0.clone()).collect();
    let now = Duration::from_micros(u64::try_from(now_us).unwrap_or(0));
    let now = UnixTime::since_unix_epoch(now);
    let usage = KeyUsage::server_auth();
    certificate
        .verify_for_usage(ALL_VERIFICATION_ALGS, &roots, intermediates, now, usage, None, None)
        .map_err(|_| Refusal::UntrustedCertificate)?;
    let is_theirs = |name: &str| name.to_ascii_lowercase().ends_with(DOMAIN);
    if !certificate.valid_dns_names().any(is_theirs) {
        return Err(Refusal::UntrustedCertificate);
    }
    certificate
        .verify_signature(ring::RSA_PKCS1_2048_8192_SHA256, message, signature)
        .map_err(|_| Refusal::WrongSignature)
}

/// CRC-32 as zlib has it (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    event_type: Field<'a>,
    #[serde(borrow)]
    create_time: Field<'a>,
}

pub fn read(asked: &Asked<'_>) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let wire: Wire<'_> = object(body)?;
    let event_type = text(wire.event_type).unwrap_or_default();
    let mut found = event(asked.settings, body, text(wire.id), event_type)?;
    found.created_us = rfc3339_us(wire.create_time);
    Ok(Reading::of(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_zlib() {
        assert_eq!((crc32(b""), crc32(b"123456789")), (0, 0xcbf4_3926));
    }

    #[test]
    fn certificates_lie_on_hosts_of_paypal_only() {
        let url = |url: &'static str| {
            let headers: [(&str, &[u8]); 1] = [("PAYPAL-CERT-URL", url.as_bytes())];
            let delivery =
                Delivery { method: "POST", url: "", headers: &headers, body: b"", received_at_us: 0 };
            certificate_url(&delivery).map(str::to_owned)
        };
        for good in
            ["https://api.paypal.com/v1/notifications/certs/CERT-1", "https://API.sandbox.PayPal.com/x"]
        {
            assert_eq!(url(good), Ok(good.to_owned()));
        }
        for bad in [
            "http://api.paypal.com/x",
            "https://paypal.com.evil.example/x",
            "https://evilpaypal.com/x",
            "https://evil.example/.paypal.com",
            "https://evil.example?.paypal.com",
            "https://evil.example#.paypal.com",
            "https://evil.example\\.paypal.com",
            "https://user@api.paypal.com/x",
            "https://evil.example:443@api.paypal.com/x",
            "https://api.paypal.com:8443/x",
            "https://api.paypal.com./x",
            "https:/api.paypal.com/x",
            "//api.paypal.com/x",
            "file:///etc/passwd",
        ] {
            assert_eq!(url(bad), Err(Refusal::ForeignCertificate), "{bad}");
        }
    }
}
