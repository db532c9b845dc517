//! A PostgreSQL of our own: a cluster in a temporary folder, reached over a Unix socket, stopped when the
//! last test that uses it is done.

use recon::store::Database;
use sqlx::{AnyConnection, Connection, Executor};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tempfile::TempDir;

/// Where the binaries come from, for whoever reads the failure.
const HINT: &str = "these tests start a PostgreSQL of their own: install the server (Debian: `apt-get install \
    postgresql`, macOS: `brew install postgresql`), 15 or later with ICU, so that `pg_config --bindir` names a folder \
    with `initdb`";

/// Names the database that the tests of this process use: `sqlite` (without it), `postgres`, or
/// `postgres:FOLDER` with the folder of a cluster that another process started.
pub const ASKED_FOR: &str = "RECON_TEST_STORE";

/// A running cluster; dropping the one who started it stops it, and so does the end of that process, even by
/// `kill -9`.
pub struct Cluster {
    folder: PathBuf,
    owned: Option<TempDir>,
    binaries: PathBuf,
    /// Stops the server and removes the folder once the pipe that it reads from is closed.
    watchdog: Option<Child>,
}

/// The end of the pipe is the end of whoever holds its other side.
const WATCH: &str = "cat > /dev/null; \"$0\" stop -w -m immediate -D \"$1/data\"; rm -rf \"$1\"";

/// Where a test's store is; a database of a cluster is dropped with it.
pub enum Place {
    File(PathBuf),
    Server { cluster: Arc<Cluster>, database: String },
}

impl Place {
    /// The database that this process is asked to test on.
    pub fn asked_for() -> Database {
        let asked = std::env::var(ASKED_FOR).unwrap_or_default();
        if asked.starts_with("postgres") { Database::Postgres } else { Database::Sqlite }
    }

    /// A new, empty one. That on PostgreSQL sorts texts as English does, unlike any store should.
    pub fn new(database: Database, folder: &Path) -> Self {
        match database {
            Database::Sqlite => Self::File(folder.join("recon.db")),
            Database::Postgres => Self::on(Cluster::shared()),
        }
    }

    /// A new, empty database of this cluster.
    pub fn on(cluster: Arc<Cluster>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let database = format!("store_{}_{number}", std::process::id());
        cluster.run("createdb", |command| {
            command.args(["--template=template0", "--locale-provider=icu", "--icu-locale=en-US"]);
            command.args(["--username=recon", "--host"]).arg(&cluster.folder).arg(&database);
        });
        Self::Server { cluster, database }
    }

    pub fn database(&self) -> Database {
        match self {
            Self::File(_) => Database::Sqlite,
            Self::Server { .. } => Database::Postgres,
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Server { cluster, database } => cluster.url(database),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Self::Server { cluster, database } = self else { return };
        let mut command = as_server_user(&cluster.binaries.join("dropdb"));
        command.args(["--force", "--username=recon", "--host"]).arg(&cluster.folder).arg(database);
        if let Err(error) = command.output() {
            eprintln!("drop a test's database: {error}");
        }
    }
}

impl Cluster {
    /// The cluster of this test run, started by whoever comes first.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return cluster;
        }
        let asked = std::env::var(ASKED_FOR).unwrap_or_default();
        let cluster = Arc::new(match asked.strip_prefix("postgres:") {
            Some(folder) => Self { folder: folder.into(), owned: None, binaries: binaries(), watchdog: None },
            None => Self::start(),
        });
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    /// A cluster of one's own, which may be stopped and started again.
    pub fn own() -> Arc<Self> {
        Arc::new(Self::start())
    }

    /// Stops it as a crash does.
    pub fn stop(&self) {
        let data = self.data();
        self.run("pg_ctl", |command| {
            command.args(["stop", "-w", "-m", "immediate", "-D"]).arg(&data);
        });
    }

    /// Starts it where it was stopped.
    pub fn start_again(&self) {
        let (data, log) = (self.data(), self.folder.join("log"));
        self.run("pg_ctl", |command| {
            command.args(["start", "-w", "-D"]).arg(&data).arg("-l").arg(&log).args(["-o", &self.options()]);
        });
    }

    /// Process ids: of the server, and of everything that it started.
    pub fn processes(&self) -> (String, Vec<String>) {
        let pid_file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let server = pid_file.lines().next().unwrap().to_owned();
        let children = Command::new("pgrep").args(["-P", &server]).output().unwrap().stdout;
        let children = String::from_utf8(children).unwrap().lines().map(str::to_owned).collect();
        (server, children)
    }

