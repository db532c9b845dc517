//! Each stack's tables, filled with a history as that stack would hold it, but for what is planted.

use super::history::History;
use crate::books::Kind;
use recon::demo::world::Stream;
use recon::record::{EffectKind, Status};
use std::collections::BTreeMap;

/// A row: table and values, each a literal.
pub type Row = (&'static str, Vec<String>);

/// A stack, what is planted in it and where its files are.
pub struct Stack {
    /// Folder below `examples/`, with its `schema.sql`.
    pub name: &'static str,
    /// The databases that there are files for, and where.
    pub examples: &'static [(Kind, &'static str)],
    /// What `init --from` must say.
    pub says: &'static [&'static str],
    pub rows: fn(&History) -> Vec<Row>,
    /// Kind of finding, and the payment that it is about.
    pub planted: fn(&History) -> Vec<(&'static str, usize)>,
}

pub const PLAIN: Stack = Stack {
    name: "plain",
    examples: &[
        (Kind::Sqlite, "plain/sqlite"),
        (Kind::Postgres, "plain/postgres"),
        (Kind::MariaDb, "plain/mariadb"),
    ],
    says: &["inbox: a plain inbox (webhook_events)", "books: plain books (payments, refunds)"],
    rows: plain,
    planted: |history| {
        vec![
            ("duplicate_effect", history.doubled),
            ("missed_event", history.missed),
            ("unapplied_event", history.failed),
            ("stale_state", history.stale),
        ]
    },
};

pub const PAY: Stack = Stack {
    name: "pay",
    examples: &[(Kind::Postgres, "pay")],
    says: &[
        "inbox: not recognised\nbooks: the pay gem (pay_charges, pay_customers)",
        "pay_webhooks is no inbox: pay deletes an event",
        "cannot be checked: statuses",
    ],
    rows: pay,
    planted: |history| {
        vec![
            ("duplicate_effect", history.doubled),
            ("missing_effect", history.missed),
            ("missing_effect", history.failed),
            ("missing_effect", history.stale),
        ]
    },
};

pub const DJSTRIPE: Stack = Stack {
    name: "djstripe",
    examples: &[(Kind::Postgres, "djstripe")],
    says: &[
        "inbox: dj-stripe (djstripe_event, djstripe_webhookeventtrigger)\nbooks: dj-stripe (djstripe_charge, djstripe_dispute)",
        "a credit cannot stand in it twice",
    ],
    rows: djstripe,
    planted: |history| {
        vec![
            ("missed_event", history.missed),
            ("unapplied_event", history.failed),
            // The refund's event was processed, and the mirrored charge is older.
            ("unapplied_event", history.stale),
        ]
    },
};

pub const CASHIER: Stack = Stack {
    name: "cashier",
    examples: &[(Kind::MariaDb, "cashier")],
    says: &[
        "inbox: laravel-webhook-client (webhook_calls)\nbooks: not recognised",
        "neither charges nor refunds nor events",
        "can be checked: events that never came. Not whether they had their effect",
    ],
    rows: cashier,
    planted: |history| vec![("missed_event", history.missed)],
};

