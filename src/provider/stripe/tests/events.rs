//! What events announce.

use super::*;
use crate::record::Tracks;

fn tracks(kind: &str, object: &Value) -> (Tracks, String, String) {
    let seen = read("events", &event(kind, object));
    assert!(seen.notes.is_empty(), "{kind}: {:?}", seen.notes);
    let event = seen.events[0].clone();
    (event.tracks, event.object_id, event.root_id)
}

fn expect(kind: &str, object: &Value, wanted: Tracks, object_id: &str, root_id: &str) {
    assert_eq!(tracks(kind, object), (wanted, object_id.to_owned(), root_id.to_owned()), "{kind} {object}");
}

const CREDIT: Tracks = Tracks::Effect(EffectKind::Credit);
const REFUND: Tracks = Tracks::Effect(EffectKind::Refund);

#[test]
fn one_payment_is_announced_by_many_types() {
    expect("charge.succeeded", &charge(), CREDIT, "ch_1", "pi_1");
    expect("charge.captured", &charge(), CREDIT, "ch_1", "pi_1");
    expect("payment_intent.succeeded", &payment_intent(), CREDIT, "ch_1", "pi_1");
    expect("invoice.paid", &invoice(), CREDIT, "pi_1", "pi_1");
    expect("invoice.payment_succeeded", &invoice(), CREDIT, "pi_1", "pi_1");
    expect("checkout.session.completed", &session(), CREDIT, "pi_1", "pi_1");
    expect("checkout.session.async_payment_succeeded", &session(), CREDIT, "pi_1", "pi_1");
    let listed = &invoice()["payments"]["data"][0];
    expect("invoice_payment.paid", listed, CREDIT, "pi_1", "pi_1");
    let old = with(without(invoice(), "payments"), &json!({"payment_intent": "pi_1", "charge": "ch_1"}));
    expect("invoice.paid", &old, CREDIT, "ch_1", "pi_1");
    let subscription = with(session(), &json!({"payment_intent": null, "invoice": "in_1"}));
    expect("checkout.session.completed", &subscription, CREDIT, "in_1", "in_1");
}

#[test]
fn money_that_did_not_come_in_is_not_announced() {
    expect("charge.succeeded", &with(charge(), &json!({"captured": false})), Tracks::State, "ch_1", "pi_1");
    expect(
        "checkout.session.completed",
        &with(session(), &json!({"payment_status": "unpaid"})),
        Tracks::State,
        "pi_1",
        "pi_1",
    );
    expect(
        "checkout.session.completed",
        &with(session(), &json!({"payment_status": "no_payment_required"})),
        Tracks::Nothing,
        "pi_1",
        "pi_1",
    );
    expect(
        "invoice.paid",
        &with(invoice(), &json!({"amount_paid": 0, "payments": {"data": []}})),
        Tracks::Nothing,
        "in_1",
        "in_1",
    );
    expect(
        "invoice.paid",
        &with(invoice(), &json!({"paid_out_of_band": true, "payments": {"data": []}})),
        Tracks::Nothing,
        "in_1",
        "in_1",
    );
    expect(
        "payment_intent.payment_failed",
        &with(payment_intent(), &json!({"status": "requires_payment_method"})),
        Tracks::State,
        "ch_1",
        "pi_1",
    );
    expect("charge.failed", &with(charge(), &json!({"status": "failed"})), Tracks::State, "ch_1", "pi_1");
    expect(
        "checkout.session.async_payment_failed",
        &with(session(), &json!({"payment_status": "unpaid"})),
        Tracks::State,
        "pi_1",
        "pi_1",
    );
    expect("charge.updated", &charge(), Tracks::Nothing, "ch_1", "pi_1");
    expect("payout.created", &payout(), Tracks::Nothing, "po_1", "po_1");
    expect("payout.paid", &payout(), Tracks::Effect(EffectKind::Payout), "po_1", "po_1");
}

#[test]
fn refunds_are_announced_by_their_own_types_and_by_the_charge() {
    expect("refund.created", &refund(), REFUND, "re_1", "pi_1");
    expect("refund.created", &with(refund(), &json!({"status": "pending"})), Tracks::State, "re_1", "pi_1");
    expect(
        "refund.created",
        &with(refund(), &json!({"balance_transaction": null})),
        Tracks::Nothing,
        "re_1",
        "pi_1",
    );
    expect("refund.failed", &with(refund(), &json!({"status": "failed"})), Tracks::State, "re_1", "pi_1");
    let mut updated = event("refund.updated", &refund());
    for (previous, wanted) in [
        (json!({"status": "pending"}), REFUND),
        (json!({"metadata": {}}), Tracks::Nothing),
        (Value::Null, REFUND),
    ] {
        updated["data"]["previous_attributes"] = previous;
        assert_eq!(read("events", &updated).events[0].tracks, wanted, "{updated}");
    }
    let release = with(charge(), &json!({"captured": false, "refunded": true}));
    expect("charge.refunded", &release, Tracks::State, "ch_1", "pi_1");
    expect("charge.refunded", &charge(), REFUND, "pi_1", "pi_1");
}

