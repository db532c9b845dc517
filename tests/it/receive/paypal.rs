//! `PayPal`: certificate, chain, name and signature. Nobody here can sign for `PayPal`, so root, chain and signatures
//! are made for this test (`tests/receive/paypal/`, valid 2024 to 2027; the private keys were thrown away).

use super::{Sample, T, settings};
use recon::receive::{PayPal, Refusal, Scheme, Settings, TrustedRoot};
use std::path::Path;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receive/paypal").join(name)).unwrap()
}

fn signed_by(chain: &str, signature: &str) -> Sample {
    let signature = String::from_utf8(read(signature)).unwrap();
    let sample = Sample::new(read("body.json"))
        .header("PAYPAL-TRANSMISSION-ID", "69cd13f0-d67a-11e5-baa3-778b53f4ae55")
        .header("PAYPAL-TRANSMISSION-TIME", "2026-01-01T00:00:00Z")
        .header("PAYPAL-TRANSMISSION-SIG", signature.trim())
        .header("PAYPAL-CERT-URL", "https://api.paypal.com/v1/notifications/certs/CERT-360caa42")
        .header("PAYPAL-AUTH-ALGO", "SHA256withRSA");
    Sample { certificate: Some(read(chain)), ..sample }
}

/// A delivery that `PayPal` could have made.
pub fn sample() -> Sample {
    signed_by("chain.pem", "signature.txt")
}

fn endpoint(webhook_id: &str, root: &str) -> Settings {
    let roots = TrustedRoot::from_pem(&read(root));
    settings(Scheme::PayPal(PayPal { webhook_id: webhook_id.to_owned(), roots }))
}

pub const WEBHOOK: &str = "WH-5WC17236HU3125339";

fn slot(sample: &Sample) -> Result<usize, Refusal> {
    sample.slot(&endpoint(WEBHOOK, "root.pem"), &[])
}

#[test]
fn a_delivery_of_paypal_is_verified() {
    let verified = sample().verify(&endpoint(WEBHOOK, "root.pem"), &[]).unwrap();
    let found = &verified.events[0];
    assert_eq!(found.event_id, "WH-7MU294299R542214K-4N1831857K851783H");
    assert_eq!(found.event_type, "PAYMENT.CAPTURE.COMPLETED");
    assert_eq!(found.created_us, Some(T * 1_000_000 + 123_000));
}

#[test]
fn what_is_signed_cannot_be_changed() {
    for (at, name) in ["PAYPAL-TRANSMISSION-ID", "PAYPAL-TRANSMISSION-TIME"].into_iter().enumerate() {
        let other = ["69cd13f0-d67a-11e5-baa3-778b53f4ae56", "2026-01-01T00:00:01Z"][at];
        let changed = sample().without(name).header(name, other);
        assert_eq!(slot(&changed), Err(Refusal::WrongSignature), "{name}");
    }
    let other_webhook = sample().slot(&endpoint("WH-other", "root.pem"), &[]);
    assert_eq!(other_webhook, Err(Refusal::WrongSignature));
    for (at, body) in super::every_bit(&sample().body).enumerate().filter(|(at, _)| at % 37 == 0) {
        assert_eq!(slot(&Sample { body, ..sample() }), Err(Refusal::WrongSignature), "bit {at}");
    }
}

#[test]
fn the_certificate_must_be_paypal_s_and_trusted() {
    let with = |certificate: Option<&str>| Sample { certificate: certificate.map(read), ..sample() };
    assert_eq!(slot(&with(None)), Err(Refusal::NoCertificate));
    assert_eq!(slot(&with(Some("leaf_alone.pem"))), Err(Refusal::UntrustedCertificate));
    assert_eq!(slot(&with(Some("body.json"))), Err(Refusal::UntrustedCertificate));
    assert_eq!(slot(&with(Some("root.pem"))), Err(Refusal::UntrustedCertificate));
    let foreign = signed_by("foreign_chain.pem", "foreign_signature.txt");
    assert_eq!(slot(&foreign), Err(Refusal::UntrustedCertificate), "paypal.com.evil.example");
    let other_root = sample().slot(&endpoint(WEBHOOK, "other_root.pem"), &[]);
    assert_eq!(other_root, Err(Refusal::UntrustedCertificate));
    let no_root = sample().slot(&endpoint(WEBHOOK, "body.json"), &[]);
    assert_eq!(no_root, Err(Refusal::UntrustedCertificate));
    // 2027-01-02 and 2023: outside of the certificate's time.
    for at_s in [1_798_848_000, 1_690_000_000] {
        assert_eq!(slot(&sample().at_s(at_s)), Err(Refusal::UntrustedCertificate), "{at_s}");
    }
}

#[test]
fn only_certificates_of_paypal_s_hosts_are_asked_for() {
    let name = "PAYPAL-CERT-URL";
    let foreign = sample().without(name).header(name, "https://api.paypal.com.evil.example/cert");
    assert_eq!(slot(&foreign), Err(Refusal::ForeignCertificate));
    assert_eq!(slot(&sample().without(name)), Err(Refusal::MissingSignature));
}

#[test]
fn other_algorithms_and_broken_headers_are_refused() {
    let with = |name: &str, value: &str| slot(&sample().without(name).header(name, value));
    assert_eq!(with("PAYPAL-AUTH-ALGO", "SHA1withRSA"), Err(Refusal::Unsupported));
    assert_eq!(with("PAYPAL-TRANSMISSION-SIG", "not base64"), Err(Refusal::MalformedSignature));
    assert_eq!(with("PAYPAL-TRANSMISSION-TIME", "yesterday"), Err(Refusal::MalformedSignature));
    for name in ["PAYPAL-TRANSMISSION-ID", "PAYPAL-TRANSMISSION-SIG", "PAYPAL-AUTH-ALGO"] {
        assert_eq!(slot(&sample().without(name)), Err(Refusal::MissingSignature), "{name}");
        let twice = sample().header(name, "x");
        assert_eq!(slot(&twice), Err(Refusal::MalformedHeader), "{name}");
    }
}

/// `PayPal` retries for three days and is not known to sign anew, so there is no limit unless one is set.
#[test]
fn c86_an_age_may_be_set() {
    let mut limited = endpoint(WEBHOOK, "root.pem");
    limited.age_max_s = Some(300);
    let at = |seconds: i64| sample().at_s(T + seconds).slot(&limited, &[]);
    assert_eq!((at(300), at(-300)), (Ok(1), Ok(1)));
    assert_eq!((at(301), at(-301)), (Err(Refusal::TooOld), Err(Refusal::FromTheFuture)));
    assert_eq!(slot(&sample().at_s(T + 259_200)), Ok(1));
}
