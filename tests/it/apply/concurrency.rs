//! Two at once, and one that is killed.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use super::books::*;
use recon::apply::{Answer, apply_once};
use recon::commands::apply::{RowOutcome, carry_out};
use recon::record::{EffectKey, EffectKind};
use recon::store::lease::{self, Lease, holder};
use recon::store::{Access, Store};

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
    assert_eq!(books.number("select sum(amount_minor) from ledger_entry").await, 400);
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
    let mut applies = Vec::new();
    for _ in 0..3 {
        let (store, rows) = (another(&books).await, rows.clone());
        applies.push(tokio::spawn(async move {
            let work = recon::commands::apply::Work {
                store: &store,
                run_id: RUN_ID,
                run_started_us: RUN_STARTED_US,
                now_us: NOW_US,
                inbox_is_ours: true,
                lease: None,
            };
            carry_out(work, &rows, &no_fetch).await.unwrap()
        }));
    }
    let (mut applied, mut already) = (0, 0);
    for handle in applies {
        let tally = handle.await.unwrap();
        applied += tally.count(RowOutcome::Applied);
        already += tally.count(RowOutcome::AlreadyApplied);
    }
    assert_eq!((applied, already), (300, 600));
    assert_eq!(books.number("select sum(amount_minor) from ledger_entry").await, 1_500);
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
    let cells: Vec<[String; 10]> = rows.iter().map(recon::commands::apply::plan_file::cells).collect();
    let args = recon::commands::apply::ApplyArgs { plan: books.plan_file(&cells) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome =
        recon::commands::apply::apply_with(&books.settings(), &args, NOW_US, &no_fetch, &mut out, &mut err)
            .await;
    assert_eq!(outcome.unwrap(), recon::commands::Outcome::Locked);
    assert!(String::from_utf8(out).unwrap().starts_with("outcome=locked findings=0 "));
    assert_eq!(books.everything().await, before);
    held.release().await.unwrap();
}
