//! Books and inbox as files: the same tables dumped, packed and cut into several files give the same findings, and a row
//! that cannot be read ends the run with its file and line.

use crate::stage::{Ended, Stage};
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use recon::store::Database;
use std::io::Write;
use std::path::Path;

/// Columns that stay the same whatever the side is; a correction is only for books of our own.
fn findings(stage: &Stage) -> Vec<Vec<String>> {
    const NAMES: [&str; 12] = [
        "finding_id",
        "kind",
        "cause",
        "severity",
        "object_id",
        "event_ids",
        "effect_ids",
        "currency",
        "expected_minor",
        "found_minor",
        "difference_minor",
        "found_state",
    ];
    let text = stage.latest("findings.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let places = NAMES.map(|name| header.iter().position(|found| found == name).unwrap());
    reader.records().map(|row| row.unwrap()).map(|row| places.map(|at| row[at].to_owned()).to_vec()).collect()
}

/// Dumps columns of a table, `null` as an empty cell.
async fn dump(stage: &Stage, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let cells: Vec<String> =
        columns.iter().map(|name| format!("coalesce(cast({name} as text), '')")).collect();
    let sql = format!("select {} from {table} order by 1", cells.join(" || char(31) || "));
    let rows = stage.rows(&sql).await;
    rows.iter().map(|row| row.split('\u{1f}').map(str::to_owned).collect()).collect()
}

fn csv_of(columns: &[&str], rows: &[Vec<String>], delimiter: u8) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    writer.write_record(columns).unwrap();
    for row in rows {
        writer.write_record(row).unwrap();
    }
    writer.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

const LEDGER: [&str; 11] = [
    "entry_id",
    "provider",
    "account",
    "mode",
    "object_id",
    "kind",
    "amount_minor",
    "currency",
    "applied_at_us",
    "event_id",
    "corrects_entry_id",
];
const STATES: [&str; 8] =
    ["provider", "account", "mode", "object_id", "status", "refunded_minor", "updated_at_us", "changed_by"];
const INBOX: [&str; 8] =
    ["provider", "account", "mode", "event_id", "event_type", "received_at_us", "status", "body_sha256"];

/// The store's tables as files: the ledger in two packed ones, statuses with semicolons, the inbox as JSON Lines.
async fn write_files(stage: &Stage, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let ledger = dump(stage, "ledger_entry", &LEDGER).await;
    let (first, second) = ledger.split_at(ledger.len() / 3);
    std::fs::write(folder.join("ledger-1.csv.gz"), gzip(&csv_of(&LEDGER, first, b','))).unwrap();
    std::fs::write(folder.join("ledger-2.csv"), csv_of(&LEDGER, second, b',')).unwrap();
    let states = dump(stage, "object_state", &STATES).await;
    std::fs::write(folder.join("states.csv"), csv_of(&STATES, &states, b';')).unwrap();
    let mut lines = String::new();
    for row in dump(stage, "inbox_event", &INBOX).await {
        let object: serde_json::Map<String, serde_json::Value> =
            INBOX.iter().zip(row).map(|(name, cell)| ((*name).to_owned(), cell.into())).collect();
        lines += &serde_json::to_string(&object).unwrap();
        lines.push('\n');
    }
    std::fs::write(folder.join("inbox.jsonl"), lines).unwrap();
}

fn write_queries(stage: &Stage) {
    let queries = stage.folder.path().join("queries/local");
    std::fs::create_dir_all(&queries).unwrap();
    let write = |name: &str, text: &str| std::fs::write(queries.join(name), text).unwrap();
    write(
        "effects.sql",
        "-- of files\nselect entry_id as effect_id, provider, account, mode, object_id, kind, \
         cast(amount_minor as integer) as amount_minor, currency, cast(applied_at_us as integer) as applied_at_us, \
         event_id, corrects_entry_id as corrects_effect_id from ledger \
         where cast(applied_at_us as integer) >= :from_us and cast(applied_at_us as integer) < :until_us\n",
    );
    write(
        "states.sql",
        "-- of files\nselect provider, account, mode, object_id, status, \
         cast(nullif(refunded_minor, '') as integer) as refunded_minor, \
         cast(updated_at_us as integer) as updated_at_us, changed_by from states \
         where cast(updated_at_us as integer) >= :from_us and cast(updated_at_us as integer) < :until_us\n",
    );
    write(
        "inbox.sql",
        "-- of files\nselect provider, account, mode, event_id, event_type, cast(received_at_us as integer) as \
         received_at_us, status, body_sha256 from inbox \
         where cast(received_at_us as integer) >= :from_us and cast(received_at_us as integer) < :until_us\n",
    );
    write(
        "inbox_body.sql",
        "-- of files\nselect null as body from inbox where provider = :provider and account = :account \
         and event_id = :event_id\n",
    );
}

async fn stage_with_files() -> (Stage, Vec<Vec<String>>) {
    let stage = Stage::on(Database::Sqlite, 23, 300, &Mix::each(2), Faults::default()).await;
    assert_eq!(stage.run(&[]).code, Some(1));
    let expected = findings(&stage);
    write_files(&stage, &stage.folder.path().join("dump")).await;
    write_queries(&stage);
    let text = std::fs::read_to_string(stage.config()).unwrap();
    let files = "[local]\nurl = \"files\"\n[local.files]\nledger = { path = \"dump/ledger-*\", index = [\"object_id\", \
                 \"event_id\"] }\nstates = { path = \"dump/states.csv\", delimiter = \"semicolon\" }\n\
                 [inbox]\nurl = \"files\"\n[inbox.files]\ninbox = \"dump/inbox.jsonl\"\n";
    std::fs::write(stage.config(), format!("{text}{files}")).unwrap();
    (stage, expected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_give_the_findings_of_the_tables_that_they_were_dumped_from() {
    let (stage, expected) = stage_with_files().await;
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let found = findings(&stage);
    assert!(expected.len() > 40, "{}", expected.len());
    assert_eq!(found, expected);
    let left: Vec<_> = std::fs::read_dir(stage.folder.path().join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "the database of the files goes with the run: {left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_ends_the_run_before_anything_is_said() {
    let (stage, _) = stage_with_files().await;
    let reports = stage.reports().len();
    let folder = stage.folder.path().join("dump");
    let ledger = std::fs::read_to_string(folder.join("ledger-2.csv")).unwrap();
    let refused = |words: &[&str]| {
        let ended: Ended = stage.run(&["--offline"]);
        assert_eq!(ended.code, Some(78), "{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.errors().len(), 1, "{}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "`{word}` is not in {}", ended.stderr);
        }
        assert_eq!(stage.reports().len(), reports);
        assert_eq!(std::fs::read_dir(stage.folder.path().join("tmp")).unwrap().count(), 0);
    };
    let with = |text: &str| std::fs::write(folder.join("ledger-2.csv"), text).unwrap();
    with(&format!("{ledger}x,y\n"));
    let line = ledger.lines().count() + 1;
    refused(&[&format!("ledger-2.csv:{line}: the row has 2 fields")]);
    with(&ledger.replacen("object_id", "object", 1));
    refused(&["ledger-2.csv:1", "no column `object_id`"]);
    with(&ledger);
    std::fs::remove_file(folder.join("states.csv")).unwrap();
    refused(&["there is no file", "dump/states.csv"]);
    with("");
    refused(&["ledger-2.csv is empty"]);
    with(&ledger);
    stage.configure("[local.files]\nledger", "[local.files]\nLedger");
    refused(&["[local.files] Ledger is no name of a table"]);
    stage.configure("url = \"files\"\n[local.files]", "url = \"store\"\n[local.files]");
    refused(&["files"]);
}
