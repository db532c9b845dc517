//! Findings become rows of a plan, exactly, or none at all.

use super::*;
use crate::config::CorrectionSettings;
use crate::findings::Severity;

fn finding(kind: Kind, action: Action) -> Finding {
    Finding {
        kind,
        cause: String::new(),
        severity: Severity::Critical,
        scope: Scope::new("stripe", "", "live"),
        object_id: "ch_1".into(),
        root_id: "pi_1".into(),
        effect: Some(EffectKind::Credit),
        event_ids: vec!["evt_1".into()],
        effect_ids: Vec::new(),
        currency: "usd".into(),
        found_currency: String::new(),
        explains: Vec::new(),
        target_state: None,
        expected_minor: Some(5_000),
        found_minor: None,
        expected_state: None,
        found_state: None,
        occurred_at_us: 7,
        judged_at_us: 7,
        action,
        note: String::new(),
    }
}

fn planned(findings: &[Finding], amounts: &[(&str, i64)]) -> Vec<Correction> {
    let entry_amounts = amounts.iter().map(|(id, amount)| ((*id).to_owned(), *amount)).collect();
    let auto = BTreeSet::from([Kind::MissedEvent]);
    plan(findings, PlanContext { run_id: "run_1", auto: &auto, entry_amounts: &entry_amounts })
}

#[test]
fn a_missed_event_is_replayed_with_its_effect() {
    let rows = planned(&[finding(Kind::MissedEvent, Action::ReplayEvent)], &[]);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.action, &*row.effect_key, row.amount_minor), (Action::ReplayEvent, "credit:ch_1", 5_000));
    assert_eq!((&*row.allowed_by, &*row.reason), ("auto", "missed_event"));
    assert_eq!(row.correction_id, row.expected_id("run_1"));
    assert_ne!(row.correction_id, row.expected_id("run_2"), "the run is part of the id");
}

#[test]
fn a_missed_refund_moves_the_balance_down() {
    let refund = Finding {
        effect: Some(EffectKind::Refund),
        object_id: "re_1".into(),
        expected_minor: Some(-700),
        ..finding(Kind::UnappliedEvent, Action::ReplayEvent)
    };
    let wrong_way = Finding { expected_minor: Some(700), ..refund.clone() };
    let rows = planned(&[refund, wrong_way], &[]);
    assert_eq!(rows.len(), 1, "a refund that would add money is no refund");
    assert_eq!((rows[0].amount_minor, &*rows[0].allowed_by), (-700, "review"));
}

#[test]
fn a_state_only_event_becomes_set_state() {
    let state = Finding {
        effect: None,
        expected_minor: None,
        currency: String::new(),
        expected_state: Some(Status::Refunded),
        ..finding(Kind::MissedEvent, Action::ReplayEvent)
    };
    let nothing = Finding { expected_state: None, ..state.clone() };
    let rows = planned(&[state, nothing], &[]);
    assert_eq!((rows[0].action, &*rows[0].effect_key), (Action::SetState, "state:ch_1"));
    assert_eq!((rows[0].target_state, rows[0].amount_minor), (Some(Status::Refunded), 0));
    assert_eq!((rows[1].action, &*rows[1].effect_key), (Action::ReplayEvent, "event:evt_1"));
}

#[test]
fn every_excess_row_is_reversed_with_its_own_amount() {
    let duplicate = Finding {
        effect_ids: vec!["e1".into(), "e2".into(), "e3".into()],
        found_minor: Some(6_000),
        expected_minor: Some(5_000),
        ..finding(Kind::DuplicateEffect, Action::ReverseEntry)
    };
    let keys = |rows: &[Correction]| {
        rows.iter().map(|row| (row.effect_key.clone(), row.amount_minor)).collect::<Vec<_>>()
    };
    let known = planned(std::slice::from_ref(&duplicate), &[("e1", 5_000), ("e2", 300), ("e3", 700)]);
    assert_eq!(keys(&known), [("reverse:e2".into(), -300), ("reverse:e3".into(), -700)]);
    assert_eq!(known[1].effect_ids, ["e1", "e3"]);
    let split = planned(std::slice::from_ref(&duplicate), &[]);
    assert_eq!(keys(&split), [("reverse:e2".into(), -500), ("reverse:e3".into(), -500)]);
    let uneven = Finding { found_minor: Some(6_001), ..duplicate };
    assert!(planned(&[uneven], &[("e2", 300)]).is_empty(), "an amount is never guessed");
}

#[test]
fn a_refund_booked_twice_is_reversed_upwards() {
    let duplicate = Finding {
        effect: Some(EffectKind::Refund),
        effect_ids: vec!["e1".into(), "e2".into()],
        expected_minor: Some(-400),
        found_minor: Some(-800),
        ..finding(Kind::DuplicateEffect, Action::ReverseEntry)
    };
    assert_eq!(planned(std::slice::from_ref(&duplicate), &[("e2", 400)])[0].amount_minor, 400);
    assert_eq!(planned(&[duplicate], &[])[0].amount_minor, 400);
}

#[test]
fn review_is_not_planned() {
    assert!(planned(&[finding(Kind::OrphanEffect, Action::Review)], &[]).is_empty());
}

#[test]
fn every_field_is_in_the_id() {
    let row = planned(&[finding(Kind::MissedEvent, Action::ReplayEvent)], &[]).remove(0);
    let edits: [fn(&mut Correction); 16] = [
        |row| row.finding_id.push('x'),
        |row| row.scope = Scope::new("x", "", "live"),
        |row| row.scope = Scope::new("stripe", "x", "live"),
        |row| row.scope = Scope::new("stripe", "", "test"),
        |row| row.action = Action::ApplyEffect,
        |row| row.effect_key.push('x'),
        |row| row.object_id.push('x'),
        |row| row.root_id.push('x'),
        |row| row.effect = None,
        |row| row.currency.push('x'),
        |row| row.amount_minor += 1,
        |row| row.target_state = Some(Status::Paid),
        |row| row.reason.push('x'),
        |row| row.allowed_by = "review".into(),
        |row| row.event_ids.push("x".into()),
        |row| row.occurred_at_us += 1,
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut edited = row.clone();
        edit(&mut edited);
        assert_ne!(edited.expected_id("run_1"), row.correction_id, "edit {number}");
    }
}

#[test]
fn caps_count_rows_and_magnitudes_per_currency() {
    let settings = |count_max, minor_max: &[(&str, i64)]| CorrectionSettings {
        auto: BTreeSet::new(),
        count_max,
        minor_max: minor_max.iter().map(|(currency, cap)| ((*currency).to_owned(), *cap)).collect(),
    };
    let credit = finding(Kind::MissedEvent, Action::ReplayEvent);
    let refund = Finding { effect: Some(EffectKind::Refund), expected_minor: Some(-5_000), ..credit.clone() };
    let rows = planned(&[credit, refund], &[]);
    assert_eq!(check_caps(&rows, &settings(2, &[("usd", 10_000)])), Ok(()));
    assert_eq!(
        check_caps(&rows, &settings(1, &[("usd", 10_000)])),
        Err(CapError::Rows { rows: 2, count_max: 1 })
    );
    assert_eq!(
        check_caps(&rows, &settings(2, &[("usd", 9_999)])),
        Err(CapError::Money { currency: "usd".into(), moved_minor: 10_000, minor_max: 9_999 }),
        "opposite signs do not hide each other"
    );
    assert_eq!(
        check_caps(&rows, &settings(2, &[("eur", 9_999)])),
        Err(CapError::NoCap { currency: "usd".into(), moved_minor: 10_000 })
    );
}
