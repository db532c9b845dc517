//! HTTP: who asks, what for, and what goes wrong with the answer.

use super::chaos::{Buckets, Endpoints, Faults, Mishap};
use super::list::{self, ApiError, Query, Row};
use super::reply::{account_of, cut, dropped, is_authorised, json, no_access, no_permission, text, too_many};
use super::{Account, Counters, Shared};
use crate::demo::world::{Stream, WANTED_TYPES, World};
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Query as Pairs, State};
use axum::http::{HeaderMap, Method, Response, Uri};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A running emulator. Dropping it ends it.
#[derive(Debug)]
pub struct Emulator {
    /// `http://127.0.0.1:<port>`, without a trailing slash.
    pub base_url: String,
    /// The only key that it accepts.
    pub key: String,
    /// What was asked of it.
    pub counters: Arc<Counters>,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Emulator {
    /// Serves a world on a free loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(world: &World, faults: Faults) -> Result<Self> {
        Self::start_accounts(&[world], faults).await
    }

    /// Serves several accounts, each a world with its `account`; the others are reached by the header `Stripe-Account`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start_accounts(worlds: &[&World], faults: Faults) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
        let address = listener.local_addr().context("read the emulator's port")?;
        let seed = worlds.first().map_or(0, |world| world.seed);
        let accounts =
            worlds.iter().map(|world| (world.account.clone(), Account::new(world, &faults))).collect();
        let counters = Arc::new(Counters::default());
        let shared = Arc::new(Shared {
            key: format!("rk_live_emulator{seed:016x}"),
            faults,
            accounts: Mutex::new(accounts),
            buckets: Mutex::new(Buckets::default()),
            held: tokio::sync::watch::Sender::new(false),
            counters: Arc::clone(&counters),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            let server = axum::serve(listener, router).with_graceful_shutdown(async move {
                // An error means that the emulator was dropped, which ends it as well.
                drop(stopped.await);
            });
            if let Err(error) = server.await {
                tracing::error!(%error, "the emulator stopped");
            }
        });
        let key = shared.key.clone();
        Ok(Self { base_url: format!("http://{address}"), key, counters, shared, stop: Some(stop), task })
    }

    /// Adds, shows or removes a record of the platform account now.
    pub fn change(&self, stream: Stream, change: super::Change) {
        let mut accounts = self.shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get_mut("") {
            account.change(stream, change);
        }
    }

    /// Holds every answer back, or lets them go. Requests are counted as they come.
    pub fn hold(&self, is_held: bool) {
        self.shared.held.send_replace(is_held);
    }

    /// Ends it: no new connection is taken from here on.
    pub fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the server has already ended.
            stop.send(()).unwrap_or_default();
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs<Vec<(String, String)>>,
) -> Response<Body> {
    let (endpoint, target) = route(uri.path());
    let url = uri.to_string();
    let earlier = shared.counters.count(&endpoint, &url, method != Method::GET);
    if matches!(target, Target::List(_)) && !shared.faults.page_latency.is_zero() {
        tokio::time::sleep(shared.faults.page_latency).await;
    }
    // An error means that the emulator ends, and with it this request.
    drop(shared.held.subscribe().wait_for(|is_held| !is_held).await);
    let response = if method == Method::GET {
        respond(&shared, &endpoint, &target, &url, earlier, &headers, &pairs.0)
    } else {
        let message = "This emulator is read only.".to_owned();
        json(
            405,
            &ApiError { status: 405, kind: "invalid_request_error", code: "", message, param: String::new() }
                .body(),
        )
    };
    shared.counters.count_answer(response.status().as_u16());
    response
}

/// What a path asks for.
enum Target {
    List(Stream),
    One(Stream, String),
    InvoicePayments,
    Endpoints,
    Unknown,
}

fn route(path: &str) -> (String, Target) {
    let path = path.strip_prefix("/v1/").unwrap_or("");
    if path == "webhook_endpoints" {
        return (path.to_owned(), Target::Endpoints);
    }
    if path == "invoice_payments" {
        return (path.to_owned(), Target::InvoicePayments);
    }
    for stream in Stream::ALL {
        let Some(rest) = path.strip_prefix(stream.path()) else { continue };
        if rest.is_empty() {
            return (stream.path().to_owned(), Target::List(stream));
        }
        if let Some(id) = rest.strip_prefix('/').filter(|id| !id.contains('/')) {
            return (format!("{}/{{id}}", stream.path()), Target::One(stream, id.to_owned()));
        }
    }
    ("unknown".to_owned(), Target::Unknown)
}

