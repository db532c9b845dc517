//! `recon apply PLAN`: review, caps, what is read again, and that a second time writes nothing.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use super::books::*;
use recon::commands::Outcome;
use recon::commands::apply::{ApplyArgs, Fetched, RowOutcome, apply_auto, apply_with, carry_out};
use recon::config::Settings;
use recon::correction::{CapError, Correction};
use recon::findings::{Action, Finding, Kind};
use recon::record::{EffectKind, Status};
use recon::report::plan_csv::{self, PlanRow};
use recon::store::{Database, chain};

/// The latest transaction of which a row is left, on PostgreSQL.
const LAST_WRITER: &str = "select max(cast(cast(xmin as text) as bigint)) from ( \
     select xmin from ledger_entry union all select xmin from correction union all select xmin from applied_event \
     union all select xmin from inbox_event union all select xmin from object_state union all select xmin from lease \
     ) written";

struct Ran {
    outcome: Outcome,
    out: String,
    err: String,
}

impl Ran {
    fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

async fn apply(books: &Books, settings: &Settings, rows: &[[String; 10]]) -> Ran {
    let args = ApplyArgs { plan: books.plan_file(rows) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = apply_with(settings, &args, NOW_US, &NO_STATUS, &mut out, &mut err).await.unwrap();
    Ran { outcome, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn cells(rows: &[Correction]) -> Vec<[String; 10]> {
    rows.iter().map(|row| PlanRow::of(row).cells()).collect()
}

async fn duplicate(books: &Books) -> Finding {
    books.import("a", "ch_1", 500, 1).await;
    books.import("b", "ch_1", 500, 2).await;
    Finding {
        effect_ids: vec!["a".into(), "b".into()],
        expected_minor: Some(500),
        found_minor: Some(1_000),
        ..finding(Kind::DuplicateEffect, Action::ReverseEntry, EffectKind::Credit, "ch_1")
    }
}

#[tokio::test]
async fn c65_a_replay_books_at_the_events_time_and_tells_no_customer() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 7_000_000).await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 500)]).await;
    let ran = apply(&books, &books.settings(), &cells(&rows)).await;
    assert_eq!(ran.outcome, Outcome::Clean, "{}", ran.err);
    assert_eq!(
        ran.last_line(),
        "outcome=clean findings=0 applied=1 adopted=0 already_applied=0 state_moved=0 manual_override=0 not_fetched=0 conflicts=0 \
         refused=0 not_verified=0 failed=0"
    );
    let entry = "select effect_key || ' ' || amount_minor || ' ' || occurred_at_us || ' ' || event_id || ' ' || run_id from ledger_entry";
    assert_eq!(books.text(entry).await, "credit:ch_1 500 7000000 evt_of_ch_1 run_1");
    let inbox = "select status || ' ' || received_at_us || ' ' || deliveries || ' ' || event_type || ' ' || reason from inbox_event";
    assert_eq!(books.text(inbox).await, "applied 7000000 0 charge.succeeded replayed by run_1: missed_event");
    assert_eq!(
        books
            .number("select count(*) from outbox_message where sent_at_us is null and suppressed_reason = ''")
            .await,
        0
    );
    assert_eq!(books.number("select count(*) from applied_event").await, 1);
}

#[tokio::test]
async fn a_second_apply_writes_nothing() {
    let books = Books::new().await;
    books.listed("evt_of_ch_2", 7_000_000).await;
    books.state("pi_9", Status::Paid, 1, "").await;
    let findings =
        [missed("ch_2", 700), duplicate(&books).await, missed("ch_3", 5), stale("pi_9", Status::Refunded)];
    let rows = books.plan(RUN_ID, &findings).await;
    let first = apply(&books, &books.settings(), &cells(&rows)).await;
    assert_eq!(first.outcome, Outcome::Incomplete, "one event was never listed, one status not fetched");
    assert!(first.last_line().contains(" applied=2 ") && first.last_line().contains(" not_fetched=2 "));
    let before = books.everything().await;
    let second = apply(&books, &books.settings(), &cells(&rows)).await;
    assert!(second.last_line().contains(" applied=0 ") && second.last_line().contains(" already_applied=2 "));
    assert_eq!(books.everything().await, before);
    assert_eq!(chain::first_broken(books.store.pool()).await.unwrap(), None);
    // Counted by the database itself, on the connection that would write.
    let done: Vec<Correction> = rows.into_iter().take(2).collect();
    let written = match books.store.database() {
        Database::Sqlite => "pragma data_version",
        Database::Postgres => LAST_WRITER,
    };
    let mut connection = books.store.pool().acquire().await.unwrap();
    let version: i64 = sqlx::Row::get(&sqlx::query(written).fetch_one(&mut *connection).await.unwrap(), 0);
    let tally = books.carry_out(&done).await;
    assert_eq!(tally.count(RowOutcome::AlreadyApplied), 2);
    let after: i64 = sqlx::Row::get(&sqlx::query(written).fetch_one(&mut *connection).await.unwrap(), 0);
    assert_eq!(version, after, "no other connection committed a change");
}

