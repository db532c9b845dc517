//! A team's own URL on loopback: it keeps what it was told, and answers as the test wants.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// One call.
#[derive(Clone, Debug)]
pub struct Heard {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Heard {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Before = Box<dyn FnMut(usize) + Send>;

#[derive(Default)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    answers: Mutex<VecDeque<u16>>,
    before: Mutex<Option<Before>>,
}

/// The server; it ends with the test's runtime.
pub struct Ear {
    /// Where a hook is told; every other path is heard as well.
    pub url: String,
    /// Without a path.
    pub root: String,
    shared: Arc<Shared>,
}

impl Ear {
    pub async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url: format!("{root}/hook"), root, shared }
    }

    /// Answers in turn; 200 after the last.
    pub fn answer(&self, statuses: &[u16]) {
        self.shared.answers.lock().unwrap().extend(statuses);
    }

    /// Called before each answer, with the number of calls heard so far.
    pub fn before(&self, act: impl FnMut(usize) + Send + 'static) {
        *self.shared.before.lock().unwrap() = Some(Box::new(act));
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().unwrap().clone()
    }

    /// The calls to a path, and forgets them.
    pub fn take(&self, path: &str) -> Vec<Heard> {
        let mut heard = self.shared.heard.lock().unwrap();
        let (taken, left) = heard.drain(..).partition(|call| call.path == path);
        *heard = left;
        taken
    }
}

async fn hear(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let count = {
        let mut heard = shared.heard.lock().unwrap();
        let (method, path) = (method.to_string(), uri.path().to_owned());
        heard.push(Heard { method, path, headers, body: body.to_vec() });
        heard.len()
    };
    if let Some(act) = shared.before.lock().unwrap().as_mut() {
        act(count);
    }
    let status = shared.answers.lock().unwrap().pop_front().unwrap_or(200);
    StatusCode::from_u16(status).unwrap()
}
