//! The one reading of a window's records: what was asked for since counts as it is now, and what belongs to a purchase of
//! the window comes with it, on both stores.

use crate::apply::books::scope;
use crate::postgres_store::{BOTH, Held};
use recon::config::Basis;
use recon::gather::{ProviderSide, Surveyed, WindowFacts};
use recon::provider::stripe::Reading;
use recon::record::{EffectKind, Fact, ProviderEffect, SECOND_US, Window};
use recon::store::{self, PageRecord, Store};
use std::collections::BTreeSet;

const FROM_S: i64 = 1_777_593_600;
const DAY_S: i64 = 86_400;

fn reading() -> Reading {
    Reading {
        scope: scope(),
        window: Window { from_us: FROM_S * SECOND_US, until_us: (FROM_S + DAY_S) * SECOND_US },
        basis: Basis::Created,
        wanted: None,
        effects: BTreeSet::from([EffectKind::Credit]),
        intent: Some("metadata.order".to_owned()),
        now_us: (FROM_S + 3 * DAY_S) * SECOND_US,
        settle_delay_us: 0,
        grace: false,
    }
}

async fn store_charge(store: &Store, id: &str, created_s: i64, amount: i64, order: &str) {
    let intent = id.replace("ch_", "pi_");
    let body = format!(
        r#"{{"id":"{id}","object":"charge","created":{created_s},"livemode":true,"amount":{amount},"amount_captured":{amount},
        "amount_refunded":0,"captured":true,"refunded":false,"currency":"usd","status":"succeeded","payment_intent":"{intent}",
        "invoice":null,"metadata":{{"order":"{order}"}},"balance_transaction":null}}"#
    );
    let record = PageRecord {
        record_id: id.to_owned(),
        created_us: created_s * SECOND_US,
        asked_at_us: (FROM_S + 2 * DAY_S) * SECOND_US,
        body: body.into_bytes(),
    };
    store.write_records(&scope(), "charges", &[record]).await.unwrap();
}

/// (charge, amount) of what the comparison is fed, sorted.
async fn fed(side: ProviderSide<'_>, surveyed: &Surveyed) -> Vec<(String, i64)> {
    let mut effects: Vec<(String, i64)> = Vec::new();
    let mut take = |fact: Fact| {
        if let Fact::ProviderEffect(ProviderEffect { object_id, amount_minor, .. }) = fact {
            effects.push((object_id, amount_minor));
        }
        Ok(())
    };
    side.scan(surveyed, &mut take).await.unwrap();
    effects.sort();
    effects
}

fn ids(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test]
async fn what_was_asked_for_since_counts_as_it_is_now_and_once() {
    for database in BOTH {
        let held = Held::new(database).await;
        let folder = tempfile::tempdir().unwrap();
        let reading = reading();
        let side = ProviderSide { store: &held.store, reading: &reading };
        store_charge(&held.store, "ch_kept", FROM_S + 1, 100, "o1").await;
        store_charge(&held.store, "ch_changed", FROM_S + 2, 100, "o2").await;
        // Of the same order as one of the window, a month before.
        store_charge(&held.store, "ch_known", FROM_S - 30 * DAY_S, 100, "o1").await;
        let mut facts = WindowFacts::new(&reading.scope, folder.path()).unwrap();
        let outside = side.survey(reading.now_us, &mut facts).await.unwrap();
        assert_eq!(outside.ids, ids(&["ch_known"]));

        // Asked for since: one that changed, one that no list had, one of an order of the window, one of none.
        store_charge(&held.store, "ch_changed", FROM_S + 2, 70, "o2").await;
        store_charge(&held.store, "ch_new", FROM_S + 3, 30, "o3").await;
        store_charge(&held.store, "ch_of_order", FROM_S - 31 * DAY_S, 20, "o2").await;
        store_charge(&held.store, "ch_of_none", FROM_S - 31 * DAY_S, 10, "o9").await;
        let late = ids(&["ch_changed", "ch_new", "ch_of_order", "ch_of_none", "ch_not_there"]);
        side.learn(&late).await.unwrap();
        let surveyed = Surveyed { facts, outside: outside.ids, late };
        let expected =
            [("ch_changed", 70), ("ch_kept", 100), ("ch_known", 100), ("ch_new", 30), ("ch_of_order", 20)];
        let expected: Vec<(String, i64)> =
            expected.into_iter().map(|(id, amount)| (id.to_owned(), amount)).collect();
        assert_eq!(fed(side, &surveyed).await, expected, "{database:?}");
    }
}

/// The second reading writes nothing: not even a row's place on its page is another one.
#[tokio::test]
async fn what_is_kept_is_not_written_again() {
    let held = Held::new(store::Database::Postgres).await;
    let folder = tempfile::tempdir().unwrap();
    let reading = reading();
    let side = ProviderSide { store: &held.store, reading: &reading };
    for number in 0..30 {
        store_charge(&held.store, &format!("ch_{number}"), FROM_S + number, 100, &format!("o{number}")).await;
    }
    let mut places = Vec::new();
    for _ in 0..2 {
        let mut facts = WindowFacts::new(&reading.scope, folder.path()).unwrap();
        side.survey(reading.now_us, &mut facts).await.unwrap();
        let mut rows = held.texts("select alias_id || root_id || ctid::text || xmin::text from alias").await;
        rows.extend(
            held.texts("select charge_id || intent || ctid::text || xmin::text from intent_charge").await,
        );
        rows.sort();
        assert_eq!(rows.len(), 60);
        places.push(rows);
    }
    assert_eq!(places[0], places[1]);
}

/// Keys are looked up by index in a table that nobody has analysed, also by a statement that was prepared while it was
/// empty, and nothing that is set for it is left to the next user of the connection.
#[tokio::test]
async fn a_table_that_grows_is_known_to_have_grown() {
    const GROW: &str = "insert into alias select 'stripe', '', 'live', 'ch_' || n, 'pi_' || n, 0 from generate_series(1, 20000) n";
    const LOOKED_AT: &str = "select c.relname::text from pg_class c where c.relname in ('alias', 'provider_record') and c.reltuples > 0";
    const SET: &str = "select current_setting('enable_seqscan') || current_setting('enable_material') || current_setting('plan_cache_mode')";
    let held = Held::new(store::Database::Postgres).await;
    sqlx::raw_sql("alter table alias set (autovacuum_enabled = false)")
        .execute(held.store.pool())
        .await
        .unwrap();
    assert!(store::resolve(&held.store, &scope(), &ids(&["ch_1"]), |_| false).await.unwrap().is_empty());
    held.store.know_sizes().await;
    assert!(held.texts(LOOKED_AT).await.is_empty());
    sqlx::raw_sql(GROW).execute(held.store.pool()).await.unwrap();
    held.store.know_sizes().await;
    assert_eq!(held.texts(LOOKED_AT).await, ["alias"]);
    let mut tx = held.store.begin_read().await.unwrap();
    let scope = scope();
    let explained = format!(
        "explain select root_id from alias where provider = '{}' and account = '' and mode = 'live' \
         and alias_id in (values ('ch_1'), ('ch_2'), ('ch_3'))",
        scope.provider
    );
    let plan: Vec<String> = sqlx::query(sqlx::AssertSqlSafe(explained))
        .fetch_all(&mut *tx)
        .await
        .unwrap()
        .iter()
        .map(|row| sqlx::Row::get(row, 0))
        .collect();
    assert!(plan.iter().any(|line| line.contains("alias_id = ")), "{plan:#?}");
    tx.commit().await.unwrap();
    for set in held.texts(SET).await {
        assert_eq!(set, "ononauto");
    }
}
