//! `recon demo --recovery`: what it prints and what it leaves agree, and it fails where something was lost or doubled.
//! `RECON_BLESS=1` renews the excerpt in docs/operating-inbox.md.

use sqlx::{AnyConnection, Connection, Row};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SEED: &str = "7";

fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.current_dir(dir).env_clear().env("TMPDIR", dir).stdin(Stdio::null());
    command.args(["demo", "--recovery", "--seed", SEED]);
    command
}

/// One snapshot as printed: the rows of each table as words, and the checks.
#[derive(Debug, Default)]
struct Scene {
    inbox: Vec<Vec<String>>,
    ledger: Vec<Vec<String>>,
    outbox: Vec<Vec<String>>,
    team: Vec<Vec<String>>,
    right: usize,
    wrong: Vec<String>,
}

fn scenes(text: &str) -> Vec<Scene> {
    let mut scenes = Vec::new();
    let mut table = String::new();
    for line in text.lines() {
        if line.starts_with("  ── ") {
            scenes.push(Scene::default());
            continue;
        }
        let Some(scene) = scenes.last_mut() else { continue };
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Some(first) = words.first() else {
            table.clear();
            continue;
        };
        match &**first {
            "inbox" | "ledger" | "outbox" | "team" => table.clone_from(first),
            "✓" => scene.right += 1,
            "✗" => scene.wrong.push(line.to_owned()),
            "(empty)" => {}
            _ if !line.starts_with("    ") => {}
            _ => match &*table {
                "inbox" => scene.inbox.push(words),
                "ledger" => scene.ledger.push(words),
                "outbox" => scene.outbox.push(words),
                "team" => scene.team.push(words),
                _ => {}
            },
        }
    }
    scenes
}

/// The words at this place of each row.
fn column(rows: &[Vec<String>], place: usize) -> Vec<&str> {
    rows.iter().map(|row| &*row[place]).collect()
}

async fn open(store: &Path) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(&format!("sqlite:{}?mode=rw", store.display())).await.unwrap()
}

async fn number(connection: &mut AnyConnection, sql: &'static str) -> i64 {
    sqlx::query(sql).fetch_one(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}")).get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_kills_leave_one_effect_each_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path()).args(["--keep", "kept"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*told), (Some(0), ""), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('✗'), "{text}");
    let (story, _) = text.split_once("\n  Again ").unwrap();
    assert!(story.lines().all(|line| line.chars().count() <= 80), "{text}");
    check_scenes(&text);
    check_store(&dir.path().join("kept/recon.db")).await;
    check_excerpt(&text);
    let config = dir.path().join("kept/recon.toml");
    assert!(std::fs::read_to_string(config).unwrap().starts_with("# Written by `recon demo`"));
}

/// What is printed, read again: the tables must say what the words say.
fn check_scenes(text: &str) {
    let scenes = scenes(text);
    assert_eq!(scenes.len(), 9, "{text}");
    let (points, end) = (&scenes[..8], &scenes[8]);
    for (number, pair) in points.chunks(2).enumerate() {
        let (left, after) = (&pair[0], &pair[1]);
        assert!(left.right >= 4 && after.right >= 5, "{pair:?}");
        let (in_inbox, booked) = [(0, 0), (2, 1), (3, 2), (4, 4)][number];
        assert_eq!((left.inbox.len(), left.ledger.len(), left.outbox.len()), (in_inbox, booked, booked));
        assert_eq!(left.team.len(), booked, "{left:?}");
        let done = number + 1;
        assert_eq!(
            (after.inbox.len(), after.ledger.len(), after.team.len()),
            (done, done, done),
            "{after:?}"
        );
        assert!(column(&after.inbox, 2).iter().all(|status| *status == "applied"), "{after:?}");
        assert!(column(&after.outbox, 1).iter().all(|state| *state == "sent"), "{after:?}");
    }
    // The receiver was killed before the commit: what is there is the second delivery.
    assert_eq!(column(&points[1].inbox, 3), ["1"]);
    assert_eq!(points[2].inbox[1][2..], ["received", "1", "1"]);
    assert_eq!(points[4].inbox[2][2..], ["received", "1", "1"]);
    assert_eq!((&*points[6].outbox[3][1], &*points[6].outbox[3][2]), ("not", "sent"));
    let calls =
        |scene: &Scene| -> i64 { column(&scene.team, 1).iter().map(|n| n.parse::<i64>().unwrap()).sum() };
    assert_eq!((calls(&points[6]), calls(&points[7]), calls(end)), (4, 5, 5));
    assert_eq!(end.ledger, points[7].ledger, "sending everything again books nothing");
    assert!(end.inbox.len() > 4, "also events that were not needed: {end:?}");
    assert!(
        column(&end.inbox, 1)
            .iter()
            .zip(column(&end.inbox, 3))
            .all(|(kind, came)| { came == if *kind == "charge.succeeded" { "2" } else { "1" } })
    );
    let killed: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.ends_with("ended by signal 9"))
        .map(|line| line.split("(process ").nth(1).unwrap().split(')').next().unwrap())
        .collect();
    assert_eq!(killed.len(), 4, "{text}");
}

