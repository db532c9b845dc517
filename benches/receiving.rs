//! Receiving signed events of Stripe's size over HTTP: `recon serve` as a process of its own, against a handler
//! that does the same with one transaction for each request, on the same store. Run with
//! `cargo bench --bench receiving`; `RECON_BENCH_POSTGRES=postgres://…` names an empty database that is measured
//! too, `RECON_BENCH_SECONDS` sets how long each rate is measured. `RECON_BENCH_MEMORY=1000000` measures nothing
//! else than the memory of `recon serve` over so many deliveries, once a second.
//!
//! Durability is that of production (SQLite: WAL with `synchronous = full`; PostgreSQL: as it is configured). The
//! clients run on the same processors: 64 connections, each waiting for its answer. Latency at half of the peak is
//! counted from when a delivery was due, not from when it could be sent. The handler with one transaction for
//! each request is measured with each number of connections that people give their pool, and the fastest counts.

#[path = "receiving/clients.rs"]
mod clients;
#[path = "receiving/one_each.rs"]
mod one_each;

use anyhow::{Context, Result};
use clients::{Amount, CLIENTS, Load, deliver_once, load};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SECRET: &str = "whsec_bench";
/// Connections of the handler's pool: one writer, a usual pool, one for each client.
const POOLS: [u64; 3] = [1, 10, CLIENTS];
/// How often the kernel counts processor time, a second (`getconf CLK_TCK`).
const TICKS: u64 = 100;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "one-each") {
        let [url, connections, ..] = &arguments[at + 1..] else { anyhow::bail!("which store?") };
        return one_each::serve(url, connections.parse()?);
    }
    let dir = tempfile::tempdir()?;
    let sqlite = format!("sqlite:{}", dir.path().join("recon.db").display());
    let postgres = std::env::var("RECON_BENCH_POSTGRES").ok();
    if let Some(deliveries) = number("RECON_BENCH_MEMORY") {
        return watch_memory(postgres.as_ref().unwrap_or(&sqlite), &dir, deliveries);
    }
    measure("SQLite, synchronous = full", &sqlite, &dir)?;
    match postgres {
        Some(url) => measure("PostgreSQL", &url, &dir),
        None => Ok(()),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn measure(what: &str, url: &str, dir: &tempfile::TempDir) -> Result<()> {
    let time = Duration::from_secs(number("RECON_BENCH_SECONDS").unwrap_or(8));
    println!("{what}, {CLIENTS} clients, {} s each", time.as_secs());
    let peak = Amount { time, rate: None, deliveries: u64::MAX };
    let mut fastest = 1;
    for connections in POOLS {
        let server = Server::start(&mut one_each_command(url, connections)?)?;
        let single = server.measured(peak, &format!("one transaction each, pool {connections}"))?;
        fastest = fastest.max(single);
    }
    let server = Server::start(&mut recon(url, dir)?)?;
    let shared = server.measured(peak, "recon serve")?;
    server.measured(Amount { rate: Some(shared / 2), ..peak }, "recon serve, half of that")?;
    let ratio = shared * 100 / fastest;
    println!("{:<32} {}.{:02} times", "  shared commits against one", ratio / 100, ratio % 100);
    Ok(())
}

/// What `recon serve` holds of the memory, once a second.
fn watch_memory(url: &str, dir: &tempfile::TempDir, deliveries: u64) -> Result<()> {
    println!("memory of `recon serve` over {deliveries} deliveries");
    let server = Server::start(&mut recon(url, dir)?)?;
    let before = server.memory_kib()?;
    let is_over = AtomicBool::new(false);
    let amount = Amount { time: Duration::from_hours(1), rate: None, deliveries };
    let (loaded, seen) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(1));
                seen.extend(server.memory_kib());
            }
            seen
        });
        let loaded = load(server.address, amount);
        is_over.store(true, Ordering::Relaxed);
        (loaded, watching.join())
    });
    let seen = seen.map_err(|_| anyhow::anyhow!("the watcher panicked"))?;
    loaded?.print("recon serve", "");
    println!("{before} KiB before the first; then, once a second:");
    for tenth in seen.chunks(seen.len().div_ceil(10).max(1)) {
        let text: Vec<String> = tenth.iter().map(u64::to_string).collect();
        println!("  {}", text.join(" "));
    }
    let of = |kib: Option<&u64>| kib.copied().unwrap_or(0);
    println!(
        "first {} KiB, last {} KiB, most {} KiB",
        of(seen.first()),
        of(seen.last()),
        of(seen.iter().max())
    );
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

fn one_each_command(url: &str, connections: u64) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["one-each", url, &connections.to_string()]);
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
        while deliver_once(address)? != 200 {}
        Ok(server)
    }

    /// Measures and prints; how many it took a second.
    fn measured(&self, amount: Amount, what: &str) -> Result<u64> {
        let before = (self.ticks()?, ticks("self")?);
        let load = load(self.address, amount)?;
        let taken = load.latencies_us.len() as u64;
        let each_us = |ticks: u64| ticks * 1_000_000 / TICKS / taken;
        let processor = format!(
            "  processor µs each: server {}, clients with signing {}",
            each_us(self.ticks()? - before.0),
            each_us(ticks("self")? - before.1)
        );
        load.print(what, &processor);
        Ok(load.per_second())
    }

    fn ticks(&self) -> Result<u64> {
        ticks(&self.child.id().to_string())
    }

    fn memory_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("its memory")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

/// Processor time of a process so far: fields 14 and 15 of `/proc/PID/stat`.
fn ticks(process: &str) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("a name")?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Ok(fields.next().context("user time")?? + fields.next().context("system time")??)
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Load {
    fn per_second(&self) -> u64 {
        let taken = self.latencies_us.len() as u128;
        u64::try_from(taken * 1_000_000 / self.took.as_micros().max(1)).unwrap_or(0)
    }

    fn print(&self, what: &str, more: &str) {
        let place = |per_thousand: usize| {
            let at = (self.latencies_us.len() * per_thousand / 1_000).min(self.latencies_us.len() - 1);
            self.latencies_us[at]
        };
        println!(
            "{what:<32} {:>7}/s  µs: p50 {:>6}  p90 {:>6}  p99 {:>6}  p99.9 {:>7}  slowest {:>7}  not taken {}{more}",
            self.per_second(),
            place(500),
            place(900),
            place(990),
            place(999),
            place(1_000),
            self.refused
        );
    }
}
