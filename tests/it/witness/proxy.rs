//! What localstripe lacks, added between it and the program under test. It reads only; it knows nothing of
//! what the endpoint answered or what the driver did.

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinHandle;

/// Collections that localstripe answers with 404: empty lists here.
const ABSENT: [&str; 2] = ["disputes", "checkout/sessions"];

/// The most rows that are asked of localstripe at once; it knows no upper limit.
const ALL: u32 = 1_000_000;

/// A running proxy. Dropping it ends it.
pub struct Proxy {
    pub base_url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    http: reqwest::Client,
    writes: AtomicU64,
}

impl Proxy {
    pub async fn start(upstream: &str) -> Self {
        // An error means that another test has installed it.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let shared = Arc::new(Shared { upstream: upstream.to_owned(), http, writes: AtomicU64::new(0) });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base_url, shared, task }
    }

    /// Requests that were not GET. A reconciliation makes none.
    pub fn writes(&self) -> u64 {
        self.shared.writes.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An answer that is no 200, with the provider's form of an error.
type Refusal = (StatusCode, Value);

fn invalid(code: &str, param: &str) -> Refusal {
    let message = format!("{code}: {param}");
    let error = json!({ "type": "invalid_request_error", "code": code, "param": param, "message": message });
    (StatusCode::BAD_REQUEST, json!({ "error": error }))
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    if method != Method::GET {
        shared.writes.fetch_add(1, Ordering::Relaxed);
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asked = Asked { shared: &shared, key };
    let path = uri.path().trim_start_matches("/v1/");
    let is_list = ABSENT.contains(&path) || !path.contains('/');
    let answered = if is_list { asked.list(path, &pairs).await } else { asked.object(path, &pairs).await };
    let (status, body) = answered.map_or_else(|refusal| refusal, |body| (StatusCode::OK, body));
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// One request, on behalf of whoever holds the key.
struct Asked<'a> {
    shared: &'a Shared,
    key: &'a str,
}

impl Asked<'_> {
    async fn upstream(&self, path: &str) -> Result<Value, Refusal> {
        let url = format!("{}/v1/{path}", self.shared.upstream);
        let request = self.shared.http.get(url).header(header::AUTHORIZATION, self.key);
        let response = request.send().await.unwrap();
        let status = response.status();
        let bytes = response.bytes().await.unwrap();
        if status == StatusCode::NOT_FOUND && !bytes.starts_with(b"{") {
            // A path that localstripe does not know is answered in plain text.
            let error = json!({ "type": "invalid_request_error", "message": "Unrecognized request URL" });
            return Err((status, json!({ "error": error })));
        }
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        if status.is_success() { Ok(body) } else { Err((status, body)) }
    }

    /// All rows of a collection, newest first. localstripe gives some collections oldest first, others
    /// newest first with ties in order of insertion; a stable sort makes one order of both.
    async fn rows(&self, collection: &str) -> Result<Vec<Value>, Refusal> {
        if ABSENT.contains(&collection) {
            return Ok(Vec::new());
        }
        let mut list = self.upstream(&format!("{collection}?limit={ALL}")).await?;
        let Value::Array(mut rows) = list["data"].take() else { panic!("{collection}: no list") };
        rows.sort_by_key(created);
        rows.reverse();
        Ok(rows)
    }

    async fn list(&self, collection: &str, pairs: &[(String, String)]) -> Result<Value, Refusal> {
        let mut bounds = (i64::MIN, i64::MAX);
        let mut limit = 10;
        let mut after = None;
        let mut expand = Vec::new();
        let mut named: Vec<(&str, &str)> = Vec::new();
        for (name, value) in pairs {
            let integer = || value.parse::<i64>().map_err(|_| invalid("parameter_invalid_integer", name));
            match name.as_str() {
                "limit" => limit = integer()?,
                "starting_after" => after = Some(value),
                "created[gte]" => bounds.0 = bounds.0.max(integer()?),
                "created[gt]" => bounds.0 = bounds.0.max(integer()? + 1),
                "created[lt]" => bounds.1 = bounds.1.min(integer()?),
                "created[lte]" => bounds.1 = bounds.1.min(integer()? + 1),
                "payment_intent" | "charge" | "subscription" => named.push((name, value)),
                _ if name.starts_with("expand[") => expand.push(value.trim_start_matches("data.")),
                // What is not translated is refused, never passed over.
                _ => return Err(invalid("parameter_unknown", name)),
            }
        }
        if !(1..=100).contains(&limit) {
            return Err(invalid("parameter_invalid_integer", "limit"));
        }
        let rows = self.rows(collection).await?;
        let start = match after {
            None => 0,
            Some(id) => {
                let at = rows.iter().position(|row| row["id"] == *id);
                1 + at.ok_or_else(|| invalid("resource_missing", "starting_after"))?
            }
        };
        let is_inside = |row: &&Value| {
            (bounds.0..bounds.1).contains(&created(row)) && named.iter().all(|(name, id)| row[*name] == **id)
        };
        let mut page: Vec<Value> = rows[start..].iter().filter(is_inside).cloned().collect();
        let limit = usize::try_from(limit).unwrap();
        let has_more = page.len() > limit;
        page.truncate(limit);
        self.complete(&mut page, &expand).await?;
        Ok(
            json!({ "object": "list", "url": format!("/v1/{collection}"), "has_more": has_more, "data": page }),
        )
    }

    async fn object(&self, path: &str, pairs: &[(String, String)]) -> Result<Value, Refusal> {
        let mut found = [self.upstream(path).await?];
        let expand: Vec<&str> = pairs.iter().map(|(_, value)| value.as_str()).collect();
        self.complete(&mut found, &expand).await?;
        let [found] = found;
        Ok(found)
    }

    /// Adds the fields that localstripe does not have and shows balance transactions whole where asked.
    async fn complete(&self, records: &mut [Value], expand: &[&str]) -> Result<(), Refusal> {
        let mut movements = BTreeMap::new();
        if expand.contains(&"balance_transaction") {
            let rows = self.rows("balance_transactions").await?;
            movements = rows.into_iter().map(|row| (row["id"].to_string(), row)).collect();
        }
        for record in records {
            if record["object"] == "event" {
                // Nobody here knows who has acknowledged it; the age of an event decides.
                record["pending_webhooks"] = json!(1);
            }
            if let Some(movement) = movements.get(&record["balance_transaction"].to_string()) {
                record["balance_transaction"] = movement.clone();
            }
        }
        Ok(())
    }
}

fn created(row: &Value) -> i64 {
    row["created"].as_i64().unwrap()
}
