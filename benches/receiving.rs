//! Receiving signed events of Stripe's size over HTTP: `recon serve` as a process of its own, against a handler
//! that does the same with one transaction for each request, on the same store. Run with
//! `cargo bench --bench receiving`; `RECON_BENCH_POSTGRES=postgres://…` names an empty database that is measured
//! too, `RECON_BENCH_SECONDS` sets how long each rate is measured, `RECON_BENCH_MEMORY` how many deliveries
//! the memory is watched over.
//!
//! Durability is that of production (SQLite: WAL with `synchronous = full`; PostgreSQL: as it is configured). The
//! clients run on the same processors: 64 connections, each waiting for its answer. Latency at half of the peak is
//! counted from when a delivery was due, not from when it could be sent.

#[path = "receiving/one_each.rs"]
mod one_each;

use anyhow::{Context, Result, bail, ensure};
use ring::hmac;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SECRET: &str = "whsec_bench";
const CLIENTS: u64 = 64;
/// Bytes that fill a body up to about 1.5 KB.
const FILLER: usize = 1_300;

/// Numbers of events, each used once.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "one-each") {
        return one_each::serve(arguments.get(at + 1).context("which store?")?);
    }
    let dir = tempfile::tempdir()?;
    let sqlite = format!("sqlite:{}", dir.path().join("recon.db").display());
    measure("SQLite, synchronous = full", &sqlite, &dir)?;
    if let Ok(url) = std::env::var("RECON_BENCH_POSTGRES") {
        measure("PostgreSQL", &url, &dir)?;
    }
    if let Some(deliveries) = number("RECON_BENCH_MEMORY") {
        watch_memory(&sqlite, &dir, deliveries)?;
    }
    Ok(())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn measure(what: &str, url: &str, dir: &tempfile::TempDir) -> Result<()> {
    let seconds = Duration::from_secs(number("RECON_BENCH_SECONDS").unwrap_or(8));
    println!("{what}, {CLIENTS} clients, {} s each", seconds.as_secs());
    let server = Server::start(&mut one_each_command(url)?)?;
    let single = load(server.address, seconds, None)?;
    single.print("one transaction each");
    drop(server);
    let server = Server::start(&mut recon(url, dir)?)?;
    let shared = load(server.address, seconds, None)?;
    shared.print("recon serve");
    let half = load(server.address, seconds, Some(shared.per_second() / 2))?;
    half.print("recon serve, half of that");
    let ratio = shared.per_second() * 100 / single.per_second().max(1);
    println!("{:<28} {}.{:02} times", "  shared commits against one", ratio / 100, ratio % 100);
    Ok(())
}

fn watch_memory(url: &str, dir: &tempfile::TempDir, deliveries: u64) -> Result<()> {
    println!("memory of `recon serve` over {deliveries} deliveries");
    let server = Server::start(&mut recon(url, dir)?)?;
    for part in 1..=10 {
        let until = NEXT.load(Ordering::Relaxed) + deliveries / 10;
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let address = server.address;
                scope.spawn(move || {
                    let mut client = Client::connect(address)?;
                    while NEXT.load(Ordering::Relaxed) < until {
                        client.deliver(NEXT.fetch_add(1, Ordering::Relaxed))?;
                    }
                    anyhow::Ok(())
                });
            }
        });
        println!("{:>10} deliveries {:>7} KiB", deliveries / 10 * part, server.memory_kib()?);
    }
    Ok(())
}

fn recon(url: &str, dir: &tempfile::TempDir) -> Result<Command> {
    let config = dir.path().join("recon.toml");
    let text = format!(
        "[store]\nurl = \"{url}\"\n[receive]\nlisten = \"127.0.0.1:0\"\n[[provider]]\nname = \"stripe\"\n\
         api_key = {{ env = \"KEY\" }}\nwebhook_secrets = [{{ env = \"SECRET\" }}]\n"
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.arg("--config").arg(config).arg("serve").env("SECRET", SECRET);
    Ok(command)
}

fn one_each_command(url: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["one-each", url]);
    Ok(command)
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("its output")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let address = line.strip_prefix("POST http://").and_then(|rest| rest.split('/').next());
        let address = address.with_context(|| format!("it said {line:?}"))?.parse()?;
        let server = Self { child, address };
        // The first delivery finds the store open.
        let mut client = Client::connect(address)?;
        while client.deliver(NEXT.fetch_add(1, Ordering::Relaxed))? != 200 {}
        Ok(server)
    }

    fn memory_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("its memory")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a measurement found, µs for each delivery in order.
