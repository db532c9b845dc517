//! One store with its receivers, workers and database, each of which can be killed and started again.

use super::provider::Provider;
use super::{Form, Plan};
use crate::ear::Ear;
use crate::postgres::{Cluster, Place};
use crate::serve::Receiver;
use crate::work::shop::NOW_US;
use recon::demo::PROVIDER;
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::World;
use recon::store::Database;
use sqlx::{AnyConnection, Connection, Executor};
use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const NOW_S: i64 = NOW_US / 1_000_000;
pub const SECRET: &str = "whsec_never_to_be_logged";

/// What `recon` is started as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Serve,
    Work,
    ServeAndWork,
}

enum Running {
    Receiver(Receiver),
    Worker(Child),
}

pub struct Site {
    pub folder: TempDir,
    pub world: World,
    pub emulator: Emulator,
    pub ear: Option<Ear>,
    pub place: Place,
    roles: Vec<Role>,
    running: Vec<Option<Running>>,
    began: Instant,
}

impl Site {
    pub async fn new(plan: &Plan, cluster: &Arc<Cluster>) -> Self {
        sqlx::any::install_default_drivers();
        let folder = tempfile::tempdir().unwrap();
        let place = match plan.database {
            Database::Sqlite => Place::new(Database::Sqlite, folder.path()),
            Database::Postgres => Place::on(Arc::clone(cluster)),
        };
        let world = World::new(plan.seed, plan.events, NOW_US);
        let faults = if plan.has_faults {
            Faults {
                seed: plan.seed,
                server_error_per_mille: 30,
                lock_timeout_per_mille: 20,
                truncated_per_mille: 10,
                dropped_per_mille: 10,
                ..Faults::default()
            }
        } else {
            Faults::default()
        };
        let emulator = Emulator::start(&world, faults).await.unwrap();
        let ear = if plan.has_outbox { Some(Ear::open().await) } else { None };
        let roles = match plan.form {
            Form::Apart => vec![Role::Serve, Role::Work, Role::Work],
            Form::Together => vec![Role::ServeAndWork],
            Form::Twice => vec![Role::ServeAndWork, Role::ServeAndWork],
        };
        let running = roles.iter().map(|_| None).collect();
        let site = Self { folder, world, emulator, ear, place, roles, running, began: Instant::now() };
        site.configure(plan);
        if plan.is_lax {
            let database = site.place.url();
            let name = database.split('?').next().unwrap().rsplit('/').next().unwrap();
            site.execute(&format!("alter database {name} set synchronous_commit = off")).await;
        }
        site
    }

    fn configure(&self, plan: &Plan) {
        let spill = if plan.spills { "spill_dir = \"spill\"\n" } else { "" };
        let fetch = if plan.is_fetched { "" } else { "fetch = []\n" };
        let outbox =
            self.ear.as_ref().map(|ear| format!("[outbox]\nurl = \"{}\"\nretry_delay = \"1s\"\n", ear.url));
        let text = format!(
            "[store]\nurl = \"{}\"\n[receive]\nlisten = \"127.0.0.1:0\"\ntimeout = \"1s\"\n{spill}\
             [work]\nbatch = {}\nretry_delay = \"1s\"\n{fetch}{}\
             [[provider]]\nname = \"{PROVIDER}\"\nkind = \"stripe\"\nbase_url = \"{}\"\nmode = \"live\"\n\
             api_key = {{ file = \"stripe.key\" }}\nwebhook_secrets = [{{ file = \"whsec\" }}]\n\
             requests_per_second = 5000\naccount_requests_per_second = 20000\n",
            self.place.url(),
            plan.batch,
            outbox.unwrap_or_default(),
            self.emulator.base_url,
        );
        let path = |name: &str| self.folder.path().join(name);
        std::fs::write(path("recon.toml"), text).unwrap();
        std::fs::write(path("stripe.key"), &self.emulator.key).unwrap();
        std::fs::write(path("whsec"), SECRET).unwrap();
    }

