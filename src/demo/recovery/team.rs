//! The team's own endpoint: it takes each effect once by its `Idempotency-Key`, and keeps count of what it heard.

use super::snapshot::CallRow;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// Calls and bodies by key.
type Heard = Arc<Mutex<BTreeMap<String, (usize, BTreeSet<Bytes>)>>>;

/// A running endpoint. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) url: String,
    heard: Heard,
    task: JoinHandle<()>,
}

impl Team {
    /// Listens on a free loopback port.
    pub(super) async fn open() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
        let address = listener.local_addr().context("read the team's port")?;
        let heard = Heard::default();
        let router = Router::new().fallback(hear).with_state(Arc::clone(&heard));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the team's endpoint stopped");
            }
        });
        Ok(Self { url: format!("http://{address}/effects"), heard, task })
    }

    /// What it heard so far, by key.
    pub(super) fn heard(&self) -> Vec<CallRow> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(key, (calls, bodies)): (&String, &(usize, BTreeSet<Bytes>))| CallRow {
            key: key.clone(),
            calls: *calls,
            bodies: bodies.len(),
        };
        heard.iter().map(row).collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn hear(State(heard): State<Heard>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let (calls, bodies) = heard.entry(key.to_owned()).or_default();
    *calls += 1;
    bodies.insert(body);
    StatusCode::OK
}
