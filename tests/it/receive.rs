//! Deliveries of every scheme, read and verified as a receiver does it.
//!
//! Signatures here are made with `ring`, as the program checks them; that both mean what the providers mean is shown by
//! the official vectors (`vectors.rs`) and by the official SDKs (`receive_sdks.rs`).

mod field_cases;
mod hostile;
mod identity;
mod kinds;
pub mod paypal;
mod vectors;

pub use kinds::{Kind, kind, kinds};

use recon::config::Secret;
use recon::receive::{Delivery, Refusal, Scheme, Settings, Verified, authenticate, verify};

/// 2026-01-01T00:00:00Z.
pub const T: i64 = 1_767_225_600;
pub const URL: &str = "https://shop.example/webhooks/provider";

/// A delivery that owns its parts.
#[derive(Clone)]
pub struct Sample {
    pub url: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub at_us: i64,
    pub certificate: Option<Vec<u8>>,
}

impl Sample {
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        let (url, headers) = (URL.to_owned(), Vec::new());
        Self { url, headers, body: body.into(), at_us: T * 1_000_000, certificate: None }
    }

    pub fn url(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    pub fn at_s(mut self, seconds: i64) -> Self {
        self.at_us = seconds * 1_000_000;
        self
    }

    fn with<T>(&self, act: impl FnOnce(&Delivery<'_>) -> T) -> T {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let (url, body, received_at_us) = (&self.url, &self.body, self.at_us);
        act(&Delivery { method: "POST", url, headers: &headers, body, received_at_us })
    }

    /// Which secret signed it.
    pub fn slot(&self, settings: &Settings, secrets: &[&str]) -> Result<usize, Refusal> {
        let secrets = owned(secrets);
        self.with(|delivery| authenticate(settings, &secrets, delivery, self.certificate.as_deref()))
    }

    pub fn verify(&self, settings: &Settings, secrets: &[&str]) -> Result<Verified, Refusal> {
        let secrets = owned(secrets);
        self.with(|delivery| verify(settings, &secrets, delivery, self.certificate.as_deref()))
    }
}

pub fn owned(secrets: &[&str]) -> Vec<Secret> {
    secrets.iter().map(|secret| Secret::new((*secret).to_owned())).collect()
}

pub fn settings(scheme: Scheme) -> Settings {
    Settings::new(scheme, "live")
}

/// Every variant of `bytes` with one bit turned over.
pub fn every_bit(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|at| {
        let mut turned = bytes.to_vec();
        turned[at / 8] ^= 1 << (at % 8);
        turned
    })
}
