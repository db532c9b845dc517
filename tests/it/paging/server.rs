//! A scripted, Stripe-shaped list on loopback. Its faults are written by the test; it counts what it was asked.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// One object of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub created: i64,
}

pub fn row(id: &str, created: i64) -> Row {
    Row { id: id.to_owned(), created }
}

/// The bytes that the list shows for a row, with spelling that no serialiser would choose.
pub fn body_of(row: &Row) -> String {
    format!(
        r#"{{"id":"{}", "object":"event","created":{},"amount":1.10,"note":"\u00e9"}}"#,
        row.id, row.created
    )
}

/// A request as the server understood it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub headers: HeaderMap,
}

impl Asked {
    pub fn number(&self, name: &str) -> Option<i64> {
        self.query.get(name).map(|text| text.parse().unwrap())
    }
}

/// What to answer instead of the truth.
#[derive(Clone, Debug)]
pub enum Fault {
    Status(u16, Vec<(&'static str, String)>, String),
    /// 200, but the connection ends in the middle of the body.
    CutOff,
    /// 200 and a whole body that ends too early.
    HalfJson,
    /// 200 and HTML.
    Html,
    /// As if the cursor were not there.
    Restart,
    /// An empty page.
    Empty {
        has_more: bool,
    },
}

impl Fault {
    pub fn error(status: u16, code: &str, param: &str) -> Self {
        Self::Status(
            status,
            vec![],
            format!(r#"{{"error":{{"type":"x","code":"{code}","param":"{param}"}}}}"#),
        )
    }

    pub fn refused(headers: Vec<(&'static str, String)>) -> Self {
        Self::Status(429, headers, r#"{"error":{"type":"x","code":"rate_limit"}}"#.to_owned())
    }

    pub fn lost() -> Self {
        Self::error(400, "resource_missing", "starting_after")
    }
}

type Script = Box<dyn FnMut(&Asked, &mut Vec<Row>) -> Option<Fault> + Send>;

struct Inner {
    rows: Vec<Row>,
    script: Script,
    asked: Vec<Asked>,
    by_offset: Option<BTreeMap<String, usize>>,
}

/// The server. Stops with the runtime of its test.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Mutex<Inner>>,
    count: Arc<watch::Sender<usize>>,
    pub url: String,
}

impl Server {
    pub async fn start(rows: Vec<Row>) -> Self {
        Self::scripted(rows, |_, _| None).await
    }

    /// `script` sees every request before it is answered, and may change the list.
    pub async fn scripted(
        rows: Vec<Row>,
        script: impl FnMut(&Asked, &mut Vec<Row>) -> Option<Fault> + Send + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Inner { rows, script: Box::new(script), asked: Vec::new(), by_offset: None };
        let server = Self { inner: Arc::new(Mutex::new(inner)), count: Arc::new(watch::Sender::new(0)), url };
        let app = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        server
    }

    /// Pages are cut at the position where the page before ended, whatever was inserted since.
    pub fn page_by_offset(&self) {
        self.inner.lock().unwrap().by_offset = Some(BTreeMap::new());
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.inner.lock().unwrap().asked.clone()
    }

    /// Returns when `count` requests have come.
    pub async fn asked_at_least(&self, count: usize) {
        self.count.subscribe().wait_for(|now| *now >= count).await.unwrap();
    }
}

/// Faults in order, one for each request that `is_meant`; then the truth.
pub fn in_order(
    faults: Vec<Fault>,
    is_meant: impl Fn(&Asked) -> bool + Send + 'static,
) -> impl FnMut(&Asked, &mut Vec<Row>) -> Option<Fault> + Send + 'static {
    let mut faults = VecDeque::from(faults);
    move |asked, _| if is_meant(asked) { faults.pop_front() } else { None }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let asked = Asked {
        path: request.uri().path().to_owned(),
        query: query
            .map(|(name, value)| (name.replace("%5B", "[").replace("%5D", "]"), value.to_owned()))
            .collect(),
        headers: request.headers().clone(),
    };
    let response = server.inner.lock().unwrap().answer(asked);
    server.count.send_modify(|count| *count += 1);
    response
}

impl Inner {
    fn answer(&mut self, asked: Asked) -> Response {
        let fault = (self.script)(&asked, &mut self.rows);
        self.asked.push(asked.clone());
        let truth = |inner: &mut Self, asked: &Asked| match asked.path.strip_prefix("/v1/things/") {
            Some(id) => inner.object(id),
            None => json(200, vec![], inner.list(asked)),
        };
        match fault {
            None => truth(self, &asked),
            Some(Fault::Restart) => {
                let mut asked = asked;
                asked.query.remove("starting_after");
                truth(self, &asked)
            }
            Some(Fault::Empty { has_more }) => {
                json(200, vec![], format!(r#"{{"object":"list","data":[],"has_more":{has_more}}}"#))
            }
            Some(Fault::Status(status, headers, body)) => json(status, headers, body),
            Some(Fault::Html) => json(200, vec![], "<!doctype html><p>Sign in".to_owned()),
            Some(Fault::HalfJson) => {
                let whole = self.list(&asked);
                json(200, vec![], whole[..whole.len() / 2].to_owned())
            }
            Some(Fault::CutOff) => {
                let whole = self.list(&asked);
                let half = Bytes::from(whole[..whole.len() / 2].to_owned());
                Response::new(Body::from_stream(futures_util::stream::unfold(Some(half), cut_off)))
            }
        }
    }

    fn list(&mut self, asked: &Asked) -> String {
        let (from, until) = (asked.number("created[gte]"), asked.number("created[lt]"));
        let limit = usize::try_from(asked.number("limit").unwrap_or(10)).unwrap();
        let mut rows: Vec<Row> = self.rows.clone();
        rows.retain(|row| {
            from.is_none_or(|from| from <= row.created) && until.is_none_or(|until| row.created < until)
        });
        // Within one second the list's order has nothing to do with ids.
        rows.sort_by_key(|row| std::cmp::Reverse(row.created));
        let after = asked.query.get("starting_after");
        let start = match (after, &self.by_offset) {
            (None, _) => 0,
            (Some(id), Some(offsets)) => offsets.get(id).copied().unwrap_or(0).min(rows.len()),
            (Some(id), None) => rows.iter().position(|row| row.id == *id).map_or(0, |at| at + 1),
        };
        let page: Vec<Row> = rows[start..].iter().take(limit).cloned().collect();
        let end = start + page.len();
        if let (Some(offsets), Some(last)) = (&mut self.by_offset, page.last()) {
            offsets.insert(last.id.clone(), end);
        }
        let data: Vec<String> = page.iter().map(body_of).collect();
        let has_more = end < rows.len();
        format!(r#"{{"object":"list","url":"x","data":[{}],"has_more":{has_more}}}"#, data.join(", "))
    }

    fn object(&self, id: &str) -> Response {
        match self.rows.iter().find(|row| row.id == id) {
            Some(row) => json(200, vec![], body_of(row)),
            None => json(404, vec![], r#"{"error":{"code":"resource_missing","param":"id"}}"#.to_owned()),
        }
    }
}

fn json(status: u16, headers: Vec<(&'static str, String)>, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// The half, and, once it is under way, the end of the connection.
async fn cut_off(half: Option<Bytes>) -> Option<(std::io::Result<Bytes>, Option<Bytes>)> {
    if let Some(half) = half {
        return Some((Ok(half), None));
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    Some((Err(std::io::Error::other("cut off")), None))
}
