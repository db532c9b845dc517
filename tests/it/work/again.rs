//! Once more: what a replay takes and what it leaves, how long a retried event may wait, and what a drain ends as.

use super::operating::{act, said, show};
use super::shop::{LATER, OWN, Shop, scope};
use crate::ear::Ear;
use recon::commands::prune::prune;
use recon::commands::replay::{ReplayArgs, replay};
use recon::config;
use recon::store::operating::Action;
use std::time::Duration;

/// A month of the world, and what comes late in the tests.
fn whole() -> ReplayArgs {
    let (since, until) = (Some("2026-05-01".into()), Some("2026-12-31".into()));
    ReplayArgs { since, until, reason: Some("restored".into()), ..ReplayArgs::default() }
}

fn one(event: &str) -> ReplayArgs {
    ReplayArgs { events: vec![event.to_owned()], reason: Some("restored".into()), ..ReplayArgs::default() }
}

/// What is told: an error with its hint, as the command line prints it.
async fn replayed(shop: &Shop, args: &ReplayArgs) -> Result<String, String> {
    let mut out = Vec::new();
    match replay(&shop.settings(), args, shop.now_us(), &mut out).await {
        Ok(_) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(full(&error)),
    }
}

fn full(error: &anyhow::Error) -> String {
    let hint = error.downcast_ref::<recon::cli::UsageError>().map(|usage| usage.hint.clone());
    format!("{error:#} {}", hint.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_bytes_any_more_is_left_by_a_replay_and_by_a_retry() {
    let shop = Shop::new(66, 100, &(OWN.to_owned() + "[receive]\nretention = \"60d\"\n")).await;
    let old = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    shop.receive([old]).await;
    shop.drain().await;
    shop.pass(Duration::from_hours(24 * 61));
    prune(&shop.settings(), shop.now_us(), &mut Vec::new()).await.unwrap();
    let push = shop.world.events.iter().find(|event| event.kind == "charge.succeeded" && event.id != old.id);
    let young = push.unwrap();
    shop.receive([young]).await;
    shop.drain().await;
    let told = replayed(&shop, &whole()).await.unwrap();
    assert!(told.contains("1 event is due once more"), "{told}");
    let left = format!("1 event is left: the bytes are no longer kept ({}/{})", scope(), old.id);
    assert!(told.contains(&left) && told.ends_with(" replayed=1 left=1\n"), "{told}");
    let refused = replayed(&shop, &one(&old.id)).await.unwrap_err();
    assert!(refused.contains(&old.id) && refused.contains("no longer kept"), "{refused}");
    shop.drain().await;
    for event in [old, young] {
        assert_eq!(shop.end_of(&event.id).await.0, "applied", "what was right stays right");
    }
    // As an earlier version left it: dead, because there was nothing to read.
    shop.execute("update inbox_event set status = 'dead' where body is null").await;
    let refused = said(&shop, &act(Action::Retry, &old.id, "why")).await.unwrap_err();
    assert!(refused.contains(&old.id) && refused.contains("no longer kept"), "{refused}");
    assert_eq!(shop.end_of(&old.id).await.0, "dead");
    assert_eq!(shop.number("select count(*) from inbox_action where action = 'retry'").await, 0);
    said(&shop, &act(Action::Discard, &old.id, "booked long ago")).await.unwrap();
    assert_eq!(shop.end_of(&old.id).await.0, "ignored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_retried_with_its_message_and_never_replayed() {
    let ear = Ear::open().await;
    let shop = Shop::new(67, 100, &format!("{OWN}[outbox]\nurl = \"{}\"\n", ear.url)).await;
    let event = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    shop.receive([event]).await;
    shop.execute("update inbox_event set status = 'dead', completed_at_us = 1, last_error = 'no rights'")
        .await;
    let refused = replayed(&shop, &one(&event.id)).await.unwrap_err();
    assert!(refused.contains("dead letter"), "{refused}");
    let retry = format!("recon inbox retry {}/{} --reason", scope(), event.id);
    assert!(refused.contains(&retry) && refused.contains("sends its messages"), "{refused}");
    let told = replayed(&shop, &whole()).await.unwrap();
    assert!(told.contains("0 events are due") && told.contains("1 dead letter is left: "), "{told}");
    assert!(told.contains("recon inbox retry"), "{told}");
    assert_eq!(shop.end_of(&event.id).await.0, "dead");
    assert_eq!(shop.number("select count(*) from inbox_action").await, 0);
    said(&shop, &act(Action::Retry, &event.id, "role has rights")).await.unwrap();
    shop.drain().await;
    assert_eq!(shop.end_of(&event.id).await.0, "applied");
    assert!(shop.number("select count(*) from outbox_message").await > 0);
    let kept_back = "select count(*) from outbox_message where suppressed_reason <> ''";
    assert_eq!(shop.number(kept_back).await, 0, "its message is sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_discarded_comes_back_only_by_its_id_and_what_waits_is_told_why() {
    let shop = Shop::new(68, 200, OWN).await;
    let event = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    shop.receive([event]).await;
    said(&shop, &act(Action::Discard, &event.id, "a test of ours")).await.unwrap();
    let told = replayed(&shop, &whole()).await.unwrap();
    assert!(told.contains("0 events are due") && told.contains("1 discarded event is left: "), "{told}");
    assert_eq!(shop.end_of(&event.id).await, ("ignored".into(), "discarded".into()));
    let told = replayed(&shop, &one(&event.id)).await.unwrap();
    assert!(told.contains("1 event is due"), "{told}");
    let told = replayed(&shop, &one(&event.id)).await.unwrap();
    assert!(told.contains("0 events are due once more") && told.contains("it is due already"), "{told}");
    assert!(told.ends_with(" replayed=0 left=1\n"), "{told}");
    assert!(said(&shop, &show(&event.id, false)).await.unwrap().contains("due               now"), "no 1970");
    shop.drain().await;
    assert_eq!(shop.end_of(&event.id).await.0, "applied");
    assert_eq!(shop.number("select count(*) from inbox_action where action = 'replay'").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_retry_an_event_may_wait_as_long_as_after_its_receipt() {
    let shop = Shop::new(24, 400, "[work]\npark_max = \"3d\"\n").await;
    let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
    let refund = shop.event(payment, "refund.created");
    shop.receive([refund]).await;
    shop.drain().await;
    shop.pass(Duration::from_hours(73));
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "dead");
    shop.pass(Duration::from_hours(24));
    said(&shop, &act(Action::Retry, &refund.id, "its payment is on the way")).await.unwrap();
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "parked", "it waits anew");
    shop.pass(Duration::from_hours(71));
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "parked");
    shop.pass(Duration::from_hours(2));
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "dead", "but not for ever");
    // The same where the provider cannot be asked.
    shop.pass(Duration::from_hours(24));
    said(&shop, &act(Action::Retry, &refund.id, "the provider is back")).await.unwrap();
    let up = std::fs::read_to_string(shop.config()).unwrap();
    let away = up.replace(&shop.emulator.base_url, "http://127.0.0.1:9") + "[limits]\nattempts_max = 2\n";
    std::fs::write(shop.config(), away).unwrap();
    shop.drain_with(&config::load(Some(&shop.config())).unwrap()).await;
    assert_eq!(shop.end_of(&refund.id).await.0, "received");
}

/// (exit code, last line) of a drain.
fn drained(shop: &Shop) -> (Option<i32>, String) {
    let output = shop.command(&["work", "--drain"], Duration::ZERO).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_ends_as_what_became_of_its_events() {
    let shop = Shop::new(24, 400, "[limits]\nattempts_max = 2\n[work]\nbatch = 1\n").await;
    let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
    let (refund, charge) = (shop.event(payment, "refund.created"), shop.event(payment, "charge.succeeded"));
    shop.receive([refund]).await;
    shop.pass(Duration::from_secs(2));
    assert_eq!(drained(&shop), (Some(0), "outcome=clean findings=0 parked=1".into()));
    shop.receive_as(&scope(), "evt_bad", "charge.succeeded", b"{").await;
    shop.pass(Duration::from_secs(2));
    assert_eq!(drained(&shop), (Some(1), "outcome=findings findings=1 dead=1".into()));
    assert_eq!(drained(&shop), (Some(0), "outcome=clean findings=0".into()), "it made none");
    let up = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), up.replace(&shop.emulator.base_url, "http://127.0.0.1:9")).unwrap();
    shop.receive([charge]).await;
    shop.receive_as(&scope(), "evt_worse", "charge.succeeded", b"{").await;
    shop.pass(Duration::from_secs(2));
    let both = "outcome=incomplete findings=1 dead=1 received=1";
    assert_eq!(drained(&shop), (Some(2), both.into()), "what waits weighs more");
    std::fs::write(shop.config(), up).unwrap();
    shop.pass(LATER);
    assert_eq!(drained(&shop), (Some(0), "outcome=clean findings=0 applied=2".into()), "woken, counted once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_put_aside_and_applied_in_one_drain_is_one_event() {
    let shop = Shop::new(24, 400, &OWN.replace('7', "1")).await;
    let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
    shop.receive([shop.event(payment, "refund.created"), shop.event(payment, "charge.succeeded")]).await;
    let tally: Vec<_> = shop.drain().await.into_iter().collect();
    assert_eq!(tally, [("applied", 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_shown_has_no_1970_no_holes_and_a_name() {
    let shop = Shop::new(69, 100, "").await;
    shop.receive_as(&scope(), "evt_new", "", b"{}").await;
    shop.receive_as(&scope(), "evt_new", "", b"{\"who\":\"carol\"}").await;
    shop.pass(Duration::from_mins(1));
    shop.receive_as(&scope(), "evt_new", "", b"{\"who\":\"carol\"}").await;
    let shown = said(&shop, &show("evt_new", false)).await.unwrap();
    assert!(shown.contains("due               now") && !shown.contains("1970"), "{shown}");
    assert!(shown.contains("other bodies      1\n"), "{shown}");
    let hash = recon::record::sha256_hex(b"{\"who\":\"carol\"}");
    let other = format!("other body        15 bytes, sha256 {hash}, deliveries 2, first 2026-06-15T");
    assert!(shown.contains(&other) && !shown.contains("carol"), "{shown}");
    let output = shop.command(&["inbox", "list"], Duration::ZERO).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("/evt_new  -  attempts=0"), "{listed}");
    let done = shop.command(&["inbox", "discard", "evt_new", "--reason", "ours"], Duration::ZERO).output();
    assert!(done.unwrap().status.success());
    let id = std::process::Command::new("id").arg("-u").output().unwrap().stdout;
    let by = format!("by uid {}: ours", String::from_utf8(id).unwrap().trim());
    let shown = said(&shop, &show("evt_new", false)).await.unwrap();
    assert!(shown.contains(&by), "no variable names anybody, the process still belongs to one: {shown}");
}
