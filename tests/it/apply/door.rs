//! The one door: one effect, whoever brings it, in whatever order, however often.

use super::books::*;
use recon::apply::{Aliases, Answer, Request, apply_batch, apply_once};
use recon::record::{EffectKey, EffectKind};
use recon::store::Database;

const NET: &str = "select cast(coalesce(sum(amount_minor), 0) as bigint) from ledger_entry";
const ENTRIES: &str = "select count(*) from ledger_entry";
const EVENTS: &str = "select count(*) from applied_event";

#[tokio::test]
async fn c63_live_then_backfill_is_one_effect() {
    let books = Books::new().await;
    assert_eq!(books.live("evt_S63", "ch_S63", 500).await, Answer::Applied);
    assert_eq!(books.live("evt_S63", "ch_S63", 500).await, Answer::AlreadyApplied);
    // Another event of the same effect: nothing is booked, and the event counts as processed.
    assert_eq!(books.live("evt_other", "ch_S63", 500).await, Answer::AlreadyApplied);
    assert_eq!((books.number(ENTRIES).await, books.number(EVENTS).await), (1, 2));
}

#[tokio::test]
async fn c66_the_same_key_with_another_amount_is_refused() {
    let books = Books::new().await;
    books.live("evt_1", "ch_1", 500).await;
    let before = books.everything().await;
    let refused = Answer::ConflictsWithApplied { entry_id: "stripe//live/credit:ch_1".into() };
    assert_eq!(books.live("evt_2", "ch_1", 501).await, refused);
    let mut euros = effect(EffectKind::Credit, "ch_1", 500);
    euros.currency = "eur".into();
    assert_eq!(books.book(&[event("evt_3")], &euros).await, refused);
    assert_eq!(books.everything().await, before, "no event key is left behind");
}

#[tokio::test]
async fn what_was_taken_back_is_refused_and_never_called_booked() {
    let books = Books::new().await;
    books.live("evt_1", "ch_1", 500).await;
    books
        .execute(
            "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor,
             currency, occurred_at_us, applied_at_us, corrects_entry_id) values ('back', 'stripe', '', 'live',
             'reverse:stripe//live/credit:ch_1', 'ch_1', 'credit', -500, 'usd', 7, 8, 'stripe//live/credit:ch_1')",
        )
        .await;
    let before = books.everything().await;
    let entry_id = "stripe//live/credit:ch_1".to_owned();
    let reversed = Answer::Reversed { entry_id, occurred_at_us: 7, applied_at_us: 8 };
    assert_eq!(books.live("evt_2", "ch_1", 500).await, reversed);
    assert_eq!(books.everything().await, before, "no event key is left behind");
    // One of two was taken back, and the other one stands.
    books.import("17", "ch_1", 500, 1).await;
    assert_eq!(books.live("evt_2", "ch_1", 500).await, Answer::AlreadyApplied);
    assert_eq!(books.number(NET).await, 500);
}

#[tokio::test]
async fn an_event_marked_as_processed_does_not_hide_a_missing_effect() {
    let books = Books::new().await;
    books.execute("insert into applied_event values ('stripe', '', 'live', 'evt_1', 1, '')").await;
    assert_eq!(books.live("evt_1", "ch_1", 500).await, Answer::Applied);
    assert_eq!(books.number(NET).await, 500);
}

#[tokio::test]
async fn an_effect_under_another_key_is_adopted_and_never_booked_again() {
    let books = Books::new().await;
    books.import("17", "ch_1", 500, 1).await;
    let adopted = Answer::Adopted { entry_id: "17".into() };
    assert_eq!(books.live("evt_1", "ch_1", 500).await, adopted);
    assert_eq!(books.live("evt_1", "ch_1", 500).await, Answer::AlreadyApplied);
    assert_eq!(
        (books.number(NET).await, books.number(ENTRIES).await, books.number(EVENTS).await),
        (500, 2, 1)
    );
    let reason = "select reason from ledger_entry where effect_key = 'credit:ch_1'";
    assert_eq!(books.text(reason).await, "adopted 17");
    let conflict = Answer::ConflictsWithApplied { entry_id: "17".into() };
    assert_eq!(books.live("evt_1", "ch_1", 501).await, conflict, "the adopted amount is what counts");
}

#[tokio::test]
async fn an_effect_under_another_key_with_another_amount_is_refused() {
    let books = Books::new().await;
    books.import("17", "ch_1", 400, 1).await;
    let conflict = Answer::ConflictsWithApplied { entry_id: "17".into() };
    assert_eq!(books.live("evt_1", "ch_1", 500).await, conflict);
    assert_eq!((books.number(NET).await, books.number(EVENTS).await), (400, 0));
}

#[tokio::test]
async fn an_effect_that_was_undone_under_another_key_is_booked() {
    let books = Books::new().await;
    books.import("17", "ch_1", 500, 1).await;
    books.import("18", "ch_1", -500, 1).await;
    assert_eq!(books.live("evt_1", "ch_1", 500).await, Answer::Applied);
    assert_eq!(books.number(NET).await, 500);
}