fn respond(
    shared: &Shared,
    endpoint: &str,
    target: &Target,
    url: &str,
    earlier: u32,
    headers: &HeaderMap,
    pairs: &[(String, String)],
) -> Response<Body> {
    if !is_authorised(headers, &shared.key) {
        let message = "Invalid API Key provided.".to_owned();
        let error =
            ApiError { status: 401, kind: "invalid_request_error", code: "", message, param: String::new() };
        return json(401, &error.body());
    }
    if let Some(limit) = &shared.faults.rate_limit {
        let mut buckets = shared.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = buckets.take(limit, endpoint, Instant::now()) {
            return too_many(reason, &limit.retry_after);
        }
    }
    let mishap = shared.faults.mishap(url, earlier);
    match mishap {
        Some(Mishap::ServerError) => {
            return json(500, r#"{"error":{"message":"Sorry, something went wrong.","type":"api_error"}}"#);
        }
        Some(Mishap::Unavailable) => {
            return text(503, "text/html", "<html><body>503 Service Unavailable</body></html>");
        }
        Some(Mishap::LockTimeout) => {
            return json(
                429,
                r#"{"error":{"code":"lock_timeout","message":"This object cannot be accessed right now because another API request or Stripe process is currently accessing it.","type":"invalid_request_error"}}"#,
            );
        }
        Some(Mishap::Html) => {
            return text(200, "text/html", "<html><body>Please sign in to the network.</body></html>");
        }
        Some(Mishap::Truncated | Mishap::Dropped) | None => {}
    }
    let result = account_of(headers).and_then(|account| {
        let mut accounts = shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.get_mut(&account).ok_or_else(|| no_access(&account))?;
        look_up(account, &shared.faults, target, pairs)
    });
    match (result, mishap) {
        (Err(error), _) => json(error.status, &error.body()),
        (Ok(body), Some(Mishap::Truncated)) => json(200, cut(&body)),
        (Ok(body), Some(Mishap::Dropped)) => dropped(cut(&body)),
        (Ok(body), _) => json(200, &body),
    }
}

fn look_up(
    account: &mut Account,
    faults: &Faults,
    target: &Target,
    pairs: &[(String, String)],
) -> Result<String, ApiError> {
    match target {
        Target::List(stream) | Target::One(stream, _) if faults.forbidden.contains(stream) => {
            Err(no_permission())
        }
        Target::List(stream) => list_page(account, faults, *stream, pairs),
        Target::One(stream, id) => one(account, *stream, id, pairs),
        // A key may read them where it may read invoices.
        Target::InvoicePayments if faults.forbidden.contains(&Stream::Invoices) => Err(no_permission()),
        Target::InvoicePayments => {
            let invoices = account.tables.get(&Stream::Invoices).map_or(&[][..], list::Table::rows);
            super::invoice_payments::list(invoices, pairs)
        }
        Target::Endpoints => endpoints(&faults.endpoints),
        Target::Unknown => Err(ApiError {
            status: 404,
            kind: "invalid_request_error",
            code: "",
            message: "Unrecognized request URL.".to_owned(),
            param: String::new(),
        }),
    }
}

fn list_page(
    account: &mut Account,
    faults: &Faults,
    stream: Stream,
    pairs: &[(String, String)],
) -> Result<String, ApiError> {
    let query = Query::read(stream, pairs)?;
    for path in &query.expand {
        check_expansion(stream, path, "data.")?;
    }
    let page = account.begin_list(stream);
    if let Some((.., has_more)) = faults.empty_pages.iter().find(|(s, nth, _)| (*s, *nth) == (stream, page)) {
        return Ok(list_body(stream, &[], *has_more));
    }
    let table = &account.tables[&stream];
    let (rows, has_more) = table.page(&query)?;
    let bodies: Vec<String> = rows.iter().map(|row| whole(account, row, &query.expand, "data.")).collect();
    let body = list_body(stream, &bodies, has_more);
    let last = rows.last().map(|row| row.record.id.clone());
    if faults.vanishing_cursors.contains(&(stream, page))
        && let Some(id) = last
    {
        account.change(stream, super::Change::Remove(id));
    }
    Ok(body)
}

fn one(account: &Account, stream: Stream, id: &str, pairs: &[(String, String)]) -> Result<String, ApiError> {
    let mut expand = Vec::new();
    for (name, value) in pairs {
        if !list::is_item_of("expand", name) {
            return Err(list::unknown_parameter(name));
        }
        check_expansion(stream, value, "")?;
        expand.push(value.clone());
    }
    let row = account.tables.get(&stream).and_then(|table| table.get(id)).ok_or_else(|| ApiError {
        status: 404,
        kind: "invalid_request_error",
        code: "resource_missing",
        message: format!("No such {}: '{id}'", stream.path().trim_end_matches('s')),
        param: "id".to_owned(),
    })?;
    Ok(whole(account, row, &expand, ""))
}

fn check_expansion(stream: Stream, path: &str, prefix: &str) -> Result<(), ApiError> {
    let field = path.strip_prefix(prefix).unwrap_or("");
    if list::expandable(stream).contains(&field) {
        return Ok(());
    }
    let message = format!("This property cannot be expanded ({path}).");
    Err(ApiError::invalid("parameter_invalid", "expand", message))
}

/// A row's body with the asked fields shown whole.
fn whole(account: &Account, row: &Row, expand: &[String], prefix: &str) -> String {
    let body = row.record.body.to_string();
    let fields = expand.iter().filter_map(|path| path.strip_prefix(prefix));
    fields.fold(body, |body, field| {
        list::expand(&row.record, body, field, |id| account.find(id).map(|row| row.record.body.clone()))
    })
}

fn list_body(stream: Stream, bodies: &[String], has_more: bool) -> String {
    let (data, url) = (bodies.join(","), stream.path());
    format!(r#"{{"object":"list","data":[{data}],"has_more":{has_more},"url":"/v1/{url}"}}"#)
}

fn endpoints(shown: &Endpoints) -> Result<String, ApiError> {
    let healthy = [("enabled", WANTED_TYPES.to_vec())];
    let shown = match shown {
        Endpoints::Healthy => &healthy[..],
        Endpoints::Forbidden => return Err(no_permission()),
        Endpoints::These(endpoints) => endpoints,
    };
    let bodies: Vec<String> = shown.iter().enumerate().map(|(at, (status, types))| {
        let endpoint = serde_json::json!({
            "id": format!("we_{}Example00000000000000", at + 1), "object": "webhook_endpoint", "api_version": null,
            "application": null, "created": 1_600_000_000, "description": null,
            "enabled_events": types, "livemode": true, "metadata": {}, "status": status,
            "url": "https://shop.example.com/webhooks/stripe",
        });
        endpoint.to_string()
    }).collect();
    let data = bodies.join(",");
    Ok(format!(r#"{{"object":"list","data":[{data}],"has_more":false,"url":"/v1/webhook_endpoints"}}"#))
}
