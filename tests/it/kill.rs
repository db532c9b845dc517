//! `kill -9` at every stage, at seeded points that are seen and not waited for; then the same command
//! again. Everything must end as it does without the kill: no row lost or doubled, no half report, no
//! second correction. Ctrl-C and SIGTERM end cleanly, and the next run goes on.

use crate::stage::{Ended, Stage};
use recon::demo::Rng;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use recon::store::Database;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const SEED: u64 = 77;
const EVENTS: usize = 260;
/// Points of each stage.
const POINTS: u64 = 4;

/// What must be the same whatever happened on the way.
const RECORDS: &str = "select stream || ' ' || record_id || ' ' || created_us || ' ' || {hex} as row \
     from provider_record order by stream, record_id";
const LEDGER: &str = "select effect_key || ' ' || object_id || ' ' || kind || ' ' || amount_minor || ' ' || currency \
     || ' ' || event_id || ' ' || corrects_entry_id as row from ledger_entry order by effect_key";
const STATES: &str = "select object_id || ' ' || status || ' ' || coalesce(cast(refunded_minor as text), '') as row from object_state order by object_id";
const INBOX: &str = "select event_id || ' ' || status as row from inbox_event order by event_id";

/// Long enough that every stage can be seen from outside.
fn slow() -> Faults {
    Faults { page_latency: Duration::from_millis(4), ..Faults::default() }
}

async fn stage() -> Stage {
    Stage::new(SEED, EVENTS, &Mix::each(1), slow()).await
}

/// An undisturbed run of the same month, and the apply of its plan.
struct Calm {
    stage: Stage,
    list_requests: u64,
    requests: u64,
    findings: String,
    tie_out: String,
    records: Vec<String>,
}

impl Calm {
    async fn new() -> Self {
        let stage = stage().await;
        let ended = stage.run(&[]);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let (findings, tie_out) = (stage.latest("findings.csv"), stage.latest("tie_out.csv"));
        let records = records(&stage).await;
        let (requests, list_requests) = (stage.emulator.counters.total(), lists(&stage));
        Self { stage, list_requests, requests, findings, tie_out, records }
    }
}

/// Every record that is kept, with its bytes.
async fn records(stage: &Stage) -> Vec<String> {
    let hex = match stage.database() {
        Database::Sqlite => "hex(body)",
        Database::Postgres => "upper(encode(body, 'hex'))",
    };
    stage.rows(&RECORDS.replace("{hex}", hex)).await
}

/// Requests for pages of lists.
fn lists(stage: &Stage) -> u64 {
    use recon::demo::world::Stream;
    Stream::ALL.iter().map(|stream| stage.emulator.counters.requests(stream.path())).sum()
}

/// Starts, looks until `is_there` (given the process id), and kills. False when it had ended before.
fn kill_when(command: &mut Command, mut is_there: impl FnMut(u32) -> bool) -> bool {
    let mut child: Child = command.spawn().unwrap();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if is_there(child.id()) {
            child.kill().unwrap();
            return child.wait().unwrap().signal() == Some(9);
        }
        // Leaves the processor to the one that is looked at.
        std::thread::yield_now();
    }
}

/// Whether a process holds a spill file: it compares.
fn compares(pid: u32) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.into_iter().any(|target| target.to_string_lossy().contains("recon-spill"))
}