struct Load {
    latencies_us: Vec<u64>,
    took: Duration,
    refused: u64,
}

impl Load {
    fn per_second(&self) -> u64 {
        let taken = self.latencies_us.len() as u128;
        u64::try_from(taken * 1_000_000 / self.took.as_micros().max(1)).unwrap_or(0)
    }

    fn print(&self, what: &str) {
        let place = |per_thousand: usize| {
            let at = (self.latencies_us.len() * per_thousand / 1_000).min(self.latencies_us.len() - 1);
            self.latencies_us[at]
        };
        println!(
            "{what:<28} {:>7}/s  p50 {:>6} µs  p99 {:>7} µs  slowest {:>7} µs  not taken {}",
            self.per_second(),
            place(500),
            place(990),
            place(1_000),
            self.refused
        );
    }
}

/// Every client delivers as fast as it is answered, or all together at a rate.
fn load(address: SocketAddr, seconds: Duration, rate: Option<u64>) -> Result<Load> {
    let started = Instant::now();
    let clients: Vec<_> = std::thread::scope(|scope| {
        let client = |number: u64| deliver_for(address, started, seconds, rate.map(|rate| (rate, number)));
        let threads: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let took = started.elapsed();
    let (mut latencies_us, mut refused) = (Vec::new(), 0);
    for client in clients {
        let Ok(client) = client else { bail!("a client panicked") };
        let (taken, not_taken) = client?;
        latencies_us.extend(taken);
        refused += not_taken;
    }
    ensure!(!latencies_us.is_empty(), "nothing was taken");
    latencies_us.sort_unstable();
    Ok(Load { latencies_us, took, refused })
}

fn deliver_for(
    address: SocketAddr,
    started: Instant,
    seconds: Duration,
    paced: Option<(u64, u64)>,
) -> Result<(Vec<u64>, u64)> {
    let mut client = Client::connect(address)?;
    let (mut latencies, mut refused) = (Vec::new(), 0);
    for turn in 0.. {
        let due = match paced {
            None => Instant::now(),
            Some((rate, number)) => {
                let due_us = (turn * CLIENTS + number) * 1_000_000 / rate.max(1);
                let due = started + Duration::from_micros(due_us);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                due
            }
        };
        if started.elapsed() >= seconds {
            break;
        }
        if client.deliver(NEXT.fetch_add(1, Ordering::Relaxed))? == 200 {
            latencies.push(u64::try_from(due.elapsed().as_micros())?);
        } else {
            refused += 1;
        }
    }
    Ok((latencies, refused))
}

struct Client {
    stream: TcpStream,
    key: hmac::Key,
    answer: [u8; 1_024],
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, key: hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), answer: [0; 1_024] })
    }

    /// The status of the answer.
    fn deliver(&mut self, number: u64) -> Result<u16> {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let filler = "x".repeat(FILLER);
        let body = format!(
            r#"{{"id":"evt_3O{mixed:020}","object":"event","livemode":true,"created":1767225600,"type":"charge.succeeded","data":{{"object":{{"id":"ch_{mixed:020}","filler":"{filler}"}}}}}}"#
        );
        let now_s = recon::clock::now_us() / 1_000_000;
        let made = hmac::sign(&self.key, format!("{now_s}.{body}").as_bytes());
        let request = format!(
            "POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             stripe-signature: t={now_s},v1={}\r\n\r\n{body}",
            body.len(),
            recon::record::hex(made.as_ref())
        );
        self.stream.write_all(request.as_bytes())?;
        let mut read = 0;
        // The answers of both servers have no body but a word, and come in one piece with it.
        while !self.answer[..read].windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            let count = self.stream.read(&mut self.answer[read..])?;
            ensure!(count > 0, "the connection was closed");
            read += count;
        }
        let text = std::str::from_utf8(&self.answer[..read])?;
        Ok(text.split(' ').nth(1).context("a status")?.parse()?)
    }
}