/// A schema as another database writes it.
pub fn dialect(kind: Kind, schema: &str) -> String {
    let pairs: &[(&str, &str)] = match kind {
        Kind::Sqlite => &[],
        Kind::Postgres => &[(" timestamp null", " timestamp")],
        Kind::MariaDb => &[
            ("timestamp with time zone", "datetime(6)"),
            (" timestamp not null", " datetime not null"),
            ("jsonb", "json"),
            ("body text", "body longtext"),
            ("payload text", "payload longtext"),
        ],
    };
    pairs.iter().fold(schema.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Insert statements, many rows to one.
pub fn batches(kind: Kind, rows: &[Row]) -> Vec<String> {
    // A server's own time zone is none of ours.
    let zone = if kind == Kind::MariaDb { "set time_zone = '+00:00';\n" } else { "" };
    let insert = |chunk: &[Row]| {
        let lines = chunk
            .iter()
            .map(|(table, values)| format!("insert into {table} values ({});\n", values.join(", ")));
        format!("{zone}{}", lines.collect::<String>())
    };
    rows.chunks(200).map(insert).collect()
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn at(second: i64) -> String {
    let instant = chrono::DateTime::from_timestamp(second, 0).unwrap();
    format!("'{}'", instant.format("%Y-%m-%d %H:%M:%S"))
}

const NULL: &str = "null";

fn none() -> String {
    NULL.to_owned()
}

/// The words of the plain pair.
const fn word(status: Status) -> &'static str {
    match status {
        Status::Paid => "completed",
        Status::PartiallyRefunded => "partial_refund",
        Status::Refunded => "refunded",
        Status::Disputed => "in_dispute",
        Status::DisputeLost => "lost",
        Status::Pending => "open",
        Status::Failed => "declined",
        Status::Canceled => "cancelled",
    }
}

fn plain(history: &History) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (number, event) in history.delivered().into_iter().enumerate() {
        if event.payment == Some(history.missed) {
            continue;
        }
        let status = if event.payment == Some(history.failed) { "failed" } else { "processed" };
        let columns =
            [text(&event.id), text(event.kind), text(&event.body), text(status), at(event.created_s + 2)];
        rows.push(("webhook_events", std::iter::once(number.to_string()).chain(columns).collect()));
    }
    let mut ids = BTreeMap::new();
    let mut pay = |payment: usize, root: &str, minor: i64, currency: &str, second: i64| {
        let id = ids.len() + usize::from(ids.contains_key(root)) * 1_000_000;
        ids.entry(root.to_owned()).or_insert(id);
        let status = if payment == history.stale { Status::Paid } else { history.world.states[root] };
        let columns = [
            id.to_string(),
            text(root),
            minor.to_string(),
            text(currency),
            text(word(status)),
            at(second + 3),
            // Nothing has touched the stale one since it was paid.
            at(if payment == history.stale { second } else { history.last_s(payment) } + 3),
        ];
        rows.push(("payments", columns.to_vec()));
    };
    for (payment, effect) in history.moved(EffectKind::Credit) {
        if [history.missed, history.failed].contains(&payment) {
            continue;
        }
        let times = if payment == history.doubled { 2 } else { 1 };
        for time in 0..times {
            pay(
                payment,
                &effect.root_id,
                effect.amount_minor,
                effect.currency,
                effect.occurred_s + 40 * time,
            );
        }
    }
    for (number, (_, effect)) in history.moved(EffectKind::Refund).into_iter().enumerate() {
        let columns = [
            number.to_string(),
            ids[&effect.root_id].to_string(),
            text(&effect.object_id),
            effect.amount_minor.to_string(),
            at(effect.occurred_s + 3),
        ];
        rows.push(("refunds", columns.to_vec()));
    }
    rows
}

fn pay(history: &History) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut customers: BTreeMap<String, usize> = BTreeMap::new();
    let at_start = at(history.world.from_s());
    let mut customer = |rows: &mut Vec<Row>, id: &str| {
        let number = customers.len();
        *customers.entry(id.to_owned()).or_insert_with(|| {
            let named =
                [number.to_string(), text("User"), number.to_string(), text("stripe"), text(id), none()];
            let rest = [text("Pay::Stripe::Customer"), at_start.clone(), at_start.clone()];
            rows.push(("pay_customers", named.into_iter().chain(rest).collect()));
            number
        })
    };
    let mut number = 0;
    for (payment, charge) in history.records(Stream::Charges) {
        if charge["status"] == "failed" || [history.missed, history.failed].contains(&payment) {
            continue;
        }
        let mut customer_ids = vec![charge["customer"].as_str().unwrap().to_owned()];
        if payment == history.doubled {
            // The same charge stands under two customers of one person.
            customer_ids.push("cus_merged0000".to_owned());
        }
        let refunded = if payment == history.stale { 0 } else { charge["amount_refunded"].as_i64().unwrap() };
        for customer_id in customer_ids {
            let owner = customer(&mut rows, &customer_id);
            let columns = [
                number.to_string(),
                owner.to_string(),
                none(),
                text(charge["id"].as_str().unwrap()),
                charge["amount"].to_string(),
                text(charge["currency"].as_str().unwrap()),
                none(),
                refunded.to_string(),
                text("Pay::Stripe::Charge"),
                text(&charge.to_string()),
                at(charge["created"].as_i64().unwrap()),
                at(history.last_s(payment) + 4),
            ];
            rows.push(("pay_charges", columns.to_vec()));
            number += 1;
        }
    }
    rows
}

