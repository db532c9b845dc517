//! What hostile or careless books and records may not get past: each test is a break that was found.

use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;

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
    let local = "[local]\nurl = \"sqlite:recon.db\"\n[corrections]";
    stage.configure("[corrections]", local);
}

/// Two bookings of one second whose statement gives them one id differ in no column.
#[tokio::test(flavor = "multi_thread")]
async fn two_bookings_that_differ_in_no_column_are_two() {
    let stage = Stage::new(5, 200, &Mix(Vec::new()), Faults::default()).await;
    own_books(
        &stage,
        "select row.* from ({ours}) row join (select 1 as times union all select 2) \
         on times = 1 or row.effect_id = (select min(entry_id) from ledger_entry where kind = 'credit')",
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
