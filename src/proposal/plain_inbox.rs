//! An inbox of nobody's framework: a table with one row for each event, or for each delivery of one.

use super::Part;
use super::plain::{
    ACCOUNTS, BODIES, DONE_FLAGS, DONE_INSTANTS, ERRORS, EVENT_IDS, EVENT_TYPES, LIVE, PROVIDERS, RECEIVED,
    STATUSES, is_candidate,
};
use super::schema::{Column, Flavour, Kind, Schema, Table};
use super::sql::Clock;

/// Names that such a table commonly has, the likeliest first; then any with `webhook` in it.
const NAMES: [&str; 6] =
    ["webhook_events", "stripe_events", "stripe_webhook_events", "payment_events", "webhooks", "events"];

/// Words that the run knows for where an event stands (`gather/inbox.rs`).
const KNOWN: [&str; 22] = [
    "received",
    "pending",
    "new",
    "queued",
    "unprocessed",
    "processing",
    "applied",
    "processed",
    "done",
    "completed",
    "succeeded",
    "success",
    "superseded",
    "ignored",
    "skipped",
    "parked",
    "deferred",
    "dead",
    "dead_letter",
    "failed",
    "error",
    "errored",
];

/// The columns that make a table an inbox.
struct Found<'a> {
    table: &'a Table,
    event_id: &'a Column,
    event_type: &'a Column,
    received: &'a Column,
    clock: (Clock, bool),
}

pub(super) fn inbox(schema: &Schema) -> Option<Part> {
    let place = |table: &Table| NAMES.iter().position(|name| table.is_called(name));
    let named = schema.tables.iter().filter(|table| {
        let name = table.name.to_ascii_lowercase();
        is_candidate(table) && (place(table).is_some() || name.contains("webhook"))
    });
    let mut found: Vec<Found<'_>> = named.filter_map(|table| columns(schema.flavour, table)).collect();
    found.sort_by_key(|found| (place(found.table).unwrap_or(NAMES.len()), found.table.shown()));
    Some(propose(schema.flavour, found.first()?))
}

fn columns(flavour: Flavour, table: &Table) -> Option<Found<'_>> {
    let is_id = |column: &&Column| matches!(column.kind, Kind::Text | Kind::Bytes);
    // `id` alone is the event's own where it is a text.
    let event_id = table.first(&EVENT_IDS).filter(is_id).or_else(|| table.column("id").filter(is_id))?;
    let event_type = table.first(&EVENT_TYPES).filter(|column| column.has_words())?;
    let received = table.first(&RECEIVED)?;
    let clock = Clock::of(flavour, table, received)?;
    Some(Found { table, event_id, event_type, received, clock })
}

fn propose(flavour: Flavour, found: &Found<'_>) -> Part {
    let table = found.table;
    let mut part = Part::new("a plain inbox", &[table]);
    let name = |column: &Column| flavour.name(&column.name);
    let (received, id) = (name(found.received), name(found.event_id));
    let only = only_stripe(flavour, table, "", &mut part);
    let statement = format!(
        "select
    'stripe' as provider,
    {} as account,
    {} as mode,
    {id} as event_id,
    {} as event_type,
    {} as received_at_us,
    {} as status
from {}
where {}{only}",
        account(flavour, table, "", &mut part),
        mode(flavour, table, "", &mut part),
        name(found.event_type),
        flavour.instant_us(found.clock.0, &received),
        status(flavour, table, &mut part),
        flavour.table(table),
        flavour.window_or_none(found.clock.0, &received, "received_at_us"),
    );
    say_clock(found.clock, table, found.received, &mut part);
    let bodies = bodies(flavour, found, &mut part);
    part.statements = vec![("inbox.sql", statement), ("inbox_body.sql", bodies)];
    part
}

