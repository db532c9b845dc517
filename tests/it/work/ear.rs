//! A team's own URL on loopback: it keeps what it was told, and answers as the test wants.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// One call.
#[derive(Clone, Debug)]
pub struct Heard {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Heard {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
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
    pub url: String,
    shared: Arc<Shared>,
}

impl Ear {
    pub async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared }
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
}

async fn hear(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let count = {
        let mut heard = shared.heard.lock().unwrap();
        heard.push(Heard { headers, body: body.to_vec() });
        heard.len()
    };
    if let Some(act) = shared.before.lock().unwrap().as_mut() {
        act(count);
    }
    let status = shared.answers.lock().unwrap().pop_front().unwrap_or(200);
    StatusCode::from_u16(status).unwrap()
}
