//! What a person does: looks, retries, discards, replays, sends to a handler, prunes.

use super::shop::{LATER, OWN, Shop, scope};
use crate::ear::Ear;
use recon::cli::ShowEventArgs;
use recon::commands::Outcome;
use recon::commands::inbox::{InboxArgs, inbox};
use recon::commands::prune::prune;
use recon::commands::replay::{ReplayArgs, replay};
use recon::config;
use recon::receive::Refusal;
use recon::record::InboxStatus;
use recon::store::operating::Action;
use sqlx::Row;
use std::time::Duration;

pub async fn said(shop: &Shop, args: &InboxArgs) -> Result<String, String> {
    let mut out = Vec::new();
    match inbox(&shop.settings(), args, shop.now_us(), &mut out).await {
        Ok(_) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(format!("{error:#}")),
    }
}

pub fn act(action: Action, event: &str, reason: &str) -> InboxArgs {
    InboxArgs::Act { action, events: vec![event.to_owned()], reason: reason.to_owned() }
}

pub fn show(event: &str, body: bool) -> InboxArgs {
    InboxArgs::Show(ShowEventArgs { event: event.to_owned(), body, ..ShowEventArgs::default() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_listed_retried_and_discarded_with_a_reason_that_is_kept() {
    let shop = Shop::new(61, 100, "").await;
    shop.receive_as(&scope(), "evt_bad", "charge.succeeded", b"{carol@example.com").await;
    shop.receive([shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded")]).await;
    shop.drain().await;
    let dead = InboxArgs::List { status: Some(InboxStatus::Dead), limit: 10 };
    let listed = said(&shop, &dead).await.unwrap();
    assert!(listed.contains("/evt_bad") && listed.lines().count() == 2, "{listed}");
    assert_eq!(said(&shop, &InboxArgs::List { status: None, limit: 10 }).await.unwrap().lines().count(), 3);
    for refused in
        [act(Action::Retry, "evt_bad", "  "), act(Action::Retry, "evt_none", "why"), show("evt_none", false)]
    {
        assert!(said(&shop, &refused).await.is_err(), "{refused:?}");
    }
    assert_eq!(shop.number("select count(*) from inbox_action").await, 0);
    said(&shop, &act(Action::Retry, "evt_bad", "parser fixed")).await.unwrap();
    assert_eq!(shop.end_of("evt_bad").await.0, "received");
    shop.drain().await;
    assert_eq!(shop.end_of("evt_bad").await.0, "dead", "it is still what it is");
    shop.pass(Duration::from_secs(1));
    said(&shop, &act(Action::Discard, "evt_bad", "not from the provider")).await.unwrap();
    assert_eq!(shop.end_of("evt_bad").await, ("ignored".into(), "discarded".into()));
    let again = said(&shop, &act(Action::Discard, "evt_bad", "again")).await.unwrap();
    assert!(again.contains("evt_bad is left: it ended as ignored"), "{again}");
    let shown = said(&shop, &show("evt_bad", false)).await.unwrap();
    assert!(shown.contains("parser fixed") && shown.contains("not from the provider"), "{shown}");
    assert!(!shown.contains("carol"), "no body unless asked for: {shown}");
    assert_eq!(said(&shop, &show("evt_bad", true)).await.unwrap(), "{carol@example.com");
    let name = format!("{}/evt_bad", scope());
    assert!(said(&shop, &show(&name, false)).await.unwrap().contains(&name));
    shop.drain().await;
    assert_eq!(shop.end_of("evt_bad").await.0, "ignored", "a discarded event is nobody's work");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c64_c65_a_replay_keeps_identity_books_what_is_missing_and_sends_nothing() {
    let ear = Ear::open().await;
    let shop = Shop::new(62, 120, &format!("[outbox]\nurl = \"{}\"\n", ear.url)).await;
    shop.receive(shop.world.events.iter().rev()).await;
    shop.drain().await;
    let booked = shop.ledger().await;
    let messages = shop.number("select count(*) from outbox_message").await;
    // Half of the books is lost, as after a restored backup; the dedupe rows are still there.
    shop.execute("delete from ledger_entry where length(object_id) > 0 and kind = 'credit'").await;
    shop.execute("delete from outbox_message").await;
    shop.pass(LATER);
    let args = ReplayArgs {
        since: Some("2026-06-01".into()),
        until: Some("2026-06-30".into()),
        reason: Some("restored from backup".into()),
        ..ReplayArgs::default()
    };
    let mut out = Vec::new();
    replay(&shop.settings(), &args, shop.now_us(), &mut out).await.unwrap();
    let told = String::from_utf8(out).unwrap();
    assert!(told.contains(" due once more"), "{told}");
    shop.drain().await;
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.ledger().await, booked);
    let unsent = "select count(*) from outbox_message where suppressed_reason not like 'replayed by %restored from backup'";
    assert_eq!(shop.number(unsent).await, 0, "every message of the replay is kept and not sent");
    assert!(messages > 0 && shop.number("select count(*) from outbox_message").await > 0);
    let now = shop.now_us();
    let late = format!("select count(*) from ledger_entry where occurred_at_us > {now} - 7200000000");
    assert_eq!(shop.number(&late).await, 0, "booked at the time of the event");
    let events = shop.number("select count(*) from inbox_event").await;
    assert_eq!(shop.number("select count(*) from inbox_action where action = 'replay'").await, events);
    for wrong in [
        ReplayArgs { reason: Some("why".into()), ..ReplayArgs::default() },
        ReplayArgs { events: vec!["evt_none".into()], reason: Some("why".into()), ..ReplayArgs::default() },
        ReplayArgs {
            since: Some("2026-06-01".into()),
            until: Some("2026-06-30".into()),
            ..ReplayArgs::default()
        },
    ] {
        assert!(replay(&shop.settings(), &wrong, now, &mut Vec::new()).await.is_err(), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_sent_to_a_handler_ten_times_freshly_signed() {
    let ear = Ear::open().await;
    let shop = Shop::new(63, 60, "").await;
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.folder.path().join("whsec"), "whsec_practice").unwrap();
    let secret = "mode = \"live\"\nwebhook_secrets = [{ file = \"whsec\" }]\n";
    std::fs::write(shop.config(), text.replacen("mode = \"live\"\n", secret, 1)).unwrap();
    let needs = config::Needs { webhook_secrets: true, ..Default::default() };
    let settings = config::load_for(Some(&shop.config()), needs).unwrap();
    let event = &shop.world.events[0];
    shop.receive([event]).await;
    let args = ReplayArgs {
        events: vec![event.id.clone()],
        to: Some(ear.url.clone()),
        times: 10,
        ..ReplayArgs::default()
    };
    let mut out = Vec::new();
    let outcome = replay(&settings, &args, shop.now_us(), &mut out).await.unwrap();
    assert_eq!(outcome, Outcome::Clean);
    let told = String::from_utf8(out).unwrap();
    assert!(told.contains("200 × 10"), "{told}");
    let heard = ear.heard();
    assert_eq!(heard.len(), 10);
    for call in &heard {
        assert_eq!(call.body, event.body.as_bytes(), "byte for byte");
        assert!(call.header("stripe-signature").starts_with(&format!("t={},v1=", shop.now_us() / 1_000_000)));
        let verified = verified(&settings, call.header("stripe-signature"), &call.body, shop.now_us());
        assert_eq!(verified, Ok(()), "our own receiver takes it");
    }
    assert_eq!(shop.end_of(&event.id).await.0, "received", "nothing is applied by that");
    ear.answer(&[200, 500]);
    let outcome = replay(&settings, &args, shop.now_us() + 1, &mut Vec::new()).await.unwrap();
    assert_eq!(outcome, Outcome::Findings, "a handler that fails the second time is found out");
    let far = ReplayArgs { to: Some("http://example.com/hook".into()), ..args };
    assert!(
        replay(&settings, &far, shop.now_us(), &mut Vec::new()).await.is_err(),
        "bodies never travel in the clear"
    );
}

fn verified(
    settings: &recon::config::Settings,
    signature: &str,
    body: &[u8],
    now_us: i64,
) -> Result<(), Refusal> {
    let endpoint = &settings.endpoints[0];
    let scheme = recon::receive::Settings::new(recon::receive::Scheme::Stripe, &endpoint.mode);
    let headers = [("stripe-signature", signature.as_bytes())];
    let delivery =
        recon::receive::Delivery { method: "POST", url: "", headers: &headers, body, received_at_us: now_us };
    recon::receive::authenticate(&scheme, &endpoint.secrets, &delivery, None).map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pruning_drops_bodies_and_never_keys() {
    let shop = Shop::new(64, 100, &(OWN.to_owned() + "[receive]\nretention = \"60d\"\n")).await;
    shop.receive(shop.world.events.iter().rev()).await;
    shop.receive_as(&scope(), "evt_bad", "charge.succeeded", b"{").await;
    shop.drain().await;
    shop.pass(LATER);
    shop.drain().await;
    let events = shop.number("select count(*) from inbox_event").await;
    let mut out = Vec::new();
    prune(&shop.settings(), shop.now_us(), &mut out).await.unwrap();
    assert!(String::from_utf8(out).unwrap().ends_with("pruned=0\n"), "nothing is so old yet");
    shop.pass(Duration::from_hours(24 * 61));
    let young = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    shop.receive_as(&scope(), "evt_young", young.kind, b"{}").await;
    let mut out = Vec::new();
    prune(&shop.settings(), shop.now_us(), &mut out).await.unwrap();
    let told = String::from_utf8(out).unwrap();
    assert!(told.contains("1 older event keeps its own"), "{told}");
    // It is kept that bodies were dropped, how many, and by which setting.
    let kept = sqlx::query("select event_id, reason, actor from inbox_action where action = 'prune'");
    let kept = kept.fetch_all(shop.store.pool()).await.unwrap();
    assert_eq!(kept.len(), 1);
    let text = |name: &str| kept[0].get::<String, _>(name);
    assert!(text("event_id").is_empty() && !text("actor").is_empty());
    let dropped = format!(": {} bodies of events", events - 1);
    let reason = text("reason");
    assert!(reason.starts_with("[receive] retention 60d, received before 2026-06-1"), "{reason}");
    assert!(reason.ends_with(&dropped), "{reason}");
    assert_eq!(shop.number("select count(*) from inbox_event").await, events + 1, "every key is there");
    assert_eq!(shop.number("select count(*) from inbox_event where body is not null").await, 2);
    assert_eq!(shop.number("select count(*) from inbox_event where body_sha256 = ''").await, 0);
    prune(&shop.settings(), shop.now_us(), &mut Vec::new()).await.unwrap();
    let kept = shop.number("select count(*) from inbox_action").await;
    assert_eq!(kept, 1, "nothing dropped, nothing to keep");
    // A delivery that comes again after all is still a duplicate.
    let booked = shop.ledger().await;
    shop.receive([young]).await;
    shop.drain().await;
    assert_eq!(shop.ledger().await, booked);
    assert_eq!(shop.number("select count(*) from inbox_event").await, events + 1);
}
