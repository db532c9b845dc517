//! Invoices that were paid in parts: each payment stands for itself, and only what is booked on the invoice
//! is compared with all of them.

mod play;
mod seeded;

use crate::stage::Stage;
use play::{PAID_S, Play, window_from_s};

/// Lines of the latest findings that name one of these ids, as `kind,cause`; cut-offs are no breaks.
fn found(stage: &Stage, ids: &[String]) -> Vec<String> {
    let text = stage.latest("findings.csv");
    let names =
        |line: &&str| ids.iter().any(|id| line.contains(&**id)) && !line.contains(",timing_difference,");
    let short = |line: &str| line.split(',').skip(1).take(2).collect::<Vec<_>>().join(",");
    let mut found: Vec<String> = text.lines().skip(1).filter(names).map(short).collect();
    found.sort();
    found
}

fn planned(stage: &Stage) -> Vec<String> {
    let text = stage.latest("plan.csv");
    text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().to_owned()).collect()
}

/// Reconciles a play and says what was found and what would be corrected.
async fn said(play: Play) -> (Stage, Vec<String>, Vec<String>) {
    let stage = play.stage().await;
    stage.reconcile().await;
    let (found, planned) = (found(&stage, &["_play".to_owned()]), planned(&stage));
    (stage, found, planned)
}

async fn credits(stage: &Stage) -> String {
    stage
        .ask(
            "select cast(sum(amount_minor) as text) from ledger_entry
             where kind = 'credit' and object_id like '%_play%'",
        )
        .await
}