    /// Stops it as an administrator does, who does not wait for its clients.
    pub fn stop_fast(&self) {
        let data = self.data();
        self.run("pg_ctl", |command| {
            command.args(["stop", "-w", "-m", "fast", "-D"]).arg(&data);
        });
    }

    /// Starts it after a `kill -9`. Until the last process of the killed server has noticed, it does not start.
    pub fn revive(&self) {
        let (data, log) = (self.data(), self.folder.join("log"));
        for _ in 0..100 {
            let mut command = as_server_user(&self.binaries.join("pg_ctl"));
            command.args(["start", "-w", "-D"]).arg(&data).arg("-l").arg(&log).args(["-o", &self.options()]);
            // The server holds on to what it is given.
            command.stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().unwrap().success() {
                return;
            }
        }
        panic!("it does not start again: {}", std::fs::read_to_string(log).unwrap_or_default());
    }

    /// Whether it takes connections.
    pub fn answers(&self) -> bool {
        let mut command = as_server_user(&self.binaries.join("pg_isready"));
        command.args(["--quiet", "--host"]).arg(&self.folder);
        command.status().unwrap().success()
    }

    fn options(&self) -> String {
        let folder = self.folder.display();
        format!("-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=200")
    }

    fn start() -> Self {
        let binaries = binaries();
        let folder = tempfile::Builder::new().prefix("recon-pg-").tempdir_in("/tmp").unwrap();
        if is_root() {
            output(Command::new("chown").arg(USER).arg(folder.path()), "give the cluster's folder away");
        }
        let mut cluster =
            Self { folder: folder.path().to_owned(), owned: Some(folder), binaries, watchdog: None };
        let data = cluster.data();
        cluster.run("initdb", |command| {
            command.args(["--auth=trust", "--username=recon", "--encoding=UTF8", "--locale=C", "--no-sync"]);
            command.arg("--pgdata").arg(&data);
        });
        let mut watch = as_server_user(Path::new("sh"));
        watch.args(["-c", WATCH]).arg(cluster.binaries.join("pg_ctl")).arg(&cluster.folder);
        // In a group of its own Ctrl-C does not reach it.
        watch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        cluster.watchdog = Some(watch.spawn().unwrap_or_else(|error| panic!("{watch:?}: {error}; {HINT}")));
        cluster.start_again();
        cluster
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn run(&self, binary: &str, arguments: impl FnOnce(&mut Command)) {
        let mut command = as_server_user(&self.binaries.join(binary));
        arguments(&mut command);
        output(&mut command, HINT);
    }

    /// A program of the server's for one of its databases, run to its end; what it wrote.
    pub fn client(&self, binary: &str, database: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(self.binaries.join(binary));
        command.args(["--username=recon", "--host"]).arg(&self.folder).args(["--dbname", database]);
        output(command.args(arguments), HINT)
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address of one of its databases.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://recon@localhost/{database}?host={}", self.folder.display())
    }

    /// A connection to a new, empty database.
    pub async fn connect(&self, database: &str) -> AnyConnection {
        sqlx::any::install_default_drivers();
        let mut server = AnyConnection::connect(&self.url("postgres")).await.unwrap();
        let create = format!("create database {database}");
        server.execute(sqlx::AssertSqlSafe(create)).await.unwrap();
        server.close().await.unwrap();
        AnyConnection::connect(&self.url(database)).await.unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Waiting closes the pipe first.
        let Some(watchdog) = self.watchdog.as_mut().filter(|_| self.owned.is_some()) else { return };
        if let Err(error) = watchdog.wait() {
            eprintln!("stop the cluster in {}: {error}", self.folder.display());
        }
    }
}

fn binaries() -> PathBuf {
    let binaries = PathBuf::from(output(Command::new("pg_config").arg("--bindir"), HINT));
    assert!(binaries.join("initdb").exists(), "no initdb in {}; {HINT}", binaries.display());
    binaries
}

/// The server refuses to run as root.
const USER: &str = "postgres";

fn is_root() -> bool {
    output(Command::new("id").arg("-u"), "ask who runs the tests") == "0"
}

pub fn as_server_user(binary: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(binary);
        command
    } else {
        Command::new(binary)
    };
    command.current_dir("/");
    command
}

fn output(command: &mut Command, hint: &str) -> String {
    let done: Result<Output, _> = command.output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(done.status.success(), "{command:?}: {} {}; {hint}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}
