//! Calls to the team's own URLs: the outbox's, the notifications', a monitor's, and a handler that is to be tried. Never
//! the provider's. Nothing here follows a redirect or tries again.

use crate::provider::http;
use anyhow::{Context, Result};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends to one URL. The URL may hold a secret, so it is in no error.
#[derive(Clone)]
pub struct Caller {
    http: reqwest::Client,
    url: String,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Caller")
    }
}

impl Caller {
    /// Prepares calls to `url`, each of which may take `timeout`.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn new(url: &str, timeout: Duration) -> Result<Self> {
        let builder = http(url).connect_timeout(CONNECT_TIMEOUT.min(timeout)).timeout(timeout);
        Ok(Self { http: builder.build().context("prepare secure connections")?, url: url.to_owned() })
    }

    /// Gets the URL; the answer's HTTP status.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn get(&self) -> Result<u16> {
        let answer = self.http.get(&self.url).send().await;
        let answer = answer.map_err(reqwest::Error::without_url).context("no answer")?;
        Ok(answer.status().as_u16())
    }

    /// Puts a body of this media type; the answer's HTTP status.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn put(&self, content_type: &str, body: Vec<u8>) -> Result<u16> {
        let request = self.http.put(&self.url).header("content-type", content_type).body(body);
        let answer = request.send().await.map_err(reqwest::Error::without_url).context("no answer")?;
        Ok(answer.status().as_u16())
    }

    /// Posts a body of this media type; the answer's HTTP status.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn post(&self, headers: &[(&str, &str)], body: Vec<u8>) -> Result<u16> {
        let mut request = self.http.post(&self.url).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.map_err(reqwest::Error::without_url).context("no answer")?;
        Ok(answer.status().as_u16())
    }
}

/// What a URL that gave no answer did, in words that go on from its name; the URL may hold a key, and is never said.
#[must_use]
pub fn no_answer(error: &anyhow::Error, timeout: Duration) -> String {
    let failure = error.downcast_ref::<reqwest::Error>();
    if failure.is_some_and(reqwest::Error::is_timeout) {
        return format!("did not answer within {} s", timeout.as_secs());
    }
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    if causes.any(|cause| cause.kind() == std::io::ErrorKind::ConnectionRefused) {
        return "refused the connection: nothing listens there".to_owned();
    }
    let is_unreached = failure.is_some_and(reqwest::Error::is_connect);
    let what = if is_unreached { "could not be reached" } else { "broke the connection off" };
    error.chain().last().map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
}
