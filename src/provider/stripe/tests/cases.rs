//! Field cases of the object lists.

use super::*;

#[test]
fn c23_disputes_are_judged_by_movement() {
    let won = read(
        "disputes",
        &dispute("won", &[("dispute", -8000, 0), ("fee", -1500, 0), ("dispute_reversal", 8000, 0)]),
    );
    assert_eq!(won.effects(), ["dispute_withdrawn dp_1 8000 usd", "dispute_reinstated dp_1 8000 usd"]);
    assert_eq!((won.status(), won.causes()), (None, vec![]));
    assert_eq!(won.aliases(), ["dp_1→pi_1+", "ch_1→pi_1"]);

    let lost = read("disputes", &dispute("lost", &[("dispute", -8000, 1500)]));
    assert_eq!(lost.effects(), ["dispute_withdrawn dp_1 8000 usd"]);
    assert_eq!((lost.status(), lost.causes()), (Some(Status::DisputeLost), vec![]));

    let claimed = read("disputes", &dispute("won", &[("dispute", -8000, 0), ("adjustment", -1500, 0)]));
    assert_eq!(claimed.effects(), ["dispute_withdrawn dp_1 8000 usd"]);
    assert_eq!(claimed.status(), Some(Status::Disputed));
    assert_eq!(claimed.causes(), ["won_without_reinstatement"]);
    assert_eq!(claimed.notes[0].kind, NoteKind::NeedsReview);
}

#[test]
fn c23_neighbours_of_a_decided_dispute() {
    let open = read("disputes", &dispute("under_review", &[("dispute", -8000, 1500)]));
    assert_eq!((open.status(), open.causes()), (Some(Status::Disputed), vec![]));
    for inquiry in ["warning_needs_response", "warning_under_review", "warning_closed", "prevented"] {
        let seen = read("disputes", &dispute(inquiry, &[]));
        assert_eq!((seen.effects.len(), seen.status(), seen.causes()), (0, None, vec![]), "{inquiry}");
    }
    let both = read("disputes", &dispute("lost", &[("dispute", -8000, 0), ("dispute_reversal", 8000, 0)]));
    assert_eq!((both.status(), both.causes()), (None, vec!["lost_with_reinstatement"]));
    let none = read("disputes", &dispute("lost", &[]));
    assert_eq!((none.status(), none.causes()), (None, vec!["lost_without_withdrawal"]));
    let twice = read("disputes", &dispute("needs_response", &[("dispute", -8000, 0), ("dispute", -8000, 0)]));
    assert_eq!((twice.effects.len(), twice.causes()), (1, vec!["moved_more_than_once"]));
    let part = read("disputes", &dispute("won", &[("dispute", -8000, 0), ("dispute_reversal", 3000, 0)]));
    assert_eq!(part.effects(), ["dispute_withdrawn dp_1 8000 usd", "dispute_reinstated dp_1 3000 usd"]);
    // Parts add up; they are not the whole because there are two of them.
    let parts = [("dispute", -8000, 0), ("dispute_reversal", 3000, 0), ("dispute_reversal", 2000, 0)];
    let in_parts = read("disputes", &dispute("won", &parts));
    assert_eq!(in_parts.effects(), ["dispute_withdrawn dp_1 8000 usd", "dispute_reinstated dp_1 5000 usd"]);
    let appeal = read("disputes", &dispute("appeal_under_review", &[("dispute", -8000, 0)]));
    assert_eq!((appeal.status(), appeal.causes()), (Some(Status::Disputed), vec![]));
    // Settled in another currency: the amount is the disputed one, in the charge's currency.
    let settled = dispute("lost", &[("dispute", -7312, 1500)]);
    let foreign = read("disputes", &with(settled, &json!({"currency": "eur"})));
    assert_eq!(foreign.effects(), ["dispute_withdrawn dp_1 8000 eur"]);
    // A fee that came back is not the money that came back.
    let fee_back = read("disputes", &dispute("lost", &[("dispute", -8000, 1500), ("fee", 1500, 0)]));
    assert_eq!((fee_back.effects.len(), fee_back.status()), (1, Some(Status::DisputeLost)));
}