#[tokio::test]
async fn a_duplicate_is_compensated_and_nothing_is_updated() {
    let books = Books::new().await;
    let rows = books.plan(RUN_ID, &[duplicate(&books).await]).await;
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::Applied), 1);
    let entry = "select effect_key || ' ' || amount_minor || ' ' || corrects_entry_id || ' ' || object_id from ledger_entry where amount_minor < 0";
    assert_eq!(books.text(entry).await, "reverse:b -500 b ch_1");
    assert_eq!(books.number("select cast(sum(amount_minor) as bigint) from ledger_entry").await, 500);
    assert_eq!(books.number("select count(*) from ledger_entry where effect_key like 'import:%'").await, 2);
}

#[tokio::test]
async fn a_reversal_is_left_out_when_the_books_moved() {
    for moved in [
        "insert into ledger_entry values ('x', 'stripe', '', 'live', 'undo', 'ch_1', 'credit', -500, 'usd', 5, 5, '', 'b', '', '')",
        // The entry that was to be kept was undone by a person: reversing the other would lose both.
        "insert into ledger_entry values ('x', 'stripe', '', 'live', 'undo', 'ch_1', 'credit', -500, 'usd', 5, 5, '', 'a', '', '')",
        "update ledger_entry set amount_minor = 499 where entry_id = 'b'",
        "delete from ledger_entry where entry_id = 'b'",
    ] {
        let books = Books::new().await;
        let rows = books.plan(RUN_ID, &[duplicate(&books).await]).await;
        books.execute(moved).await;
        assert_eq!(books.carry_out(&rows).await.count(RowOutcome::StateMoved), 1, "{moved}");
        assert_eq!(books.number("select count(*) from ledger_entry where run_id = 'run_1'").await, 0);
    }
}

#[tokio::test]
async fn an_effect_that_came_since_is_left_alone() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    books.listed("evt_of_ch_2", 1).await;
    books.listed("evt_of_ch_3", 1).await;
    let findings = [missed("ch_1", 500), missed("ch_2", 500), missed("ch_3", 500)];
    let rows = books.plan(RUN_ID, &findings).await;
    books.live("evt_of_ch_1", "ch_1", 500).await;
    books.live("evt_of_ch_2", "ch_2", 499).await;
    books.import("17", "pi_of_ch_3", 500, RUN_STARTED_US + 1).await;
    let tally = books.carry_out(&rows).await;
    assert_eq!(tally.count(RowOutcome::StateMoved), 1);
    assert_eq!(tally.count(RowOutcome::Conflicts), 1);
    assert_eq!(tally.count(RowOutcome::Adopted), 1, "booked under the payment's id since the run began");
    assert_eq!(books.number("select cast(sum(amount_minor) as bigint) from ledger_entry").await, 1_499);
}

#[tokio::test]
async fn an_unapplied_event_is_booked_and_marked() {
    let books = Books::new().await;
    books
        .execute("insert into inbox_event (provider, account, mode, event_id, event_type, body, body_sha256, received_at_us, last_delivery_at_us, deliveries, status, attempts, next_attempt_at_us, last_error, reason) values ('stripe', '', 'live', 'evt_of_ch_1', 'charge.succeeded', null, '', 5, 5, 2, 'dead', 3, 0, 'timeout', '')")
        .await;
    let unapplied = Finding { kind: Kind::UnappliedEvent, ..missed("ch_1", 500) };
    let rows = books.plan(RUN_ID, &[unapplied]).await;
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::Applied), 1);
    let inbox = "select status || ' ' || deliveries || ' ' || last_error || ' ' || reason from inbox_event";
    assert_eq!(books.text(inbox).await, "applied 2  replayed by run_1");
}

