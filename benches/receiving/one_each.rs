//! The handler that everybody writes first: verify, one transaction with one plain insert, answer. Correct, and
//! as fast as one commit for each request allows, with a pool of connections.

use super::SECRET;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use recon::config::Secret;
use recon::receive::{Delivery, Scheme, Settings, verify};
use recon::record::sha256_hex;
use recon::serve::serve_connections;
use recon::store::{Access, Database, Store};
use sqlx::any::AnyPoolOptions;
use sqlx::{AnyPool, Executor};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const BODY_BYTES_MAX: usize = 1 << 20;
const INSERT: &str = "insert into inbox_event (provider, account, mode, event_id, event_type, body, \
    body_sha256, received_at_us, last_delivery_at_us, status, secret_slot) \
    values ('stripe', $1, $2, $3, $4, $5, $6, $7, $8, 'received', 1) \
    on conflict (provider, account, mode, event_id) do nothing";

struct Handler {
    pool: AnyPool,
    database: Database,
    settings: Settings,
    secrets: Vec<Secret>,
}

/// Serves until it is killed.
pub fn serve(url: &str, connections: u32) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(listen(url, connections))
}

async fn listen(url: &str, connections: u32) -> Result<()> {
    // Creates the tables.
    let store = Store::open(url, Access::ReadWrite).await?;
    let database = store.database();
    store.close().await;
    let options = AnyPoolOptions::new().max_connections(connections).acquire_timeout(Duration::from_mins(1));
    let options = options.after_connect(move |connection, _| {
        Box::pin(async move {
            if database == Database::Sqlite {
                connection.execute("pragma synchronous = full").await?;
                connection.execute("pragma busy_timeout = 10000").await?;
            }
            Ok(())
        })
    });
    let settings = Settings::new(Scheme::Stripe, "live");
    let secrets = vec![Secret::new(SECRET.to_owned())];
    let handler = Handler { pool: options.connect(url).await?, database, settings, secrets };
    let router = Router::new().route("/webhooks/stripe", post(take)).with_state(Arc::new(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "POST http://{address}/webhooks/stripe")?;
    serve_connections(listener, router, Duration::from_mins(1), |_| {}, std::future::pending()).await
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
    let mut tx = match handler.database {
        Database::Sqlite => handler.pool.begin_with("begin immediate").await?,
        Database::Postgres => handler.pool.begin().await?,
    };
    for event in verified.events {
        let insert = sqlx::query(INSERT).bind(event.account).bind(event.mode).bind(event.event_id);
        let insert = insert.bind(event.event_type).bind(body.to_vec()).bind(sha256_hex(&body));
        insert.bind(received_at_us).bind(received_at_us).execute(&mut *tx).await?;
    }
    tx.commit().await.context("commit")?;
    Ok(StatusCode::OK)
}