#[test]
fn c29_a_refund_is_found_inside_the_charge_where_it_is_certain() {
    let list = |ids: &[&str]| {
        let data: Vec<Value> = ids.iter().map(|id| json!({"id": id, "object": "refund"})).collect();
        json!({"object": "list", "data": data})
    };
    let refunded = |now: &[&str], before: Option<&[&str]>| {
        let mut record = event("charge.refunded", &with(charge(), &json!({"refunds": list(now)})));
        if let Some(before) = before {
            record["data"]["previous_attributes"] = json!({"amount_refunded": 0, "refunds": list(before)});
        }
        read("events", &record).events[0].object_id.clone()
    };
    assert_eq!(refunded(&["re_1"], None), "re_1");
    assert_eq!(refunded(&["re_2", "re_1"], Some(&["re_1"])), "re_2");
    assert_eq!(refunded(&["re_2", "re_1"], None), "pi_1");
    assert_eq!(refunded(&[], None), "pi_1");
    assert_eq!(refunded(&["re_1"], Some(&["re_1"])), "pi_1");

    let only_refunds = Reading { wanted: Some(["refund.updated".to_owned()].into()), ..reading() };
    let seen = read_with(&only_refunds, "events", &event("charge.refunded", &charge()));
    assert!(!seen.events[0].wanted);
    assert_eq!(seen.events[0].tracks, REFUND);
}

#[test]
fn disputes_move_money_only_by_their_funds_events() {
    let object = dispute("needs_response", &[]);
    expect("charge.dispute.created", &object, Tracks::State, "dp_1", "pi_1");
    expect(
        "charge.dispute.funds_withdrawn",
        &object,
        Tracks::Effect(EffectKind::DisputeWithdrawn),
        "dp_1",
        "pi_1",
    );
    expect(
        "charge.dispute.funds_reinstated",
        &object,
        Tracks::Effect(EffectKind::DisputeReinstated),
        "dp_1",
        "pi_1",
    );
    expect("charge.dispute.closed", &object, Tracks::State, "dp_1", "pi_1");
    let seen = read(
        "events",
        &event("charge.dispute.created", &json!({"id": "dp_1", "charge": "ch_1", "amount": 851})),
    );
    assert_eq!((seen.aliases(), seen.events[0].root_id.as_str()), (vec!["dp_1→ch_1+".to_owned()], "ch_1"));
}

#[test]
fn effects_that_are_not_booked_are_not_tracked_as_such() {
    let reading_of = |kinds: &[EffectKind]| Reading { effects: kinds.iter().copied().collect(), ..reading() };
    let of = |reading: &Reading, kind: &str, object: &Value| {
        read_with(reading, "events", &event(kind, object)).events[0].tracks
    };
    let credits = reading_of(&[EffectKind::Credit]);
    assert_eq!(of(&credits, "refund.created", &refund()), Tracks::State);
    assert_eq!(of(&credits, "payout.paid", &payout()), Tracks::Nothing);
    assert_eq!(of(&credits, "charge.succeeded", &charge()), CREDIT);
    let fees = reading_of(&[EffectKind::Fee]);
    assert_eq!(of(&fees, "charge.succeeded", &charge()), Tracks::Effect(EffectKind::Fee));
    let mut late = event("charge.updated", &charge());
    late["data"]["previous_attributes"] = json!({"balance_transaction": null});
    assert_eq!(read_with(&fees, "events", &late).events[0].tracks, Tracks::Effect(EffectKind::Fee));
    assert_eq!(read("events", &late).events[0].tracks, Tracks::Nothing);
}

#[test]
fn youth_and_retries_excuse_an_event_for_a_while() {
    let now = reading().now_us / SECOND;
    let settled = |created: i64, pending: i64, grace: bool| {
        let record = with(
            event("charge.succeeded", &charge()),
            &json!({"created": created, "pending_webhooks": pending}),
        );
        read_with(&Reading { grace, ..reading() }, "events", &record).events[0].settled
    };
    assert!(settled(now - 300, 0, true));
    assert!(!settled(now - 299, 0, true));
    assert!(settled(now - 299, 1, false));
    assert!(!settled(now - 3 * DAY + 1, 1, true));
    assert!(settled(now - 3 * DAY, 1, true));
    assert!(settled(now - 3 * DAY + 1, 0, true));
    assert!(!settled(now + 1, 0, true));
    assert!(!settled(now + 1, 0, false));
}