/// The body of one event; where none is kept, a statement that gives nothing.
fn bodies(flavour: Flavour, found: &Found<'_>, part: &mut Part) -> String {
    let table = found.table;
    let body = table.first(&BODIES);
    let body = body.filter(|column| matches!(column.kind, Kind::Text | Kind::Bytes | Kind::Json));
    let (value, none) = if let Some(body) = body {
        if body.kind == Kind::Json {
            part.assumed.push(format!(
                "{}.{} holds the event, though not its bytes as received: a database writes JSON in its own form",
                table.shown(),
                body.name
            ));
        }
        (flavour.name(&body.name), "")
    } else {
        part.missing.push(format!(
            "{} keeps no bodies: where the bytes of an event are needed, the provider is asked",
            table.shown()
        ));
        ("null".to_owned(), "\n    and 1 = 0")
    };
    let id = flavour.name(&found.event_id.name);
    format!(
        "select {id} as event_id, {value} as body\nfrom {}\nwhere {id} = :event_id and :provider = 'stripe'{none}",
        flavour.table(table)
    )
}

/// Where an event stands: a word, or a flag or instant that says it is done.
fn status(flavour: Flavour, table: &Table, part: &mut Part) -> String {
    let name = |column: &Column| flavour.name(&column.name);
    if let Some(column) = table.first(&STATUSES).filter(|column| column.has_words()) {
        let unknown: Vec<&str> = table
            .words(column)
            .filter(|word| !KNOWN.contains(&word.trim().to_ascii_lowercase().as_str()))
            .collect();
        if !unknown.is_empty() {
            part.missing.push(format!(
                "no status is known for {} in {}.{}: the run will stop there. Give one of received, applied, ignored, \
                 parked, dead with a case expression in inbox.sql",
                unknown.join(", "),
                table.shown(),
                column.name
            ));
        }
        return name(column);
    }
    let error = table.first(&ERRORS);
    let failed = error.map(|column| format!("\n        when {} is not null then 'failed'", name(column)));
    let failed = failed.unwrap_or_default();
    if let Some(column) =
        table.first(&DONE_FLAGS).filter(|column| matches!(column.kind, Kind::Flag | Kind::Integer))
    {
        let done = if column.kind == Kind::Flag { name(column) } else { format!("{} = 1", name(column)) };
        return format!(
            "case\n        when {done} then 'processed'{failed}\n        else 'received'\n    end"
        );
    }
    if let Some(column) = table.first(&DONE_INSTANTS) {
        let done = format!("when {} is not null then 'processed'", name(column));
        return format!("case\n        {done}{failed}\n        else 'received'\n    end");
    }
    part.assumed.push(format!(
        "every row of {} counts as received: there is no column that says whether it was processed",
        table.shown()
    ));
    "'received'".to_owned()
}

/// The condition that a row is about Stripe, where a column says whose it is.
pub(super) fn only_stripe(flavour: Flavour, table: &Table, alias: &str, part: &mut Part) -> String {
    let column = table.first(&PROVIDERS).filter(|column| column.has_words());
    let Some(column) = column else {
        part.assumed.push(format!(
            "every row of {} is about Stripe: there is no column that says whose it is",
            table.shown()
        ));
        return String::new();
    };
    let seen = table.words(column).find(|word| word.eq_ignore_ascii_case("stripe"));
    let word = seen.unwrap_or("stripe");
    if seen.is_none() {
        part.assumed.push(format!(
            "{}.{} says stripe for Stripe; no row was seen that does",
            table.shown(),
            column.name
        ));
    }
    format!("\n    and {} = {}", flavour.word(alias, column), flavour.literal(word))
}

/// The account of a row.
pub(super) fn account(flavour: Flavour, table: &Table, alias: &str, part: &mut Part) -> String {
    match table.first(&ACCOUNTS).filter(|column| column.kind == Kind::Text) {
        Some(column) => {
            part.assumed.push(format!(
                "{}.{} is the connected account, and empty or null for the platform's own",
                table.shown(),
                column.name
            ));
            format!("coalesce({}, '')", flavour.column(alias, column))
        }
        None => "''".to_owned(),
    }
}

