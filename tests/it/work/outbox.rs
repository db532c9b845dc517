//! `recon outbox`: messages are listed without their bodies, and those that were given up are sent after all.

use super::shop::{LATER, OWN, Shop};
use crate::ear::Ear;
use recon::commands::outbox::{OutboxArgs, outbox};
use recon::provider::Cancel;
use recon::store::sent::MessageStatus;
use recon::work::{Sender, Sent};

async fn said(shop: &Shop, args: &OutboxArgs) -> Result<String, String> {
    let mut out = Vec::new();
    match outbox(&shop.settings(), args, shop.now_us(), &mut out).await {
        Ok(_) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(format!("{error:#}")),
    }
}

async fn send(shop: &Shop) -> Sent {
    let settings = shop.settings();
    let sender = Sender::new(&settings.outbox, shop.store.clone(), shop.timing(), Cancel::never()).unwrap();
    sender.unwrap().run(true).await.unwrap()
}

fn list(status: Option<MessageStatus>) -> OutboxArgs {
    OutboxArgs::List { status, limit: 10 }
}

fn retry(key: &str, reason: &str) -> OutboxArgs {
    OutboxArgs::Retry { keys: vec![key.to_owned()], reason: reason.to_owned() }
}

/// Lines that tell of messages.
async fn listed(shop: &Shop, status: Option<MessageStatus>) -> Vec<String> {
    let text = said(shop, &list(status)).await.unwrap();
    text.lines().filter(|line| !line.starts_with("outcome=")).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_given_up_is_listed_and_sent_after_all_with_a_reason_that_is_kept() {
    let ear = Ear::open().await;
    let configuration = format!("{OWN}[outbox]\nurl = \"{}\"\nattempts_max = 1\n", ear.url);
    let shop = Shop::new(36, 150, &configuration).await;
    let payment = shop.payment_with(&["charge.succeeded", "invoice.paid"]);
    shop.receive([shop.event(payment, "charge.succeeded")]).await;
    shop.drain().await;
    assert_eq!(listed(&shop, Some(MessageStatus::Waiting)).await.len(), 1);
    ear.answer(&[500]);
    assert_eq!(send(&shop).await.dead, 1);
    for status in MessageStatus::ALL {
        let expected = usize::from(status == MessageStatus::Dead);
        assert_eq!(listed(&shop, Some(status)).await.len(), expected, "{status:?}");
    }
    let line = listed(&shop, None).await.remove(0);
    let key = ear.heard()[0].header("idempotency-key").to_owned();
    assert!(line.contains(&format!("dead        {key}  attempts=1  answered 500")), "{line}");
    assert!(!line.contains("amount_minor") && !line.contains('{'), "no body: {line}");
    for refused in [retry(&key, " "), retry("stripe//live/credit:ch_none", "why")] {
        assert!(said(&shop, &refused).await.is_err(), "{refused:?}");
    }
    assert_eq!(send(&shop).await, Sent::default(), "a refused retry makes nothing due");
    shop.pass(LATER);
    let told = said(&shop, &retry(&key, "receiver fixed")).await.unwrap();
    assert!(told.contains(&format!("retry {key}")), "{told}");
    assert_eq!(send(&shop).await.sent, 1);
    let heard = ear.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[1].header("idempotency-key"), key, "under the same key");
    assert_eq!(heard[0].body, heard[1].body);
    assert_eq!(listed(&shop, Some(MessageStatus::Sent)).await.len(), 1);
    let again = said(&shop, &retry(&key, "once more")).await.unwrap();
    assert!(again.contains(" is left: it is "), "{again}");
    assert_eq!(send(&shop).await, Sent::default(), "what was sent is not sent again");
    let shown = said(&shop, &OutboxArgs::Show { key: key.clone() }).await.unwrap();
    assert!(shown.contains("receiver fixed") && !shown.contains("once more"), "{shown}");
    assert!(!shown.contains("amount_minor"), "no body: {shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c65_what_corrections_do_not_send_is_listed_with_the_reason_and_stays_unsent() {
    let ear = Ear::open().await;
    let shop = Shop::new(37, 150, &format!("[outbox]\nurl = \"{}\"\n", ear.url)).await;
    let (_, _, plan) = shop.reconcile().await;
    shop.apply(plan).await;
    let suppressed = listed(&shop, Some(MessageStatus::Suppressed)).await;
    assert!(suppressed.len() > 5, "{suppressed:?}");
    let line = &suppressed[0];
    let key = line.split_whitespace().find(|word| word.contains("//live/")).unwrap();
    let reason = line.split("attempts=0").nth(1).unwrap();
    assert!(!reason.trim().is_empty(), "{line}");
    let told = said(&shop, &retry(key, "send it anyway")).await.unwrap();
    assert!(told.contains(" is left: it is "), "{told}");
    assert_eq!(send(&shop).await, Sent::default());
    assert_eq!(shop.number("select count(*) from outbox_action").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_lists_messages_of_a_store() {
    let ear = Ear::open().await;
    let shop = Shop::new(38, 100, &format!("{OWN}[outbox]\nurl = \"{}\"\n", ear.url)).await;
    shop.receive([shop.event(shop.payment_with(&["charge.succeeded", "invoice.paid"]), "charge.succeeded")])
        .await;
    shop.drain().await;
    let output =
        shop.command(&["outbox", "list", "--status", "waiting"], std::time::Duration::ZERO).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().count() == 2 && text.contains("/credit:ch_"), "{text}");
    let output =
        shop.command(&["outbox", "list", "--status", "lost"], std::time::Duration::ZERO).output().unwrap();
    assert_eq!(output.status.code(), Some(78));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_clock_that_was_ahead_put_off_is_sent() {
    let ear = Ear::open().await;
    let configuration = format!("{OWN}[outbox]\nurl = \"{}\"\n", ear.url);
    let shop = Shop::new(37, 150, &configuration).await;
    let payment = shop.payment_with(&["charge.succeeded", "invoice.paid"]);
    shop.receive([shop.event(payment, "charge.succeeded")]).await;
    shop.drain().await;
    let put_off = |until_us: i64| format!("update outbox_message set next_attempt_at_us = {until_us}");
    // What counts is the database's clock. The longest wait of its own, 16 delays, goes on; beyond twice of it no clock
    // that is right can have put it off.
    let database_us = recon::clock::now_us();
    shop.execute(&put_off(database_us + 160_000_000)).await;
    assert_eq!(send(&shop).await, Sent::default());
    shop.execute(&put_off(database_us + 365 * 86_400 * 1_000_000)).await;
    assert_eq!(send(&shop).await.sent, 1);
}