    /// The binary in a bare environment, at the site's time and so much later.
    pub fn command(&self, arguments: &[&str], later: Duration) -> Command {
        let now_s = NOW_S + i64::try_from((self.began.elapsed() + later).as_secs()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        command.env_clear().env("RECON_NOW", now_s.to_string()).env("RECON_LOG", "info");
        command.stdout(Stdio::piped()).stderr(self.log_file());
        command
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn log_file(&self) -> File {
        OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap()
    }

    /// Everything that the processes logged.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    pub fn places(&self) -> usize {
        self.roles.len()
    }

    pub fn start(&mut self, place: usize, provider: &Provider<'_>) {
        let role = self.roles[place];
        let arguments: &[&str] = match role {
            Role::Serve => &["serve"],
            Role::Work => &["work"],
            Role::ServeAndWork => &["serve", "--work"],
        };
        let mut command = self.command(arguments, Duration::ZERO);
        self.running[place] = Some(if role == Role::Work {
            Running::Worker(command.stdout(Stdio::null()).spawn().unwrap())
        } else {
            let receiver = Receiver::start(&mut command)
                .unwrap_or_else(|said| panic!("it said {said:?}\n{}", self.log()));
            provider.listens(place, Some(receiver.address));
            Running::Receiver(receiver)
        });
    }

    pub fn kill(&mut self, place: usize, provider: &Provider<'_>) {
        provider.listens(place, None);
        match self.running[place].take() {
            Some(Running::Receiver(receiver)) => receiver.kill(),
            Some(Running::Worker(mut child)) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            None => {}
        }
    }

    /// Nothing ended but what was killed.
    pub fn is_alive(&mut self) {
        for place in 0..self.running.len() {
            let ended = match self.running[place].as_mut() {
                Some(Running::Receiver(receiver)) => receiver.child.try_wait().unwrap(),
                Some(Running::Worker(child)) => child.try_wait().unwrap(),
                None => None,
            };
            assert!(ended.is_none(), "{:?} ended by itself: {ended:?}\n{}", self.roles[place], self.log());
        }
    }

    /// Waits until nothing spilled is left, and ends everything as a service manager does.
    pub fn end(&mut self) {
        for running in self.running.iter().flatten() {
            if let Running::Receiver(receiver) = running {
                receiver.wait_for("recon_spill_files 0");
            }
        }
        for running in self.running.iter_mut().filter_map(Option::take) {
            let code = match running {
                Running::Receiver(receiver) => receiver.end(),
                Running::Worker(mut child) => {
                    let done = Command::new("kill").arg(child.id().to_string()).status().unwrap();
                    assert!(done.success());
                    child.wait().unwrap().code()
                }
            };
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert_eq!(code, Some(0), "{log}");
        }
    }

    /// Names of files in the spill folder; what a killed process had half written counts for nothing.
    pub fn spilled(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("spill")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.split('.').next_back() != Some("tmp")).collect()
    }

    /// A connection that knows nothing of the program.
    pub async fn connection(&self) -> AnyConnection {
        AnyConnection::connect(&self.place.url()).await.unwrap()
    }

    pub async fn execute(&self, sql: &str) {
        let mut connection = self.connection().await;
        connection.execute(sqlx::AssertSqlSafe(sql.to_owned())).await.unwrap();
        connection.close().await.unwrap();
    }

    pub async fn number(&self, sql: &str) -> i64 {
        let number = self.try_number(sql).await;
        number.unwrap_or_else(|| panic!("`{sql}` could not be asked"))
    }

    /// `None`: the store is away, locked, or has no such table yet.
    pub async fn try_number(&self, sql: &str) -> Option<i64> {
        let mut connection = AnyConnection::connect(&self.place.url()).await.ok()?;
        let row = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await;
        connection.close().await.ok()?;
        row.ok().map(|row| sqlx::Row::get(&row, 0))
    }

    /// What SQLite's write-ahead log looks like: it changes while somebody commits.
    pub fn write_ahead_log(&self) -> Option<(u64, std::time::SystemTime)> {
        let Place::File(path) = &self.place else { return None };
        let log = std::fs::metadata(path.with_extension("db-wal")).ok()?;
        Some((log.len(), log.modified().ok()?))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for running in self.running.iter_mut().flatten() {
            if let Running::Worker(child) = running {
                drop(child.kill());
                drop(child.wait());
            }
        }
    }
}