#[test]
fn c25_a_clock_that_runs_ahead_is_brought_back() {
    let seen = read(
        "charges",
        &with(without(charge(), "balance_transaction"), &json!({"created": 4_102_444_800_i64})),
    );
    assert_eq!(seen.causes(), ["future_timestamp"]);
    assert_eq!(seen.notes[0].kind, NoteKind::NeedsReview);
    let latest = reading().now_us + 300 * SECOND;
    assert_eq!(seen.effects[0].occurred_at_us, latest);
    assert!(!seen.effects[0].in_window);
    let edge = reading().now_us / SECOND + 300;
    assert!(read("charges", &with(charge(), &json!({"created": edge}))).notes.is_empty());
    let over = read("charges", &with(charge(), &json!({"created": edge + 1})));
    assert_eq!(over.causes(), ["future_timestamp"]);
    for impossible in [json!(-1), json!(i64::MAX), json!(253_402_300_800_i64)] {
        let seen = read("charges", &with(charge(), &json!({"created": impossible})));
        assert_eq!(seen.causes(), ["wrong_type"], "{impossible}");
    }
}

#[test]
fn c33_an_invoice_finds_its_payment_wherever_the_link_stands() {
    let bare = without(invoice(), "payments");
    for link in [
        json!({"payment_intent": "pi_1"}),
        json!({"payment_intent": {"id": "pi_1", "object": "payment_intent"}, "charge": "ch_1"}),
        json!({"payments": {"data": [{"payment": {"type": "payment_intent", "payment_intent": "pi_1"}}]}}),
        json!({"payments": {"data": [
            {"is_default": true, "status": "canceled", "payment": {"type": "payment_intent", "payment_intent": "pi_0"}},
            {"status": "paid", "payment": {"type": "payment_intent", "payment_intent": {"id": "pi_1"}}},
        ]}}),
    ] {
        let seen = read("invoices", &with(bare.clone(), &link));
        assert_eq!((seen.aliases(), seen.causes()), (vec!["in_1→pi_1".to_owned()], vec![]), "{link}");
    }
    let by_charge = read("invoices", &with(bare.clone(), &json!({"charge": "ch_1"})));
    assert_eq!(by_charge.aliases(), ["in_1→ch_1"]);

    let neither = read("invoices", &bare);
    assert_eq!(neither.causes(), ["missing_reference"]);
    assert_eq!(neither.notes[0].kind, NoteKind::UnknownShape);
    assert!(neither.notes[0].text.contains("invoice.payments.data[].payment"));
    for no_money in [
        json!({"amount_paid": 0}),
        json!({"paid_out_of_band": true}),
        json!({"amount_paid_off_stripe": 5000}),
        json!({"amount_paid": 0, "status": "open", "payments": null}),
    ] {
        let seen = read("invoices", &with(bare.clone(), &no_money));
        assert!(seen.notes.is_empty() && seen.aliases.is_empty(), "{no_money}");
    }
    let minimal = json!({"object": "invoice", "id": "in_1", "created": T});
    assert_eq!(read("invoices", &minimal).causes(), ["missing_reference"]);
}

#[test]
fn c33_an_invoice_that_two_payments_paid() {
    let payment =
        |id: &str| json!({"status": "paid", "payment": {"type": "payment_intent", "payment_intent": id}});
    let twice = json!({"amount_overpaid": 5000, "payments": {"data": [payment("pi_1"), payment("pi_2")]}});
    let seen = read("invoices", &with(invoice(), &twice));
    assert_eq!((seen.causes(), seen.aliases()), (vec!["invoice_overpaid"], Vec::new()));
    let parts = with(invoice(), &twice);
    let seen = read("invoices", &with(parts, &json!({"amount_overpaid": 0})));
    assert!(seen.notes.is_empty(), "parts of one invoice");
    assert!(seen.aliases().is_empty(), "each payment stands for itself, and the invoice leads to none");
    let parts = |record: &serde_json::Value| {
        invoice_parts(&reading().scope, "invoices", &serde_json::to_vec(record).unwrap())
    };
    let read = parts(&with(invoice(), &twice)).unwrap();
    let payments: Vec<&str> = read.payment_ids.iter().map(|id| &**id).collect();
    assert_eq!((&*read.invoice_id, payments, read.due_minor), ("in_1", vec!["pi_1", "pi_2"], 0));
    assert_eq!(parts(&invoice()), None);
}

#[test]
fn c35_references_in_every_form() {
    for form in [json!("pi_1"), json!({"id": "pi_1"}), json!({"id": "pi_1", "deleted": true})] {
        let seen = read("refunds", &with(refund(), &json!({"payment_intent": form})));
        assert_eq!(
            (seen.aliases(), seen.causes()),
            (vec!["re_1→pi_1+".to_owned(), "ch_1→pi_1".to_owned()], vec![])
        );
    }
    let bare = json!({"id": "dp_1", "charge": "ch_1", "amount": 851});
    let seen = read("disputes", &bare);
    assert_eq!(seen.aliases(), ["dp_1→ch_1+"]);
    assert_eq!(seen.notes[0].root_id, "ch_1");
    let gone = read("invoices", &json!({"id": "in_1", "object": "invoice", "deleted": true}));
    assert!(gone.aliases.is_empty() && gone.notes.is_empty());
}

