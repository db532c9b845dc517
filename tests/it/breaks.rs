//! What hostile or careless books and records may not get past: each test is a break that was found.

use crate::postgres::Place;
use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};
use recon::store::Database;

/// Gives the stage books of a team's own: the store's tables, read through statements of its own.
fn own_books(stage: &Stage, effects: &str) {
    let queries = stage.folder.path().join("queries/local");
    std::fs::create_dir_all(&queries).unwrap();
    let ours = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("queries/local");
    for name in ["states.sql", "inbox.sql", "inbox_body.sql"] {
        std::fs::copy(ours.join(name), queries.join(name)).unwrap();
    }
    let text = std::fs::read_to_string(ours.join("effects.sql")).unwrap();
    std::fs::write(queries.join("effects.sql"), effects.replace("{ours}", text.trim())).unwrap();
    let local = format!("[local]\nurl = \"{}\"\n[corrections]", stage.url());
    stage.configure("[corrections]", &local);
}

/// Two bookings of one second whose statement gives them one id differ in no column.
#[tokio::test(flavor = "multi_thread")]
async fn two_bookings_that_differ_in_no_column_are_two() {
    let stage = Stage::new(5, 200, &Mix(Vec::new()), Faults::default()).await;
    own_books(
        &stage,
        "select booked.* from ({ours}) booked join (select 1 as times union all select 2) twice \
         on times = 1 or booked.effect_id = (select min(entry_id) from ledger_entry where kind = 'credit')",
    );
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let findings = stage.latest("findings.csv");
    let kinds: Vec<&str> = findings.lines().skip(1).collect();
    assert_eq!(kinds.len(), 1, "{findings}");
    assert!(findings.contains("duplicate_effect"), "{findings}");
    let unexplained = stage.latest("tie_out.csv");
    assert!(!ended.stdout.to_lowercase().contains("unexplained difference"), "{unexplained}{}", ended.stdout);
}

/// An id that no address can hold is of no object of the provider; one such row must not end every run.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_no_address_can_hold_is_an_orphan() {
    let stage = Stage::new(6, 200, &Mix(Vec::new()), Faults::default()).await;
    let store = stage.store().await;
    let sql =
        "insert into ledger_entry select 'long', provider, account, mode, 'long', $1, kind, amount_minor,
               currency, occurred_at_us, applied_at_us, '', '', '', 'by hand' from ledger_entry
               where kind = 'credit' limit 1";
    let id = format!("ch_{}", "x".repeat(100_000));
    sqlx::query(sql).bind(id).execute(store.pool()).await.unwrap();
    store.close().await;
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let findings = stage.latest("findings.csv");
    assert_eq!(
        findings.lines().filter(|line| line.contains("orphan_effect")).count(),
        1,
        "{}",
        findings.len()
    );
}

/// Rows of 2^62 minor units, booked long before the window, add up to 0 in a build that lets sums wrap.
#[test]
fn no_build_lets_a_sum_of_money_wrap() {
    let manifest = include_str!("../../Cargo.toml");
    let release = manifest.split("[profile.release]").nth(1).unwrap();
    let release = release.split("\n[").next().unwrap();
    assert!(release.lines().any(|line| line == "overflow-checks = true"), "{release}");
}

/// Two payment intents each paid a part of one invoice, and the books hold one row of the whole on the
/// invoice. Neither part is missing, and nothing may be planned that would book it again.
#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_paid_in_parts_and_booked_whole_is_booked() {
    let stage = Stage::new(9, 200, &Mix::only(Fault::ChargedTwiceForInvoice), Faults::default()).await;
    let payments = &stage.world.payments;
    let first = payments.iter().find(|payment| payment.invoice_also_paid_by.is_some()).unwrap();
    let second = payments.iter().find(|payment| payment.intent_id == first.invoice_also_paid_by).unwrap();
    let invoice = first.invoice.clone().unwrap();
    let ids = [first, second].into_iter().flat_map(|payment| {
        let charge = payment.charge.as_ref().map(|charge| charge.id.clone());
        [charge, payment.intent_id.clone(), payment.session.clone()].into_iter().flatten()
    });
    let store = stage.store().await;
    let mut amount_minor = 0;
    for id in ids.chain([invoice.clone()]) {
        let sql = "delete from ledger_entry where object_id = $1 and kind = 'credit' returning amount_minor";
        let rows: Vec<i64> = sqlx::query_scalar(sql).bind(id).fetch_all(store.pool()).await.unwrap();
        amount_minor += rows.into_iter().sum::<i64>();
    }
    let sql =
        "insert into ledger_entry select 'whole', provider, account, mode, 'import:whole', $1, 'credit', $2,
               $3, occurred_at_us, $4, '', '', '', 'by hand' from ledger_entry limit 1";
    let booked_at_us = stage.world.until_us - 86_400_000_000;
    let query = sqlx::query(sql).bind(invoice).bind(amount_minor).bind(first.currency).bind(booked_at_us);
    query.execute(store.pool()).await.unwrap();
    store.close().await;
    let ended = stage.run(&[]);
    let findings = stage.latest("findings.csv");
    let kinds: Vec<&str> = findings.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(kinds, ["duplicate_charge"], "{findings}{}", ended.stderr);
    assert_eq!(stage.latest("plan.csv").lines().count(), 1, "nothing to correct");
}

