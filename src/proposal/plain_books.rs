//! Books of nobody's framework: a table with one row for each payment, or for each line of a ledger, and a table of
//! refunds beside it where there is one.

use super::Part;
use super::plain::{
    AMOUNTS, BOOKED, CHANGED, CURRENCIES, EVENT_IDS, KINDS, MINOR, OBJECTS, REFUNDED, REFUNDS, STATUSES,
    UNDOES, is_candidate,
};
use super::plain_inbox::{account, mode, only_stripe, say_clock};
use super::plain_states::{map_words, states};
use super::plain_unbooked::LeftOut;
use super::schema::{Column, Flavour, Kind, Schema, Table};
use super::sql::Clock;
use super::words::{self, Money};

/// Rows that are there and no effect.
const UNBOOKED_FILE: &str = "unbooked.sql";
/// Names that such a table commonly has, the likeliest first.
const NAMES: [&str; 10] = [
    "payments",
    "stripe_payments",
    "payment_transactions",
    "charges",
    "stripe_charges",
    "ledger_entries",
    "ledger",
    "transactions",
    "purchases",
    "orders",
];

/// What is booked, and in which form.
pub(super) struct Amount<'a> {
    pub(super) column: &'a Column,
    /// `amount_minor` or `amount`.
    pub(super) as_name: &'static str,
}

/// The columns that make a table books.
pub(super) struct Found<'a> {
    pub(super) table: &'a Table,
    pub(super) id: &'a Column,
    pub(super) object: &'a Column,
    pub(super) amount: Amount<'a>,
    pub(super) currency: Option<&'a Column>,
    pub(super) booked: &'a Column,
    pub(super) booked_clock: (Clock, bool),
    pub(super) changed: &'a Column,
    pub(super) changed_clock: (Clock, bool),
    pub(super) kind: Option<&'a Column>,
    pub(super) status: Option<&'a Column>,
}

pub(super) fn books(schema: &Schema) -> Option<Part> {
    let flavour = schema.flavour;
    let found = NAMES
        .iter()
        .flat_map(|name| schema.tables.iter().filter(move |table| table.is_called(name)))
        .find_map(|table| columns(flavour, table))?;
    let mut part = Part::new("plain books", &[found.table]);
    let mut selects = vec![credits(flavour, &found, &mut part)];
    let mut left_out = vec![left_out(flavour, &found, &mut part)];
    if found.kind.is_none() {
        let refunds = refunds_table(schema, &found, &mut part)
            .or_else(|| refunded_column(flavour, &found, &mut part).map(|select| (select, None)));
        match refunds {
            Some((select, unbooked)) => {
                selects.push(select);
                left_out.extend(unbooked);
                part.effects.push("refund");
            }
            None => part.missing.push(format!(
                "no refunds were found, neither a table of them that this role may read nor a refunded amount in {}: they are not \
                 compared. Where there is one, grant select on it and run this again",
                found.table.shown()
            )),
        }
    }
    let states = states(flavour, &found, &mut part);
    let all = |selects: &[String]| selects.join("\nunion all\n");
    part.statements =
        vec![("effects.sql", all(&selects)), ("states.sql", states), (UNBOOKED_FILE, all(&left_out))];
    say(flavour, &found, &mut part);
    Some(part)
}

fn columns(flavour: Flavour, table: &Table) -> Option<Found<'_>> {
    if !is_candidate(table) {
        return None;
    }
    let booked = table.first(&BOOKED)?;
    let changed = table.first(&CHANGED).unwrap_or(booked);
    let kind = table.first(&KINDS).filter(|column| column.has_words());
    let kind = kind.filter(|column| table.words(column).any(|word| words::effect(word).is_some()));
    Some(Found {
        id: table.column("id").or_else(|| table.columns.first())?,
        object: table.first(&OBJECTS).filter(|column| column.kind == Kind::Text)?,
        amount: amount(table)?,
        currency: table.first(&CURRENCIES),
        booked_clock: Clock::of(flavour, table, booked)?,
        booked,
        changed_clock: Clock::of(flavour, table, changed)?,
        changed,
        kind,
        status: table.first(&STATUSES).filter(|column| column.has_words()),
        table,
    })
}

