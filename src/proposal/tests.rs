//! Recognising, as a table: what a schema has, and what is proposed for it.

use super::*;

/// A schema from lines such as `payments: id int, amount bigint, status text = paid pending`, where what stands behind
/// `=` was sampled.
fn schema(flavour: Flavour, text: &str) -> Schema {
    let tables = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let (name, columns) = line.split_once(": ").unwrap();
        let (schema, name) = name.split_once('.').unwrap_or(("", name));
        let mut table = Table {
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns: Vec::new(),
            samples: BTreeMap::new(),
        };
        for column in columns.split(", ") {
            let (column, words) = column.split_once(" = ").unwrap_or((column, ""));
            let (column, declared) = column.split_once(' ').unwrap();
            if !words.is_empty() {
                let words = words.split('|').map(str::to_owned).collect();
                table.samples.insert(column.to_owned(), words);
            }
            table.columns.push(Column { name: column.to_owned(), kind: Kind::of(declared) });
        }
        table
    });
    Schema { flavour, tables: tables.collect() }
}

const PAIR: &str = "
    webhook_events: id bigint, event_id text, event_type text, payload text, status text = done|new, received_at timestamptz
    payments: id bigint, stripe_payment_intent_id text, amount_cents bigint, currency text, status text = completed|open, created_at timestamptz, updated_at timestamptz";

/// The stacks of both sides, what the books hold, and how many tables look near.
fn seen(text: &str) -> (Option<&'static str>, Option<&'static str>, Vec<&'static str>) {
    let proposal = recognise(&schema(Flavour::Postgres, text));
    let effects = proposal.books.as_ref().map(|books| books.effects.clone()).unwrap_or_default();
    (proposal.inbox.map(|part| part.stack), proposal.books.map(|part| part.stack), effects)
}

#[test]
fn what_a_schema_is_recognised_as() {
    let inbox = Some("a plain inbox");
    let books = Some("plain books");
    for (text, expected) in [
        (PAIR, (inbox, books, vec!["credit"])),
        // No id of Stripe's, no inbox.
        ("payments: id int, amount_cents int, currency text, created_at timestamp", (None, None, vec![])),
        // A floating-point amount is none.
        (
            "payments: id int, charge_id text, amount real, currency text, created_at timestamp",
            (None, None, vec![]),
        ),
        // An event table without a type says nothing.
        ("webhook_events: id text, created_at timestamp", (None, None, vec![])),
        ("webhook_events: id text, type text, created_at timestamp", (inbox, None, vec![])),
        // A number is no id of an event.
        ("webhook_events: id int, type text, created_at timestamp", (None, None, vec![])),
        (
            "ledger_entries: id int, charge_id text, kind text = credit|refund|adjustment, amount_minor int, currency text, booked_at timestamp",
            (None, books, vec!["credit", "refund"]),
        ),
        (
            "payments: id int, charge_id text, amount int, currency text, amount_refunded int, created_at timestamp",
            (None, books, vec!["credit", "refund"]),
        ),
        (
            "payments: id int, charge_id text, amount int, currency text, created_at timestamp
             refunds: id int, payment_id int, stripe_refund_id text, amount int, created_at timestamp",
            (None, books, vec!["credit", "refund"]),
        ),
        // As Prisma and others write names.
        (
            "WebhookEvent: id text, type text, createdAt timestamp
             Payment: id text, stripePaymentIntentId text, amount int, currency text, status user-defined, createdAt timestamp
             Refund: id text, paymentId text, stripeRefundId text, amount int, createdAt timestamp",
            (inbox, books, vec!["credit", "refund"]),
        ),
        ("billing.payments: id int, charge_id text, amount int, currency text, created_at timestamp", (None, books, vec!["credit"])),
        ("users: id int, email text", (None, None, vec![])),
    ] {
        assert_eq!(seen(text), expected, "{text}");
    }
}

