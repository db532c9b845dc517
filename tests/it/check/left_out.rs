//! What `effects.sql` leaves out: `recon check` says it before the first run, and a run never leaves a row out in silence.

use super::{Doctor, EVENT_KEY, PAYMENT_KEY, deliveries, id_type, payments};
use crate::books::{Books, Kind, on_each};
use crate::stage::Ended;
use recon::commands::Outcome;
use std::process::Command;

on_each!(words_and_rows_that_are_left_out_are_told);

const UNBOOKED: &str = "
    select id as effect_id, 'stripe' as provider, account, 'live' as mode, nullif(charge_id, '') as object_id,
        kind, state as status
    from payments where state is null or state <> 'done' or charge_id = ''
";

async fn words_and_rows_that_are_left_out_are_told(kind: Kind) {
    let key = format!("{} not null", id_type(kind));
    let doctor = Doctor::new(kind, &[deliveries(&key, &key, EVENT_KEY), payments(kind, PAYMENT_KEY)]).await;
    let state = kind.pick("text", "text", "varchar(40)");
    let hand = doctor.books.hand();
    hand.run_sql(&format!("alter table payments add state {state}")).await;
    let found = doctor.check().await;
    assert_eq!(found.line("left_out")["status"], "not_checked");
    assert_eq!(found.outcome, Outcome::Clean);
    doctor.query("unbooked.sql", UNBOOKED);
    let insert = |id: u8, charge: &str, state: &str| {
        format!(
            "insert into payments (id, account, charge_id, kind, amount_minor, at, event_id, state)
             values ('{id}', '', '{charge}', 'credit', 5, 1769913000000000, 'evt', {state});"
        )
    };
    hand.run_sql(&[insert(1, "ch_1", "'done'"), insert(2, "ch_2", "'pending'")].concat()).await;
    let found = doctor.check().await;
    let line = found.line("left_out");
    assert_eq!(line["status"], "ok", "{line}");
    assert!(line["says"].as_str().unwrap().ends_with("moved no money: `pending` (1 row)"), "{line}");
    hand.run_sql(&[insert(3, "ch_3", "'on_hold'"), insert(4, "ch_4", "'completed'")].concat()).await;
    doctor.configure("[local.status_map]\ncompleted = \"paid\"\n");
    let found = doctor.check().await;
    assert_eq!((found.outcome, found.codes("failing")), (Outcome::Config, vec!["left_out", "left_out"]));
    let says: Vec<&str> = found.with("failing").iter().map(|line| line["says"].as_str().unwrap()).collect();
    assert!(says[0].ends_with("names: `on_hold` (1 row)"), "{says:?}");
    assert!(says[1].ends_with("follows it: `completed` (1 row)"), "{says:?}");
    hand.run_sql("delete from payments where id in ('3', '4')").await;
    hand.run_sql(&[insert(5, "", "null"), insert(6, "ch_6", "null")].concat()).await;
    let found = doctor.check().await;
    assert!(!found.codes("failing").contains(&"left_out"), "{:#?}", found.lines);
    let says: Vec<&str> = found.with("warning").iter().map(|line| line["says"].as_str().unwrap()).collect();
    assert!(
        says[0].starts_with("1 row names no object") && says[1].starts_with("1 row has no status"),
        "{says:?}"
    );
}

/// What `init --from` writes for tables of nobody's: a date that is none, a payment without a time, one without an id.
#[tokio::test]
async fn what_init_writes_leaves_no_row_out_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let books = Books::new(Kind::Sqlite, folder.path());
    books
        .run_sql(
            "create table payments (id integer primary key, charge_id text unique, amount_cents integer not null,
                 currency text not null, status text, paid_at text);
             insert into payments values (1, 'ch_1', 500, 'usd', 'paid', '2026-05-01 10:00:00'),
                 (2, 'ch_2', 500, 'usd', 'pending', null), (3, null, 700, 'usd', 'paid', '2026-05-02 10:00:00');",
        )
        .await;
    let recon = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(folder.path()).env_clear().env("STRIPE_API_KEY", "rk_live_x").args(arguments);
        Ended::of(&command.output().unwrap())
    };
    assert_eq!(recon(&["init", "--from", "sqlite:books.db"]).code, Some(0));
    // No provider is asked: only the books are looked at.
    let path = folder.path().join("recon.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replacen("kind = \"stripe\"\n", "kind = \"stripe\"\nbase_url = \"http://127.0.0.1:9\"\n", 1),
    )
    .unwrap();
    let said = recon(&["check"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("1 row names no object of the provider, and effects.sql leaves them out"),
        "{said}"
    );
    assert!(!said.contains("applied_at_us"), "{said}");
    for (bad, id) in [("'01/05/2026'", "4"), ("null", "5")] {
        books
            .run_sql(&format!("insert into payments values ({id}, 'ch_{id}', 900, 'usd', 'paid', {bad});"))
            .await;
        let ended = recon(&["check"]);
        let said = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(ended.code, Some(78), "{said}");
        assert!(
            said.contains(&format!("row effect_id=payment:{id}: column applied_at_us is null")),
            "{said}"
        );
        books.run_sql(&format!("delete from payments where id = {id}")).await;
    }
}
