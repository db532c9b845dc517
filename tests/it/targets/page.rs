//! What `docs/targets.md` shows is run: its key table, its statements, and the list of what may be bound.

use crate::books::{Books, Kind};
use recon::config::{Needs, load_for};
use recon::gather::{Committed, Dialect, Doing, KEY_TABLES, Key, KeyAnswer, Ran, TargetBooks, TargetValues};
use recon::record::{Scope, iso_exponent};
use recon::store::{Access, Store};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../docs/targets.md");

/// The statements that the page shows, by their files.
fn shown() -> BTreeMap<&'static str, &'static str> {
    let blocks = PAGE.split("```sql\n-- ").skip(1);
    let named = blocks.filter_map(|block| {
        let (name, rest) = block.split_once('\n')?;
        Some((name, rest.split_once("\n```")?.0))
    });
    named.filter(|(name, _)| Doing::ALL.iter().any(|doing| doing.file() == *name)).collect()
}

#[test]
fn the_page_shows_the_key_tables_as_they_are_said() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, text) in KEY_TABLES {
        let statement: String =
            text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
        assert!(words(PAGE).contains(&words(&statement)), "{name}");
    }
}

#[tokio::test]
async fn the_pages_statements_do_what_it_says() {
    let shown = shown();
    assert_eq!(
        shown.keys().copied().collect::<Vec<_>>(),
        ["apply_effect.sql", "reverse_entry.sql", "set_state.sql"]
    );
    let folder = tempfile::tempdir().unwrap();
    let books = Books::new(Kind::Postgres, folder.path());
    let table = KEY_TABLES.iter().find(|(name, _)| *name == "postgres").unwrap().1;
    books
        .run_sql(&format!(
            "create table payments (id bigserial primary key, charge text, kind text, cents bigint, currency text,
                 booked_at timestamptz, event text, undoes bigint, dedup text unique);
             create table orders (payment_intent text, status text, updated_at timestamptz, updated_by text);
             insert into orders values ('pi_1', 'pending', now(), 'shop'); {table}"
        ))
        .await;
    let scope = "'stripe' as provider, '' as account, 'live' as mode";
    for (file, text) in [
        ("effects.sql", format!("select id as effect_id, {scope}, charge as object_id, kind, cents as amount_minor, currency,
             cast(extract(epoch from booked_at) * 1000000 as bigint) as applied_at_us, event as event_id,
             undoes as corrects_effect_id from payments")),
        ("states.sql", format!("select {scope}, payment_intent as object_id, status, null::bigint as refunded_minor,
             cast(extract(epoch from updated_at) * 1000000 as bigint) as updated_at_us, updated_by as changed_by from orders")),
    ] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    for (file, text) in &shown {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    std::fs::write(folder.path().join("url"), books.url()).unwrap();
    let config = folder.path().join("recon.toml");
    std::fs::write(
        &config,
        "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n[inbox]\nurl = \"none\"\n\
         [local]\nurl = { file = \"url\" }\nqueries = \".\"\n[target]\nurl = { file = \"url\" }\nqueries = \".\"\n",
    )
    .unwrap();
    let settings = load_for(Some(&config), Needs { target: true, ..Needs::default() }).unwrap();
    let store = Store::open(&settings.store_url, Access::ReadWrite).await.unwrap();
    let needed = BTreeSet::from([Doing::ApplyEffect, Doing::ReverseEntry, Doing::SetState]);
    let target = TargetBooks::open(&settings, &store, Dialect::stripe(iso_exponent), &needed).await.unwrap();
    let mut writer = target.begin().await.unwrap();
    let key = Key {
        effect_key: "stripe//live/credit:ch_1".to_owned(),
        correction_id: "c1",
        run_id: "r1",
        applied_at_us: 1,
    };
    assert_eq!(writer.take(&key).await.unwrap(), KeyAnswer::Taken);
    let mut values = TargetValues::default();
    for (name, text) in [
        ("object_id", "ch_1"),
        ("kind", "credit"),
        ("currency", "usd"),
        ("event_id", "evt_1"),
        ("effect_id", "1"),
        ("state", "paid"),
        ("found_status", "pending"),
    ] {
        values.text(name, text);
    }
    values.integer("amount_minor", Some(500));
    assert_eq!(writer.run(Doing::ApplyEffect, &values).await.unwrap(), Ran::Done);
    assert_eq!(writer.run(Doing::ReverseEntry, &values).await.unwrap(), Ran::Done);
    values.text("object_id", "pi_1");
    assert_eq!(writer.run(Doing::SetState, &values).await.unwrap(), Ran::Done);
    let ids = BTreeSet::from(["ch_1".to_owned(), "pi_1".to_owned()]);
    let seen = writer.payment(&Scope::new("stripe", "", "live"), &ids).await.unwrap();
    assert_eq!(seen.effects.iter().map(|row| row.amount_minor).sum::<i64>(), 0);
    assert_eq!(seen.effects.len(), 2);
    assert_eq!(seen.states[0].status.as_str(), "paid");
    assert_eq!(writer.commit().await.unwrap(), Committed::Done);
    let mut writer = target.begin().await.unwrap();
    assert_eq!(writer.take(&key).await.unwrap(), KeyAnswer::Held("c1".to_owned()));
    writer.let_go().await.unwrap();
    // The shop's own index stands in the way of a second one.
    let mut writer = target.begin().await.unwrap();
    values.text("object_id", "ch_1");
    let again = writer.run(Doing::ApplyEffect, &values).await.unwrap();
    assert!(matches!(&again, Ran::Refused(why) if why.contains("payments_dedup_key")), "{again:?}");
    writer.let_go().await.unwrap();
    store.close().await;
}