/// A correction that somebody took back is not planned again: its key books once, so a plan that asked for it
/// could never be carried out. The finding stays, for a person.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_corrected_and_undone_by_hand_is_left_to_a_person() {
    let mix = Mix(vec![(Fault::MissedRefund, 1), (Fault::DuplicateDelivery, 1)]);
    let stage = Stage::new(8, 200, &mix, Faults::default()).await;
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let planned = stage.latest("plan.csv").lines().count() - 1;
    let plan = stage.reports().pop().unwrap().join("plan.csv");
    let (outcome, said) = stage.apply(&plan).await;
    assert_eq!(outcome, recon::commands::Outcome::Clean, "{said}");
    // The statement of docs/on-call.md, for every correction that booked.
    let guide = include_str!("../../docs/on-call.md");
    let (_, undo) = guide.split_once("```sql\n").unwrap();
    let undo = undo.split_once("```").unwrap().0.replace("entry_id = 'ENTRY'", "run_id <> ''");
    let undo = in_dialect(&undo);
    let store = stage.store().await;
    let rows = sqlx::query(sqlx::AssertSqlSafe(undo)).fetch_all(store.pool()).await.unwrap();
    store.close().await;
    assert!(rows.len() >= 2, "{}", rows.len());
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let again = stage.latest("plan.csv");
    let findings = stage.latest("findings.csv");
    assert_eq!(again.lines().count() - 1, planned - rows.len(), "{again}{findings}");
    let told = findings.lines().filter(|line| {
        line.contains(",review,")
            && line.contains("corrected before in run ")
            && line.contains(" undone since")
    });
    assert_eq!(told.count(), rows.len(), "{findings}");
}

/// The page for a person on call: a wrong amount is put right by booking the difference.
#[tokio::test(flavor = "multi_thread")]
async fn a_difference_that_is_booked_by_hand_clears_the_finding() {
    let stage = Stage::new(9, 200, &Mix(vec![(Fault::AmountOther, 1)]), Faults::default()).await;
    assert_eq!(stage.run(&[]).code, Some(1));
    let findings = stage.latest("findings.csv");
    let mut reader = csv::Reader::from_reader(findings.as_bytes());
    let row = reader.records().map(Result::unwrap).find(|row| &row[1] == "amount_mismatch").unwrap();
    let (entry, difference) = (row[9].to_owned(), row[13].to_owned());
    let guide = include_str!("../../docs/on-call.md");
    let (_, undo) = guide.split_once("```sql\n").unwrap();
    let undo = undo.split_once("```").unwrap().0.replace("'ENTRY'", &format!("'{entry}'"));
    let store = stage.store().await;
    let is_refund = format!("select kind from ledger_entry where entry_id = '{entry}'");
    let kind: String =
        sqlx::query_scalar(sqlx::AssertSqlSafe(is_refund)).fetch_one(store.pool()).await.unwrap();
    let booked = if kind == "refund" { format!("-1 * {difference}") } else { difference };
    let undo = in_dialect(&undo.replace("-amount_minor", &booked));
    assert_eq!(sqlx::query(sqlx::AssertSqlSafe(undo)).fetch_all(store.pool()).await.unwrap().len(), 1);
    store.close().await;
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(0), "{}{}", stage.latest("findings.csv"), ended.stdout);
}

/// The guide's statement as it says to write it on PostgreSQL, where this process tests on that.
fn in_dialect(statement: &str) -> String {
    let now = match Place::asked_for() {
        Database::Sqlite => "unixepoch()",
        Database::Postgres => "cast(extract(epoch from now()) as bigint)",
    };
    assert!(include_str!("../../docs/on-call.md").contains(now));
    statement.replace("unixepoch()", now)
}
