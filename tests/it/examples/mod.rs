//! The examples: each stack's tables on each database, a seeded history with planted faults, what `recon init --from` makes
//! of the tables, and the real binary over it all. What is planted is found, and nothing else.
//!
//! The files below `examples/` are what `init --from` writes; `RECON_BLESS=1` writes them anew.

mod fill;
pub mod history;
mod shapes;

use crate::books::{Books, Kind};
use crate::stage::{Ended, NOW_US};
use fill::Stack;
use history::History;
use recon::demo::emulator::{Emulator, Faults};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// A team's database after its history, and a folder to run in.
struct Shop {
    folder: tempfile::TempDir,
    books: Books,
    kind: Kind,
    history: History,
    emulator: Emulator,
}

impl Shop {
    async fn open(stack: &Stack, kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let books = Books::new(kind, folder.path());
        let history = History::new(NOW_US);
        let schema = std::fs::read_to_string(examples().join(stack.name).join("schema.sql")).unwrap();
        books.run_sql(&fill::dialect(kind, &schema)).await;
        for batch in fill::batches(kind, &(stack.rows)(&history)) {
            books.run_sql(&batch).await;
        }
        let emulator = Emulator::start(&history.world, Faults::default()).await.unwrap();
        Self { folder, books, kind, history, emulator }
    }

    fn recon(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(self.folder.path()).env_clear();
        command.env("RECON_NOW", (self.history.world.now_us / 1_000_000).to_string());
        command.env("BOOKS_URL", self.books.url()).env("STRIPE_API_KEY", &self.emulator.key);
        command.args(arguments);
        Ended::of(&command.output().unwrap())
    }

    fn init(&self) -> Ended {
        let from: &[&str] = match self.kind {
            Kind::Sqlite => &["init", "--from", "sqlite:books.db"],
            Kind::Postgres | Kind::MariaDb => &["init", "--from-env", "BOOKS_URL"],
        };
        self.recon(from)
    }

    /// Lets the configuration that `init` wrote ask the emulator.
    fn point_to_the_emulator(&self) {
        let path = self.folder.path().join("recon.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let more = format!(
            "kind = \"stripe\"\nbase_url = \"{}\"\nrequests_per_second = 5000\naccount_requests_per_second = 20000\n",
            self.emulator.base_url
        );
        assert!(text.contains("kind = \"stripe\"\n"));
        std::fs::write(&path, text.replacen("kind = \"stripe\"\n", &more, 1)).unwrap();
    }

    /// The findings of a run over the world's window: kind, and the payment that it is about.
    fn findings(&self) -> (Option<i32>, BTreeSet<(String, usize)>) {
        let instant = |at_us: i64| recon::record::format_instant(at_us, chrono_tz::Tz::UTC);
        let world = &self.history.world;
        let ended = self.recon(&["--since", &instant(world.from_us), "--until", &instant(world.until_us)]);
        let reports: Vec<PathBuf> = std::fs::read_dir(self.folder.path().join("reports/out"))
            .unwrap_or_else(|error| panic!("{error}: {ended:?}"))
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(reports.len(), 1, "{ended:?}");
        let mut reader = csv::Reader::from_path(reports[0].join("findings.csv")).unwrap();
        let header = reader.headers().unwrap().clone();
        let place = |name: &str| header.iter().position(|found| found == name).unwrap();
        let rows = reader.records().map(|row| {
            let row = row.unwrap();
            let payment = self.history.payment_of(&row[place("object_id")]);
            (row[place("kind")].to_owned(), payment.unwrap_or_else(|| panic!("{row:?}")))
        });
        (ended.code, rows.collect())
    }
}

/// What `init` wrote is what stands in the example.
fn compare(written: &Path, example: &Path) {
    let is_update = std::env::var_os("RECON_BLESS").is_some();
    let queries = std::fs::read_dir(written.join("queries/local")).unwrap();
    let mut files = vec![PathBuf::from("recon.toml")];
    files.extend(queries.map(|entry| Path::new("queries/local").join(entry.unwrap().file_name())));
    for file in &files {
        let text = std::fs::read_to_string(written.join(file)).unwrap();
        let place = example.join(file);
        if is_update {
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(&place, &text).unwrap();
        }
        let there = std::fs::read_to_string(&place).unwrap_or_default();
        assert!(
            there == text,
            "{} is not what `recon init --from` writes; RECON_BLESS=1 writes it anew:\n{text}",
            place.display()
        );
    }
    let kept = std::fs::read_dir(example.join("queries/local")).unwrap().count();
    assert_eq!(kept + 1, files.len(), "{} has files that init does not write", example.display());
}

