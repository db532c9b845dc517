//! One request: bounded in size, time and memory; verified; stored; answered.

use super::answer;
use super::endpoint::Endpoint;
use super::intake::Intake;
use super::metrics::Metrics;
use crate::clock;
use crate::receive::{self, Delivery, Received, Verified};
use crate::record::{EventKey, Scope, sha256_hex};
use crate::store::arrivals::{Arrival, Filed};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode, request::Parts};
use axum::response::Response;
use axum::routing::{get, post};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bytes of bodies that may be in memory at a time, in units of 1 KiB.
const MEMORY_KIB: usize = 128 * 1024;
const KIB: usize = 1024;
/// Headers whose values belong to the proof of a delivery. Those that are themselves secrets (Asaas' token) are
/// not among them.
const SIGNED_HEADERS: [&str; 1] = ["content-type"];

/// What every request shares.
pub struct App {
    /// Endpoints by name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// The way in.
    pub intake: Intake,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The largest body, bytes.
    pub body_bytes_max: usize,
    /// How long one request may take.
    pub timeout: Duration,
    /// Bodies in memory.
    memory: Arc<Semaphore>,
}

impl App {
    /// An app with nothing in memory yet.
    #[must_use]
    pub fn new(
        endpoints: BTreeMap<String, Endpoint>,
        intake: Intake,
        metrics: Arc<Metrics>,
        body_bytes_max: usize,
        timeout: Duration,
    ) -> Self {
        let memory = Arc::new(Semaphore::new(MEMORY_KIB));
        Self { endpoints, intake, metrics, body_bytes_max, timeout, memory }
    }
}

/// The routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/webhooks/{provider}", post(take))
        .route("/healthz", get(healthy))
        .route("/metrics", get(metrics))
        .with_state(app)
}

async fn healthy() -> &'static str {
    "ok\n"
}

async fn metrics(State(app): State<Arc<App>>) -> String {
    app.metrics.text()
}

/// Takes one delivery.
async fn take(State(app): State<Arc<App>>, Path(name): Path<String>, request: Request) -> Response {
    let received_at_us = clock::now_us();
    let Some(endpoint) = app.endpoints.get(&name) else {
        return answer::plain(StatusCode::NOT_FOUND, "unknown_provider");
    };
    let answered =
        tokio::time::timeout(app.timeout, take_in_time(&app, endpoint, request, received_at_us)).await;
    let response = answered.unwrap_or_else(|_| answer::come_again("too_slow"));
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        app.metrics.delivery(&endpoint.name, "unavailable");
    }
    app.metrics.answer.observe_us(clock::now_us().saturating_sub(received_at_us));
    response
}

async fn take_in_time(app: &App, endpoint: &Endpoint, request: Request, received_at_us: i64) -> Response {
    let (parts, body) = request.into_parts();
    // Nobody who signs raw bytes packs them; unpacking is how little becomes much.
    if parts.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return answer::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body");
    }
    let announced = announced_bytes(&parts.headers);
    if announced.is_some_and(|bytes| bytes > app.body_bytes_max) {
        return answer::plain(StatusCode::PAYLOAD_TOO_LARGE, "too_large");
    }
    let kib = announced.unwrap_or(app.body_bytes_max).div_ceil(KIB).max(1);
    let Ok(_permit) = Arc::clone(&app.memory).try_acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX))
    else {
        return answer::come_again("busy");
    };
    let bytes = match axum::body::to_bytes(body, app.body_bytes_max).await {
        Ok(bytes) => bytes,
        Err(error) => return unread(&error),
    };
    match verify(endpoint, &parts, &bytes, received_at_us) {
        Err(refusal) => {
            app.metrics.refused(&endpoint.name, refusal.as_str());
            tracing::info!(
                provider = endpoint.name,
                reason = refusal.as_str(),
                "a delivery was refused: {refusal}"
            );
            answer::refused(refusal)
        }
        Ok(verified) if verified.events.is_empty() => answer::taken(&verified.reply),
        Ok(verified) => store(app, endpoint, &parts, &bytes, verified, received_at_us).await,
    }
}

fn announced_bytes(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body that was too long, or whose connection broke.
fn unread(error: &axum::Error) -> Response {
    use std::error::Error;
    let is_too_long = error.source().is_some_and(|cause| cause.to_string().contains("length limit"));
    if is_too_long {
        answer::plain(StatusCode::PAYLOAD_TOO_LARGE, "too_large")
    } else {
        answer::plain(StatusCode::BAD_REQUEST, "unreadable_body")
    }
}

fn verify(
    endpoint: &Endpoint,
    parts: &Parts,
    body: &[u8],
    received_at_us: i64,
) -> Result<Verified, receive::Refusal> {
    let headers: Vec<(&str, &[u8])> =
        parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let url = public_url(endpoint, parts);
    let delivery =
        Delivery { method: parts.method.as_str(), url: &url, headers: &headers, body, received_at_us };
    receive::verify(&endpoint.settings, &endpoint.secrets, &delivery, None)
}

/// The URL as the provider called it: the configured one with the query of this request.
fn public_url(endpoint: &Endpoint, parts: &Parts) -> String {
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    match &endpoint.public_url {
        Some(url) => format!("{}{query}", url.split('?').next().unwrap_or_default()),
        None => parts.uri.to_string(),
    }
}

async fn store(
    app: &App,
    endpoint: &Endpoint,
    parts: &Parts,
    bytes: &[u8],
    verified: Verified,
    received_at_us: i64,
) -> Response {
    let headers = signed_headers(&parts.headers);
    let url = endpoint.public_url.as_ref().map(|_| public_url(endpoint, parts)).unwrap_or_default();
    let arrival = |event: &Received| {
        let body = bytes.get(event.body.clone()).unwrap_or_default().to_vec();
        Arrival {
            key: EventKey {
                scope: Scope::new(&endpoint.name, &event.account, &event.mode),
                event_id: event.event_id.clone(),
            },
            event_type: event.event_type.clone(),
            body_sha256: sha256_hex(&body),
            body,
            headers: headers.clone(),
            url: url.clone(),
            secret_slot: i64::try_from(verified.secret_slot).unwrap_or(0),
            received_at_us,
        }
    };
    let arrivals = verified.events.iter().map(arrival).collect();
    match app.intake.file(arrivals).await {
        Ok(filed) => {
            for one in filed {
                let became = match one {
                    Filed::New => "new",
                    Filed::Duplicate => "duplicate",
                    Filed::Conflicting => "conflicting",
                };
                app.metrics.delivery(&endpoint.name, became);
            }
            answer::taken(&verified.reply)
        }
        Err(why) => answer::unavailable(why),
    }
}

/// The headers that are kept with an event, as a JSON object.
fn signed_headers(headers: &HeaderMap) -> String {
    let kept: BTreeMap<&str, &str> = SIGNED_HEADERS
        .into_iter()
        .filter_map(|name| Some((name, headers.get(name)?.to_str().ok()?)))
        .collect();
    serde_json::to_string(&kept).unwrap_or_default()
}
