//! The shop's own handler: it checks the signature, and books with SQL of its own under a unique key of its own. It asks
//! nobody of ours what an event means.

use super::shop::now;
use crate::books::{Hand, Kind};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use recon::config::Secret;
use recon::demo::{Meaning, World};
use recon::receive::{Delivery, Scheme, Settings, authenticate};
use recon::record::Status;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

pub const SECRET: &str = "whsec_of_the_shops_handler";

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Works,
    /// Books, and answers 500 all the same.
    WorksAndFails,
    /// Answers 200 and does nothing.
    SaysYes,
    Answers(u16),
    Hangs,
    /// Books twice the amount.
    BooksTwice,
    /// Works once so many ask at the same time.
    WaitsFor(usize),
}

/// What it knows of an event.
struct Known {
    kind: &'static str,
    change: Option<(String, String, i64, &'static str)>,
    root: String,
    status: Option<Status>,
}

struct Shared {
    kind: Kind,
    books: Hand,
    events: BTreeMap<String, Known>,
    now_us: i64,
    manner: Mutex<Manner>,
    heard: Mutex<Vec<String>>,
    most_at_once: Mutex<(usize, usize)>,
}

pub struct Handler {
    pub url: String,
    shared: Arc<Shared>,
}

impl Handler {
    pub async fn open(world: &World, kind: Kind, books: Hand) -> Self {
        let now_s = world.now_us / 1_000_000;
        let known = |event: &recon::demo::Event| {
            let payment = event.payment.map(|at| &world.payments[at]);
            let change = match &event.meaning {
                Meaning::Moves(change) => Some((
                    change.kind.to_string(),
                    change.object_id.clone(),
                    change.amount_minor,
                    change.currency,
                )),
                _ => None,
            };
            Known {
                kind: event.kind,
                change,
                root: payment.map_or(String::new(), |payment| payment.root_id().to_owned()),
                // It asks for the present status, as an honest handler does.
                status: event.status.and(payment).map(|payment| payment.status_at(now_s)),
            }
        };
        let events = world.events.iter().map(|event| (event.id.clone(), known(event))).collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            kind,
            books,
            events,
            now_us: world.now_us,
            manner: Mutex::new(Manner::Works),
            heard: Mutex::default(),
            most_at_once: Mutex::default(),
        });
        let router = Router::new().fallback(hear).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared }
    }

    pub fn behave(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    /// Ids of the events that were delivered, in order.
    pub fn heard(&self) -> Vec<String> {
        self.shared.heard.lock().unwrap().clone()
    }

    /// Most deliveries that were under way at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.most_at_once.lock().unwrap().1
    }
}

async fn hear(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    {
        let mut at_once = shared.most_at_once.lock().unwrap();
        at_once.0 += 1;
        at_once.1 = at_once.1.max(at_once.0);
    }
    let answer = take(&shared, &headers, &body).await;
    shared.most_at_once.lock().unwrap().0 -= 1;
    answer
}

async fn take(shared: &Shared, headers: &HeaderMap, body: &Bytes) -> StatusCode {
    let came: Vec<(&str, &[u8])> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let received_at_us = recon::clock::machine_now_us();
    let delivery = Delivery { method: "POST", url: "", headers: &came, body, received_at_us };
    let secrets = [Secret::new(SECRET.to_owned())];
    if authenticate(&Settings::new(Scheme::Stripe, "live"), &secrets, &delivery, None).is_err() {
        return StatusCode::UNAUTHORIZED;
    }
    assert!(headers["recon-run"].to_str().unwrap().starts_with("20"), "{headers:?}");
    let event: serde_json::Value = serde_json::from_slice(body).unwrap();
    let id = event["id"].as_str().unwrap().to_owned();
    shared.heard.lock().unwrap().push(id.clone());
    let manner = *shared.manner.lock().unwrap();
    match manner {
        Manner::Works | Manner::WorksAndFails | Manner::BooksTwice => {}
        Manner::SaysYes => return StatusCode::OK,
        Manner::Answers(status) => return StatusCode::from_u16(status).unwrap(),
        Manner::Hangs => std::future::pending().await,
        Manner::WaitsFor(count) => {
            while shared.most_at_once.lock().unwrap().1 < count {
                tokio::task::yield_now().await;
            }
        }
    }
    let known = &shared.events[&id];
    assert_eq!(event["type"], known.kind);
    let times = if manner == Manner::BooksTwice { 2 } else { 1 };
    shared.books.run_sql(&written(shared, &id, known, times)).await;
    if manner == Manner::WorksAndFails { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
}

/// Everything that an event does, in one transaction; a second time it does nothing.
fn written(shared: &Shared, id: &str, known: &Known, times: i64) -> String {
    let kind = shared.kind;
    let at = now(kind, shared.now_us);
    let mut sql = kind.pick("begin immediate;", "begin;", "start transaction;").to_owned();
    if let Some((what, object, cents, money)) = &known.change {
        let insert = kind.pick("insert or ignore", "insert", "insert ignore");
        let ignored = kind.pick("", "on conflict do nothing", "");
        let cents = cents * times;
        let key = format!("stripe//live/{what}:{object}");
        write!(
            sql,
            "{insert} into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes, k)
             select 'hook {what} {object}', '', 1, '{object}', '{what}', {cents}, '{money}', {at}, '{id}', '', '{key}'
             where not exists (select 1 from shop_booking b where b.ext = '{object}' and b.what = '{what}') {ignored};"
        )
        .unwrap();
    }
    if let Some(status) = known.status {
        let root = &known.root;
        write!(
            sql,
            "update shop_payment set word = '{status}', changed = {at}, who = 'hook'
                 where ext = '{root}' and word <> '{status}';
             insert into shop_payment select '', 1, '{root}', '{status}', null, {at}, 'hook'
                 where not exists (select 1 from shop_payment p where p.ext = '{root}');"
        )
        .unwrap();
    }
    write!(
        sql,
        "update shop_event set word = 'applied' where id = '{id}';
         insert into shop_event select '', 1, '{id}', '{}', {}, '', {at}, 'applied'
             where not exists (select 1 from shop_event e where e.id = '{id}');
         commit;",
        known.kind,
        kind.bytes("7b7d")
    )
    .unwrap();
    sql
}
