//! Bodies that nobody should send: no panic, and never silence.

use super::*;
use std::fmt::Write;

const SEED: u64 = 0x5eed_0dd5;

/// xorshift: enough to vary inputs, and the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(count).unwrap()).unwrap()
    }
}

fn samples() -> Vec<(&'static str, Value)> {
    let refunded = with(charge(), &json!({"refunds": {"data": [{"id": "re_1"}]}, "invoice": "in_1"}));
    let mut updated = event("refund.updated", &refund());
    updated["account"] = json!(null);
    updated["data"]["previous_attributes"] = json!({"status": "pending"});
    vec![
        ("charges", with(charge(), &json!({"invoice": "in_1"}))),
        ("refunds", with(refund(), &json!({"balance_transaction": balance("txn_2", "refund", -1000, 0)}))),
        ("disputes", dispute("needs_response", &[("dispute", -8000, 1500)])),
        ("payouts", with(payout(), &json!({"balance_transaction": balance("txn_4", "payout", -9000, 0)}))),
        (
            "invoices",
            with(invoice(), &json!({"payment_intent": "pi_1", "charge": "ch_1", "paid_out_of_band": false})),
        ),
        ("checkout_sessions", with(session(), &json!({"invoice": "in_1"}))),
        ("payment_intents", with(payment_intent(), &json!({"invoice": "in_1", "last_payment_error": {}}))),
        ("balance_transactions", balance("txn_1", "charge", 5000, 205)),
        ("events", event("charge.refunded", &refunded)),
        ("events", updated),
        ("events", event("payment_intent.succeeded", &payment_intent())),
        ("events", event("invoice.paid", &invoice())),
        ("events", event("checkout.session.completed", &session())),
        ("events", event("charge.dispute.created", &dispute("needs_response", &[]))),
        ("events", event("invoice_payment.paid", &invoice()["payments"]["data"][0])),
        ("events", event("payout.paid", &payout())),
    ]
}

/// JSON pointers of every place in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, child)| (i.to_string(), child)).collect(),
        _ => return,
    };
    for (name, child) in children {
        let path = format!("{at}/{name}");
        places(child, &path, found);
        found.push(path);
    }
}

/// The places that are read, of a stream's records and of the objects that events carry.
const KNOWN: &[(&str, &str)] = &[
    (
        "charges",
        "id object livemode created amount amount_captured amount_refunded \
         balance_transaction balance_transaction/id balance_transaction/created \
         balance_transaction/available_on balance_transaction/amount balance_transaction/fee \
         balance_transaction/currency balance_transaction/type \
         balance_transaction/reporting_category captured currency invoice metadata \
         payment_intent refunded status",
    ),
    (
        "refunds",
        "id object created amount balance_transaction balance_transaction/created charge \
         currency payment_intent status",
    ),
    (
        "disputes",
        "id object livemode created amount balance_transactions balance_transactions/0 \
         balance_transactions/0/amount charge currency payment_intent status",
    ),
    ("payouts", "id object livemode created amount arrival_date balance_transaction currency status"),
    (
        "invoices",
        "id object livemode created amount_overpaid amount_paid amount_paid_off_stripe charge \
         paid_out_of_band payment_intent payments payments/data payments/data/0 \
         payments/data/0/payment payments/data/0/payment/payment_intent \
         payments/data/0/payment/type payments/data/0/status payments/data/0/is_default \
         status",
    ),
    (
        "checkout_sessions",
        "id object livemode created amount_total invoice mode payment_intent payment_status \
         status",
    ),
    ("payment_intents", "id object livemode created invoice last_payment_error latest_charge status"),
    (
        "balance_transactions",
        "id object available_on amount created currency fee reporting_category source type",
    ),
    (
        "events",
        "id object account created data data/object data/previous_attributes livemode \
         pending_webhooks type",
    ),
    ("charge", "id object captured invoice payment_intent refunds refunds/data refunds/data/0 status"),
    ("refund", "id object balance_transaction charge payment_intent status"),
    ("payment_intent", "id object latest_charge status"),
    ("invoice", "id object amount_paid amount_paid_off_stripe payments payments/data/0/payment"),
    ("checkout.session", "id object invoice payment_intent payment_status"),
    ("dispute", "id object charge payment_intent status"),
    ("invoice_payment", "id object invoice payment payment/payment_intent payment/type"),
    ("payout", "id object"),
];

fn is_read(stream: &str, path: &str, record: &Value) -> bool {
    let (object, inner) = match path.strip_prefix("/data/object/") {
        Some(inner) => (record["data"]["object"]["object"].as_str().unwrap(), inner),
        None => (stream, path.trim_start_matches('/')),
    };
    let known = KNOWN.iter().find(|(name, _)| *name == object).unwrap().1;
    known.split_whitespace().any(|place| place == inner)
}

fn says_something(stream: &str, body: &[u8]) -> bool {
    match facts(&reading(), stream, body) {
        Ok(facts) => facts.iter().any(|fact| matches!(fact, Fact::Note(_))),
        Err(_) => true,
    }
}

