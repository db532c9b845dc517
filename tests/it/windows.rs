//! What one window has to do with another: charges of one intent that lie in different nights, and a payment
//! of one month that was booked again in the next.

use crate::stage::{Ended, NOW_US, Stage};
use recon::demo::emulator::{Change, Endpoints, Faults};
use recon::demo::faults::{Fault, Mix, plant};
use recon::demo::{Charge, Payment, Record, Stream, World};
use recon::record::format_instant;
use recon::store::Store;
use serde_json::json;

const SEED: u64 = 12;
const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;

/// Two payments of one order and their charges, the earlier one first.
fn pair(world: &World) -> [(&Payment, &Charge); 2] {
    let of_order = |order_id: &str| -> Vec<(&Payment, &Charge)> {
        let paid = world.payments.iter().filter(|payment| payment.order_id == order_id);
        paid.filter_map(|payment| Some((payment, payment.charge.as_ref()?))).collect()
    };
    let mut found = world
        .payments
        .iter()
        .map(|payment| of_order(&payment.order_id))
        .find(|of_order| of_order.len() == 2)
        .unwrap();
    found.sort_by_key(|(_, charge)| charge.created_s);
    found.try_into().unwrap()
}

/// Ends of the three nights: the first charge lies in the first, the second in the third.
struct Nights([i64; 4]);

impl Nights {
    fn of(world: &World) -> Self {
        let [(_, first), (_, second)] = pair(world);
        let ends = [first.captured_s.unwrap() + 1, second.created_s - 1];
        assert!(ends[0] < ends[1], "the seed's charges are too near: {ends:?}");
        Self([world.from_us, ends[0] * SECOND_US, ends[1] * SECOND_US, ends[1] * SECOND_US + DAY_US])
    }

    fn run(&self, stage: &Stage, number: usize) -> Ended {
        run(stage, self.0[number - 1], self.0[number], &[])
    }
}