#[test]
fn c36_unknown_words_are_named_and_never_booked() {
    let magic = read("refunds", &with(refund(), &json!({"status": "requires_magic"})));
    assert_eq!((magic.effects.len(), magic.causes()), (0, vec!["unknown_value"]));
    assert_eq!(magic.notes[0].text, "`refund.status` is `requires_magic`, which is not known");
    let charge = read("charges", &with(charge(), &json!({"status": "teleported"})));
    assert_eq!((charge.effects.len(), charge.states.len(), charge.causes()), (0, 0, vec!["unknown_value"]));
    let dispute = read("disputes", &dispute("haunted", &[("dispute", -8000, 0)]));
    assert_eq!((dispute.effects.len(), dispute.causes()), (1, vec!["unknown_value"]));
    let balance =
        read("balance_transactions", &with(balance("txn_1", "charge", 1, 0), &json!({"type": "gift"})));
    assert_eq!(balance.causes(), ["unknown_value"]);
    // What is not a plain word may be anything, also somebody's name.
    let personal = read("refunds", &with(refund(), &json!({"status": "for Ana <ana@example.com>"})));
    assert!(personal.notes[0].text.contains("(not a word)"));
    // One note names everything of one kind.
    let two = json!({"status": "requires_magic", "currency": "dollars"});
    assert_eq!(read("refunds", &with(refund(), &two)).notes.len(), 1);
}

#[test]
fn c37_numeric_ids_keep_every_digit() {
    let mut total = 0;
    let mut ids = Vec::new();
    for id in ["9007199254740992", "9007199254740993", "9223372036854775807", "18446744073709551616000"] {
        let record =
            serde_json::to_string(&with(charge(), &json!({"amount_captured": 100, "amount": 100}))).unwrap();
        let record = record.replace("\"ch_1\"", id).replace("\"pi_1\"", "null");
        let all = facts(&reading(), "charges", record.as_bytes()).unwrap();
        for fact in all {
            if let Fact::ProviderEffect(effect) = fact {
                total += effect.amount_minor;
                ids.push(effect.object_id);
            }
        }
    }
    assert_eq!(total, 400);
    assert_eq!(
        ids,
        ["9007199254740992", "9007199254740993", "9223372036854775807", "18446744073709551616000"]
    );
}

#[test]
fn c39_c41_amounts_stay_as_the_provider_counts_them() {
    for (currency, amount, causes) in [
        ("jpy", 5800, vec![]),
        ("kwd", 18_600, vec![]),
        ("bhd", 35_200, vec![]),
        ("kwd", 18_601, vec!["impossible_amount"]),
        ("isk", 5800, vec![]),
        ("ugx", 5801, vec!["impossible_amount"]),
        ("huf", 5801, vec![]),
    ] {
        let change = json!({"amount": amount, "amount_captured": amount, "currency": currency});
        let seen = read("charges", &with(charge(), &change));
        assert_eq!(seen.effects(), [format!("credit ch_1 {amount} {currency}")]);
        assert_eq!(seen.causes(), causes, "{amount} {currency}");
    }
    let upper = read("charges", &with(charge(), &json!({"currency": "USD"})));
    assert_eq!(upper.effects(), ["credit ch_1 5000 usd"]);
}

#[test]
fn c43_amount_refunded_is_a_total() {
    for (refunded, flag, status) in [
        (0, false, Status::Paid),
        (1000, false, Status::PartiallyRefunded),
        (1500, false, Status::PartiallyRefunded),
        (5000, true, Status::Refunded),
    ] {
        let change = json!({"amount_refunded": refunded, "refunded": flag});
        let seen = read("charges", &with(charge(), &change));
        assert_eq!(seen.status(), Some(status), "{refunded}");
        assert_eq!(seen.states[0].refunded_minor, Some(refunded));
        assert_eq!(seen.effects(), ["credit ch_1 5000 usd"], "refunds are effects of their own");
    }
}