/// A floating-point amount is none: it does not hold decimal money exactly.
fn amount(table: &Table) -> Option<Amount<'_>> {
    let is_whole = |column: &&Column| column.kind == Kind::Integer;
    if let Some(column) = table.first(&MINOR).filter(is_whole) {
        return Some(Amount { column, as_name: "amount_minor" });
    }
    let column = table.first(&AMOUNTS)?;
    match column.kind {
        Kind::Integer => Some(Amount { column, as_name: "amount_minor" }),
        Kind::Decimal | Kind::Text => Some(Amount { column, as_name: "amount" }),
        _ => None,
    }
}

fn currency(flavour: Flavour, found: &Found<'_>, alias: &str) -> String {
    found.currency.map_or_else(|| "''".to_owned(), |column| flavour.column(alias, column))
}

/// The columns of an effect in the order of the contract.
struct Effect<'a> {
    row_id: String,
    account: String,
    mode: String,
    object: String,
    kind: String,
    amount: (String, &'a str),
    currency: String,
    at: String,
    event: String,
    undoes: String,
}

impl Effect<'_> {
    fn select(&self) -> String {
        let Self { row_id, account, mode, object, kind, amount, currency, at, event, undoes } = self;
        let (amount, as_name) = amount;
        format!(
            "select
    {row_id} as effect_id,
    'stripe' as provider,
    {account} as account,
    {mode} as mode,
    {object} as object_id,
    {kind} as kind,
    {amount} as {as_name},
    {currency} as currency,
    {at} as applied_at_us,
    {event} as event_id,
    {undoes} as corrects_effect_id"
        )
    }
}

fn credits(flavour: Flavour, found: &Found<'_>, part: &mut Part) -> String {
    let table = found.table;
    let name = |column: &Column| flavour.column("p", column);
    let id = flavour.text(&name(found.id));
    let optional = |names: &[&str]| table.first(names).map_or_else(|| "null".to_owned(), &name);
    let undoes = table.first(&UNDOES).map_or_else(|| "null".to_owned(), |column| flavour.text(&name(column)));
    let (kind, only) = match found.kind {
        Some(column) => kinds(flavour, table, column, part),
        None => ("'credit'".to_owned(), paid_only(flavour, found, part)),
    };
    if part.effects.is_empty() {
        part.effects.push("credit");
    }
    let has_refunds = found.kind.is_none();
    let effect = Effect {
        row_id: if has_refunds { format!("'payment:' || {id}") } else { id },
        account: account(flavour, table, "p", part),
        mode: mode(flavour, table, "p", part),
        object: name(found.object),
        kind,
        amount: (name(found.amount.column), found.amount.as_name),
        currency: currency(flavour, found, "p"),
        at: flavour.instant_us(found.booked_clock.0, &name(found.booked)),
        event: optional(&EVENT_IDS[..6]),
        undoes,
    };
    format!(
        "{}\nfrom {} p\nwhere {}{}\n    and {} is not null{only}",
        effect.select(),
        flavour.table(table),
        flavour.window_or_none(found.booked_clock.0, &name(found.booked), "applied_at_us"),
        only_stripe(flavour, table, "p", part),
        name(found.object),
    )
}

/// Rows of the payments that are no credit: not paid, or without an id.
fn left_out(flavour: Flavour, found: &Found<'_>, part: &mut Part) -> String {
    let table = found.table;
    let mut quiet = Part::new("", &[]);
    let id = flavour.text(&flavour.column("p", found.id));
    let status = found.status.filter(|_| found.kind.is_none());
    let object = flavour.column("p", found.object);
    part.assumed.push(format!(
        "a row of {} without {} is no payment by Stripe, so effects.sql leaves it out; `recon check` counts those that are \
         paid",
        table.shown(),
        found.object.name
    ));
    let left_out = LeftOut {
        row_id: if found.kind.is_none() { format!("'payment:' || {id}") } else { id },
        account: account(flavour, table, "p", &mut quiet),
        mode: mode(flavour, table, "p", &mut quiet),
        object,
        kind: "credit",
        status: status.map(|column| (flavour.word("p", column), paid_words(flavour, table, column))),
        from: format!("{} p", flavour.table(table)),
        only: only_stripe(flavour, table, "p", &mut quiet),
    };
    left_out.select(flavour)
}