/// Whether a row is live.
pub(super) fn mode(flavour: Flavour, table: &Table, alias: &str, part: &mut Part) -> String {
    if let Some(column) = table.first(&LIVE).filter(|column| column.kind == Kind::Flag) {
        return format!("case when not {} then 'test' else 'live' end", flavour.column(alias, column));
    }
    part.assumed.push(format!("all of {} is live: there is no column that says so", table.shown()));
    "'live'".to_owned()
}

/// How an instant is read, where its type does not say it.
pub(super) fn say_clock(clock: (Clock, bool), table: &Table, column: &Column, part: &mut Part) {
    let shown = format!("{}.{}", table.shown(), column.name);
    let said = match clock {
        (Clock::Plain, _) => format!("{shown} has no zone and is UTC"),
        (Clock::Text, _) => format!("{shown} is text without a zone, or with one, and UTC where it has none"),
        (Clock::Count(unit), is_seen) => {
            let unit = match unit {
                1 => "seconds",
                1_000 => "milliseconds",
                _ => "microseconds",
            };
            let why = if is_seen { "as a value of it shows" } else { "no row was there to look at" };
            format!("{shown} counts {unit} since 1970 ({why})")
        }
        (Clock::Zoned, _) => return,
    };
    if !part.assumed.contains(&said) {
        part.assumed.push(said);
    }
}

/// The table of `spatie/laravel-webhook-client`, which Laravel applications use beside Cashier: one row for each delivery.
/// Source: `database/migrations/create_webhook_calls_table.php.stub` of
/// <https://github.com/spatie/laravel-webhook-client> 3 (commit 0fa731c, read 2026-11-30), and
/// <https://github.com/spatie/laravel-stripe-webhooks> 3.10 (2026), whose configuration is called `stripe`.
pub(super) fn webhook_calls(schema: &Schema) -> Option<Part> {
    let flavour = schema.flavour;
    let table = schema.table_with("webhook_calls", &["id", "name", "payload", "exception", "created_at"])?;
    let (clock, _) = Clock::of(flavour, table, table.column("created_at")?)?;
    let is_text = table.column("payload")?.kind == Kind::Text;
    // Older versions of the package have it as text.
    let document = if flavour == Flavour::Postgres && is_text { "cast(payload as json)" } else { "payload" };
    let field = |name: &str| flavour.json_text(document, name);
    let statement = format!(
        "select
    'stripe' as provider,
    coalesce({}, '') as account,
    case when {} then 'live' else 'test' end as mode,
    {} as event_id,
    {} as event_type,
    {} as received_at_us,
    case when exception is not null then 'failed' else 'received' end as status
from webhook_calls
where {}
    and name = 'stripe'",
        field("account"),
        flavour.json_is_true(document, "livemode"),
        field("id"),
        field("type"),
        flavour.instant_us(clock, "created_at"),
        flavour.window(clock, "created_at", "received_at_us"),
    );
    let bodies = format!(
        "select {0} as event_id, payload as body\nfrom webhook_calls\nwhere {0} = :event_id and name = 'stripe' and :provider = 'stripe'\norder by id",
        field("id")
    );
    let mut part = Part::new("laravel-webhook-client", &[table]);
    part.statements = vec![("inbox.sql", statement), ("inbox_body.sql", bodies)];
    part.assumed = vec![
        "deliveries of Stripe have the name 'stripe' in webhook_calls, as laravel-stripe-webhooks writes it"
            .to_owned(),
        "a row without an exception counts as received: the table does not say that its job has run"
            .to_owned(),
        "webhook_calls.payload holds the event, though not its bytes as received: Laravel writes it anew"
            .to_owned(),
        "webhook_calls.created_at has no zone and is UTC".to_owned(),
        "an event is looked up by a field of its JSON, which reads the whole table: where it is large, add a generated \
         column of payload's id with an index, and name it in inbox.sql and inbox_body.sql"
            .to_owned(),
    ];
    Some(part)
}
