//! Random windows over random payments: right books give no findings, wherever the window cuts; and what is
//! planted is found where its payment lies inside.

use super::account::{Account, DAY_S, NOW_S};
use super::{found, planned, run, unexplained};
use crate::stage::Stage;
use recon::demo::Rng;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};
use recon::demo::verdict::read_findings;
use std::collections::BTreeMap;

const SEEDS: u64 = 64;

fn seeds() -> Vec<u64> {
    if let Ok(seed) = std::env::var("RECON_SEED") {
        return vec![seed.parse().unwrap()];
    }
    let count = std::env::var("RECON_SEEDS").map_or(SEEDS, |text| text.parse().unwrap());
    (1..=count).collect()
}

/// Payments of a month with refunds and disputes days apart, booked on a mix of their ids, all of it right.
fn right_books(rng: &mut Rng) -> Account {
    let mut account = Account::default();
    let style = rng.index(5);
    for _ in 0..12 {
        let amount_minor = rng.between(100, 99_999);
        let mut at_s = NOW_S - rng.between(9, 28) * DAY_S - rng.between(0, DAY_S);
        let paid = account.pay(amount_minor, at_s);
        let invoice = rng.per_mille(400).then(|| account.invoice(&paid, at_s - 1_000));
        let session = rng.per_mille(400).then(|| account.session(&paid, invoice.as_deref(), at_s - 2_000));
        let mut ids = vec![paid.charge.clone(), paid.intent.clone()];
        ids.extend(invoice.into_iter().chain(session));
        let id = |rng: &mut Rng| match style {
            0 => ids[0].clone(),
            1 => ids[1].clone(),
            2 => ids[ids.len() - 1].clone(),
            _ => ids[rng.index(ids.len())].clone(),
        };
        account.book("credit", &id(rng), amount_minor, at_s + rng.between(1, 7_200), &paid.event);
        let (mut left, mut status) = (amount_minor, "paid");
        for _ in 0..rng.index(4) {
            at_s += rng.between(60, 3 * DAY_S);
            let part = if rng.per_mille(300) { left } else { (left / 2).max(1) };
            if left == 0 || at_s > NOW_S - DAY_S {
                break;
            }
            let (refund, event) = account.refund(&paid, part, at_s);
            let on = if rng.per_mille(400) { refund } else { id(rng) };
            account.book("refund", &on, part, at_s + rng.between(1, 600), &event);
            left -= part;
            status = if left == 0 { "refunded" } else { "partially_refunded" };
        }
        if left == amount_minor && rng.per_mille(300) {
            at_s += rng.between(60, 4 * DAY_S);
            let (dispute, event) = account.dispute(&paid, at_s);
            let on = if rng.per_mille(500) { dispute } else { id(rng) };
            account.book("dispute_withdrawn", &on, amount_minor, at_s + rng.between(1, 600), &event);
            status = "dispute_lost";
        }
        if rng.per_mille(600) {
            account.state(&id(rng), status, amount_minor - left, at_s + 700);
        }
    }
    account
}

fn random_window(rng: &mut Rng) -> (i64, i64) {
    let from_s = NOW_S - rng.between(4, 27) * DAY_S - rng.between(0, DAY_S);
    (from_s, (from_s + rng.between(3_600, 8 * DAY_S)).min(NOW_S - DAY_S))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_books_give_no_findings_wherever_a_window_cuts() {
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let stage = right_books(&mut rng).stage(seed).await;
        let (from_s, until_s) = random_window(&mut rng);
        for more in [&[][..], &["--offline"][..]] {
            let ended = run(&stage, from_s, until_s, more);
            assert_eq!(ended.code, Some(0), "seed {seed} {more:?}: {}{:?}", ended.stdout, found(&stage));
            assert_eq!(found(&stage), [""; 0], "seed {seed} {more:?}");
            assert_eq!((planned(&stage), unexplained(&stage)), (0, Vec::new()), "seed {seed} {more:?}");
        }
    }
}

/// Faults that are about one payment's money and status; the rest of them needs an event's whole history.
const OF_A_PAYMENT: [&str; 9] = [
    "missed_event",
    "unapplied_event",
    "missing_effect",
    "duplicate_effect",
    "orphan_effect",
    "amount_mismatch",
    "currency_mismatch",
    "stale_state",
    "forbidden_transition",
];

/// The storyteller's month with planted faults, seen through a window of a few days: nothing is invented, and
/// what is planted on a payment that lies well inside is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_planted_inside_of_a_cutting_window_is_found_and_nothing_else() {
    let mut inside = 0;
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let faults = Fault::LOUD.into_iter().filter(|fault| *fault != Fault::ChargedTwiceForOrder);
        let mix = Mix(faults.map(|fault| (fault, 1)).collect());
        let stage = Stage::new(seed, 220, &mix, Faults::default()).await;
        let (from_s, until_s) = random_window(&mut rng);
        let until_s = until_s.max(from_s + 5 * DAY_S).min(NOW_S - DAY_S);
        run(&stage, from_s, until_s, &[]);
        let rows = read_findings(stage.latest("findings.csv").as_bytes()).unwrap();
        let expected: Vec<_> = stage.planted.iter().flat_map(|one| &one.expected).collect();
        for row in rows.iter().filter(|row| OF_A_PAYMENT.contains(&&*row.kind)) {
            // Where the planted part of a payment lies outside, only its status shows it.
            let is_status = row.currency.is_empty()
                && stage.planted.iter().any(|one| !one.expected.is_empty() && one.root_id == row.object_id);
            let is_planted = is_status || expected.iter().any(|one| row.says(one));
            assert!(is_planted, "seed {seed}: invented {row:#?}");
        }
        let mut moved: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for effect in &stage.world.truth {
            moved.entry(&effect.root_id).or_default().push(effect.occurred_s);
        }
        for event in &stage.world.events {
            if let Some(payment) = event.payment {
                moved.entry(stage.world.payments[payment].root_id()).or_default().push(event.created_s);
            }
        }
        for one in &stage.planted {
            let is_inside = moved.get(&*one.root_id).is_some_and(|times| {
                times.iter().all(|at_s| from_s + DAY_S < *at_s && *at_s < until_s - DAY_S)
            });
            let of_payment = one.expected.iter().filter(|one| OF_A_PAYMENT.contains(&one.kind));
            for expected in of_payment.filter(|_| is_inside) {
                inside += 1;
                assert!(rows.iter().any(|row| row.says(expected)), "seed {seed}: missed {expected:#?}");
            }
        }
        assert_eq!(unexplained(&stage), [""; 0], "seed {seed}");
    }
    assert!(inside * 2 > seeds().len(), "{inside}");
}