#[test]
fn what_is_taken_for_granted_is_said() {
    let proposal = recognise(&schema(Flavour::Postgres, PAIR));
    let (inbox, books) = (proposal.inbox.unwrap(), proposal.books.unwrap());
    let said = [inbox.assumed, inbox.missing, books.assumed, books.missing].concat().join("\n");
    for expected in [
        "every row of webhook_events is about Stripe",
        "all of payments is live",
        "payments.stripe_payment_intent_id is Stripe's id",
        "payments.amount_cents is whole minor units",
        "a row was paid where payments.status is one of the words",
        "no refunds were found",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let map: Vec<(&str, &str)> = books.status_map.iter().map(|(word, ours)| (word.as_str(), *ours)).collect();
    assert_eq!(map, [("completed", "paid"), ("open", "pending")]);
}

#[test]
fn words_that_nobody_knows_are_named_and_never_mapped() {
    let text = PAIR.replace("completed|open", "completed|limbo").replace("done|new", "done|limbo");
    let proposal = recognise(&schema(Flavour::Postgres, &text));
    let (inbox, books) = (proposal.inbox.unwrap(), proposal.books.unwrap());
    assert!(
        books.missing.iter().any(|line| line.contains("no status is known for limbo in payments.status"))
    );
    assert!(
        inbox
            .missing
            .iter()
            .any(|line| line.contains("no status is known for limbo in webhook_events.status"))
    );
    assert_eq!(books.status_map.len(), 1);
}

#[test]
fn a_currency_that_is_nowhere_is_not_made_up() {
    let text = "payments: id int, charge_id text, amount int, created_at timestamp";
    let books = recognise(&schema(Flavour::MySql, text)).books.unwrap();
    assert!(books.statements[0].1.contains("'' as currency"), "{}", books.statements[0].1);
    assert!(books.missing.iter().any(|line| line.contains("has no currency")));
}

#[test]
fn what_looks_near_is_named_with_what_it_lacks() {
    let text = "orders: id int, total int, created_at timestamp\nusers: id int, email text";
    let proposal = recognise(&schema(Flavour::Sqlite, text));
    assert!(!proposal.is_useful());
    let [(name, why)] = &proposal.near[..] else { panic!("{:?}", proposal.near) };
    assert_eq!(name, "orders");
    assert!(why.contains("as books it lacks an id of Stripe's, a currency"), "{why}");
    let proposal = recognise(&schema(Flavour::Sqlite, &text.replace("total int", "total real")));
    assert!(proposal.near[0].1.ends_with("; its total is a floating-point number"), "{:?}", proposal.near);
}

#[test]
fn known_stacks_are_told_from_plain_tables() {
    let cashier = "
        users: id bigint, stripe_id varchar(255)
        subscriptions: id bigint, stripe_id varchar(255), stripe_status varchar(255), stripe_price varchar(255)
        subscription_items: id bigint, stripe_id varchar(255), stripe_price varchar(255)";
    let proposal = recognise(&schema(Flavour::MySql, cashier));
    assert!(!proposal.is_useful() && proposal.notes[0].contains("Laravel Cashier"), "{proposal:?}");

    let pay = "
        pay_customers: id bigint, processor varchar, stripe_account varchar
        pay_charges: id bigint, customer_id bigint, processor_id varchar, amount int, currency varchar, amount_refunded int, created_at timestamp, updated_at timestamp
        pay_webhooks: id bigint, event_type varchar, event jsonb, created_at timestamp";
    let proposal = recognise(&schema(Flavour::Postgres, pay));
    assert_eq!(proposal.inbox, None);
    assert_eq!(proposal.books.as_ref().map(|part| part.stack), Some("the pay gem"));
    assert!(proposal.notes[0].contains("pay_webhooks is no inbox"), "{:?}", proposal.notes);
    let with_object =
        recognise(&schema(Flavour::Postgres, &pay.replace("amount int,", "amount int, object jsonb,")));
    let differs = with_object.books.unwrap().statements[0].1.contains("amount_captured");
    assert!(differs && !proposal.books.unwrap().statements[0].1.contains("amount_captured"));
}

#[test]
fn the_configuration_names_a_variable_and_never_a_password() {
    let proposal = recognise(&schema(Flavour::Postgres, PAIR));
    let template = "[[provider]]\neffects = [\"credit\"]   # what your books hold\n[inbox]   # events\nurl = \"store\"   # or\n\
        [local]\nurl = \"store\"\n[local.status_map]   # words\n# completed = \"paid\"\n[other]\nurl = \"kept\"\n";
    let text = configuration(template, &proposal, &Place::Variable("BOOKS_URL".to_owned()));
    assert_eq!(text.matches("url = { env = \"BOOKS_URL\" }").count(), 2, "{text}");
    assert!(text.contains("completed = \"paid\"\nopen = \"pending\"\n[other]\nurl = \"kept\""), "{text}");
    assert!(text.contains("effects = [\"credit\"]"), "{text}");
    let books_only = Proposal { inbox: None, ..proposal };
    let text = configuration(template, &books_only, &Place::Open("sqlite:a\"b.db".to_owned()));
    assert!(
        text.contains("[inbox]   # events\nurl = \"none\"") && text.contains("url = \"sqlite:a\\\"b.db\""),
        "{text}"
    );
}