/// Two parts with their charges booked on themselves.
fn two(amounts: [i64; 2], order: &str, invoice_field: Option<&str>) -> Play {
    let mut play = Play::default();
    for (number, amount) in (0..).zip(amounts) {
        let part = play.pay(amount, PAID_S + 60 * number, order, invoice_field);
        let event = play.charged(part, true);
        let charge = play.parts[part].charge.clone();
        play.book("credit", &charge, amount, PAID_S + 100, &event);
    }
    play
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_was_given_back_says_nothing_of_the_other_part() {
    for is_lost in [false, true] {
        let mut play = two([600, 400], "", None);
        play.invoice("in_play", &[0, 1], PAID_S - 700, 0);
        let (kind, (id, event)) =
            if is_lost { ("dispute_withdrawn", play.lose(0)) } else { ("refund", play.refund(0, 600)) };
        play.book(kind, &id, 600, PAID_S + 9_000, &event);
        for part in play.parts.clone() {
            play.state(&part.intent, part.status(), part.refunded, PAID_S + 9_000);
        }
        let (_, found, planned) = said(play).await;
        assert!(found.is_empty() && planned.is_empty(), "{is_lost}: {found:?} {planned:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invoice_has_the_status_of_its_payments_together() {
    for (refunded, status, expected) in [
        (600, "partially_refunded", &[][..]),
        (600, "refunded", &["needs_review,local_ahead"][..]),
        (600, "paid", &["stale_state,"][..]),
        (100, "partially_refunded", &[][..]),
    ] {
        let mut play = two([600, 400], "", None);
        play.invoice("in_play", &[0, 1], PAID_S - 700, 0);
        let (id, event) = play.refund(0, refunded);
        play.book("refund", &id, refunded, PAID_S + 4_000, &event);
        play.state("in_play", status, refunded, PAID_S + 3_900);
        let (_, found, planned) = said(play).await;
        assert_eq!(found, expected, "{refunded} {status}");
        assert!(planned.is_empty(), "{refunded} {status}: {planned:?}");
    }
    for (status, expected) in [("dispute_lost", &[][..]), ("paid", &["needs_review,payments_differ"][..])] {
        let mut play = two([600, 400], "", None);
        play.invoice("in_play", &[0, 1], PAID_S - 700, 0);
        let (id, event) = play.lose(0);
        play.book("dispute_withdrawn", &id, 600, PAID_S + 9_000, &event);
        play.state("in_play", status, 0, PAID_S + 9_000);
        let (_, found, planned) = said(play).await;
        assert_eq!((found, planned), (expected.iter().map(|line| (*line).to_owned()).collect(), vec![]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_is_booked_twice_does_not_stand_for_one_that_was_missed() {
    for has_invoice in [false, true] {
        let mut play = Play::default();
        let (first, second) = (play.pay(500, PAID_S, "", None), play.pay(500, PAID_S + 60, "", None));
        if has_invoice {
            play.invoice("in_play", &[first, second], PAID_S - 700, 0);
        }
        let event = play.charged(first, true);
        play.charged(second, false);
        let intent = play.parts[first].intent.clone();
        play.book("credit", &intent, 500, PAID_S + 6, &event);
        play.book("credit", &intent, 500, PAID_S + 7, &event);
        let (stage, found, planned) = said(play).await;
        assert_eq!(found, ["duplicate_effect,", "missed_event,"], "{has_invoice}");
        assert_eq!(planned, ["reverse_entry", "replay_event"]);
        let dir = stage.reports().pop().unwrap();
        stage.apply(&dir.join("plan.csv")).await;
        assert_eq!(credits(&stage).await, "1000");
        stage.reconcile().await;
        assert!(self::found(&stage, &["_play".to_owned()]).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_one_invoice_are_one_purchase_up_to_what_was_due() {
    for amounts in [[500, 500], [600, 400]] {
        for (order, field) in [("o1", None), ("", Some("in_play"))] {
            let mut play = two(amounts, order, field);
            play.invoice("in_play", &[0, 1], PAID_S - 700, 0);
            let (_, found, _) = said(play).await;
            assert!(found.is_empty(), "{amounts:?} {order} {field:?}: {found:?}");
        }
    }
    // More came in than was due.
    let mut play = two([500, 500], "o1", None);
    play.invoice("in_play", &[0, 1], PAID_S - 700, 500);
    let (_, found, _) = said(play).await;
    assert_eq!(found, ["duplicate_charge,", "needs_review,invoice_overpaid"]);
    // The order was paid once more, beside the invoice.
    let mut play = two([500, 500], "o1", None);
    play.invoice("in_play", &[0, 1], PAID_S - 700, 0);
    let third = play.pay(500, PAID_S + 300, "o1", None);
    let event = play.charged(third, true);
    let charge = play.parts[third].charge.clone();
    play.book("credit", &charge, 500, PAID_S + 400, &event);
    let (_, found, _) = said(play).await;
    assert_eq!(found, ["duplicate_charge,"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invoice_that_is_booked_whole_on_one_of_its_charges_is_not_booked_again() {
    let mut play = Play::default();
    let parts = [play.pay(600, PAID_S, "", None), play.pay(400, PAID_S + 60, "", None)];
    play.invoice("in_play", &parts, PAID_S - 700, 0);
    for part in parts {
        play.charged(part, true);
    }
    let event = play.invoice_paid("in_play", PAID_S + 100, true);
    let charge = play.parts[0].charge.clone();
    play.book("credit", &charge, 1000, PAID_S + 106, &event);
    let (stage, found, planned) = said(play).await;
    assert_eq!(found, ["amount_mismatch,", "unapplied_event,marked_processed_without_effect"]);
    assert!(planned.is_empty(), "{planned:?}");
    assert_eq!(credits(&stage).await, "1000");
}

/// Some parts lie before the window, and so does the invoice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invoice_that_the_window_cuts_is_seen_whole() {
    let from_s = window_from_s();
    for booking in ["whole", "invoice", "intents", "charges"] {
        for amounts in [[500, 500, 500], [600, 300, 100]] {
            let mut play = Play::default();
            let parts: Vec<usize> = (0..)
                .zip(amounts)
                .map(|(number, amount)| play.pay(amount, from_s - 600 + 3_600 * number, "", None))
                .collect();
            play.invoice("in_play", &parts, from_s - 4_000, 0);
            for part in parts.clone() {
                let event = play.charged(part, true);
                let one = play.parts[part].clone();
                match booking {
                    "invoice" => play.book("credit", "in_play", one.amount, one.at_s + 10, &event),
                    "intents" => play.book("credit", &one.intent, one.amount, one.at_s + 10, &event),
                    "charges" => play.book("credit", &one.charge, one.amount, one.at_s + 10, &event),
                    _ => {}
                }
            }
            if booking == "whole" {
                let event = play.invoice_paid("in_play", from_s + 7_000, true);
                play.book("credit", "in_play", amounts.iter().sum(), from_s + 7_100, &event);
            }
            let (_, found, planned) = said(play).await;
            assert!(found.is_empty() && planned.is_empty(), "{booking} {amounts:?}: {found:?} {planned:?}");
        }
    }
}

/// A row on the invoice that names the event of a part which has its money already is that part's money twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_on_the_invoice_does_not_hide_what_its_event_says() {
    let mut play = Play::default();
    let parts = [play.pay(500, PAID_S, "", None), play.pay(500, PAID_S + 60, "", None)];
    play.invoice("in_play", &parts, PAID_S - 700, 0);
    let event = play.charged(parts[0], true);
    play.charged(parts[1], false);
    let charge = play.parts[0].charge.clone();
    play.book("credit", &charge, 500, PAID_S + 6, &event);
    play.book("credit", "in_play", 500, PAID_S + 7, &event);
    let (_, found, planned) = said(play).await;
    assert_eq!(found, ["misattributed_effect,", "missed_event,"]);
    assert!(planned.is_empty(), "{planned:?}");
}

/// The endpoint sends nothing but `invoice.paid`: it announces each part that is not booked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_the_invoice_announces_its_parts() {
    for booked in [0, 1, 2] {
        let mut play = Play::default();
        let parts = [play.pay(600, PAID_S, "", None), play.pay(400, PAID_S + 60, "", None)];
        play.invoice("in_play", &parts, PAID_S - 700, 0);
        let event = play.invoice_paid("in_play", PAID_S + 100, booked == 2);
        for part in parts.into_iter().take(booked) {
            let one = play.parts[part].clone();
            play.book("credit", &one.charge, one.amount, PAID_S + 106, &event);
        }
        let (stage, found, planned) = said(play).await;
        assert_eq!(found, vec!["missed_event,"; 2 - booked], "{booked} booked");
        assert_eq!(planned, vec!["replay_event"; 2 - booked]);
        let dir = stage.reports().pop().unwrap();
        stage.apply(&dir.join("plan.csv")).await;
        assert_eq!(credits(&stage).await, "1000", "{booked} booked");
        stage.reconcile().await;
        assert!(self::found(&stage, &["_play".to_owned()]).is_empty(), "{booked} booked");
    }
}