#[test]
fn c25_an_event_from_the_future_is_noted_and_never_settled() {
    let record = with(event("charge.succeeded", &charge()), &json!({"created": 4_102_444_800_i64}));
    let seen = read_with(&Reading { grace: false, ..reading() }, "events", &record);
    assert_eq!(seen.causes(), ["future_timestamp"]);
    assert!(!seen.events[0].settled);
    assert_eq!(seen.events[0].created_us, reading().now_us + 300 * SECOND);
}

#[test]
fn c36_unknown_types_are_named_and_foreign_ones_are_not() {
    let seen = read("events", &event("payment_intent.teleported", &payment_intent()));
    assert_eq!((seen.causes(), seen.events[0].tracks), (vec!["unknown_type"], Tracks::Nothing));
    assert_eq!(seen.notes[0].event_ids, ["evt_1"]);
    let refund = with(refund(), &json!({"status": "requires_magic"}));
    let seen = read("events", &event("refund.created", &refund));
    assert_eq!((seen.causes(), seen.events[0].tracks), (vec!["unknown_value"], Tracks::Nothing));
    assert_eq!((seen.notes[0].object_id.as_str(), seen.notes[0].root_id.as_str()), ("re_1", "pi_1"));
    for foreign in
        ["customer.created", "product.updated", "invoiceitem.created", "balance.available", "v9.anything"]
    {
        let seen = read("events", &event(foreign, &json!({"id": "x_1", "object": "x"})));
        assert_eq!((seen.notes.len(), seen.events[0].tracks), (0, Tracks::Nothing), "{foreign}");
        assert_eq!(seen.events[0].object_id, "x_1");
    }
    let unwanted = Reading { wanted: Some(["charge.succeeded".to_owned()].into()), ..reading() };
    let seen = read_with(&unwanted, "events", &event("payment_intent.teleported", &payment_intent()));
    assert!(seen.notes.is_empty() && !seen.events[0].wanted);
    let every = Reading { wanted: Some(["*".to_owned()].into()), ..reading() };
    assert!(read_with(&every, "events", &event("charge.succeeded", &charge())).events[0].wanted);
}

#[test]
fn c88_events_of_another_mode_or_account_give_nothing_but_a_note() {
    let base = event("charge.succeeded", &charge());
    for (change, cause) in [
        (json!({"id": "evt_00000000000000", "livemode": false}), "other_mode"),
        (json!({"account": "acct_2"}), "other_account"),
    ] {
        let seen = read("events", &with(base.clone(), &change));
        assert_eq!(seen.causes(), [cause]);
        assert_eq!(seen.notes[0].kind, NoteKind::WrongScope);
        assert!(seen.events.is_empty() && seen.aliases.is_empty());
    }
    let connected = Reading { scope: Scope::new("stripe", "acct_2", "live"), ..reading() };
    assert_eq!(read_with(&connected, "events", &with(base, &json!({"account": "acct_2"}))).events.len(), 1);
}

#[test]
fn thin_events_and_events_without_an_object_are_named() {
    let thin = json!({"id": "evt_1", "object": "v2.core.event", "created": "2026-01-01T00:00:00.000Z",
                      "livemode": true, "type": "v1.billing.meter.error_report_triggered"});
    let seen = read("events", &thin);
    assert!(seen.events.is_empty());
    assert_eq!(seen.notes[0].kind, NoteKind::UnknownShape);
    let mut hollow = event("charge.succeeded", &charge());
    hollow["data"] = json!("x");
    let seen = read("events", &hollow);
    assert_eq!((seen.causes(), seen.events[0].tracks), (vec!["missing_field"], Tracks::Nothing));
    assert_eq!(seen.events[0].object_id, "evt_1");
    // An event about another object than its type promises.
    let seen = read("events", &event("charge.succeeded", &json!({"id": "plan_1", "object": "plan"})));
    assert_eq!((seen.causes(), seen.events[0].tracks), (vec!["other_object"], Tracks::Nothing));
    // An upcoming invoice has no id.
    let upcoming = event("invoice.upcoming", &without(invoice(), "id"));
    assert!(read("events", &upcoming).notes.is_empty());
}
