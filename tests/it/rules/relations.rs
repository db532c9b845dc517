//! The six relations as tables of a database, and the rules run over them.

use crate::world::{Line, RULES, VIEWS, World};
use sqlx::{AnyConnection, Executor, Row, any::AnyRow};
use std::collections::BTreeSet;

/// The tables. Key columns are compared byte by byte in SQLite and in a cluster with the C locale.
const TABLES: &str = include_str!("relations.sql");

const ROWS_PER_INSERT: usize = 500;

/// How the steps that the rules share are kept, as `queries/rules/README.md` says it.
#[derive(Clone, Copy, Debug)]
pub enum Steps {
    /// As they stand: they follow the facts.
    Views,
    /// Computed once; what the `sed` in the README makes of them.
    Tables,
}

/// Makes the tables and fills them, and makes what the rules share; object ids must be normalised.
pub async fn load(connection: &mut AnyConnection, world: &World, steps: Steps) {
    for statement in TABLES.split(';').filter(|text| !text.trim().is_empty()) {
        connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.unwrap();
    }
    for (table, rows) in relations(world) {
        for rows in rows.chunks(ROWS_PER_INSERT) {
            let insert = format!("insert into {table} values {}", rows.join(", "));
            connection.execute(sqlx::AssertSqlSafe(insert)).await.unwrap();
        }
    }
    for view in VIEWS {
        let statement = match steps {
            Steps::Views => view.to_owned(),
            Steps::Tables => view.replace("\ncreate view ", "\ncreate table "),
        };
        connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }
}

/// What one rule finds.
pub async fn run(connection: &mut AnyConnection, statement: &str) -> Vec<Line> {
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).fetch_all(connection).await.unwrap();
    rows.iter().map(line).collect()
}

/// What all rules find; every rule must find only its own kind, and no row twice.
pub async fn run_all(connection: &mut AnyConnection) -> BTreeSet<Line> {
    let mut found = BTreeSet::new();
    for (kind, statement) in RULES {
        for line in run(connection, statement).await {
            assert_eq!(line.kind, kind);
            assert!(found.insert(line.clone()), "{kind} found a row twice: {line:?}");
        }
    }
    found
}

fn line(row: &AnyRow) -> Line {
    let text = |name: &str| row.get::<String, _>(name);
    Line {
        kind: text("kind"),
        cause: text("cause"),
        provider: text("provider"),
        account: text("account"),
        mode: text("mode"),
        object_id: text("object_id"),
        effect: text("effect"),
        currency: text("currency"),
        expected_minor: row.get("expected_minor"),
        found_minor: row.get("found_minor"),
        expected_state: text("expected_state"),
        found_state: text("found_state"),
    }
}

/// Every table with its rows as literals.
fn relations(world: &World) -> [(&'static str, Vec<String>); 6] {
    let scope =
        |scope: &recon::record::Scope| format!("'{}', '{}', '{}'", scope.provider, scope.account, scope.mode);
    let number = |minor: Option<i64>| minor.map_or("null".to_owned(), |minor| minor.to_string());
    let events = world.provider_events.iter().map(|fact| {
        format!(
            "({}, '{}', '{}', '{}', '{}', '{}', {}, {}, {})",
            scope(&fact.scope),
            fact.root_id,
            fact.object_id,
            fact.event_id,
            fact.event_type,
            fact.tracks.as_str(),
            fact.created_us,
            i64::from(fact.wanted),
            i64::from(fact.settled),
        )
    });
    let inbox = world.inbox_events.iter().map(|fact| {
        format!(
            "({}, '{}', '{}', {}, '{}', '{}')",
            scope(&fact.scope),
            fact.event_id,
            fact.event_type,
            fact.received_at_us,
            fact.status.as_str(),
            fact.body_sha256,
        )
    });
    let effects = world.provider_effects.iter().map(|fact| {
        format!(
            "({}, '{}', '{}', '{}', {}, '{}', {}, '{}', {})",
            scope(&fact.scope),
            fact.root_id,
            fact.object_id,
            fact.kind,
            fact.amount_minor,
            fact.currency,
            fact.occurred_at_us,
            fact.intent,
            i64::from(fact.in_window),
        )
    });
    let rows = world.local_effects.iter().map(|fact| {
        format!(
            "({}, '{}', '{}', '{}', '{}', {}, '{}', {}, '{}', '{}', {})",
            scope(&fact.scope),
            fact.root_id,
            fact.object_id,
            fact.effect_id,
            fact.kind,
            fact.amount_minor,
            fact.currency,
            fact.applied_at_us,
            fact.event_id,
            fact.corrects_effect_id,
            i64::from(fact.in_window),
        )
    });
    let said = world.provider_states.iter().map(|fact| {
        format!(
            "({}, '{}', '{}', '{}', {}, {}, {})",
            scope(&fact.scope),
            fact.root_id,
            fact.object_id,
            fact.status,
            number(fact.refunded_minor),
            number(fact.authorized_minor),
            fact.at_us,
        )
    });
    let states = world.local_states.iter().map(|fact| {
        format!(
            "({}, '{}', '{}', '{}', {}, {}, '{}')",
            scope(&fact.scope),
            fact.root_id,
            fact.object_id,
            fact.status,
            number(fact.refunded_minor),
            fact.updated_at_us,
            fact.changed_by,
        )
    });
    [
        ("provider_event", events.collect()),
        ("inbox_event", inbox.collect()),
        ("provider_effect", effects.collect()),
        ("local_effect", rows.collect()),
        ("provider_state", said.collect()),
        ("local_state", states.collect()),
    ]
}
