//! One request: bounded in size, time and memory; verified; stored; answered.
//!
//! The path is compared as it stands, byte by byte: nothing is decoded or tidied up first.

use super::answer;
use super::certificate::Certificates;
use super::endpoint::Endpoint;
use super::gauges::Gauges;
use super::intake::{Intake, Unavailable};
use super::kept::kept_headers;
use super::metrics::Metrics;
use super::refusals::Refusals;
use crate::clock;
use crate::receive::{self, Delivery, Received, Refusal, Reply, Verified};
use crate::record::{EventKey, Scope, sha256_hex};
use crate::store::arrivals::Arrival;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Bytes of bodies that may be in memory at a time, in units of 1 KiB.
const MEMORY_KIB: usize = 128 * 1024;
const KIB: usize = 1024;
/// Bytes that are set aside at once for a body that announces its length.
const FIRST_BYTES_MAX: usize = 8 * KIB;

/// What every request shares.
pub struct App {
    /// Endpoints by name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// The way in.
    pub intake: Intake,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What is not taken.
    pub refusals: Arc<Refusals>,
    /// What the store says for `/metrics`.
    pub gauges: Gauges,
    /// `PayPal`'s certificates, where an endpoint needs them.
    pub certificates: Option<Certificates>,
    /// The largest body, bytes.
    pub body_bytes_max: usize,
    /// How long one request may take.
    pub timeout: Duration,
    /// Bodies in memory.
    pub memory: Arc<Semaphore>,
}

/// The share of the memory that all bodies have, none of it taken.
#[must_use]
pub fn body_memory() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MEMORY_KIB))
}

/// The routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new().fallback(answer_one).with_state(app)
}

async fn answer_one(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path();
    if let Some(name) = path.strip_prefix("/webhooks/") {
        return match app.endpoints.get(name) {
            None => {
                app.refusals.turned_away("", "unknown_provider");
                answer::plain(StatusCode::NOT_FOUND, "unknown_provider")
            }
            Some(_) if request.method().as_str() != "POST" => {
                app.refusals.turned_away(name, "wrong_method");
                answer::only("POST")
            }
            Some(endpoint) => take(&app, endpoint, request).await,
        };
    }
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    match path {
        "/healthz" | "/metrics" if !is_reading => answer::only("GET, HEAD"),
        "/healthz" if app.metrics.is_healthy() => answer::plain(StatusCode::OK, "ok"),
        "/healthz" => answer::come_again("store_unavailable"),
        "/metrics" => answer::text(StatusCode::OK, app.metrics.text() + &app.gauges.text().await),
        _ => {
            // Whoever posts has something to deliver; who only looks for a page has not.
            if request.method().as_str() == "POST" {
                app.refusals.turned_away("", "not_found");
            }
            answer::plain(StatusCode::NOT_FOUND, "not_found")
        }
    }
}

/// Takes one delivery.
async fn take(app: &App, endpoint: &Endpoint, request: Request) -> Response {
    let received_at_us = clock::now_us();
    let deadline = Instant::now() + app.timeout;
    let taken = match read(app, request, deadline).await {
        Ok((parts, bytes, memory)) => {
            let delivered = Delivered { endpoint, parts: &parts, received_at_us };
            let judged = timeout_at(deadline, delivered.take(app, bytes, memory)).await;
            judged.unwrap_or(Err(NotTaken::Later(TOO_SLOW)))
        }
        Err(not_taken) => Err(not_taken),
    };
    let response = match taken {
        Ok(reply) => answer::taken(&reply),
        Err(NotTaken::Refused(status, reason)) => {
            app.refusals.refused(&endpoint.name, reason, received_at_us);
            if status == StatusCode::SERVICE_UNAVAILABLE {
                app.metrics.delivery(&endpoint.name, "unavailable");
                answer::come_again(reason)
            } else {
                answer::plain(status, reason)
            }
        }
        Err(NotTaken::Later(reason)) => {
            app.refusals.put_off(&endpoint.name, reason);
            answer::come_again(reason)
        }
    };
    app.metrics.answer.observe_us(clock::now_us().saturating_sub(received_at_us));
    response
}

