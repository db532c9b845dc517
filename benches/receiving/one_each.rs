//! The handler that everybody writes first: verify, one transaction, answer. Correct, and as fast as one commit
//! for each request allows, with a pool of connections.

use super::SECRET;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use recon::config::Secret;
use recon::receive::{Delivery, Scheme, Settings, verify};
use recon::record::{EventKey, Scope, sha256_hex};
use recon::serve::serve_connections;
use recon::store::arrivals::{Arrival, file_arrivals};
use recon::store::{Access, Store};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const BODY_BYTES_MAX: usize = 1 << 20;

struct Handler {
    store: Store,
    settings: Settings,
    secrets: Vec<Secret>,
}

/// Serves until it is killed.
pub fn serve(url: &str) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(listen(url))
}

async fn listen(url: &str) -> Result<()> {
    let store = Store::open(url, Access::ReadWrite).await?;
    let settings = Settings::new(Scheme::Stripe, "live");
    let handler = Handler { store, settings, secrets: vec![Secret::new(SECRET.to_owned())] };
    let router = Router::new().route("/webhooks/stripe", post(take)).with_state(Arc::new(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "POST http://{address}/webhooks/stripe")?;
    serve_connections(listener, router, Duration::from_mins(1), std::future::pending()).await
}

async fn take(State(handler): State<Arc<Handler>>, request: Request) -> StatusCode {
    match store(&handler, request).await {
        Ok(status) => status,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "{error:#}"));
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

async fn store(handler: &Handler, request: Request<Body>) -> Result<StatusCode> {
    let received_at_us = recon::clock::now_us();
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.context("read the body")?;
    let headers: Vec<(&str, &[u8])> =
        parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let delivery = Delivery { method: "POST", url: "", headers: &headers, body: &body, received_at_us };
    let Ok(verified) = verify(&handler.settings, &handler.secrets, &delivery, None) else {
        return Ok(StatusCode::UNAUTHORIZED);
    };
    let arrivals: Vec<Arrival> = verified
        .events
        .into_iter()
        .map(|event| Arrival {
            key: EventKey {
                scope: Scope::new("stripe", &event.account, &event.mode),
                event_id: event.event_id,
            },
            event_type: event.event_type,
            body_sha256: sha256_hex(&body),
            body: body.to_vec(),
            headers: String::new(),
            url: String::new(),
            secret_slot: 1,
            received_at_us,
        })
        .collect();
    let mut tx = handler.store.begin().await?;
    file_arrivals(&mut tx, &arrivals).await?;
    tx.commit().await.context("commit")?;
    Ok(StatusCode::OK)
}