#[tokio::test]
async fn a_lagging_status_moves_with_its_effect() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    books.state("pi_of_ch_1", Status::Pending, 1, "worker").await;
    let lagging = Finding { target_state: Some(Status::Paid), ..missed("ch_1", 500) };
    let rows = books.plan(RUN_ID, &[lagging]).await;
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::Applied), 1);
    assert_eq!(
        books.text("select object_id || status || changed_by from object_state").await,
        "pi_of_ch_1paidrecon"
    );
}

async fn set_state(books: &Books, rows: &[Correction], status: Status) -> RowOutcome {
    let fetched = Fetched { status, refunded_minor: Some(9), provider_time_us: 50 };
    let tally = carry_out(books.work(), rows, &AsPlanned(Some(fetched))).await.unwrap();
    RowOutcome::ALL.into_iter().find(|outcome| tally.count(*outcome) == 1).unwrap()
}

#[tokio::test]
async fn c64_a_manual_change_is_not_undone() {
    let books = Books::new().await;
    books.state("pi_1", Status::Paid, RUN_STARTED_US + 1, "operator").await;
    let rows = books.plan(RUN_ID, &[stale("pi_1", Status::Refunded)]).await;
    assert_eq!(set_state(&books, &rows, Status::Refunded).await, RowOutcome::ManualOverride);
    assert_eq!(books.text("select status from object_state").await, "paid");
    assert_eq!(books.text("select outcome from correction").await, "manual_override");
}

#[tokio::test]
async fn the_status_written_is_the_one_fetched_just_now() {
    let books = Books::new().await;
    books.state("pi_1", Status::Paid, 1, "worker").await;
    books.state("cs_2", Status::Paid, 1, "worker").await;
    books.execute("insert into alias values ('stripe', '', 'live', 'in_2', 'pi_2', 0), ('stripe', '', 'live', 'cs_2', 'in_2', 0)").await;
    let rows = books.plan(RUN_ID, &[stale("pi_1", Status::Refunded), stale("pi_2", Status::Refunded)]).await;
    assert_eq!(set_state(&books, &rows[..1], Status::Disputed).await, RowOutcome::Applied);
    let state = "select status || ' ' || refunded_minor || ' ' || provider_time_us || ' ' || updated_at_us || ' ' || changed_by from object_state where object_id = 'pi_1'";
    assert_eq!(books.text(state).await, "disputed 9 50 2000000000 recon");
    assert_eq!(set_state(&books, &rows[1..], Status::Refunded).await, RowOutcome::Applied);
    assert_eq!(books.text("select status from object_state where object_id = 'cs_2'").await, "refunded");
    assert_eq!(
        books.number("select count(*) from object_state").await,
        2,
        "no second row for the same payment"
    );
}

#[tokio::test]
async fn a_status_that_came_right_or_cannot_step_is_left_alone() {
    let books = Books::new().await;
    books.state("pi_1", Status::Refunded, 1, "worker").await;
    books.state("pi_2", Status::DisputeLost, 1, "worker").await;
    let rows = books.plan(RUN_ID, &[stale("pi_1", Status::Refunded), stale("pi_2", Status::Paid)]).await;
    let before = books
        .text("select min(status || updated_at_us) || max(status || updated_at_us) from object_state")
        .await;
    assert_eq!(set_state(&books, &rows[1..], Status::Paid).await, RowOutcome::StateMoved);
    books.execute("update object_state set refunded_minor = 9").await;
    assert_eq!(set_state(&books, &rows[..1], Status::Refunded).await, RowOutcome::StateMoved);
    assert_eq!(
        books
            .text("select min(status || updated_at_us) || max(status || updated_at_us) from object_state")
            .await,
        before
    );
}

