//! Tests of the timeline's marks.

use super::timeline::{Booking, Ended, Step, Teller, booked, overtaken, render};
use crate::record::{EffectKind, ProviderEffect, Scope};
use chrono_tz::Tz;

fn row(id: &str, kind: EffectKind, object_id: &str, amount_minor: i64, at: i64) -> Booking {
    Booking {
        row: id.to_owned(),
        kind,
        object_id: object_id.to_owned(),
        amount_minor,
        currency: "brl".to_owned(),
        applied_at_us: at,
        event_id: String::new(),
        corrects: String::new(),
        why: String::new(),
    }
}

fn has(kind: EffectKind, object_id: &str, amount_minor: i64) -> ProviderEffect {
    ProviderEffect {
        scope: Scope::new("stripe", "", "live"),
        root_id: "pi_1".to_owned(),
        object_id: object_id.to_owned(),
        kind,
        amount_minor,
        currency: "brl".to_owned(),
        occurred_at_us: 1,
        intent: String::new(),
        in_window: true,
    }
}

/// Marks by row.
fn marks(rows: &[Booking], provider: &[ProviderEffect], named: &[Vec<String>]) -> Vec<String> {
    let steps = booked("pi_1", rows, provider, named, |_| 2);
    steps.into_iter().flat_map(|step| step.marks).collect()
}

const CREDIT: EffectKind = EffectKind::Credit;
const REFUND: EffectKind = EffectKind::Refund;

#[test]
fn a_doubled_row_is_marked_once_with_the_row_that_stays() {
    let twice = [row("17", CREDIT, "ch_1", 500, 1), row("92", CREDIT, "pi_1", 500, 2)];
    let once = [has(CREDIT, "ch_1", 500)];
    assert_eq!(marks(&twice, &once, &[]), ["booked twice: row 17 and row 92"]);
    let named = vec![vec!["17".to_owned(), "92".to_owned()]];
    assert_eq!(marks(&twice, &once, &named), ["booked twice: row 17 and row 92"], "as the finding says");
    assert_eq!(marks(&twice, &[], &named), ["booked twice: row 17 and row 92"], "without records");
    let undoing = Booking { corrects: "92".to_owned(), ..row("93", CREDIT, "pi_1", -500, 3) };
    let all = [twice[0].clone(), twice[1].clone(), undoing];
    assert_eq!(marks(&all, &once, &[]), ["booked twice: row 17 and row 92", "undone by row 93"]);
}

#[test]
fn two_payments_or_refunds_of_one_amount_are_no_doubling() {
    let rows = [row("1", CREDIT, "ch_1", 500, 1), row("2", CREDIT, "ch_2", 500, 2)];
    assert!(marks(&rows, &[has(CREDIT, "ch_1", 500), has(CREDIT, "ch_2", 500)], &[]).is_empty());
    let rows = [
        row("1", CREDIT, "ch_1", 900, 1),
        row("2", REFUND, "re_1", 300, 2),
        row("3", REFUND, "re_2", 300, 3),
        row("4", REFUND, "re_2", 300, 4),
    ];
    let provider = [has(CREDIT, "ch_1", 900), has(REFUND, "re_1", 300), has(REFUND, "re_2", 300)];
    assert_eq!(marks(&rows, &provider, &[]), ["booked twice: row 3 and row 4"]);
}

#[test]
fn money_that_goes_out_before_it_came_in_is_marked() {
    let provider = [has(CREDIT, "ch_1", 500), has(REFUND, "re_1", 500)];
    let refund = row("1", REFUND, "re_1", 500, 1);
    let rows = [refund.clone(), row("2", CREDIT, "ch_1", 500, 2)];
    assert_eq!(marks(&rows, &provider, &[]), ["refunded before paid was applied"]);
    let rows = [refund.clone(), row("2", CREDIT, "ch_1", 500, 1)];
    assert!(marks(&rows, &provider, &[]).is_empty(), "at one instant");
    assert_eq!(marks(&[refund], &provider, &[]), ["refunded, and paid is not booked"]);
}

#[test]
fn an_event_that_was_applied_before_an_older_one_is_marked() {
    let event = |id: &str, created_us, applied_at_us| Ended {
        event_id: id.to_owned(),
        event_type: "charge.x".to_owned(),
        created_us,
        applied_at_us,
    };
    let found = overtaken(&[event("evt_1", 1, 9), event("evt_2", 2, 8), event("evt_3", 3, 10)]);
    assert_eq!(found.len(), 1);
    assert_eq!(found["evt_2"], "applied before charge.x evt_1, which is older");
}

#[test]
fn the_list_is_in_time_and_cannot_steer_a_terminal() {
    let steps = vec![
        Step::new(2_000_000, Teller::Effects, "late\u{1b}[31m\u{202e}\n"),
        Step::new(1_000_000, Teller::Inbox, "second"),
        Step::new(1_000_000, Teller::Provider, "first"),
    ];
    let text = render(steps, Tz::America__Sao_Paulo);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].ends_with("first") && lines[1].ends_with("second"), "{text}");
    assert!(lines[2].ends_with("late?[31m??") && lines[2].starts_with("1969-12-31T21:00:02-03:00"), "{text}");
}
