//! Everybody who may be told, on loopback: a webhook, a monitor, a Pushgateway, and a mail server that this project
//! did not write.

use crate::witness::venv::Server;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub content_type: String,
    pub body: String,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<Vec<Call>>,
    answers: Mutex<VecDeque<u16>>,
}

/// A server that hears every call; it ends with the test's runtime.
pub struct Desk {
    pub url: String,
    shared: Arc<Shared>,
}

impl Desk {
    pub async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared }
    }

    /// Answers in turn; 200 after the last.
    pub fn answer(&self, statuses: &[u16]) {
        self.shared.answers.lock().unwrap().extend(statuses);
    }

    /// The calls to a path, and forgets them.
    pub fn take(&self, path: &str) -> Vec<Call> {
        let mut calls = self.shared.calls.lock().unwrap();
        let (taken, left) = calls.drain(..).partition(|call| call.path == path);
        *calls = left;
        taken
    }
}

async fn hear(State(shared): State<Arc<Shared>>, request: Request) -> StatusCode {
    let (parts, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let content_type = parts.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
    shared.calls.lock().unwrap().push(Call {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        content_type: content_type.to_owned(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let status = shared.answers.lock().unwrap().pop_front().unwrap_or(200);
    StatusCode::from_u16(status).unwrap()
}

/// A mail server (aiosmtpd) that wants STARTTLS and a login. What it got lies in `mail.jsonl`, its root certificate in
/// `ca.pem`.
pub fn mail_server(folder: &Path) -> Server {
    Server::start(&["smtp.py", folder.to_str().unwrap()], &folder.join("smtp.log"))
}

/// What the mail server got.
pub fn mails(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("mail.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
