//! A MariaDB of our own: its data in a temporary folder, a socket in it and a port on the loopback, stopped when the
//! last test that uses it is done.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tempfile::TempDir;

const HINT: &str = "these tests start a MariaDB of their own: install the server (Debian: `apt-get install \
    mariadb-server`, macOS: `brew install mariadb`), 10.11 or later, so that `mariadbd` and `mariadb-install-db` are found";

/// The password of `reader`, which may select and nothing else.
pub const PASSWORD: &str = "not-shown-7";

/// A running server; dropping it stops it, and so does the end of this process, even by `kill -9`.
pub struct Server {
    folder: TempDir,
    port: u16,
    /// Starts the server, and ends it once the pipe that it reads from is closed.
    watchdog: Child,
}

/// The end of the pipe is the end of whoever holds its other side.
const WATCH: &str = "\"$@\" < /dev/null > \"$FOLDER/log\" 2>&1 & server=$!; cat > /dev/null; kill -9 $server 2> /dev/null; wait";

/// How often a port may turn out to be taken.
const STARTS: u32 = 5;
/// How often a server that starts is asked whether it is there; each time takes some milliseconds.
const PINGS: u32 = 3_000;

impl Server {
    /// The server of this test run, started by whoever comes first.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start());
        *shared = Arc::downgrade(&server);
        server
    }

    /// A server of one's own, which may be killed.
    pub fn own() -> Arc<Self> {
        Arc::new(Self::start())
    }

    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("recon-mariadb-").tempdir_in("/tmp").unwrap();
        if is_root() {
            output(Command::new("chown").arg(USER).arg(folder.path()), "give the server's folder away");
        }
        let mut install = as_server_user("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.arg("--skip-name-resolve").arg(format!("--datadir={}", folder.path().join("data").display()));
        // A server that starts removes what others have in the temporary folder of all.
        install.env("TMPDIR", folder.path());
        output(&mut install, HINT);
        for _ in 0..STARTS {
            // Free a moment ago; whoever takes it meanwhile is noticed.
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let mut watchdog = run(folder.path(), port);
            if comes_up(folder.path()) {
                let server = Self { folder, port, watchdog };
                server.run_sql("mysql", &format!(
                    "create user recon@localhost; grant all on *.* to recon@localhost; \
                     create user reader@localhost identified by '{PASSWORD}'; create user reader@'127.0.0.1' identified by '{PASSWORD}'",
                ));
                return server;
            }
            end(&mut watchdog);
        }
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        panic!("no MariaDB starts: {log}; {HINT}");
    }

    /// A new, empty database, with a name of its own. Its texts are compared as the server's owner left it: case and
    /// blanks at the end do not count.
    pub fn database(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let name = format!("books_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.run_sql(
            "mysql",
            &format!(
                "create database {name}; grant select on {name}.* to reader@localhost, reader@'127.0.0.1'"
            ),
        );
        name
    }

    /// Statements, by whoever may do everything.
    pub fn run_sql(&self, database: &str, sql: &str) -> String {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--batch", "--skip-column-names", "--default-character-set=utf8mb4"]);
        command.arg("--user=root").arg(format!("--socket={}", self.socket().display())).arg(database);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; {HINT}"));
        child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}: {sql}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The address under which it is read, with a password.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://reader:{PASSWORD}@localhost/{database}?socket={}", self.socket().display())
    }

    /// The address under which its owner writes it.
    pub fn owner_url(&self, database: &str) -> String {
        format!("mysql://recon@localhost/{database}?socket={}", self.socket().display())
    }

    /// The same over the loopback.
    pub fn tcp_url(&self, database: &str) -> String {
        format!("mariadb://reader:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// Kills it.
    pub fn kill(&self) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid")).unwrap();
        output(Command::new("kill").args(["-9", pid.trim()]), "kill the server");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.watchdog);
    }
}

fn run(folder: &Path, port: u16) -> Child {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut command = as_server_user("sh");
    command.args([
        "-c",
        WATCH,
        "watch",
        "mariadbd",
        "--no-defaults",
        "--skip-log-bin",
        "--skip-name-resolve",
    ]);
    command.args([format!("--datadir={}", at("data")), format!("--socket={}", at("socket"))]);
    command.args([format!("--pid-file={}", at("pid")), format!("--tmpdir={}", folder.display())]);
    command.args(["--bind-address=127.0.0.1".to_owned(), format!("--port={port}")]);
    command.args(["--character-set-server=utf8mb4", "--max-connections=300", "--performance-schema=0"]);
    command.args(["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]);
    // What a team may have set, and a statement must not depend on.
    command.args(["--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "--default-time-zone=+05:00"]);
    command.args(["--transaction-isolation=READ-COMMITTED"]);
    // In a group of its own Ctrl-C does not reach it.
    command.env("FOLDER", folder).stdin(Stdio::piped()).process_group(0);
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; {HINT}"))
}

/// Whether it answers before it gives up.
fn comes_up(folder: &Path) -> bool {
    for _ in 0..PINGS {
        let mut ping = Command::new("mariadb-admin");
        ping.args(["--no-defaults", "--user=root"])
            .arg(format!("--socket={}", folder.join("socket").display()));
        let done = ping.arg("ping").output().unwrap_or_else(|error| panic!("{ping:?}: {error}; {HINT}"));
        if done.status.success() {
            return true;
        }
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        if log.contains("Aborting") || log.contains("not found") {
            return false;
        }
    }
    false
}

/// Closes the pipe and waits.
fn end(watchdog: &mut Child) {
    drop(watchdog.stdin.take());
    if let Err(error) = watchdog.wait() {
        eprintln!("stop a MariaDB: {error}");
    }
}

/// The server refuses to run as root.
const USER: &str = "mysql";

fn is_root() -> bool {
    output(Command::new("id").arg("-u"), "ask who runs the tests") == "0"
}

fn as_server_user(binary: &str) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", binary]);
        command
    } else {
        Command::new(binary)
    };
    // Debian keeps the server outside of a user's path.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/usr/local/sbin")).current_dir("/");
    command
}

fn output(command: &mut Command, hint: &str) -> String {
    let done: Result<Output, _> = command.output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(done.status.success(), "{command:?}: {} {}; {hint}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}
