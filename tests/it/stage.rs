//! The stage of tests over the whole pipeline: a store, a configuration and the emulator that it points at.

use crate::postgres::Place;
use recon::commands::apply::{ApplyArgs, apply_to};
pub use recon::commands::demo::run_request;
use recon::commands::{Outcome, run};
use recon::config;
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::faults::{Mix, Planted, plant};
use recon::demo::verdict::{self, Verdict};
use recon::demo::world::{WANTED_TYPES, World};
use recon::demo::{PROVIDER, deliver};
use recon::record::format_instant;
use recon::record::sha256_hex;
use recon::store::{Access, Database, Store};
use sqlx::Row;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// 2026-06-15T12:34:56Z: the seeds' own present, so that a seed tells the same story every day.
pub const NOW_US: i64 = 1_781_526_896_000_000;

/// A store, its configuration and the emulator that it points at.
pub struct Stage {
    pub folder: tempfile::TempDir,
    pub world: World,
    pub planted: Vec<Planted>,
    pub emulator: Emulator,
    place: Place,
}

impl Stage {
    /// A stage on the database that the suite is asked for.
    pub async fn new(seed: u64, events: usize, mix: &Mix, faults: Faults) -> Self {
        Self::on(Place::asked_for(), seed, events, mix, faults).await
    }

    pub async fn on(database: Database, seed: u64, events: usize, mix: &Mix, faults: Faults) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let mut world = World::new(seed, events, NOW_US);
        let planted = plant(&mut world, seed, mix);
        let emulator = Emulator::start(&world, faults).await.unwrap();
        let stage = Self { folder, world, planted, emulator, place };
        std::fs::write(stage.config(), stage.configuration()).unwrap();
        std::fs::write(stage.folder.path().join("stripe.key"), &stage.emulator.key).unwrap();
        let store = stage.store().await;
        deliver(&store, &stage.world, &stage.planted, seed).await.unwrap();
        store.close().await;
        stage
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("recon.toml")
    }

    fn configuration(&self) -> String {
        let types: Vec<String> = WANTED_TYPES.iter().map(|kind| format!("\"{kind}\"")).collect();
        format!(
            "[store]\nurl = \"{}\"\n[report]\ndir = \"out\"\n\
             [[provider]]\nname = \"{PROVIDER}\"\nkind = \"stripe\"\nbase_url = \"{}\"\n\
             api_key = {{ file = \"stripe.key\" }}\nmode = \"live\"\nrequests_per_second = 5000\n\
             account_requests_per_second = 20000\nintent = \"metadata.order_id\"\nevent_types = [{}]\n\
             [corrections]\ncount_max = 100000\n\
             minor_max = {{ usd = 1000000000, eur = 1000000000, brl = 1000000000, jpy = 1000000000, kwd = 1000000000 }}\n",
            self.url(),
            self.emulator.base_url,
            types.join(", ")
        )
    }

    /// The store's address.
    pub fn url(&self) -> String {
        self.place.url()
    }

    pub fn database(&self) -> Database {
        self.place.database()
    }

    pub async fn store(&self) -> Store {
        Store::open(&self.url(), Access::ReadWrite).await.unwrap()
    }

    pub async fn reconcile(&self) -> (Outcome, PathBuf) {
        let settings = config::load(Some(&self.config())).unwrap();
        let request = run_request(&self.world);
        let mut said = Vec::new();
        let finished = run::reconcile(&settings, &request, &mut said).await.unwrap();
        (finished.outcome, finished.dir.unwrap())
    }

    pub async fn apply(&self, plan: &Path) -> (Outcome, String) {
        let settings = config::load(Some(&self.config())).unwrap();
        let args = ApplyArgs { plan: plan.to_owned() };
        let mut said = Vec::new();
        let outcome = apply_to(&settings, &args, self.world.now_us, &mut said).await.unwrap();
        (outcome, String::from_utf8(said).unwrap())
    }

    pub fn verdict(&self, dir: &Path, after_apply: bool) -> Verdict {
        let rows = verdict::read_findings(&std::fs::read(dir.join("findings.csv")).unwrap()).unwrap();
        verdict::judge(&self.planted, &rows, after_apply)
    }

    /// Rows of every table that holds business state.
    pub async fn business_rows(&self) -> Vec<(String, i64)> {
        let store = self.store().await;
        let mut counts = Vec::new();
        for table in ["ledger_entry", "object_state", "inbox_event", "applied_event", "outbox_message"] {
            let sql = format!("select count(*) as rows from {table}");
            let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(store.pool()).await.unwrap();
            counts.push((table.to_owned(), row.get("rows")));
        }
        store.close().await;
        counts
    }

    /// The binary with these arguments, in a bare environment as cron gives it, at the world's time. Its
    /// temporary files go into a folder of the stage.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        let temporary = self.folder.path().join("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        command.current_dir(self.folder.path()).env_clear().env("TMPDIR", temporary);
        command.env("RECON_NOW", (self.world.now_us / 1_000_000).to_string());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Arguments of a run over the world's window, and more.
    pub fn run_arguments(&self, more: &[&str]) -> Vec<String> {
        let instant = |at_us: i64| format_instant(at_us, chrono_tz::Tz::UTC);
        let window = ["--since".to_owned(), instant(self.world.from_us), "--until".to_owned()];
        let more = more.iter().map(|word| (*word).to_owned());
        window.into_iter().chain([instant(self.world.until_us)]).chain(more).collect()
    }

    /// The binary, to run the world's window.
    pub fn run_command(&self, more: &[&str]) -> Command {
        let arguments = self.run_arguments(more);
        self.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs the world's window to its end.
    pub fn run(&self, more: &[&str]) -> Ended {
        Ended::of(&self.run_command(more).output().unwrap())
    }

    /// Report folders, oldest first. Every one must be whole: a manifest, and every file as it says.
    pub fn reports(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("out")) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'));
        found.sort_by_key(|path| std::fs::metadata(path.join("manifest.json")).unwrap().modified().unwrap());
        for dir in &found {
            let manifest = std::fs::read(dir.join("manifest.json")).unwrap();
            let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
            for file in manifest["files"].as_array().unwrap() {
                let bytes = std::fs::read(dir.join(file["name"].as_str().unwrap())).unwrap();
                assert_eq!(file["sha256"], sha256_hex(&bytes), "{}", dir.display());
            }
        }
        found
    }

    /// A file of the latest report.
    pub fn latest(&self, name: &str) -> String {
        let reports = self.reports();
        std::fs::read_to_string(reports.last().expect("a report").join(name)).unwrap()
    }

    /// One number or text of the store.
    pub async fn ask(&self, sql: &str) -> String {
        let rows = self.rows(sql).await;
        assert_eq!(rows.len(), 1, "{sql}");
        rows[0].clone()
    }

    /// Rows of one text column.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        let store = self.store().await;
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(store.pool()).await.unwrap();
        store.close().await;
        rows.iter().map(|row| row.get::<String, _>(0)).collect()
    }

    /// Adds to the configuration or changes a text of it.
    pub fn configure(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.config()).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(self.config(), text.replace(from, to)).unwrap();
    }
}

/// How the binary ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Its error lines.
    pub fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("error: ")).collect()
    }
}