/// Kinds by their words. What is not known is left out, and said.
fn kinds(flavour: Flavour, table: &Table, column: &Column, part: &mut Part) -> (String, String) {
    let name = flavour.word("p", column);
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for word in table.words(column) {
        match words::effect(word) {
            Some(kind) => known.push((word, kind)),
            None => unknown.push(word),
        }
    }
    for (_, kind) in &known {
        if !part.effects.contains(kind) {
            part.effects.push(kind);
        }
    }
    let shown = format!("{}.{}", table.shown(), column.name);
    let said: Vec<String> = known.iter().map(|(word, kind)| format!("{word} is {kind}")).collect();
    part.assumed.push(format!("{shown} says what a row is: {}", said.join(", ")));
    if !unknown.is_empty() {
        part.missing.push(format!(
            "rows whose {shown} is {} are left out: what they do to a balance is not known. Add them to effects.sql",
            unknown.join(", ")
        ));
    }
    let cases: Vec<String> =
        known.iter().map(|(word, kind)| format!("when {} then '{kind}'", flavour.literal(word))).collect();
    let list: Vec<String> = known.iter().map(|(word, _)| flavour.literal(word)).collect();
    (format!("case {name} {} end", cases.join(" ")), format!("\n    and {name} in ({})", list.join(", ")))
}

/// Only what was paid is a credit.
fn paid_only(flavour: Flavour, found: &Found<'_>, part: &mut Part) -> String {
    let table = found.table;
    let Some(column) = found.status else {
        part.assumed.push(format!(
            "every row of {} was paid: there is no column that says so. Add a condition to effects.sql where that is wrong",
            table.shown()
        ));
        return String::new();
    };
    part.assumed.push(format!(
        "a row was paid where {}.{} is one of the words that effects.sql lists",
        table.shown(),
        column.name
    ));
    let list = paid_words(flavour, table, column);
    format!("\n    and {} in (\n        {list}\n    )", flavour.word("p", column))
}

/// Every word that means paid, and the team's own spellings of them: one that is not seen yet must not be left out.
fn paid_words(flavour: Flavour, table: &Table, column: &Column) -> String {
    let is_paid = |word: &&str| words::status(word).is_some_and(|(_, money)| money == Money::Paid);
    let own = table
        .words(column)
        .filter(is_paid)
        .filter(|word| !words::PAID.iter().any(|(known, _)| known == word));
    let all: Vec<String> =
        words::PAID.iter().map(|(word, _)| *word).chain(own).map(|word| flavour.literal(word)).collect();
    let lines: Vec<String> = all.chunks(8).map(|chunk| chunk.join(", ")).collect();
    lines.join(",\n        ")
}

/// A table of refunds with ids of Stripe's.
fn refunds_table(schema: &Schema, found: &Found<'_>, part: &mut Part) -> Option<(String, Option<String>)> {
    let flavour = schema.flavour;
    let table = schema.tables.iter().find(|table| {
        table.schema == found.table.schema
            && is_candidate(table)
            && table.name.to_ascii_lowercase().trim_end_matches('s').ends_with("refund")
    })?;
    let name = |column: &Column| flavour.column("r", column);
    let object = table.first(&REFUNDS).filter(|column| column.kind == Kind::Text)?;
    let amount = amount(table)?;
    let at = table.first(&BOOKED)?;
    let clock = Clock::of(flavour, table, at)?;
    let id = table.column("id").or_else(|| table.columns.first())?;
    let (currency, join) = if let Some(column) = table.first(&CURRENCIES) {
        (name(column), String::new())
    } else {
        let key = table.first(&["payment_id", "charge_id", "order_id", "transaction_id"])?;
        let (payments, id) = (flavour.table(found.table), flavour.column("p", found.id));
        (currency(flavour, found, "p"), format!("\njoin {payments} p on {id} = {}", name(key)))
    };
    let only = done_refunds(flavour, table, part);
    let status = table.first(&STATUSES).filter(|column| column.has_words());
    let mut quiet = Part::new("", &[]);
    let left_out = LeftOut {
        row_id: format!("'refund:' || {}", flavour.text(&name(id))),
        account: account(flavour, table, "r", &mut quiet),
        mode: mode(flavour, table, "r", &mut quiet),
        object: name(object),
        kind: "refund",
        status: status.map(|column| (flavour.word("r", column), paid_words(flavour, table, column))),
        from: format!("{} r", flavour.table(table)),
        only: String::new(),
    };
    let effect = Effect {
        row_id: format!("'refund:' || {}", flavour.text(&name(id))),
        account: account(flavour, table, "r", part),
        mode: mode(flavour, table, "r", part),
        object: name(object),
        kind: "'refund'".to_owned(),
        amount: (name(amount.column), amount.as_name),
        currency,
        at: flavour.instant_us(clock.0, &name(at)),
        event: table.first(&EVENT_IDS[..6]).map_or_else(|| "null".to_owned(), &name),
        undoes: "null".to_owned(),
    };
    if amount.as_name != found.amount.as_name {
        // The two selects of a union have one name for the column.
        return None;
    }
    part.tables.push(table.shown());
    say_clock(clock, table, at, part);
    let select = format!(
        "{}\nfrom {} r{join}\nwhere {}\n    and {} is not null{only}",
        effect.select(),
        flavour.table(table),
        flavour.window_or_none(clock.0, &name(at), "applied_at_us"),
        name(object),
    );
    Some((select, Some(left_out.select(flavour))))
}

