//! Two at once, and one that is killed.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use super::books::*;
use recon::apply::{Answer, apply_once};
use recon::commands::apply::{RowOutcome, Work, carry_out};
use recon::correction::{PlanContext, plan};
use recon::findings::{Action, Finding, Kind};
use recon::record::{EffectKey, EffectKind};
use recon::store::lease::{self, Lease, holder};
use recon::store::{Access, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

/// Each writer with connections of its own, as two processes have.
async fn another(books: &Books) -> Store {
    Store::open(&books.url, Access::ReadWrite).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c71_two_writers_lose_nothing_while_a_third_reads() {
    let books = Books::new().await;
    let reader = another(&books).await;
    let mut reading = reader.pool().begin().await.unwrap();
    sqlx::query("select count(*) from ledger_entry").fetch_one(&mut *reading).await.unwrap();
    let mut writers = Vec::new();
    for writer in 0..2 {
        let store = another(&books).await;
        writers.push(tokio::spawn(async move {
            for number in 0..100 {
                let object_id = format!("ch_{writer}_{number}");
                let key = EffectKey::of(&scope(), EffectKind::Credit, &object_id);
                let mut tx = store.begin_write().await.unwrap();
                let effect = effect(EffectKind::Credit, &object_id, 1);
                apply_once(&mut tx, &[event(&object_id)], &key, &effect).await.unwrap();
                tx.commit().await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    drop(reading);
    assert_eq!(books.number("select count(*) from ledger_entry").await, 200);
    assert_eq!(books.number("select count(*) from applied_event").await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c73_opposite_orders_neither_deadlock_nor_double() {
    let books = Books::new().await;
    let mut writers = Vec::new();
    for is_reversed in [false, true] {
        let store = another(&books).await;
        writers.push(tokio::spawn(async move {
            let mut applied = 0;
            for round in 0..200 {
                let mut objects = [format!("order_{round}"), format!("payment_{round}")];
                if is_reversed {
                    objects.reverse();
                }
                let mut tx = store.begin_write().await.unwrap();
                for object_id in &objects {
                    let key = EffectKey::of(&scope(), EffectKind::Credit, object_id);
                    let effect = effect(EffectKind::Credit, object_id, 1);
                    let answer = apply_once(&mut tx, &[event(object_id)], &key, &effect).await.unwrap();
                    applied += i64::from(answer == Answer::Applied);
                }
                tx.commit().await.unwrap();
            }
            applied
        }));
    }
    let mut applied = 0;
    for writer in writers {
        applied += writer.await.unwrap();
    }
    assert_eq!(applied, 400);
    assert_eq!(books.number("select cast(sum(amount_minor) as bigint) from ledger_entry").await, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c77_two_applies_at_once_write_once_even_without_the_lease() {
    let books = Books::new().await;
    let mut findings = Vec::new();
    for number in 0..300 {
        let object_id = format!("ch_{number}");
        books.listed(&format!("evt_of_{object_id}"), 1).await;
        findings.push(missed(&object_id, 5));
    }
    let rows = books.plan(RUN_ID, &findings).await;
    let mut handles = Vec::new();
    for _ in 0..3 {
        let (store, rows) = (another(&books).await, rows.clone());
        handles.push(tokio::spawn(async move {
            let work = Work {
                store: &store,
                run_id: RUN_ID,
                run_started_us: RUN_STARTED_US,
                now_us: NOW_US,
                inbox_is_ours: true,
                keeps_messages: false,
                lease: None,
            };
            carry_out(work, &rows, &NO_STATUS).await.unwrap()
        }));
    }
    let (mut applied, mut already) = (0, 0);
    for handle in handles {
        let tally = handle.await.unwrap();
        applied += tally.count(RowOutcome::Applied);
        already += tally.count(RowOutcome::AlreadyApplied);
    }
    assert_eq!((applied, already), (300, 600));
    assert_eq!(books.number("select cast(sum(amount_minor) as bigint) from ledger_entry").await, 1_500);
    assert_eq!(books.number("select count(*) from correction").await, 300);
    assert_eq!(recon::store::chain::first_broken(books.store.pool()).await.unwrap(), None);
}

#[tokio::test]
async fn c77_a_second_run_is_kept_out_and_a_crashed_holder_lets_go() {
    let books = Books::new().await;
    let second = another(&books).await;
    let held = Lease::acquire(&books.store, lease::RUN, || 1_000).await.unwrap().unwrap();
    assert!(Lease::acquire(&second, lease::RUN, || 2_000).await.unwrap().is_none());
    assert!(!held.is_lost());
    held.release().await.unwrap();
    let again = Lease::acquire(&second, lease::RUN, || 3_000).await.unwrap();
    assert!(again.is_some());
    again.unwrap().release().await.unwrap();
    // A holder elsewhere that never comes back: its time runs out.
    let end_us = i64::try_from(lease::LEASE_MS).unwrap() * 1_000;
    assert!(lease::take(&books.store, lease::RUN, "elsewhere", 0).await.unwrap());
    assert!(!lease::take(&second, lease::RUN, &holder::this_process(), end_us - 1).await.unwrap());
    assert!(lease::renew(&books.store, lease::RUN, "elsewhere", 5).await.unwrap());
    assert!(!lease::take(&second, lease::RUN, &holder::this_process(), end_us + 4).await.unwrap());
    assert!(lease::take(&second, lease::RUN, "another", end_us + 5).await.unwrap());
    assert!(
        !lease::renew(&books.store, lease::RUN, "elsewhere", end_us + 6).await.unwrap(),
        "it knows that it lost it"
    );
}

#[tokio::test]
async fn c77_apply_answers_locked_and_writes_nothing() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 500)]).await;
    let held = Lease::acquire(&books.store, lease::RUN, recon::clock::machine_now_us).await.unwrap().unwrap();
    let before = books.everything().await;
    let cells: Vec<[String; 10]> =
        rows.iter().map(|row| recon::report::plan_csv::PlanRow::of(row).cells()).collect();
    let args = recon::commands::apply::ApplyArgs { plan: books.plan_file(&cells) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome =
        recon::commands::apply::apply_with(&books.settings(), &args, NOW_US, &NO_STATUS, &mut out, &mut err)
            .await;
    assert_eq!(outcome.unwrap(), recon::commands::Outcome::Locked);
    assert!(String::from_utf8(out).unwrap().starts_with("outcome=locked findings=0 "));
    assert_eq!(books.everything().await, before);
    held.release().await.unwrap();
}

/// Polls a future `polls` times and then drops it where it stands.
async fn cut_off<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut polled = 0;
    std::future::poll_fn(move |context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test]
async fn work_that_is_cut_off_anywhere_is_whole_or_not_there() {
    let mut ended = 0;
    for polls in 0..400 {
        let books = Books::new().await;
        books.listed("evt_of_ch_1", 1).await;
        let rows = books.plan(RUN_ID, &[missed("ch_1", 5)]).await;
        let done = cut_off(carry_out(books.work(), &rows, &NO_STATUS), polls).await;
        let legs =
            "select '' || (select count(*) from ledger_entry) || (select count(*) from applied_event) ||
                    (select count(*) from inbox_event) || (select count(*) from correction)";
        let seen = books.text(legs).await;
        assert!(seen == "0000" || seen == "1111", "cut off after {polls} polls: {seen}");
        books.carry_out(&rows).await;
        assert_eq!(books.text(legs).await, "1111", "cut off after {polls} polls, then again");
        ended += usize::from(done.is_some());
        if ended > 2 {
            return;
        }
    }
    assert!(ended > 0, "it never got to its end");
}

const KILL_STORE: &str = "RECON_TEST_KILL_STORE";
/// More than one batch, so that the kill falls between or inside of two.
const KILL_ROWS: usize = 10_400;

fn to_book() -> Vec<Finding> {
    let book = |number: usize| Finding {
        kind: Kind::MissingEffect,
        action: Action::ApplyEffect,
        event_ids: Vec::new(),
        ..missed(&format!("ch_{number:05}"), 5)
    };
    (0..KILL_ROWS).map(book).collect()
}

/// Not a test of its own: the process that the next test kills.
#[tokio::test]
async fn helper_that_is_killed() {
    let Ok(url) = std::env::var(KILL_STORE) else { return };
    let store = Store::open(&url, Access::ReadWrite).await.unwrap();
    let _lease = Lease::acquire(&store, lease::RUN, recon::clock::machine_now_us).await.unwrap().unwrap();
    let (auto, entry_amounts) = (BTreeSet::new(), BTreeMap::new());
    let context = PlanContext { run_id: RUN_ID, auto: &auto, entry_amounts: &entry_amounts };
    let rows = plan(&to_book(), context);
    let work = Work {
        store: &store,
        run_id: RUN_ID,
        run_started_us: RUN_STARTED_US,
        now_us: NOW_US,
        inbox_is_ours: true,
        keeps_messages: false,
        lease: None,
    };
    carry_out(work, &rows, &NO_STATUS).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c77_a_killed_apply_goes_on_where_it_was_and_its_lease_is_free() {
    let books = Books::new().await;
    let rows = books.plan(RUN_ID, &to_book()).await;
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["apply::concurrency::helper_that_is_killed", "--exact"])
        .env(KILL_STORE, &books.url)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while books.number("select count(*) from correction").await == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the helper ended before it did anything");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // A server may still be busy with what the killed process had asked for last.
    books.store.begin_write().await.unwrap().rollback().await.unwrap();
    let booked = books.number("select count(*) from ledger_entry").await;
    assert!(booked >= 10_000, "{booked} entries after the first batch");
    let lease = Lease::acquire(&books.store, lease::RUN, recon::clock::machine_now_us).await.unwrap();
    lease.expect("a process that is gone holds nothing").release().await.unwrap();
    let tally = books.carry_out(&rows).await;
    let expected = i64::try_from(KILL_ROWS).unwrap();
    assert_eq!(i64::try_from(tally.count(RowOutcome::AlreadyApplied)).unwrap(), booked);
    assert_eq!(i64::try_from(tally.count(RowOutcome::Applied)).unwrap(), expected - booked);
    assert_eq!(
        books.number("select cast(sum(amount_minor) as bigint) from ledger_entry").await,
        5 * expected
    );
    assert_eq!(recon::store::chain::first_broken(books.store.pool()).await.unwrap(), None);
}