#[tokio::test]
async fn a_plan_that_says_anything_else_is_refused_whole() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    books.listed("evt_of_ch_2", 1).await;
    books.start_run("run_2", RUN_STARTED_US).await;
    let rows = cells(&books.plan(RUN_ID, &[missed("ch_1", 500), missed("ch_2", 500)]).await);
    let others = cells(&books.plan("run_2", &[missed("ch_1", 500)]).await);
    let before = books.everything().await;
    for column in 1..10 {
        let mut edited = rows.clone();
        edited[1][column].push('0');
        let ran = apply(&books, &books.settings(), &edited).await;
        assert_eq!(ran.outcome, Outcome::Config, "column {column}");
        // A word that no plan has is refused by the reader, any other edit by comparison.
        let name = plan_csv::COLUMNS[column].name;
        let is_named = ran.err.contains(&format!("`{name}` is not as it was planned"))
            || ran.err.contains(&format!("row 3, column {name}: "));
        assert!(is_named, "{}", ran.err);
        assert!(ran.err.contains("hint: ") && ran.last_line().starts_with("outcome=config findings=0 "));
    }
    let mut unknown = rows.clone();
    unknown[0][0] = "0123".into();
    for (bad, message) in [
        (unknown, "line 2: no run of this store planned `0123`"),
        (vec![rows[0].clone(), others[0].clone()], "line 3: the row is of the run run_2"),
        (
            vec![rows[0].clone(), rows[0].clone()],
            "row 3, column correction_id: the correction of row 2 again",
        ),
    ] {
        let ran = apply(&books, &books.settings(), &bad).await;
        assert_eq!(ran.outcome, Outcome::Config);
        assert!(ran.err.contains(message), "{}", ran.err);
    }
    assert_eq!(books.everything().await, before);
    let ran = apply(&books, &books.settings(), &rows[1..]).await;
    assert_eq!(ran.outcome, Outcome::Clean, "rows may be taken out");
    assert_eq!(books.text("select effect_key from ledger_entry").await, "credit:ch_2");
    assert_eq!(apply(&books, &books.settings(), &[]).await.outcome, Outcome::Clean);
}

#[tokio::test]
async fn a_copy_in_the_store_that_was_changed_is_refused() {
    let books = Books::new().await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 500)]).await;
    books.execute("update planned_correction set root_id = 'pi_other'").await;
    let ran = apply(&books, &books.settings(), &cells(&rows)).await;
    assert_eq!(ran.outcome, Outcome::Config);
    assert!(ran.err.contains("the store's copy of the plan was changed"), "{}", ran.err);
}

#[tokio::test]
async fn a_plan_over_a_cap_writes_nothing() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 100_001)]).await;
    let before = books.everything().await;
    let ran = apply(&books, &books.settings(), &cells(&rows)).await;
    assert_eq!(ran.outcome, Outcome::Config);
    assert!(ran.err.contains("`corrections.minor_max.usd` = 100000"), "{}", ran.err);
    let auto = apply_auto(books.work(), &books.settings(), &rows, &NO_STATUS).await.unwrap_err();
    assert!(auto.downcast_ref::<CapError>().is_some());
    assert_eq!(books.everything().await, before);
}

#[tokio::test]
async fn only_own_books_are_written() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 500)]).await;
    let before = books.everything().await;
    let ran = apply(&books, &books.foreign_settings(), &cells(&rows)).await;
    assert_eq!(ran.outcome, Outcome::Config);
    assert!(ran.err.contains("has nowhere to write") && ran.err.contains("hint: "), "{}", ran.err);
    assert_eq!(books.everything().await, before);
}

#[tokio::test]
async fn auto_carries_out_only_the_kinds_that_are_allowed() {
    let books = Books::new().await;
    books.listed("evt_of_ch_2", 1).await;
    let rows = books.plan(RUN_ID, &[missed("ch_2", 500), duplicate(&books).await]).await;
    let tally = apply_auto(books.work(), &books.settings(), &rows, &NO_STATUS).await.unwrap();
    assert_eq!(tally.count(RowOutcome::Applied), 1);
    assert_eq!(books.number("select cast(sum(amount_minor) as bigint) from ledger_entry").await, 1_500);
}

#[tokio::test]
async fn the_history_shows_a_row_that_was_changed_or_taken_out() {
    for tampering in [
        "update correction set outcome = 'applied' where sequence = 2",
        "delete from correction where sequence = 2",
        "update correction set applied_at_us = 1 where sequence = 2",
    ] {
        let books = Books::new().await;
        let rows = books.plan(RUN_ID, &[missed("ch_1", 1), missed("ch_2", 1), missed("ch_3", 1)]).await;
        assert_eq!(books.carry_out(&rows).await.count(RowOutcome::NotFetched), 3);
        assert_eq!(chain::first_broken(books.store.pool()).await.unwrap(), None);
        books.execute(tampering).await;
        assert!(matches!(chain::first_broken(books.store.pool()).await.unwrap(), Some(2 | 3)), "{tampering}");
    }
}

#[tokio::test]
async fn what_could_not_be_fetched_is_carried_out_later() {
    let books = Books::new().await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 500)]).await;
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::NotFetched), 1);
    let before = books.everything().await;
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::NotFetched), 1);
    assert_eq!(books.everything().await, before, "the same outcome is recorded once");
    books.listed("evt_of_ch_1", 1).await;
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::Applied), 1);
    assert_eq!(books.number("select count(*) from correction").await, 2);
}