fn run(stage: &Stage, from_us: i64, until_us: i64, more: &[&str]) -> Ended {
    let instant = |at_us: i64| format_instant(at_us, chrono_tz::Tz::UTC);
    let (from, until) = (instant(from_us), instant(until_us));
    let arguments = [&["--since", &from, "--until", &until][..], more].concat();
    let ended = Ended::of(&stage.command(&arguments).output().unwrap());
    assert!(matches!(ended.code, Some(0 | 1)), "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Lines of the latest report's findings of a kind.
fn found(stage: &Stage, kind: &str) -> Vec<String> {
    let word = format!(",{kind},");
    stage.latest("findings.csv").lines().filter(|line| line.contains(&word)).map(str::to_owned).collect()
}

fn id(line: &str) -> &str {
    line.split(',').next().unwrap()
}

const STATUS: &str = "select status from finding where kind = 'duplicate_charge'";

async fn stage(faults: Faults) -> Stage {
    Stage::new(SEED, 200, &Mix::only(Fault::ChargedTwiceForOrder), faults).await
}

/// The world of [`stage`], to make objects for it.
fn world() -> World {
    let mut world = World::new(SEED, 200, NOW_US);
    plant(&mut world, SEED, &Mix::only(Fault::ChargedTwiceForOrder));
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_charges_of_one_intent_in_different_nights_are_found_once() {
    let stage = stage(Faults::default()).await;
    let nights = Nights::of(&stage.world);
    for number in [1, 2] {
        nights.run(&stage, number);
        assert!(found(&stage, "duplicate_charge").is_empty(), "night {number}");
    }
    nights.run(&stage, 3);
    let first_sight = found(&stage, "duplicate_charge");
    assert_eq!(first_sight.len(), 1, "{first_sight:?}");
    let [(_, first), (_, second)] = pair(&stage.world);
    assert!(first_sight[0].contains(&first.id) && first_sight[0].contains(&second.id), "{first_sight:?}");
    // The night after has neither charge: it is no new finding, and not gone.
    run(&stage, nights.0[3], nights.0[3] + DAY_US, &[]);
    assert!(found(&stage, "duplicate_charge").is_empty());
    assert_eq!(stage.ask(STATUS).await, "new");
    // Any night that has one of them shows it again, also offline.
    for (number, more) in [(1, &[][..]), (3, &[][..]), (1, &["--offline"][..]), (3, &["--offline"][..])] {
        run(&stage, nights.0[number - 1], nights.0[number], more);
        let again = found(&stage, "duplicate_charge");
        assert_eq!(again.len(), 1, "night {number} {more:?}: {again:?}");
        assert_eq!(id(&again[0]), id(&first_sight[0]));
        assert_eq!(stage.ask(STATUS).await, "open");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn intents_that_were_kept_under_another_setting_are_kept_anew() {
    let stage = stage(Faults::default()).await;
    let nights = Nights::of(&stage.world);
    stage.configure("metadata.order_id", "metadata.nothing");
    nights.run(&stage, 1);
    stage.configure("metadata.nothing", "metadata.order_id");
    nights.run(&stage, 3);
    assert_eq!(found(&stage, "duplicate_charge").len(), 1);
}

/// A refund of the first charge, made between the two.
fn refund(world: &World, amount_minor: impl Fn(i64) -> i64) -> Faults {
    let [(payment, charge), (_, second)] = pair(world);
    let created_s = second.created_s - 10;
    let body = json!({
        "id": "re_of_the_first", "object": "refund", "amount": amount_minor(charge.captured_minor),
        "balance_transaction": "txn_of_the_refund", "charge": charge.id, "created": created_s,
        "currency": payment.currency, "metadata": {}, "payment_intent": payment.intent_id,
        "reason": "duplicate", "status": "succeeded",
    });
    inserted(Stream::Refunds, "re_of_the_first", created_s, &body)
}

fn inserted(stream: Stream, id: &str, created_s: i64, body: &serde_json::Value) -> Faults {
    let body = body.to_string().into();
    let record = Record { id: id.to_owned(), created_s, sequence: 0, body, includable: None };
    Faults { changes: vec![(stream, 0, Change::Insert(record))], ..Faults::default() }
}

/// The night of the refund may have been read or not: then the provider is asked what was given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_charge_that_was_given_back_is_no_second_payment() {
    let [(payment, charge), (_, second)] = pair(&world()).map(|(p, c)| (p.clone(), c.clone()));
    let disputed_s = second.created_s - 10;
    let dispute = json!({
        "id": "dp_of_the_first", "object": "dispute", "amount": charge.captured_minor,
        "balance_transactions": [{
            "id": "txn_of_the_dispute", "object": "balance_transaction", "amount": -charge.captured_minor,
            "available_on": disputed_s, "created": disputed_s, "currency": payment.currency, "fee": 0,
            "source": "dp_of_the_first", "type": "adjustment", "reporting_category": "dispute",
        }],
        "charge": charge.id, "created": disputed_s, "currency": payment.currency, "livemode": true,
        "metadata": {}, "payment_intent": payment.intent_id, "reason": "fraudulent", "status": "lost",
    });
    let lost = || inserted(Stream::Disputes, "dp_of_the_first", disputed_s, &dispute);
    for (what, faults, expected) in [
        ("refunded", refund(&world(), |whole| whole), 0),
        ("refunded in part", refund(&world(), |whole| whole - 1), 1),
        ("lost", lost(), 0),
    ] {
        for nights_run in [&[1, 2, 3][..], &[1, 3][..]] {
            let stage = stage(faults.clone()).await;
            let nights = Nights::of(&stage.world);
            for number in nights_run {
                nights.run(&stage, *number);
            }
            let lines = found(&stage, "duplicate_charge");
            assert_eq!(lines.len(), expected, "{what}, nights {nights_run:?}: {lines:?}");
        }
    }
}

/// 2026-06-01T00:00:00Z, between the two months that the world plays in.
const MIDNIGHT_US: i64 = 1_780_272_000_000_000;

/// A payment that was paid and booked in the first month and has been left alone since: its entry and its root.
async fn settled(world: &World, store: &Store) -> (String, String) {
    let sql = "select entry_id from ledger_entry where effect_key = $1 and applied_at_us < $2
               and exists (select 1 from object_state where object_id = $3 and updated_at_us < $4)";
    for payment in &world.payments {
        let Some(charge) = &payment.charge else { continue };
        let days = world.from_us / SECOND_US + 4 * 86_400..MIDNIGHT_US / SECOND_US - 86_400;
        let is_plain = payment.refunds.is_empty() && payment.dispute.is_none() && !payment.is_naive;
        if !is_plain || !charge.captured_s.is_some_and(|captured_s| days.contains(&captured_s)) {
            continue;
        }
        let query = sqlx::query_scalar(sql).bind(format!("credit:{}", charge.id)).bind(MIDNIGHT_US);
        let query = query.bind(payment.root_id().to_owned()).bind(MIDNIGHT_US);
        if let Some(entry) = query.fetch_optional(store.pool()).await.unwrap() {
            return (entry, payment.root_id().to_owned());
        }
    }
    panic!("no payment of the first month is plain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_of_one_month_that_is_booked_again_in_the_next_is_the_next_months_break() {
    let stage = Stage::new(SEED, 200, &Mix(Vec::new()), Faults::default()).await;
    let (from_us, until_us) = (stage.world.from_us, stage.world.until_us);
    run(&stage, from_us, MIDNIGHT_US, &[]);
    let (tie_out, findings) = (stage.latest("tie_out.csv"), found(&stage, "duplicate_effect"));
    assert!(findings.is_empty(), "{findings:?}");
    let store = stage.store().await;
    let (entry, root_id) = settled(&stage.world, &store).await;
    let again =
        "insert into ledger_entry select 'again', provider, account, mode, 'again', object_id, kind, amount_minor,
                currency, occurred_at_us, $1, '', '', '', 'by hand' from ledger_entry where entry_id = $2";
    let booked_us = MIDNIGHT_US + 3 * DAY_US;
    sqlx::query(again).bind(booked_us).bind(&entry).execute(store.pool()).await.unwrap();
    store.close().await;

    // The month in which it was booked again has the break, and its difference.
    run(&stage, MIDNIGHT_US, until_us, &[]);
    let of_next = found(&stage, "duplicate_effect");
    assert_eq!(of_next.len(), 1, "{of_next:?}");
    assert!(stage.latest("tie_out.csv").contains(id(&of_next[0])), "{}", stage.latest("tie_out.csv"));

    // The month of the payment is as it was filed, and does not take the other month's break away.
    run(&stage, from_us, MIDNIGHT_US, &[]);
    assert_eq!(stage.latest("tie_out.csv"), tie_out);
    assert!(found(&stage, "duplicate_effect").is_empty());
    let status = "select status from finding where kind = 'duplicate_effect'";
    assert_eq!(stage.ask(status).await, "new");

    // Looked at for another reason it is listed there too, and explains nothing.
    let store = stage.store().await;
    let touch = "update object_state set updated_at_us = $1 where object_id = $2";
    sqlx::query(touch).bind(booked_us).bind(&root_id).execute(store.pool()).await.unwrap();
    store.close().await;
    run(&stage, from_us, MIDNIGHT_US, &[]);
    assert_eq!(stage.latest("tie_out.csv"), tie_out);
    let listed = found(&stage, "duplicate_effect");
    assert_eq!(listed.iter().map(|line| id(line)).collect::<Vec<_>>(), [id(&of_next[0])]);

    // Undone in the month in which it was booked again, it is gone there.
    let store = stage.store().await;
    let undo =
        "insert into ledger_entry select 'undone', provider, account, mode, 'undone', object_id, kind, -amount_minor,
                currency, occurred_at_us, $1, '', 'again', '', 'by hand' from ledger_entry where entry_id = 'again'";
    sqlx::query(undo).bind(booked_us + DAY_US).execute(store.pool()).await.unwrap();
    store.close().await;
    run(&stage, MIDNIGHT_US, until_us, &[]);
    assert!(found(&stage, "duplicate_effect").is_empty());
    assert_eq!(stage.ask(status).await, "cleared");
}

/// Without `event_types` in the settings, what the endpoint asks for decides what was missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offline_run_knows_what_the_endpoint_asked_for() {
    let few = vec!["charge.succeeded", "charge.refunded"];
    let endpoints = Endpoints::These(vec![("enabled", few)]);
    let stage = Stage::new(41, 300, &Mix::each(1), Faults { endpoints, ..Faults::default() }).await;
    let text = std::fs::read_to_string(stage.config()).unwrap();
    let line = text.lines().find(|line| line.starts_with("event_types")).unwrap();
    stage.configure(line, "");
    let (from_us, until_us) = (stage.world.from_us, stage.world.until_us);
    let answers = |more: &[&str]| {
        run(&stage, from_us, until_us, more);
        let text = stage.latest("findings.csv");
        let rows = text.lines().map(|line| line.split(',').take(3).collect::<Vec<_>>().join(","));
        rows.collect::<Vec<_>>().join("\n")
    };
    let online = answers(&[]);
    assert!(online.contains(",missed_event,not_subscribed"), "{online}");
    let before = stage.emulator.counters.total();
    assert_eq!(answers(&["--offline"]), online);
    assert_eq!(stage.emulator.counters.total(), before, "offline asks nobody");
}
