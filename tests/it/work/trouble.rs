//! What goes wrong: effects that fail, events that nobody can read, refunds that come first, a provider that is
//! down, a person who was there before.

use super::shop::{LATER, OWN, Shop, scope};
use recon::commands::Outcome;
use recon::config;
use recon::record::Scope;
use recon::store::Database;
use std::time::Duration;

/// From now on the ledger takes no entry of this object.
async fn refuse_entries_of(shop: &Shop, object_id: &str) {
    let sql = match shop.store.database() {
        Database::Sqlite => format!(
            "create trigger refusal before insert on ledger_entry when new.object_id = '{object_id}'
             begin select raise(abort, 'refused by a test'); end"
        ),
        Database::Postgres => format!(
            "create function refusal() returns trigger as $$ begin
               if new.object_id = '{object_id}' then raise exception 'refused by a test'; end if;
               return new; end $$ language plpgsql;
             create trigger refusal before insert on ledger_entry for each row execute function refusal()"
        ),
    };
    shop.execute(&sql).await;
}

async fn take_entries_again(shop: &Shop) {
    let of = if shop.store.database() == Database::Sqlite { "" } else { " on ledger_entry" };
    shop.execute(&format!("drop trigger refusal{of}")).await;
}

/// The first credit of the month, by the event that brings it.
fn charge_of(event: &recon::demo::world::Event) -> String {
    let body: serde_json::Value = serde_json::from_str(&event.body).unwrap();
    body["data"]["object"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c06_an_effect_that_fails_leaves_no_key_and_holds_nobody_up() {
    let shop = Shop::new(21, 200, OWN.replace('7', "50").as_str()).await;
    let bad =
        shop.event(shop.payment_with(&["charge.succeeded", "payment_intent.succeeded"]), "charge.succeeded");
    let charge = charge_of(bad);
    refuse_entries_of(&shop, &charge).await;
    let types = ["charge.succeeded"];
    let events: Vec<_> = shop.world.events.iter().rev().filter(|event| types.contains(&event.kind)).collect();
    shop.receive(events.iter().copied()).await;
    shop.drain().await;
    let (status, why) = shop.end_of(&bad.id).await;
    assert_eq!(status, "received", "it is due again");
    assert!(why.contains("refused by a test"), "{why}");
    let keys = format!("select count(*) from applied_event where event_id = '{}'", bad.id);
    assert_eq!(shop.number(&keys).await, 0, "the key went with the effect");
    let others = events.len() - 1;
    let ended = shop.ended().await;
    let done: i64 = ended.iter().filter(|(status, _)| *status != "received").map(|(_, count)| count).sum();
    assert_eq!(usize::try_from(done).unwrap(), others, "{ended:?}");
    let state = shop.number("select count(*) from object_state").await;
    // It is tried five times, each later than the one before, and then buried.
    for attempt in 2..=5 {
        assert!(shop.drain().await.is_empty(), "nothing is due at once");
        shop.pass(LATER);
        assert_eq!(shop.drain().await.values().sum::<u64>(), 1, "attempt {attempt}");
    }
    assert_eq!(shop.end_of(&bad.id).await.0, "dead");
    assert_eq!(shop.number("select attempts from inbox_event where status = 'dead'").await, 5);
    assert_eq!(shop.number("select count(*) from object_state").await, state, "nor a status");
    // A person finds the reason, and has it tried again: once, and with everything.
    take_entries_again(&shop).await;
    shop.execute("update inbox_event set status = 'received', attempts = 0, next_attempt_at_us = 0 where status = 'dead'").await;
    shop.drain().await;
    assert_eq!(shop.end_of(&bad.id).await.0, "applied");
    assert_eq!(
        shop.number(&format!("select count(*) from ledger_entry where object_id = '{charge}'")).await,
        1
    );
    assert_eq!(shop.number(&keys).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_can_read_is_dead_at_once_without_its_content() {
    let shop = Shop::new(22, 100, "").await;
    let good = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    let wrong_amount = good
        .body
        .replace(&good.id, "evt_shape")
        .replace("\"status\":\"succeeded\"", "\"status\":\"carol@example.com\"");
    let bodies: [(&str, &[u8]); 6] = [
        ("evt_json", b"{\"id\": carol@example.com"),
        ("evt_utf8", b"\xff\xfe carol@example.com"),
        ("evt_list", b"[\"carol@example.com\"]"),
        ("evt_empty", b""),
        ("evt_shape", wrong_amount.as_bytes()),
        ("evt_other", b"{\"id\":\"evt_wrong\",\"object\":\"event\",\"type\":\"charge.succeeded\",\"created\":1,\"data\":{}}"),
    ];
    for (id, body) in bodies {
        shop.receive_as(&scope(), id, "charge.succeeded", body).await;
    }
    shop.receive([good]).await;
    let tally = shop.drain().await;
    assert_eq!(shop.end_of(&good.id).await.0, "applied", "{tally:?}");
    for (id, _) in bodies {
        let (status, why) = shop.end_of(id).await;
        assert_eq!(status, "dead", "{id}: {why}");
        assert!(!why.is_empty() && !why.contains("carol"), "{id}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_others_are_ignored() {
    let shop = Shop::new(23, 100, "").await;
    let event = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    let provider = scope().provider;
    shop.receive_as(&Scope::new(&provider, "", "test"), &event.id, event.kind, event.body.as_bytes()).await;
    shop.drain().await;
    assert_eq!(shop.end_of(&event.id).await, ("ignored".into(), "wrong_scope".into()));
    shop.execute("delete from inbox_event").await;
    shop.receive_as(
        &Scope::new(&provider, "acct_other", "live"),
        &event.id,
        event.kind,
        event.body.as_bytes(),
    )
    .await;
    shop.drain().await;
    assert_eq!(shop.end_of(&event.id).await, ("ignored".into(), "wrong_scope".into()));
    shop.receive_as(&Scope::new("github", "", "live"), "gh_1", "push", b"{}").await;
    let foreign = r#"{"id":"evt_customer","object":"event","type":"customer.created","created":1750000000,"livemode":true,"data":{"object":{"id":"cus_1","object":"customer"}}}"#;
    shop.receive_as(&scope(), "evt_customer", "customer.created", foreign.as_bytes()).await;
    shop.drain().await;
    assert_eq!(shop.end_of("gh_1").await, ("ignored".into(), "not_configured".into()));
    assert_eq!(shop.end_of("evt_customer").await, ("ignored".into(), "nothing_to_apply".into()));
    assert_eq!(shop.number("select count(*) from ledger_entry").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_a_refund_before_its_payment_waits_for_it() {
    for configuration in ["", OWN] {
        let shop = Shop::new(24, 400, configuration).await;
        let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
        let refund = shop.event(payment, "refund.created");
        shop.receive([refund]).await;
        shop.drain().await;
        let (status, why) = shop.end_of(&refund.id).await;
        assert_eq!(status, "parked", "{why}");
        assert!(why.starts_with("credit:ch_") || why.starts_with("credit:py_"), "{why}");
        assert_eq!(shop.number("select count(*) from ledger_entry").await, 0);
        // Waiting uses up no attempts, and the time in between is no hurry.
        for _ in 0..8 {
            shop.pass(Duration::from_hours(1));
            shop.drain().await;
        }
        assert_eq!(shop.end_of(&refund.id).await.0, "parked");
        shop.receive([shop.event(payment, "charge.succeeded")]).await;
        shop.drain().await;
        assert_eq!(shop.end_of(&refund.id).await.0, "applied", "woken in the same drain");
        let kinds = "select count(*) from ledger_entry where kind in ('credit', 'refund')";
        assert!(shop.number(kinds).await >= 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_a_refund_whose_payment_never_comes_is_a_dead_letter() {
    let shop = Shop::new(24, 400, "[work]\npark_max = \"3d\"\n").await;
    let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
    let refund = shop.event(payment, "refund.created");
    shop.receive([refund]).await;
    shop.drain().await;
    shop.pass(Duration::from_hours(71));
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "parked");
    shop.pass(Duration::from_hours(2));
    shop.drain().await;
    let (status, why) = shop.end_of(&refund.id).await;
    assert_eq!(status, "dead");
    assert!(why.contains("is not booked"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correction_wakes_what_waits_for_its_effect() {
    let shop = Shop::new(24, 400, "").await;
    let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
    let refund = shop.event(payment, "refund.created");
    shop.receive([refund]).await;
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "parked");
    let (_, _, plan) = shop.reconcile().await;
    shop.apply(plan).await;
    shop.drain().await;
    let ended = shop.end_of(&refund.id).await;
    assert!(["applied", "superseded"].contains(&&*ended.0), "{ended:?}");
    assert_eq!(shop.ledger().await, shop.truth());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_down_buries_nothing_before_its_time() {
    let shop = Shop::new(25, 100, "[limits]\nattempts_max = 2\n").await;
    let event = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    shop.receive([event]).await;
    let up = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), up.replace(&shop.emulator.base_url, "http://127.0.0.1:9")).unwrap();
    let settings = config::load(Some(&shop.config())).unwrap();
    for _ in 0..12 {
        shop.drain_with(&settings).await;
        shop.pass(LATER);
    }
    let (status, why) = shop.end_of(&event.id).await;
    assert_eq!(status, "received", "{why}");
    assert!(why.contains("charges"), "{why}");
    std::fs::write(shop.config(), up).unwrap();
    shop.drain().await;
    assert_eq!(shop.end_of(&event.id).await.0, "applied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c64_a_late_event_undoes_no_manual_change() {
    for configuration in ["", OWN] {
        let shop = Shop::new(26, 400, configuration).await;
        let payment = shop.payment_with(&["charge.succeeded", "charge.failed"]);
        let root = shop.world.payments[payment].root_id().to_owned();
        let sql = format!(
            "insert into object_state (provider, account, mode, object_id, status, provider_time_us, updated_at_us, changed_by)
             values ('{}', '', 'live', '{root}', 'canceled', 0, {}, 'operator')",
            scope().provider,
            shop.now_us()
        );
        shop.execute(&sql).await;
        shop.pass(Duration::from_mins(1));
        shop.receive(shop.events_of(payment)).await;
        shop.drain().await;
        shop.pass(LATER);
        shop.drain().await;
        assert_eq!(shop.states().await.get(&root).map(String::as_str), Some("canceled"));
        let overridden =
            shop.number("select count(*) from inbox_event where last_error = 'manual_override'").await;
        assert!(overridden > 0, "{:?}", shop.ended().await);
        // Money is money: it is booked at its own time, not at that of the replay.
        let credits = "select count(*) from ledger_entry where kind = 'credit'";
        assert_eq!(shop.number(credits).await, 1);
        let now = shop.now_us();
        let late = format!("select count(*) from ledger_entry where occurred_at_us > {now} - 60000000");
        assert_eq!(shop.number(&late).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_fails_after_it_was_booked_is_undone_once() {
    let shop = Shop::new(27, 1_500, OWN).await;
    let payment = shop.payment_with(&["refund.failed"]);
    let tells = |kind| ["refund.failed", "charge.refund.updated"].contains(&kind);
    let before: Vec<_> = shop.events_of(payment).into_iter().filter(|event| !tells(event.kind)).collect();
    // As it was before the refund failed: the event's own words.
    shop.receive(before.iter().copied()).await;
    shop.drain().await;
    let refunds =
        "select cast(coalesce(sum(amount_minor), 0) as bigint) from ledger_entry where kind = 'refund'";
    assert!(shop.number(refunds).await > 0, "{:?}", shop.ended().await);
    let failed = shop.event(payment, "refund.failed");
    for _ in 0..2 {
        shop.receive([failed]).await;
        shop.execute("update inbox_event set status = 'received', next_attempt_at_us = 0 where event_type = 'refund.failed'").await;
        shop.drain().await;
        assert_eq!(shop.end_of(&failed.id).await.0, "applied");
        assert_eq!(shop.number(refunds).await, 0);
        let entries = "select count(*) from ledger_entry where kind = 'refund'";
        assert_eq!(shop.number(entries).await, 2, "the refund and its undoing");
    }
    // All of it in one batch.
    let shop = Shop::new(27, 1_500, OWN.replace('7', "100").as_str()).await;
    shop.receive(shop.events_of(payment)).await;
    shop.drain().await;
    assert_eq!(shop.number("select count(*) from ledger_entry where kind = 'refund'").await, 2);
    assert_eq!(shop.number(refunds).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_without_a_type_stops_no_run() {
    let shop = Shop::new(28, 100, "").await;
    shop.receive(&shop.world.events).await;
    shop.receive_as(&scope(), "evt_only", "", br#"{"id":"evt_only"}"#).await;
    shop.receive_as(&Scope::new("billing", "", "live"), "b-notype", "", br#"{"x":1}"#).await;
    shop.drain().await;
    shop.pass(Duration::from_hours(1));
    let (outcome, findings, _) = shop.reconcile().await;
    assert!(matches!(outcome, Outcome::Clean | Outcome::Findings), "{outcome:?}: {findings}");
    assert!(findings.lines().count() > 1, "the month is there: {findings}");
}