#[tokio::test]
async fn an_entry_under_an_alias_counts_only_when_it_came_later() {
    let books = Books::new().await;
    books.import("17", "pi_1", 500, 10).await;
    let mut refund_of_another = effect(EffectKind::Credit, "ch_2", 500);
    refund_of_another.aliases = Aliases { ids: vec!["pi_1".into()], booked_since_us: 11 };
    assert_eq!(books.book(&[], &refund_of_another).await, Answer::Applied, "judged by the run before");
    let mut later = effect(EffectKind::Credit, "ch_3", 500);
    later.aliases = Aliases { ids: vec!["pi_1".into()], booked_since_us: 10 };
    assert_eq!(books.book(&[], &later).await, Answer::Adopted { entry_id: "17".into() });
}

#[tokio::test]
async fn c72_one_duplicate_does_not_poison_the_batch() {
    let books = Books::new().await;
    books.live("evt_2", "ch_2", 500).await;
    let request = |number: u32| Request {
        events: vec![event(&format!("evt_{number}"))],
        key: EffectKey::of(&scope(), EffectKind::Credit, &format!("ch_{number}")),
        effect: effect(EffectKind::Credit, &format!("ch_{number}"), 500),
    };
    let mut other_amount = request(3);
    other_amount.effect.amount_minor = 9;
    let batch = [request(1), request(2), request(3), request(3), other_amount];
    let mut tx = books.store.begin_write().await.unwrap();
    let answers = apply_batch(&mut tx, &batch).await.unwrap();
    tx.commit().await.unwrap();
    let conflict = Answer::ConflictsWithApplied { entry_id: "stripe//live/credit:ch_3".into() };
    let expected =
        [Answer::Applied, Answer::AlreadyApplied, Answer::Applied, Answer::AlreadyApplied, conflict];
    assert_eq!(answers, expected);
    assert_eq!((books.number(NET).await, books.number(EVENTS).await), (1_500, 3));
}

#[tokio::test]
async fn a_failure_after_the_key_was_inserted_leaves_no_key_behind() {
    let books = Books::new().await;
    let before = books.everything().await;
    let key = EffectKey::of(&scope(), EffectKind::Credit, "ch_1");
    let mut tx = books.store.begin_write().await.unwrap();
    let answer = apply_once(&mut tx, &[event("evt_1")], &key, &effect(EffectKind::Credit, "ch_1", 5)).await;
    assert_eq!(answer.unwrap(), Answer::Applied);
    drop(tx);
    assert_eq!(books.everything().await, before);
    // The database refuses the second of two statements.
    books
        .execute(match books.store.database() {
            Database::Sqlite => {
                "create trigger full before insert on applied_event begin select raise(abort, 'disk full'); end"
            }
            Database::Postgres => "alter table applied_event add check (event_id <> 'evt_1')",
        })
        .await;
    let mut tx = books.store.begin_write().await.unwrap();
    let answer = apply_once(&mut tx, &[event("evt_1")], &key, &effect(EffectKind::Credit, "ch_1", 5)).await;
    assert!(answer.is_err());
    drop(tx);
    assert_eq!(books.everything().await, before);
}

#[tokio::test]
async fn the_same_object_in_another_account_is_another_effect() {
    let books = Books::new().await;
    books.live("evt_1", "ch_1", 500).await;
    let key =
        EffectKey::of(&recon::record::Scope::new("stripe", "acct_2", "live"), EffectKind::Credit, "ch_1");
    let mut tx = books.store.begin_write().await.unwrap();
    let answer = apply_once(&mut tx, &[], &key, &effect(EffectKind::Credit, "ch_1", 500)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(answer, Answer::Applied);
}

/// Steps of a seeded generator (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

#[tokio::test]
async fn live_replay_and_backfill_in_any_order_give_one_effect() {
    let books = Books::new().await;
    for seed in 0..60_u64 {
        let mut dice = Dice(seed);
        let object_id = format!("ch_{seed}");
        let mut imported = false;
        for step in 0..8 {
            match dice.roll(4) {
                0 => drop(books.live(&format!("evt_{seed}_{}", dice.roll(3)), &object_id, 500).await),
                1 => {
                    let event_id = format!("evt_of_{object_id}");
                    let sql = "select count(*) from provider_record where record_id = $1";
                    let count: i64 = sqlx::Row::get(
                        &sqlx::query(sql).bind(&*event_id).fetch_one(books.store.pool()).await.unwrap(),
                        0,
                    );
                    if count == 0 {
                        books.listed(&event_id, 7_000_000).await;
                    }
                    let run_id = format!("run_{seed}_{step}");
                    books.start_run(&run_id, RUN_STARTED_US).await;
                    let rows = books.plan(&run_id, &[missed(&object_id, 500)]).await;
                    books.carry_out(&rows).await;
                }
                2 => drop(books.book(&[], &effect(EffectKind::Credit, &object_id, 500)).await),
                // An import without keys knows nothing of the others; it is only ever first.
                _ if step == 0 && !imported => {
                    books.import(&format!("row_{seed}"), &object_id, 500, 1).await;
                    imported = true;
                }
                _ => {}
            }
        }
        books.book(&[], &effect(EffectKind::Credit, &object_id, 500)).await;
        let sql =
            "select cast(coalesce(sum(amount_minor), 0) as bigint) from ledger_entry where object_id = $1";
        let row = sqlx::query(sql).bind(&*object_id).fetch_one(books.store.pool()).await.unwrap();
        assert_eq!(sqlx::Row::get::<i64, _>(&row, 0), 500, "seed {seed}");
    }
}