/// What is kept, by own statements.
async fn check_store(path: &Path) {
    let mut store = open(path).await;
    let zero = [
        "select count(*) from (select object_id from ledger_entry group by object_id having count(*) <> 1)",
        "select count(*) from ledger_entry where entry_id <> 'stripe//live/' || effect_key",
        "select count(*) from ledger_entry where event_id not in (select event_id from inbox_event where status = 'applied')",
        "select count(*) from ledger_entry where entry_id not in (select idempotency_key from outbox_message)",
        "select count(*) from inbox_event where status not in ('applied', 'superseded')",
        "select count(*) from inbox_event where event_type = 'charge.succeeded' and event_id not in (select event_id from applied_event)",
        "select count(*) from outbox_message where sent_at_us is null or dead_at_us is not null",
        "select count(*) from sqlite_master where name like 'recovery%'",
    ];
    for sql in zero {
        assert_eq!(number(&mut store, sql).await, 0, "{sql}");
    }
    assert_eq!(number(&mut store, "select count(*) from ledger_entry").await, 4);
    assert_eq!(number(&mut store, "select count(*) from outbox_message").await, 4);
    assert_eq!(number(&mut store, "select count(*) from outbox_message where attempts = 2").await, 1);
    assert_eq!(number(&mut store, "select count(*) from inbox_event where attempts = 2").await, 2);
    let credited = "select count(*) from object_state where status = 'paid'";
    assert_eq!(number(&mut store, credited).await, 4);
    store.close().await.unwrap();
}

/// The page shows the fourth kill as it is printed, but for the process.
fn check_excerpt(text: &str) {
    let start = text.find("  4 of 4 ").unwrap();
    let end = start + text[start..].find("\n  And then ").unwrap();
    let lines = text[start..end].trim_end().lines().map(|line| {
        let line = line.strip_prefix("  ").unwrap_or(line);
        match line.split_once("(process ") {
            Some((before, after)) => format!("{before}(process 4711){}", after.split_once(')').unwrap().1),
            None => line.to_owned(),
        }
    });
    let printed = lines.collect::<Vec<_>>().join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operating-inbox.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let start = page.find("```text\n4 of 4").unwrap() + "```text\n".len();
    let end = start + page[start..].find("\n```").unwrap();
    if std::env::var_os("RECON_BLESS").is_some() {
        std::fs::write(&path, format!("{}{printed}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    assert_eq!(&page[start..end], printed, "docs/operating-inbox.md is out of date; RECON_BLESS=1 renews it");
}

#[test]
fn without_a_folder_to_keep_nothing_stays() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A demonstration under way, whose store is harmed once the first kill is over. Answers its exit code and words.
async fn harmed(sql: &'static str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut child: Child =
        command(dir.path()).args(["--keep", "kept"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut words = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("2 of 4") {
        assert_ne!(words.read_line(&mut text).unwrap(), 0, "it ended: {text}");
    }
    let mut store = open(&dir.path().join("kept/recon.db")).await;
    let harmed = sqlx::query(sql).execute(&mut store).await.unwrap();
    assert_eq!(harmed.rows_affected(), 1);
    store.close().await.unwrap();
    words.read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_is_there_twice_fails_it() {
    let double = "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor,
                  currency, occurred_at_us, applied_at_us, event_id)
        select entry_id || '#', provider, account, mode, effect_key || '#', object_id, kind, amount_minor,
               currency, occurred_at_us, applied_at_us, event_id
        from ledger_entry";
    let (code, text) = harmed(double).await;
    assert_eq!(code, Some(1), "{text}");
    let scenes = scenes(&text);
    assert!(
        scenes[8].wrong.iter().any(|line| line.contains("one effect each: 5 entries for 4 paid")),
        "{text}"
    );
    assert!(scenes[8].wrong.iter().any(|line| line.contains("outcome=findings")), "{text}");
    assert!(text.contains("checks failed"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_event_that_is_gone_fails_it() {
    let (code, text) = harmed("delete from inbox_event where status = 'applied'").await;
    assert_eq!(code, Some(1), "{text}");
    let wrong: Vec<String> = scenes(&text).into_iter().flat_map(|scene| scene.wrong).collect();
    assert!(wrong.iter().any(|line| line.contains("nothing lost: 1 of 2 accepted events")), "{text}");
}

#[test]
fn it_goes_with_neither_practice_nor_a_size() {
    for arguments in [&["--practice", "b"][..], &["--events", "5"]] {
        let dir = tempfile::tempdir().unwrap();
        let output = command(dir.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{arguments:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