async fn check(stack: &Stack, kind: Kind) {
    let shop = Shop::open(stack, kind).await;
    let said = shop.init();
    assert_eq!(said.code, Some(0), "{said:?}");
    for expected in stack.says {
        assert!(said.stdout.contains(expected), "{kind:?}: {expected}\n{}", said.stdout);
    }
    if let Some((_, folder)) = stack.examples.iter().find(|(of, _)| *of == kind) {
        compare(shop.folder.path(), &examples().join(folder));
    }
    shop.point_to_the_emulator();
    let (code, found) = shop.findings();
    let planted: BTreeSet<(String, usize)> = (stack.planted)(&shop.history)
        .into_iter()
        .map(|(kind, payment)| (kind.to_owned(), payment))
        .collect();
    assert_eq!((code, &found), (Some(1), &planted), "{} on {kind:?}", stack.name);
    let again = shop.init();
    assert!(again.code == Some(0) && !again.stdout.contains("wrote "), "{again:?}");
    assert!(again.stdout.contains("recon.toml stays; the proposal would change:"), "{}", again.stdout);
    assert!(again.stdout.contains("- base_url = "), "{}", again.stdout);
}

macro_rules! on_all {
    ($($name:ident: $stack:expr),+ $(,)?) => {
        $(
            mod $name {
                use super::*;

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_sqlite() {
                    check(&$stack, Kind::Sqlite).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    check(&$stack, Kind::Postgres).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_mariadb() {
                    check(&$stack, Kind::MariaDb).await;
                }
            }
        )+
    };
}

on_all!(plain: fill::PLAIN, pay: fill::PAY, djstripe: fill::DJSTRIPE, cashier: fill::CASHIER);

/// What nothing is known of is said, and the statements to be written are there.
#[tokio::test]
async fn a_database_of_nothing_known_gives_the_contract_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let books = Books::new(Kind::Sqlite, folder.path());
    books
        .run_sql("create table orders (id integer, total real, at text); create table cats (name text);")
        .await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.current_dir(folder.path()).env_clear().args(["init", "ops", "--from", "sqlite:books.db"]);
    let said = Ended::of(&command.output().unwrap());
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stdout.contains("inbox: not recognised\nbooks: not recognised\n"), "{}", said.stdout);
    assert!(said.stdout.contains("  - orders: as an inbox it lacks"), "{}", said.stdout);
    assert!(!said.stdout.contains("cats"), "{}", said.stdout);
    assert!(said.stdout.ends_with("\noutcome=incomplete findings=0\n"), "{}", said.stdout);
    let effects = std::fs::read_to_string(folder.path().join("ops/queries/local/effects.sql")).unwrap();
    assert!(effects.contains("corrects_effect_id  the row that this one undoes"), "{effects}");
    let configuration = std::fs::read_to_string(folder.path().join("ops/recon.toml")).unwrap();
    let place = format!("url = \"sqlite:{}\"", folder.path().join("books.db").display());
    assert_eq!(configuration.matches(&place).count(), 2, "{configuration}");
}

/// A password is neither written nor said, whatever goes wrong.
#[tokio::test]
async fn c82_the_url_is_neither_written_nor_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = crate::mariadb::Server::shared();
    let database = server.database();
    server.run_sql(
        &database,
        "create table webhook_events (id int, event_id varchar(99), type varchar(99), created_at datetime)",
    );
    let run = |url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command
            .current_dir(folder.path())
            .env_clear()
            .env("RECON_LOG", "debug")
            .args(["init", "--from", url]);
        Ended::of(&command.output().unwrap())
    };
    let url = server.url(&database);
    let fine = run(&url);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    let wrong = run(&url.replace("reader:", "nobody:"));
    assert_eq!((wrong.code, wrong.errors().len()), (Some(78), 1), "{wrong:?}");
    let mut all = format!("{fine:?}{wrong:?}");
    for file in ["recon.toml", "queries/local/inbox.sql"] {
        all += &std::fs::read_to_string(folder.path().join(file)).unwrap();
    }
    assert!(!all.contains(crate::mariadb::PASSWORD), "{all}");
    assert!(
        all.contains("url = { env = \"BOOKS_URL\" }") && fine.stdout.contains("export BOOKS_URL="),
        "{all}"
    );
}
