//! Reading through a pooler that hands one connection of the server from client to client, transaction by transaction.

use crate::books::{Books, Kind, WINDOW};
use crate::books_oracle::staged;
use crate::check::Checked;
use crate::postgres::{Cluster, Place};
use recon::demo::emulator::Faults;
use recon::gather::Moment;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

const HINT: &str =
    "this test starts a pgbouncer of its own: install it (Debian: `apt-get install pgbouncer`)";

/// The end of the pipe is the end of whoever holds its other side.
const WATCH: &str =
    "pgbouncer --quiet \"$1\" < /dev/null & server=$!; cat > /dev/null; kill $server 2> /dev/null; wait";
/// The name of the socket; there is no port.
const PORT: u16 = 6_432;
const TRIES: u32 = 1_000;

struct Bouncer {
    folder: TempDir,
    watchdog: Child,
}

impl Bouncer {
    /// Before a cluster, with a single connection to each database.
    fn before(cluster: &Cluster) -> Self {
        let folder = tempfile::Builder::new().prefix("recon-pgb-").tempdir_in("/tmp").unwrap();
        let (own, behind) = (folder.path().display(), cluster.folder().display());
        let settings = format!(
            "[databases]\n* = host={behind} user=recon\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {own}\n\
             listen_port = {PORT}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n\
             logfile = {own}/log\npidfile = {own}/pid\n"
        );
        std::fs::write(folder.path().join("settings.ini"), settings).unwrap();
        let mut command = as_server_user(folder.path());
        command.args(["-c", WATCH, "watch"]).arg(folder.path().join("settings.ini"));
        // In a group of its own Ctrl-C does not reach it.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let watchdog = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; {HINT}"));
        let bouncer = Self { folder, watchdog };
        for _ in 0..TRIES {
            let ready = Command::new("pg_isready")
                .arg("--host")
                .arg(bouncer.folder.path())
                .args(["--port", &PORT.to_string(), "--quiet"])
                .status();
            if ready.unwrap().success() {
                return bouncer;
            }
        }
        let log = std::fs::read_to_string(bouncer.folder.path().join("log")).unwrap_or_default();
        panic!("pgbouncer does not start: {log}; {HINT}");
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://recon@localhost/{database}?host={}&port={PORT}", self.folder.path().display())
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        if let Err(error) = self.watchdog.wait() {
            eprintln!("stop a pgbouncer: {error}");
        }
    }
}

/// It refuses to run as root.
fn as_server_user(folder: &Path) -> Command {
    const USER: &str = "postgres";
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = if is_root {
        assert!(Command::new("chown").args(["-R", USER]).arg(folder).status().unwrap().success());
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin")).current_dir("/");
    command
}

#[tokio::test]
async fn a_pooler_may_stand_before_the_books_and_finds_nothing_left_behind() {
    let cluster = Cluster::shared();
    let bouncer = Bouncer::before(&cluster);
    let books = Books::Cluster(Place::on(Arc::clone(&cluster)));
    let name = books.url().split(['/', '?']).nth(3).unwrap().to_owned();
    let (stage, _books) = staged(Kind::Postgres, 2, 220, Faults::default(), Some(books)).await;
    let url = bouncer.url(&name);
    std::fs::write(stage.folder.path().join("books.url"), &url).unwrap();
    let (_, dir) = stage.reconcile().await;
    let verdict = stage.verdict(&dir, false);
    assert!(verdict.is_exact(), "missed {:#?}, invented {:#?}", verdict.missed, verdict.invented);
    // So may one who looks before the first night.
    let found = Checked::of(&stage.config()).await;
    assert_eq!(found.codes("unreachable"), Vec::<&str>::new(), "{:#?}", found.lines);
    for check in ["statement", "rows", "no_key"] {
        assert!(found.lines.iter().any(|line| line["check"] == check), "{check}: {:#?}", found.lines);
    }
    // Whoever gets the one connection next.
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let options = options.extra_float_digits(None);
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let left = "select concat((select count(*) from pg_prepared_statements), ' ', current_setting('statement_timeout'), \
        ' ', current_setting('transaction_read_only'), ' ', current_setting('transaction_isolation')) as left_behind";
    let row = sqlx::raw_sql(left).fetch_one(&pool).await.unwrap();
    assert_eq!(sqlx::Row::get::<String, _>(&row, "left_behind"), "0 0 off read committed");
    // A moment is one moment also where every transaction may get another connection.
    let settings = recon::config::load(Some(&stage.config())).unwrap();
    let inbox = recon::gather::Inbox::open(&settings).await.unwrap().unwrap();
    let moment = Moment::begin(None, Some(&inbox)).await.unwrap();
    moment.end().await.unwrap();
    let mut moment = Moment::begin(None, Some(&inbox)).await.unwrap();
    assert_eq!(moment.events(WINDOW, &mut |_| Ok(())).await.unwrap(), 0);
    moment.end().await.unwrap();
    pool.close().await;
}
