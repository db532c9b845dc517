//! The clients: connections that each wait for their answer, all on one thread, with requests that were signed
//! before the clock starts. They share the processors with the server, so they are to cost little.

use super::SECRET;
use anyhow::{Context, Result, ensure};
use ring::hmac;
use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

pub const CLIENTS: u64 = 64;
/// Bytes that fill a body up to about 1.5 KB.
const FILLER: usize = 1_300;
/// Requests that are signed for a second of measuring; more are signed as they are sent.
const SIGNED_PER_SECOND: u64 = 25_000;

/// Numbers of events, each used once.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What a measurement found, µs for each delivery in order.
pub struct Load {
    pub latencies_us: Vec<u64>,
    pub took: Duration,
    pub refused: u64,
}

/// How long, how fast and how many: whichever ends first.
#[derive(Clone, Copy)]
pub struct Amount {
    pub time: Duration,
    /// Deliveries a second of all clients together; as fast as they are answered without.
    pub rate: Option<u64>,
    pub deliveries: u64,
}

/// One delivery; the status of its answer.
pub fn deliver_once(address: SocketAddr) -> Result<u16> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Client::connect(address).await?.deliver(&signed(&key())).await })
}

/// Every client delivers as fast as it is answered, or all together at a rate.
pub fn load(address: SocketAddr, amount: Amount) -> Result<Load> {
    let per_second = amount.rate.map_or(SIGNED_PER_SECOND, |rate| rate + rate / 10 + CLIENTS);
    let ahead = (amount.time.as_secs() * per_second).min(amount.deliveries).min(600_000);
    let key = key();
    let mut requests: Vec<Vec<u8>> = Vec::new();
    requests.extend((0..ahead).map(|_| signed(&key)));
    let all = Rc::new(All { amount, requests, taken: Cell::new(0), key, started: Instant::now() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let clients = (0..CLIENTS).map(|number| deliver_for(address, Rc::clone(&all), number));
    let clients: Vec<_> = LocalSet::new().block_on(&runtime, async {
        let tasks: Vec<_> = clients.map(tokio::task::spawn_local).collect();
        futures_util::future::join_all(tasks).await
    });
    let took = all.started.elapsed();
    let (mut latencies_us, mut refused) = (Vec::new(), 0);
    for client in clients {
        let (taken, not_taken) = client.context("a client panicked")??;
        latencies_us.extend(taken);
        refused += not_taken;
    }
    ensure!(!latencies_us.is_empty(), "nothing was taken");
    latencies_us.sort_unstable();
    Ok(Load { latencies_us, took, refused })
}

/// What the clients share.
struct All {
    amount: Amount,
    requests: Vec<Vec<u8>>,
    taken: Cell<usize>,
    key: hmac::Key,
    started: Instant,
}

async fn deliver_for(address: SocketAddr, all: Rc<All>, number: u64) -> Result<(Vec<u64>, u64)> {
    let mut client = Client::connect(address).await?;
    let (mut latencies, mut refused) = (Vec::new(), 0);
    for turn in 0.. {
        let due = match all.amount.rate {
            None => Instant::now(),
            Some(rate) => {
                let due_us = (turn * CLIENTS + number) * 1_000_000 / rate.max(1);
                let due = all.started + Duration::from_micros(due_us);
                tokio::time::sleep_until(due.into()).await;
                due
            }
        };
        let place = all.taken.replace(all.taken.get() + 1);
        if all.started.elapsed() >= all.amount.time || place as u64 >= all.amount.deliveries {
            break;
        }
        let answered = match all.requests.get(place) {
            Some(request) => client.deliver(request).await?,
            None => client.deliver(&signed(&all.key)).await?,
        };
        if answered == 200 {
            latencies.push(u64::try_from(due.elapsed().as_micros())?);
        } else {
            refused += 1;
        }
    }
    Ok((latencies, refused))
}

fn key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes())
}

/// The whole request of an event of its own.
fn signed(key: &hmac::Key) -> Vec<u8> {
    let mixed = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let filler = "x".repeat(FILLER);
    let body = format!(
        r#"{{"id":"evt_3O{mixed:020}","object":"event","livemode":true,"created":1767225600,"type":"charge.succeeded","data":{{"object":{{"id":"ch_{mixed:020}","filler":"{filler}"}}}}}}"#
    );
    let now_s = recon::clock::now_us() / 1_000_000;
    let made = hmac::sign(key, format!("{now_s}.{body}").as_bytes());
    let request = format!(
        "POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         stripe-signature: t={now_s},v1={}\r\n\r\n{body}",
        body.len(),
        recon::record::hex(made.as_ref())
    );
    request.into_bytes()
}

struct Client {
    stream: TcpStream,
    answer: [u8; 1_024],
}

impl Client {
    async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: [0; 1_024] })
    }

    /// The status of the answer.
    async fn deliver(&mut self, mut request: &[u8]) -> Result<u16> {
        while !request.is_empty() {
            let sent = poll_fn(|context| Pin::new(&mut self.stream).poll_write(context, request)).await?;
            request = &request[sent..];
        }
        let mut read = 0;
        // The answers of both servers have no body but a word, and come in one piece with it.
        while !self.answer[..read].windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            let mut into = ReadBuf::new(&mut self.answer[read..]);
            poll_fn(|context| Pin::new(&mut self.stream).poll_read(context, &mut into)).await?;
            let count = into.filled().len();
            ensure!(count > 0, "the connection was closed");
            read += count;
        }
        let text = std::str::from_utf8(&self.answer[..read])?;
        Ok(text.split(' ').nth(1).context("a status")?.parse()?)
    }
}