/// Files in any folder below `out`, hidden ones too.
fn files_below(out: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![out.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

/// The same command again, and everything as in the undisturbed run.
async fn goes_on(stage: &Stage, calm: &Calm, what: &str) {
    // A reader never meets a folder without its manifest, or with another content.
    stage.reports();
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{what}: {}{}", ended.stdout, ended.stderr);
    // A kill after the very end finds the findings known already.
    assert_eq!(stage.latest("findings.csv").replace(",open,", ",new,"), calm.findings, "{what}");
    assert_eq!(stage.latest("tie_out.csv"), calm.tie_out, "{what}");
    assert!(records(stage).await == calm.records, "{what}: rows were lost, doubled or changed");
    // A spill file loses its name as soon as it is made; whoever is killed in between leaves an empty one.
    let mut tmp = files_below(&stage.folder.path().join("tmp"));
    tmp.retain(|path| std::fs::metadata(path).map_or(true, |held| held.len() > 0));
    assert!(tmp.is_empty(), "{what}: left behind: {tmp:?}");
    let out = std::fs::read_dir(stage.folder.path().join("out")).unwrap();
    let hidden: Vec<_> = out
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_str().unwrap().starts_with('.'))
        .collect();
    assert!(hidden.is_empty(), "{what}: left behind: {hidden:?}");
    assert_eq!(stage.ask("select cast(count(*) as text) from lease").await, "0", "{what}");
}

/// Points from 1 to `until`, by seed.
fn points(seed: u64, until: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..POINTS).map(|_| 1 + rng.below(until.max(1))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_paging_and_before_comparing_it_goes_on() {
    let calm = Calm::new().await;
    assert!(calm.requests > calm.list_requests, "nothing was followed by id");
    let mut killed = 0;
    for point in points(1, calm.list_requests - 1) {
        let stage = stage().await;
        killed += u32::from(kill_when(&mut stage.run_command(&[]), |_| lists(&stage) >= point));
        goes_on(&stage, &calm, &format!("killed at page {point}")).await;
    }
    let singles = calm.requests - calm.list_requests;
    for point in points(2, singles) {
        let stage = stage().await;
        let at = |_| stage.emulator.counters.total() >= lists(&stage) + point;
        killed += u32::from(kill_when(&mut stage.run_command(&[]), at));
        goes_on(&stage, &calm, &format!("killed at look-up {point}")).await;
    }
    assert!(killed >= 4, "only {killed} were killed before their end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_comparing_or_writing_reports_it_goes_on() {
    let calm = Calm::new().await;
    let mut killed = 0;
    for point in points(3, 40) {
        let stage = stage().await;
        let mut looks = 0;
        let at = |pid| {
            looks += u64::from(compares(pid));
            looks >= point
        };
        killed += u32::from(kill_when(&mut stage.run_command(&[]), at));
        goes_on(&stage, &calm, &format!("killed at look {point} of comparing")).await;
    }
    for files in 0..POINTS {
        let stage = stage().await;
        let out = stage.folder.path().join("out");
        let at = |_| out.is_dir() && files_below(&out).len() as u64 >= files;
        killed += u32::from(kill_when(&mut stage.run_command(&[]), at));
        goes_on(&stage, &calm, &format!("killed with {files} files written")).await;
    }
    assert!(killed >= 3, "only {killed} were killed before their end");
}

async fn books(stage: &Stage) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for sql in [LEDGER, STATES, INBOX] {
        all.push(stage.rows(sql).await);
    }
    all
}

fn apply(stage: &Stage) -> Command {
    let plan = stage.reports().last().unwrap().join("plan.csv");
    stage.command(&["apply", plan.to_str().unwrap()])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_applying_it_books_everything_once() {
    let calm = Calm::new().await;
    let before = calm.stage.emulator.counters.total();
    let ended = Ended::of(&apply(&calm.stage).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let asked = calm.stage.emulator.counters.total() - before;
    let expected = books(&calm.stage).await;
    let mut killed = 0;
    let by_requests = points(4, asked).into_iter().map(|point| (point, 0));
    // What is written goes to the log beside the store, which only grows while one has it open.
    // PostgreSQL's log is another server's, and written to by everybody.
    let has_log = calm.stage.database() == Database::Sqlite;
    let kib = if has_log { points(5, 60) } else { Vec::new() };
    let by_bytes = kib.into_iter().map(|kib| (0, kib * 1024));
    for (requests, bytes) in by_requests.chain(by_bytes) {
        let stage = stage().await;
        assert_eq!(stage.run(&[]).code, Some(1));
        let before = stage.emulator.counters.total();
        let log = stage.folder.path().join("recon.db-wal");
        let at = |_| {
            let written = std::fs::metadata(&log).map_or(0, |log| log.len());
            stage.emulator.counters.total() >= before + requests && (!has_log || written >= bytes.max(1))
        };
        killed += u32::from(kill_when(&mut apply(&stage), at));
        let what = format!("killed after {requests} requests and {bytes} bytes");
        let ended = Ended::of(&apply(&stage).output().unwrap());
        assert_eq!(ended.code, Some(0), "{what}: {}{}", ended.stdout, ended.stderr);
        assert!(books(&stage).await == expected, "{what}: other books than without the kill");
        let again = Ended::of(&apply(&stage).output().unwrap());
        assert!(again.stdout.contains(" applied=0 "), "{what}: {}", again.stdout);
        assert!(books(&stage).await == expected, "{what}: a second apply wrote something");
        let chain = stage.store().await;
        assert_eq!(recon::store::chain::first_broken(chain.pool()).await.unwrap(), None, "{what}");
        chain.close().await;
    }
    assert!(killed >= if has_log { 3 } else { 2 }, "only {killed} were killed before their end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_and_sigterm_end_cleanly_and_the_next_run_goes_on() {
    let faults = || Faults { page_latency: Duration::from_millis(15), ..Faults::default() };
    let calm = Stage::new(SEED, 3_000, &Mix::each(1), faults()).await;
    assert_eq!(calm.run(&[]).code, Some(1));
    let fresh = lists(&calm);
    for signal in ["-INT", "-TERM"] {
        let stage = Stage::new(SEED, 3_000, &Mix::each(1), faults()).await;
        let mut child = stage.run_command(&[]).spawn().unwrap();
        while lists(&stage) < fresh * 2 / 3 {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let ended = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert_eq!(ended.errors().len(), 1, "{}", ended.stderr);
        assert!(ended.errors()[0].contains("stopped as asked"), "{}", ended.stderr);
        assert_eq!(ended.stdout.lines().last(), Some("outcome=incomplete findings=0"));
        assert!(stage.reports().is_empty());
        assert_eq!(stage.ask("select cast(count(*) as text) from watermark").await, "0");
        let said = stage.ask("select outcome || ': ' || error from run").await;
        assert!(said.starts_with("incomplete: ") && said.contains("stopped as asked"), "{said}");
        let before = lists(&stage);
        let again = stage.run(&[]);
        assert_eq!(again.code, Some(1), "{}", again.stderr);
        let resumed = lists(&stage) - before;
        assert!(resumed < fresh, "{resumed} requests after {before}, {fresh} for a fresh run");
        assert_eq!(stage.latest("findings.csv"), calm.latest("findings.csv"));
        assert!(records(&stage).await == records(&calm).await);
    }
}