/// Why a delivery is not taken, and the word for it.
enum NotTaken {
    /// Not safe yet: the provider is to come again.
    Later(&'static str),
    /// Not verified, or not readable; counted by its reason.
    Refused(StatusCode, &'static str),
}

/// The memory for bodies is taken.
const BUSY: NotTaken = NotTaken::Later(Unavailable::Full.as_str());
const TOO_SLOW: &str = "too_slow";

/// The whole body, and what it takes of the memory.
async fn read(
    app: &App,
    request: Request,
    deadline: Instant,
) -> Result<(Parts, Vec<u8>, Option<OwnedSemaphorePermit>), NotTaken> {
    let (parts, body) = request.into_parts();
    // Nobody who signs raw bytes packs them; unpacking is how little becomes much.
    if parts.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(NotTaken::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body"));
    }
    let announced = announced_bytes(&parts.headers);
    if announced.is_some_and(|bytes| bytes > app.body_bytes_max as u64) {
        return Err(TOO_LARGE);
    }
    let first = usize::try_from(announced.unwrap_or(0)).unwrap_or(0).min(FIRST_BYTES_MAX);
    match timeout_at(deadline, read_body(app, body, first)).await {
        Ok(Ok((bytes, memory))) => Ok((parts, bytes, memory)),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(NotTaken::Refused(StatusCode::REQUEST_TIMEOUT, TOO_SLOW)),
    }
}

const TOO_LARGE: NotTaken = NotTaken::Refused(StatusCode::PAYLOAD_TOO_LARGE, "too_large");

/// Memory is taken as the bytes come: a body that is only announced takes nothing from the others.
async fn read_body(
    app: &App,
    body: Body,
    first: usize,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), NotTaken> {
    let mut bytes = Vec::with_capacity(first);
    let mut memory: Option<OwnedSemaphorePermit> = None;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| NotTaken::Refused(StatusCode::BAD_REQUEST, "unreadable_body"))?;
        if bytes.len() + chunk.len() > app.body_bytes_max {
            return Err(TOO_LARGE);
        }
        bytes.extend_from_slice(&chunk);
        let held = memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.len().div_ceil(KIB).saturating_sub(held);
        let more = u32::try_from(more).map_err(|_| BUSY)?;
        let more = Arc::clone(&app.memory).try_acquire_many_owned(more).map_err(|_| BUSY)?;
        match &mut memory {
            Some(memory) => memory.merge(more),
            None => memory = Some(more),
        }
    }
    Ok((bytes, memory))
}

/// A length too long for a number is as long as any.
fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    Some(headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().unwrap_or(u64::MAX))
}

fn refused(refusal: Refusal) -> NotTaken {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    NotTaken::Refused(status, refusal.as_str())
}

/// A delivery whose body is read.
struct Delivered<'a> {
    endpoint: &'a Endpoint,
    parts: &'a Parts,
    received_at_us: i64,
}

impl Delivered<'_> {
    /// What the provider wants to hear, once the events are safe.
    async fn take(
        &self,
        app: &App,
        bytes: Vec<u8>,
        memory: Option<OwnedSemaphorePermit>,
    ) -> Result<Reply, NotTaken> {
        let verified = self.verify(app, &bytes).await.map_err(refused)?;
        let reply = verified.reply.clone();
        if !verified.events.is_empty() {
            let filed = app.intake.file(self.arrivals(verified, bytes), memory).await;
            filed.map_err(|why| NotTaken::Later(why.as_str()))?;
        }
        Ok(reply)
    }

    async fn verify(&self, app: &App, body: &[u8]) -> Result<Verified, Refusal> {
        let headers: Vec<(&str, &[u8])> =
            self.parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let url = self.url();
        let method = self.parts.method.as_str();
        let delivery =
            Delivery { method, url: &url, headers: &headers, body, received_at_us: self.received_at_us };
        let (settings, secrets) = (&self.endpoint.settings, &self.endpoint.secrets);
        let verified = receive::verify(settings, secrets, &delivery, None);
        // Everything else about it is in order: only then is anything fetched for its sake.
        let (Err(Refusal::NoCertificate), Some(certificates)) = (&verified, &app.certificates) else {
            return verified;
        };
        let certificate_url = receive::certificate_url(&delivery)?;
        let certificate = certificates.get(certificate_url).await.ok_or(Refusal::NoCertificate)?;
        let verified = receive::verify(settings, secrets, &delivery, Some(&certificate))?;
        certificates.prove(certificate_url);
        Ok(verified)
    }

    /// The URL as the provider called it: the configured one with the query of this request.
    fn url(&self) -> String {
        let query = self.parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        match &self.endpoint.public_url {
            Some(url) => format!("{}{query}", url.split('?').next().unwrap_or_default()),
            None => self.parts.uri.to_string(),
        }
    }

    fn arrivals(&self, verified: Verified, bytes: Vec<u8>) -> Vec<Arrival> {
        let headers = kept_headers(&self.endpoint.settings.scheme, &self.parts.headers);
        // A plain path says nothing; a query may be part of what was signed.
        let is_telling = self.endpoint.public_url.is_some() || self.parts.uri.query().is_some();
        let url = if is_telling { self.url() } else { String::new() };
        let secret_slot = i64::try_from(verified.secret_slot).unwrap_or(0);
        let arrival = |event: Received, body: Vec<u8>| Arrival {
            key: EventKey {
                scope: Scope::new(&self.endpoint.name, &event.account, &event.mode),
                event_id: event.event_id,
            },
            event_type: event.event_type,
            body_sha256: sha256_hex(&body),
            body,
            headers: headers.clone(),
            url: url.clone(),
            secret_slot,
            received_at_us: self.received_at_us,
        };
        let mut events = verified.events;
        if events.len() == 1 && events[0].body == (0..bytes.len()) {
            return events.pop().map(|event| arrival(event, bytes)).into_iter().collect();
        }
        let item = |event: Received| {
            let body = bytes.get(event.body.clone()).unwrap_or_default().to_vec();
            arrival(event, body)
        };
        events.into_iter().map(item).collect()
    }
}
