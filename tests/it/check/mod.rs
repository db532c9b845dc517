//! `recon check`: what it says of schemas on each database, and that what it says is so.

mod left_out;
mod planted;
mod schemas;
mod surroundings;

use crate::books::{Books, Kind};
use recon::commands::Outcome;
use recon::commands::check::{CheckArgs, check};
use serde_json::Value;

const EFFECTS: &str = "
    select id as effect_id, 'stripe' as provider, account, 'live' as mode, charge_id as object_id, kind,
        amount_minor, 'usd' as currency, at as applied_at_us, event_id, null as corrects_effect_id
    from payments where at >= :from_us and at < :until_us
";
const STATES: &str = "
    select 'stripe' as provider, account, 'live' as mode, charge_id as object_id, 'paid' as status,
        null as refunded_minor, at as updated_at_us
    from payments where at >= :from_us and at < :until_us
";
const INBOX: &str = "
    select 'stripe' as provider, account, 'live' as mode, event_id, type as event_type, at as received_at_us,
        state as status
    from deliveries where at >= :from_us and at < :until_us
";
const BODY: &str =
    "select event_id, body from deliveries where event_id = :event_id and :provider = 'stripe'";

/// A text as an id should be kept.
pub fn id_type(kind: Kind) -> &'static str {
    kind.pick("text", "text", "varchar(255) character set utf8mb4 collate utf8mb4_nopad_bin")
}

/// A table of deliveries: the type of `account`, that of `event_id`, and what stands behind the columns.
pub fn deliveries(account: &str, event_id: &str, keys: &str) -> String {
    let keys = if keys.is_empty() { String::new() } else { format!(", {keys}") };
    format!(
        "create table deliveries (account {account}, event_id {event_id}, type varchar(80), at bigint,
             state varchar(80), body varchar(80){keys})"
    )
}

/// A table of payments in which a payment is booked once.
pub fn payments(kind: Kind, keys: &str) -> String {
    let id = id_type(kind);
    let keys = if keys.is_empty() { String::new() } else { format!(", {keys}") };
    format!(
        "create table payments (id varchar(80) primary key, account {id} not null, charge_id {id} not null,
             kind varchar(80) not null, amount_minor bigint, at bigint, event_id {id}{keys})"
    )
}

pub const PAYMENT_KEY: &str = "unique (account, kind, charge_id)";
pub const EVENT_KEY: &str = "unique (account, event_id)";

/// A team's database, a configuration that reads it, and no provider whose lists are asked.
pub struct Doctor {
    pub dir: tempfile::TempDir,
    pub kind: Kind,
    pub books: Books,
}

impl Doctor {
    /// With both tables as these statements make them.
    pub async fn new(kind: Kind, tables: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let books = Books::new(kind, dir.path());
        Self::with(kind, books, dir, tables).await
    }

    /// In this database.
    pub async fn on(kind: Kind, books: Books, tables: &[String]) -> Self {
        Self::with(kind, books, tempfile::tempdir().unwrap(), tables).await
    }

    async fn with(kind: Kind, books: Books, dir: tempfile::TempDir, tables: &[String]) -> Self {
        if kind == Kind::Sqlite {
            books.run_sql("pragma journal_mode = wal").await;
        }
        for table in tables {
            books.run_sql(table).await;
        }
        let doctor = Self { dir, kind, books };
        doctor.write("books.url", &doctor.books.url());
        doctor.configure("");
        std::fs::create_dir_all(doctor.dir.path().join("queries/local")).unwrap();
        for (name, text) in
            [("effects.sql", EFFECTS), ("states.sql", STATES), ("inbox.sql", INBOX), ("inbox_body.sql", BODY)]
        {
            doctor.query(name, text);
        }
        doctor
    }

    /// With these lines of configuration more.
    pub fn configure(&self, more: &str) {
        let side = |title: &str| format!("[{title}]\nurl = {{ file = \"books.url\" }}\n");
        let provider = "[[provider]]\nname = \"stripe\"\nkind = \"github\"\n";
        self.write("recon.toml", &format!("{provider}{}{}{more}", side("inbox"), side("local")));
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    pub fn query(&self, name: &str, text: &str) {
        self.write(&format!("queries/local/{name}"), text);
    }

    pub async fn check(&self) -> Checked {
        Checked::of(&self.dir.path().join("recon.toml")).await
    }
}

/// What it said.
#[derive(Debug)]
pub struct Checked {
    pub outcome: Outcome,
    pub lines: Vec<Value>,
}

impl Checked {
    pub async fn of(config: &std::path::Path) -> Self {
        let mut said = Vec::new();
        let ended = check(Some(config), CheckArgs { json: true }, &mut said).await.unwrap();
        let outcome = ended.outcome;
        assert_eq!(ended.error.is_some(), outcome != Outcome::Clean, "{:?}", ended.error);
        let said = String::from_utf8(said).unwrap();
        let (lines, last) = said.trim_end().split_once('\n').unwrap();
        assert!(last.starts_with(&format!("outcome={} findings=0 ", outcome.as_str())), "{last}");
        Self { outcome, lines: serde_json::from_str(lines).unwrap() }
    }

    /// The lines with this status.
    pub fn with(&self, status: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["status"] == status).collect()
    }

    /// The words of the lines with this status, in order.
    pub fn codes(&self, status: &str) -> Vec<&str> {
        self.with(status).into_iter().map(|line| line["check"].as_str().unwrap()).collect()
    }

    /// The one line about this.
    #[track_caller]
    pub fn line(&self, check: &str) -> &Value {
        let found: Vec<&Value> = self.lines.iter().filter(|line| line["check"] == check).collect();
        assert_eq!(found.len(), 1, "{check}: {:#?}", self.lines);
        found[0]
    }
}

/// The statements of a line.
pub fn statements(line: &Value) -> Vec<String> {
    line["fix"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