fn djstripe(history: &History) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let lost = [history.missed, history.failed];
    for (number, (payment, mut charge)) in history.records(Stream::Charges).into_iter().enumerate() {
        if lost.contains(&payment) {
            continue;
        }
        if payment == history.stale {
            charge["amount_refunded"] = 0.into();
            charge["refunded"] = false.into();
        }
        let created = charge["created"].as_i64().unwrap();
        let minor = charge["amount"].as_i64().unwrap();
        let mut columns = mirrored(number, created + 5, history.last_s(payment) + 5, &charge);
        columns.push(format!("{}.{:02}", minor / 100, minor % 100));
        columns.push(text(charge["currency"].as_str().unwrap()));
        columns.push(text(charge["status"].as_str().unwrap()));
        rows.push(("djstripe_charge", columns));
    }
    for (number, (payment, dispute)) in history.records(Stream::Disputes).into_iter().enumerate() {
        let created = dispute["created"].as_i64().unwrap();
        let mut columns = mirrored(number, created + 5, history.last_s(payment) + 5, &dispute);
        columns.push(text(dispute["charge"].as_str().unwrap()));
        rows.push(("djstripe_dispute", columns));
    }
    for (number, event) in history.delivered().into_iter().enumerate() {
        if event.payment == Some(history.missed) {
            continue;
        }
        let is_processed = event.payment != Some(history.failed);
        let wire: serde_json::Value = serde_json::from_str(&event.body).unwrap();
        let second = event.created_s + 5;
        if is_processed {
            let mut columns = mirrored(number, second, second, &wire);
            columns.extend([text("2026-08-26.dahlia"), text(&wire["data"].to_string()), text(""), text("")]);
            columns.push(text(event.kind));
            rows.push(("djstripe_event", columns));
        }
        let error = if is_processed { "" } else { "No such customer" };
        let columns = [
            number.to_string(),
            text("203.0.113.7"),
            text("{}"),
            text(&event.body),
            "true".to_owned(),
            is_processed.to_string(),
            text(error),
            text(""),
            text("2.11.0"),
            at(second),
            at(second),
            if is_processed { text(&event.id) } else { none() },
        ];
        rows.push(("djstripe_webhookeventtrigger", columns.to_vec()));
    }
    // Anybody may post anything.
    let garbage = [
        "999999",
        "'198.51.100.1'",
        "'{}'",
        "'{not json'",
        "false",
        "false",
        "''",
        "''",
        "'2.11.0'",
        "'2026-06-01 00:00:00'",
        "'2026-06-01 00:00:00'",
        NULL,
    ];
    rows.push(("djstripe_webhookeventtrigger", garbage.map(str::to_owned).to_vec()));
    rows
}

/// The columns that every mirrored object begins with.
fn mirrored(number: usize, stored: i64, updated: i64, object: &serde_json::Value) -> Vec<String> {
    vec![
        number.to_string(),
        at(stored),
        at(updated),
        text(&object.to_string()),
        text(object["id"].as_str().unwrap()),
        object["livemode"].as_bool().unwrap().to_string(),
        at(object["created"].as_i64().unwrap()),
    ]
}

fn cashier(history: &History) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (number, event) in history.delivered().into_iter().enumerate() {
        if event.payment == Some(history.missed) {
            continue;
        }
        let call = |id: usize, second: i64, exception: String| -> Row {
            let columns = [
                id.to_string(),
                text("stripe"),
                text("https://shop.example.com/stripe/webhook"),
                text("{}"),
                text(&event.body),
                exception,
                at(second),
                at(second),
            ];
            ("webhook_calls", columns.to_vec())
        };
        if event.payment == Some(history.failed) {
            // It failed, and the second delivery did not: a row each.
            rows.push(call(1_000_000 + number, event.created_s + 1, text("{\"message\": \"No such user\"}")));
        }
        rows.push(call(number, event.created_s + 2, none()));
    }
    rows
}
