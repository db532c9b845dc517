//! `PayPal`'s certificates, fetched once and kept by their URL.
//!
//! Whoever sends a request chooses the URL, so this is what a stranger can make us do: nothing but a `GET`
//! over HTTPS to a host of `PayPal`, two at a time, without redirects, a small answer, and not again for a
//! while when it fails.

use crate::provider::http;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Certificates that are kept. `PayPal` uses one or two at a time.
const KEPT_MAX: usize = 32;
/// Bytes of one at most: a chain has about 6 KB.
const BYTES_MAX: usize = 64 * 1024;
/// Requests at a time.
const REQUESTS_MAX: usize = 2;
/// How long one may take: within what a provider waits for its answer.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long a failure is remembered.
const FAILURE_KEPT: Duration = Duration::from_secs(10);

/// Fetches and keeps certificates.
pub struct Certificates {
    client: reqwest::Client,
    kept: Mutex<BTreeMap<String, Kept>>,
    requests: Semaphore,
}

/// It could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Missing;

struct Kept {
    pem: Result<Arc<[u8]>, Missing>,
    at: Instant,
    /// A delivery was verified with it.
    is_proven: bool,
}

impl Certificates {
    /// None yet.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn new() -> Result<Self> {
        let client = http("https://").https_only(true).timeout(TIMEOUT).build();
        let client = client.context("prepare to fetch certificates")?;
        Ok(Self { client, kept: Mutex::default(), requests: Semaphore::new(REQUESTS_MAX) })
    }

    /// The PEM text behind a URL that [`crate::receive::certificate_url`] has let through; `None` when it
    /// cannot be had now.
    pub async fn get(&self, url: &str) -> Option<Arc<[u8]>> {
        if let Some(known) = self.known(url) {
            return known.ok();
        }
        let _request = self.requests.try_acquire().ok()?;
        let fetched = self.fetch(url).await;
        if let Err(error) = &fetched {
            tracing::warn!("PayPal's certificate could not be fetched: {error:#}");
        }
        self.keep(url, fetched.as_ref().map_err(|_| Missing).cloned());
        fetched.ok()
    }

    /// A delivery was verified with this one, so strangers do not push it out.
    pub fn prove(&self, url: &str) {
        if let Some(kept) = self.lock().get_mut(url) {
            kept.is_proven = true;
        }
    }

    fn known(&self, url: &str) -> Option<Result<Arc<[u8]>, Missing>> {
        let kept = self.lock();
        let known = kept.get(url)?;
        (known.pem.is_ok() || known.at.elapsed() < FAILURE_KEPT).then(|| known.pem.clone())
    }

    fn keep(&self, url: &str, pem: Result<Arc<[u8]>, Missing>) {
        let mut kept = self.lock();
        if kept.len() >= KEPT_MAX && !kept.contains_key(url) {
            let oldest = kept.iter().min_by_key(|(_, kept)| (kept.is_proven, kept.at));
            if let Some(oldest) = oldest.map(|(url, _)| url.clone()) {
                kept.remove(&oldest);
            }
        }
        kept.insert(url.to_owned(), Kept { pem, at: Instant::now(), is_proven: false });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, url: &str) -> Result<Arc<[u8]>> {
        // The URL is a stranger's text: no error may repeat it.
        let mut answer = self.client.get(url).send().await.map_err(reqwest::Error::without_url)?;
        anyhow::ensure!(answer.status().as_u16() == 200, "the answer is {}", answer.status().as_u16());
        let mut pem = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            anyhow::ensure!(
                pem.len() + chunk.len() <= BYTES_MAX,
                "the answer is larger than {BYTES_MAX} bytes"
            );
            pem.extend_from_slice(&chunk);
        }
        Ok(pem.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn strangers_push_out_no_proven_certificate() {
        let certificates = Certificates::new().unwrap();
        let real: Arc<[u8]> = b"real".as_slice().into();
        certificates.keep("https://api.paypal.com/real", Ok(Arc::clone(&real)));
        certificates.prove("https://api.paypal.com/real");
        for number in 0..1_000 {
            certificates.keep(&format!("https://api.paypal.com/{number}"), Err(Missing));
        }
        assert_eq!(certificates.lock().len(), KEPT_MAX);
        assert_eq!(certificates.get("https://api.paypal.com/real").await, Some(real));
    }

    #[tokio::test]
    async fn plain_http_is_never_spoken_and_a_failure_is_remembered() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/cert", listener.local_addr().unwrap());
        let certificates = Certificates::new().unwrap();
        assert_eq!(certificates.get(&url).await, None);
        assert_eq!(certificates.known(&url), Some(Err(Missing)));
        assert!(listener.accept().is_err(), "somebody came");
    }
}