fn done_refunds(flavour: Flavour, table: &Table, part: &mut Part) -> String {
    let Some(column) = table.first(&STATUSES).filter(|column| column.has_words()) else {
        return String::new();
    };
    part.assumed.push(format!(
        "a refund went out where {}.{} is one of the words that effects.sql lists",
        table.shown(),
        column.name
    ));
    map_words(table, column, part);
    let list = paid_words(flavour, table, column);
    format!("\n    and {} in (\n        {list}\n    )", flavour.word("r", column))
}

/// A refunded amount in the payment's own row.
fn refunded_column(flavour: Flavour, found: &Found<'_>, part: &mut Part) -> Option<String> {
    let table = found.table;
    let column = table.first(&REFUNDED)?;
    let is_same_form = (column.kind == Kind::Integer) == (found.amount.as_name == "amount_minor");
    if !is_same_form || matches!(column.kind, Kind::Real | Kind::Other) {
        return None;
    }
    let name = |column: &Column| flavour.column("p", column);
    let mut quiet = Part::new("", &[]);
    let effect = Effect {
        row_id: format!("'refund:' || {}", flavour.text(&name(found.id))),
        account: account(flavour, table, "p", &mut quiet),
        mode: mode(flavour, table, "p", &mut quiet),
        object: name(found.object),
        kind: "'refund'".to_owned(),
        amount: (name(column), found.amount.as_name),
        currency: currency(flavour, found, "p"),
        at: flavour.instant_us(found.changed_clock.0, &name(found.changed)),
        event: "null".to_owned(),
        undoes: "null".to_owned(),
    };
    part.assumed.push(format!(
        "{}.{} is the total refunded so far, so the refunds of a payment are compared as one sum, at the time of the \
         row's last change",
        table.shown(),
        column.name
    ));
    Some(format!(
        "{}\nfrom {} p\nwhere {}{}\n    and {} is not null\n    and {} > 0",
        effect.select(),
        flavour.table(table),
        flavour.window_or_none(found.changed_clock.0, &name(found.changed), "applied_at_us"),
        only_stripe(flavour, table, "p", &mut quiet),
        name(found.object),
        name(column),
    ))
}

fn say(flavour: Flavour, found: &Found<'_>, part: &mut Part) {
    let table = found.table.shown();
    part.assumed.insert(0, format!("{table}.{} is Stripe's id of what was paid", found.object.name));
    let amount = found.amount.column;
    let shown = format!("{table}.{}", amount.name);
    part.assumed.insert(
        1,
        match (found.amount.as_name, flavour, amount.kind) {
            ("amount_minor", ..) => format!("{shown} is whole minor units (cents)"),
            (_, Flavour::Sqlite, Kind::Decimal) => format!(
                "{shown} is major units (19.99). SQLite keeps such a column as floating-point numbers, and the run will \
                 refuse them: keep it as text, or as whole minor units"
            ),
            _ => format!("{shown} is major units (19.99)"),
        },
    );
    if found.currency.is_none() {
        part.missing.push(format!(
            "{table} has no currency: write the one that you sell in into effects.sql, as in 'usd' as currency"
        ));
    }
    say_clock(found.booked_clock, found.table, found.booked, part);
    say_clock(found.changed_clock, found.table, found.changed, part);
}
