//! Paging events from a list that takes 300 ms a page and allows 25 requests a second, beside one page at a
//! time. `cargo bench --bench paging -- [EVENTS] [SERIAL_PAGES]`; the server runs in this process on loopback.
//!
//! The one thing to read right: the share is of the limit, from the first request to the last row written.

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use recon::config::{Accounts, LimitSettings, ProviderSettings, Secret};
use recon::provider::{Cancel, Client, Progress, RunContext, Stream, page};
use recon::record::{CoverageStatus, SECOND_US, Window};
use recon::store::{Access, Store};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const EVENTS: Stream =
    Stream { name: "events", path: "/v1/events", query: &[], memory: None, by_id_path: "/v1/events" };
const LATENCY: Duration = Duration::from_millis(300);
const PER_SECOND: u32 = 25;
const FROM: i64 = 1_700_000_000;
const DAYS_30: i64 = 30 * 86_400;

/// A list whose event `n` of `count` was created so many seconds after its start: busy days, quiet nights.
struct Server {
    /// Creation seconds, oldest first; the index is the id.
    created: Vec<i64>,
    last_second: Mutex<VecDeque<Instant>>,
    counts: Mutex<(u64, u64)>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok());
    let events = numbers.next().unwrap_or(250_000);
    let serial_pages = numbers.next().unwrap_or(40);
    let server = Arc::new(Server {
        created: created(events),
        last_second: Mutex::default(),
        counts: Mutex::default(),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let app = Router::new().fallback(answer).with_state(Arc::clone(&server));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let needed = events.div_ceil(100);
    println!("{events} events, {needed} pages, {} ms a page, {PER_SECOND} requests/s", LATENCY.as_millis());
    let settings = settings(&url);
    let concurrent = all_at_once(&settings, events).await?;
    let (requests, refused) = *server.counts.lock().unwrap_or_else(PoisonError::into_inner);
    let possible = concurrent.as_millis() * u128::from(PER_SECOND) / 1000;
    let share_permille = u128::from(requests) * 1000 / possible.max(1);
    let useful_permille = needed as u128 * 1000 / possible.max(1);
    println!(
        "recon: {concurrent:.1?}, {requests} requests for {needed} pages, {refused} refused (429), \
         {share_permille} per mille of the limit used, {useful_permille} per mille with needed pages"
    );
    let client = Client::new(&settings, &limits())?;
    let started = Instant::now();
    one_at_a_time(&client, serial_pages).await?;
    let serial = started.elapsed() * u32::try_from(needed)? / u32::try_from(serial_pages)?;
    println!(
        "one page at a time: {serial:.1?} (from {serial_pages} pages), {} times as long",
        serial.as_millis() / concurrent.as_millis().max(1)
    );
    Ok(())
}

async fn all_at_once(settings: &ProviderSettings, events: usize) -> Result<Duration> {
    let folder = tempfile::TempDir::new()?;
    let path = folder.path().join("recon.db");
    let store = Store::open(&format!("sqlite:{}", path.display()), Access::ReadWrite).await?;
    let client = Client::new(settings, &limits())?.sharing(&store, settings);
    let run = RunContext {
        run_id: "bench".to_owned(),
        resume_of: None,
        accounts: vec![String::new()],
        now_us: (FROM + DAYS_30 + 3600) * SECOND_US,
        cancel: Cancel::never(),
        progress: Arc::new(Progress::stderr()),
    };
    let window = Window { from_us: FROM * SECOND_US, until_us: (FROM + DAYS_30) * SECOND_US };
    let started = Instant::now();
    let paged = page(&store, &client, settings, &[EVENTS], window, &run).await?;
    let took = started.elapsed();
    let held: u64 = paged.coverage.iter().map(|range| range.records).sum();
    ensure!(
        paged.coverage.iter().all(|range| range.status == CoverageStatus::Covered),
        "{:?}",
        paged.coverage
    );
    ensure!(held == events as u64, "{} rows lost", events as u64 - held);
    println!("rows lost: 0, slices: {}", paged.coverage[0].slices);
    Ok(took)
}

async fn one_at_a_time(client: &Client, pages: usize) -> Result<()> {
    let mut after = String::new();
    for _ in 0..pages {
        let body = client.get("events", &format!("/v1/events?limit=100{after}"), "").await?;
        let list: serde_json::Value = serde_json::from_slice(&body)?;
        let oldest = list["data"].as_array().and_then(|data| data.last()).context("an empty page")?;
        after = format!("&starting_after={}", oldest["id"].as_str().context("no id")?);
    }
    Ok(())
}

fn created(events: usize) -> Vec<i64> {
    let count = i64::try_from(events).unwrap_or(i64::MAX).max(1);
    let mut created: Vec<i64> = (0..count)
        .map(|n| {
            let even = n * DAYS_30 / count;
            // Two thirds of each day's events fall into its first third.
            let (day, second) = (even / 86_400, even % 86_400);
            let second = if second < 57_600 { second / 2 } else { 28_800 + (second - 57_600) * 2 };
            FROM + day * 86_400 + second
        })
        .collect();
    created.sort_unstable();
    created
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    let is_refused = {
        let mut last = server.last_second.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while last.front().is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(1)) {
            last.pop_front();
        }
        last.push_back(now);
        // One more than the limit, for the jitter of a timer.
        last.len() > PER_SECOND as usize + 1
    };
    {
        let mut counts = server.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.0 += 1;
        counts.1 += u64::from(is_refused);
    }
    if is_refused {
        let mut response = Response::new(Body::from(r#"{"error":{"code":"rate_limit"}}"#));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        return response;
    }
    tokio::time::sleep(LATENCY).await;
    Response::new(Body::from(server.list(request.uri().query().unwrap_or_default())))
}

impl Server {
    fn list(&self, query: &str) -> String {
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str| value(name).and_then(|text| text.parse::<i64>().ok());
        let from = number("created%5Bgte%5D").unwrap_or(i64::MIN);
        let until = number("created%5Blt%5D").unwrap_or(i64::MAX);
        let low = self.created.partition_point(|created| *created < from);
        let mut high = self.created.partition_point(|created| *created < until);
        if let Some(id) = value("starting_after").and_then(|id| id.strip_prefix("evt_")?.parse().ok()) {
            high = high.min(id);
        }
        let start = high.saturating_sub(100).max(low);
        let filler = "x".repeat(1200);
        let data: Vec<String> = (start.min(high)..high)
            .rev()
            .map(|n| {
                let created = self.created[n];
                format!(r#"{{"id":"evt_{n}","object":"event","created":{created},"data":"{filler}"}}"#)
            })
            .collect();
        format!(r#"{{"object":"list","data":[{}],"has_more":{}}}"#, data.join(","), start > low)
    }
}

fn settings(url: &str) -> ProviderSettings {
    ProviderSettings {
        name: "stripe".to_owned(),
        base_url: url.to_owned(),
        api_key: Secret::new("sk_test_bench".to_owned()),
        accounts: Accounts::Named(vec![String::new()]),
        mode: "test".to_owned(),
        requests_per_second: PER_SECOND,
        account_requests_per_second: 100,
        settle_delay: Duration::from_mins(5),
        effects: BTreeSet::new(),
        event_types: None,
        intent: None,
    }
}

fn limits() -> LimitSettings {
    LimitSettings {
        run_budget: Duration::from_hours(2),
        ask_count_max: 1000,
        attempts_max: 6,
        statement_timeout: Duration::from_mins(10),
    }
}