#[test]
fn c45_the_released_part_of_a_capture_is_no_refund() {
    let captured = |captured: i64, refunded: i64, flag: bool| {
        let change = json!({
            "amount": 10_000, "amount_captured": captured, "amount_refunded": refunded, "refunded": flag,
        });
        let seen = read("charges", &with(charge(), &change));
        (seen.effects(), seen.status().unwrap(), seen.states[0].refunded_minor.unwrap())
    };
    let credit = |amount: i64| vec![format!("credit ch_1 {amount} usd")];
    // Between two captures nothing is released yet.
    assert_eq!(captured(3000, 0, false), (credit(3000), Status::Paid, 0));
    assert_eq!(captured(5000, 0, false), (credit(5000), Status::Paid, 0));
    // The released 5000 shows as refunded.
    assert_eq!(captured(5000, 5000, false), (credit(5000), Status::Paid, 0));
    // Real refunds on top of it.
    assert_eq!(captured(5000, 7000, false), (credit(5000), Status::PartiallyRefunded, 2000));
    assert_eq!(captured(5000, 10_000, true), (credit(5000), Status::Refunded, 5000));
    // Not contained in it.
    assert_eq!(captured(3000, 1000, false), (credit(3000), Status::PartiallyRefunded, 1000));
    // Before 2020 a charge did not say how much was captured.
    let old = without(with(charge(), &json!({"amount": 10_000})), "amount_captured");
    assert_eq!(read("charges", &old).effects(), credit(10_000));
    // The refund record of a release moved no money.
    let release = read("refunds", &with(refund(), &json!({"amount": 5000, "balance_transaction": null})));
    assert!(release.effects.is_empty() && release.notes.is_empty());
    // Captures above the authorisation can be seen: both numbers are there.
    let above = json!({"amount": 10_000, "amount_captured": 12_000});
    let seen = read("charges", &with(charge(), &above));
    assert_eq!((seen.effects(), seen.states[0].authorized_minor), (credit(12_000), Some(10_000)));
}

#[test]
fn c48_presentment_and_settlement_currency_stay_apart() {
    let mut settled = balance("txn_1", "charge", 6150, 210);
    settled["exchange_rate"] = json!(0.006_833);
    let record = with(
        charge(),
        &json!({
            "amount": 9000, "amount_captured": 9000, "currency": "jpy", "balance_transaction": settled,
        }),
    );
    let with_fees = Reading { effects: EffectKind::ALL.into_iter().collect(), ..reading() };
    let seen = read_with(&with_fees, "charges", &record);
    assert_eq!(seen.effects(), ["credit ch_1 9000 jpy", "fee ch_1 210 usd"]);
}

#[test]
fn c54_the_basis_decides_the_month() {
    let mut settled = balance("txn_1", "charge", 5000, 0);
    settled["created"] = json!(1_769_860_800);
    settled["available_on"] = json!(1_770_249_600);
    let record = with(charge(), &json!({"created": 1_769_860_800, "balance_transaction": settled}));
    let february = Window { from_us: 1_769_904_000 * SECOND, until_us: 1_772_323_200 * SECOND };
    let months = |basis| {
        let january = Reading { basis, now_us: february.until_us, ..reading() };
        let february = Reading { window: february, ..january.clone() };
        [january, february].map(|reading| read_with(&reading, "charges", &record).effects[0].in_window)
    };
    assert_eq!(months(Basis::Created), [true, false]);
    assert_eq!(months(Basis::Available), [false, true]);

    let by_arrival = Reading { basis: Basis::Available, window: february, ..reading() };
    let arriving = with(payout(), &json!({"created": 1_769_860_800, "arrival_date": 1_770_336_000}));
    assert!(read_with(&by_arrival, "payouts", &arriving).effects[0].in_window);

    let undated = with(charge(), &json!({"balance_transaction": "txn_1"}));
    assert_eq!(read_with(&by_arrival, "charges", &undated).causes(), ["late_field"]);
}

#[test]
fn c88_the_other_mode_gives_nothing_but_a_note() {
    for (stream, record) in [
        ("charges", charge()),
        ("payouts", payout()),
        ("disputes", dispute("won", &[])),
        ("invoices", invoice()),
    ] {
        let seen = read(stream, &with(record, &json!({"livemode": false})));
        assert_eq!(seen.causes(), ["other_mode"], "{stream}");
        assert_eq!(seen.notes[0].kind, NoteKind::WrongScope);
        assert!(seen.effects.is_empty() && seen.states.is_empty() && seen.aliases.is_empty(), "{stream}");
    }
    let test_scope = Reading { scope: Scope::new("stripe", "", "test"), ..reading() };
    assert!(read_with(&test_scope, "charges", &with(charge(), &json!({"livemode": false}))).notes.is_empty());
}
