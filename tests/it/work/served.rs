//! The whole path with a real process: signed deliveries over HTTP to `recon serve --work`.

use super::shop::{LATER, Shop};
use recon::commands::Outcome;
use recon::commands::replay::{ReplayArgs, replay};
use recon::config;
use std::io::{BufRead, BufReader};
use std::time::Duration;

fn give_secret(shop: &Shop) {
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.folder.path().join("whsec"), "whsec_practice").unwrap();
    let secret = "mode = \"live\"\nwebhook_secrets = [{ file = \"whsec\" }]\n";
    std::fs::write(shop.config(), text.replacen("mode = \"live\"\n", secret, 1)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_deliveries_to_the_real_process_take_effect_once_while_it_is_killed() {
    let seed = 71;
    let (sender, shop) = (Shop::new(seed, 150, "").await, {
        let shop = Shop::new(seed, 150, "[receive]\nlisten = \"127.0.0.1:0\"\n[work]\nbatch = 5\n").await;
        give_secret(&shop);
        shop
    });
    give_secret(&sender);
    let needs = config::Needs { webhook_secrets: true, ..Default::default() };
    let settings = config::load_for(Some(&sender.config()), needs).unwrap();
    sender.receive(&sender.world.events).await;
    let events: Vec<String> = sender.world.events.iter().map(|event| event.id.clone()).collect();
    let mut later = Duration::ZERO;
    // The provider goes on until every delivery is answered; each round another process is killed.
    for (round, chunk) in events.chunks(events.len() / 3 + 1).enumerate() {
        let mut child = shop.command(&["serve", "--work"], later).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("POST ").expect("where it listens").to_owned();
        let args = ReplayArgs { events: chunk.to_vec(), to: Some(url), times: 3, ..ReplayArgs::default() };
        let now_us = shop.now_us() + i64::try_from(later.as_micros()).unwrap();
        let outcome = replay(&settings, &args, now_us, &mut Vec::new()).await.unwrap();
        assert_eq!(outcome, Outcome::Clean, "round {round}: every delivery is taken");
        child.kill().unwrap();
        child.wait().unwrap();
        later += LATER;
    }
    let received = shop.number("select count(*) from inbox_event").await;
    assert_eq!(usize::try_from(received).unwrap(), events.len(), "every 2xx has its event");
    assert_eq!(shop.number("select count(*) from inbox_event where deliveries <> 3").await, 0);
    for _ in 0..3 {
        let output = shop.command(&["work", "--drain"], later).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        later += LATER;
    }
    let ended = shop.ended().await;
    assert!(!ended.contains_key("received") && !ended.contains_key("dead"), "{ended:?}");
    assert_eq!(shop.ledger().await, shop.truth());
    let (outcome, findings, _) = shop.reconcile().await;
    assert_eq!(outcome, Outcome::Clean, "{findings}");
}