#[test]
fn a_wrong_type_at_any_known_place_is_never_silent() {
    // `true` is right for a flag and `{}` for an error, so each place is tried with types that differ.
    let values = [json!(true), json!([true]), json!({"x": 1}), json!("a b"), json!(1.5), json!(-3)];
    let mut tried = 0;
    for (stream, record) in samples() {
        assert!(!says_something(stream, &serde_json::to_vec(&record).unwrap()), "{stream} {record}");
        let mut paths = Vec::new();
        places(&record, "", &mut paths);
        for path in paths.iter().filter(|path| is_read(stream, path, &record)) {
            for value in &values {
                let was = record.pointer(path).unwrap();
                let is_same_type = std::mem::discriminant(was) == std::mem::discriminant(value);
                let is_id = path.ends_with("id") && value == &json!(-3);
                let may_be_reference = value == &json!(-3) && !was.is_number();
                if is_same_type || is_id || may_be_reference {
                    continue;
                }
                let mut changed = record.clone();
                *changed.pointer_mut(path).unwrap() = value.clone();
                tried += 1;
                let body = serde_json::to_vec(&changed).unwrap();
                assert!(says_something(stream, &body), "{stream} {path} = {value}: nothing was said");
            }
        }
    }
    assert!(tried > 500, "only {tried} places were tried");
}

#[test]
fn random_damage_never_panics() {
    let mut chance = Chance(SEED);
    let insertions: [&[u8]; 10] = [
        b"null",
        b"[",
        b"}",
        b"\"",
        b"\0",
        b"\\u0000",
        b"\xff",
        b"1e999",
        b"99999999999999999999",
        b",\"id\":\"x\"",
    ];
    for (stream, record) in samples() {
        let clean = serde_json::to_vec(&record).unwrap();
        for round in 0..1500 {
            let mut body = clean.clone();
            for _ in 0..=chance.below(3) {
                let at = chance.below(body.len());
                match chance.below(4) {
                    0 => body[at] = u8::try_from(chance.below(256)).unwrap(),
                    1 => body.truncate(at.max(1)),
                    2 => {
                        body.remove(at);
                        body.push(b' ');
                    }
                    _ => {
                        let insertion = insertions[chance.below(insertions.len())];
                        body.splice(at..at, insertion.iter().copied());
                    }
                }
            }
            let first = facts(&reading(), stream, &body);
            let again = facts(&reading(), stream, &body);
            assert_eq!(first, again, "seed {SEED:#x}, {stream}, round {round}");
            assert!(references(stream, &body).len() <= 1);
        }
    }
}

#[test]
fn values_swapped_at_random_never_panic() {
    let mut chance = Chance(SEED);
    let values = [
        json!(null),
        json!(true),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.1),
        json!(""),
        json!("ch_1"),
        json!([]),
        json!([[[]]]),
        json!({}),
        json!({"id": "ch_1"}),
        json!({"id": {"id": {}}}),
        json!({"data": [{"id": 1}, null, 3]}),
    ];
    for (stream, record) in samples() {
        let mut paths = Vec::new();
        places(&record, "", &mut paths);
        for _ in 0..1500 {
            let mut changed = record.clone();
            for _ in 0..=chance.below(3) {
                if let Some(place) = changed.pointer_mut(&paths[chance.below(paths.len())]) {
                    *place = values[chance.below(values.len())].clone();
                }
            }
            let body = serde_json::to_vec(&changed).unwrap();
            let reading = Reading {
                effects: EffectKind::ALL.into_iter().collect(),
                basis: if chance.below(2) == 0 { Basis::Created } else { Basis::Available },
                intent: Some("billing_details.email".to_owned()),
                ..reading()
            };
            assert_eq!(facts(&reading, stream, &body), facts(&reading, stream, &body));
        }
    }
}

#[test]
fn depth_size_and_repetition() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    for field in ["metadata", "balance_transaction", "outcome", "amount"] {
        let record = serde_json::to_string(&charge()).unwrap();
        let body = record.replacen('{', &format!("{{\"{field}_\":1,\"x\":{deep},"), 1);
        assert!(facts(&reading(), "charges", body.as_bytes()).is_ok());
        let replaced = serde_json::to_string(&without(charge(), field)).unwrap();
        let body = replaced.replacen('{', &format!("{{\"{field}\":{deep},"), 1);
        let said = says_something("charges", body.as_bytes());
        assert!(said || field == "outcome", "{field}");
    }
    let mut objects = String::new();
    for _ in 0..50_000 {
        write!(objects, "{{\"id\":").unwrap();
    }
    let body = format!("{{\"id\":\"ch_1\",\"payment_intent\":{objects}1{}}}", "}".repeat(50_000));
    assert!(says_something("charges", body.as_bytes()));
    let twice = r#"{"id":"ch_1","id":"ch_2"}"#;
    assert!(matches!(facts(&reading(), "charges", twice.as_bytes()), Err(ReadError::NotJson { .. })));
    let mut many = String::new();
    for i in 0..10_000 {
        write!(many, "\"k{i}\":{i},").unwrap();
    }
    let body = format!("{{{many}\"id\":\"ch_1\"}}");
    assert!(says_something("charges", body.as_bytes()));
}

#[test]
fn errors_name_the_stream_and_no_content() {
    let secret = "hunter2";
    for body in [
        format!("{{\"id\":\"{secret}\",\"created\":"),
        format!("\"{secret}\""),
        format!("[\"{secret}\"]"),
        format!("{{\"id\":[\"{secret}\"]}}"),
        format!("{{\"name\":\"{secret}\"}}"),
        format!("<html>{secret}"),
        String::new(),
    ] {
        let error = facts(&reading(), "charges", body.as_bytes()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("charges") && !text.contains(secret), "{text}");
    }
    assert!(matches!(
        facts(&reading(), "charges", b"{\"id\":\"\xff\"}"),
        Err(ReadError::NotJson { line: 0, column: 8, .. })
    ));
    assert!(matches!(facts(&reading(), "charges", b"[]"), Err(ReadError::NotAnObject { .. })));
    assert!(matches!(facts(&reading(), "customers", b"{}"), Err(ReadError::UnknownStream { .. })));
}
