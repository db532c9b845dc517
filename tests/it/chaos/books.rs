//! What must be true of a store that came to rest, in statements of its own and against a model of its own: what
//! the provider's account holds.

use super::Plan;
use super::site::Site;
use recon::demo::Meaning;
use recon::demo::world::Event;
use recon::record::EffectKind;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// (kind, object, currency) and how much of it.
type Books = BTreeMap<(String, String, String), i64>;

/// The provider's account, as far as events announced it.
pub struct Model<'w> {
    /// Each event that is delivered.
    pub events: &'w [Event],
    pub effects: Books,
    /// Of each payment by id, what it stands at.
    pub states: BTreeMap<String, String>,
}

impl<'w> Model<'w> {
    pub fn new(site: &Site, events: &'w [Event]) -> Self {
        let moved: BTreeSet<(EffectKind, &str)> = events.iter().filter_map(moved).collect();
        let mut effects = Books::new();
        for effect in &site.world.truth {
            if moved.contains(&(effect.kind, &*effect.object_id)) {
                let key = (effect.kind.to_string(), effect.object_id.clone(), effect.currency.to_owned());
                *effects.entry(key).or_default() += effect.amount_minor;
            }
        }
        let states =
            site.world.states.iter().map(|(root, status)| (root.clone(), status.to_string())).collect();
        Self { events, effects, states }
    }
}

/// The movement of money that an event announces, of the kinds that are booked.
fn moved(event: &Event) -> Option<(EffectKind, &str)> {
    let Meaning::Moves(change) = &event.meaning else { return None };
    let is_booked = !matches!(change.kind, EffectKind::Fee | EffectKind::Payout);
    is_booked.then_some((change.kind, &*change.object_id))
}

async fn rows(connection: &mut AnyConnection, sql: &'static str) -> Vec<AnyRow> {
    sqlx::query(sql).fetch_all(connection).await.unwrap()
}

/// Holds a store against the model, and against the 2xx answers that the provider got.
pub async fn check(site: &Site, plan: &Plan, model: &Model<'_>, taken: &BTreeMap<usize, u64>) {
    let mut connection = site.connection().await;
    let ended = inbox(&mut connection, plan, model, taken).await;
    let booked = ledger(&mut connection, plan, model).await;
    keys(&mut connection, plan, model, &ended, &booked).await;
    if plan.is_fetched {
        statuses(&mut connection, plan, model).await;
    }
    if let Some(ear) = &site.ear {
        let told: BTreeSet<String> =
            ear.heard().iter().map(|call| call.header("idempotency-key").to_owned()).collect();
        messages(&mut connection, plan, &booked, &told).await;
    }
    sqlx::Connection::close(connection).await.unwrap();
}

/// Every 2xx has its event with its bytes, and every event has ended. The events that count as processed.
async fn inbox(
    connection: &mut AnyConnection,
    plan: &Plan,
    model: &Model<'_>,
    taken: &BTreeMap<usize, u64>,
) -> BTreeMap<String, String> {
    let stored =
        rows(connection, "select event_id, body, status, last_error, deliveries from inbox_event").await;
    let stored: BTreeMap<String, AnyRow> = stored.into_iter().map(|row| (row.get("event_id"), row)).collect();
    let mut ended = BTreeMap::new();
    assert_eq!(taken.len(), model.events.len(), "{plan:?}: every event was taken in the end");
    for (index, times) in taken {
        let event = &model.events[*index];
        let row = stored.get(&event.id);
        let row =
            row.unwrap_or_else(|| panic!("{plan:?}: {} was answered with 2xx and is not there", event.id));
        assert_eq!(row.get::<Vec<u8>, _>("body"), event.body.as_bytes(), "{plan:?}: {}", event.id);
        let deliveries = row.get::<i64, _>("deliveries").unsigned_abs();
        assert!(deliveries >= *times, "{plan:?}: {}: {deliveries} deliveries, {times} answers", event.id);
        let (status, why) = (row.get::<String, _>("status"), row.get::<String, _>("last_error"));
        // Nothing here is at fault, and whatever waited for another event has got it.
        assert!(
            ["applied", "superseded", "ignored"].contains(&&*status),
            "{plan:?}: {} ({}) ended as {status}: {why}",
            event.id,
            event.kind
        );
        ended.insert(event.id.clone(), status);
    }
    assert_eq!(stored.len(), ended.len(), "{plan:?}: events that nobody sent");
    let conflicts = rows(connection, "select event_id from inbox_conflict").await;
    assert!(conflicts.is_empty(), "{plan:?}: other bytes under the same id");
    ended
}

/// Each effect at most once; sum and set are the provider's. The keys of what is booked.
async fn ledger(connection: &mut AnyConnection, plan: &Plan, model: &Model<'_>) -> BTreeSet<String> {
    let entries = rows(
        connection,
        "select effect_key, kind, object_id, amount_minor, currency, corrects_entry_id from ledger_entry",
    )
    .await;
    let (mut booked, mut books) = (BTreeSet::new(), Books::new());
    for row in &entries {
        let [effect_key, kind, object_id, currency, corrects] =
            ["effect_key", "kind", "object_id", "currency", "corrects_entry_id"]
                .map(|name| row.get::<String, _>(name));
        if corrects.is_empty() {
            assert_eq!(effect_key, format!("{kind}:{object_id}"), "{plan:?}");
        }
        assert!(booked.insert(effect_key.clone()), "{plan:?}: {effect_key} is booked twice");
        *books.entry((kind, object_id, currency)).or_default() += row.get::<i64, _>("amount_minor");
    }
    books.retain(|_, total| *total != 0);
    assert_eq!(books, model.effects, "{plan:?}");
    booked
}

/// No event counts as processed without what it announced, and none did something without counting.
async fn keys(
    connection: &mut AnyConnection,
    plan: &Plan,
    model: &Model<'_>,
    ended: &BTreeMap<String, String>,
    booked: &BTreeSet<String>,
) {
    let processed = rows(connection, "select event_id from applied_event").await;
    let processed: BTreeSet<String> = processed.iter().map(|row| row.get("event_id")).collect();
    for event in model.events {
        let is_processed = processed.contains(&event.id);
        let Some((kind, object_id)) = moved(event) else { continue };
        let holds = model.effects.keys().any(|key| (&*key.0, &*key.1) == (kind.as_str(), object_id));
        let is_booked = booked.contains(&format!("{kind}:{object_id}"));
        assert!(is_booked || !is_processed, "{plan:?}: {} has a key and no effect", event.id);
        let status = &ended[&event.id];
        assert!(
            !holds || is_processed,
            "{plan:?}: {} ({}) ended as {status} without a key",
            event.id,
            event.kind
        );
    }
    let unknown: Vec<&String> = processed.iter().filter(|id| !ended.contains_key(*id)).collect();
    assert!(unknown.is_empty(), "{plan:?}: keys of events that never came: {unknown:?}");
    let by_events =
        rows(connection, "select effect_key, event_id from ledger_entry where event_id <> ''").await;
    for row in &by_events {
        let (effect_key, event_id): (String, String) = (row.get("effect_key"), row.get("event_id"));
        assert!(processed.contains(&event_id), "{plan:?}: {effect_key} by {event_id}, which has no key");
    }
}

async fn statuses(connection: &mut AnyConnection, plan: &Plan, model: &Model<'_>) {
    let states = rows(connection, "select object_id, status from object_state").await;
    for row in &states {
        let (id, status): (String, String) = (row.get("object_id"), row.get("status"));
        if let Some(expected) = model.states.get(&id) {
            assert_eq!(&status, expected, "{plan:?}: {id}");
        }
    }
    let known: BTreeSet<String> = states.iter().map(|row| row.get("object_id")).collect();
    let credited = model.effects.keys().filter(|key| key.0 == "credit").count();
    let kept = known.iter().filter(|id| model.states.contains_key(*id)).count();
    assert!(kept >= credited, "{plan:?}: {kept} statuses of {credited} payments that were paid");
}

/// Each effect was told at least once, under its own key, and nothing else was.
async fn messages(
    connection: &mut AnyConnection,
    plan: &Plan,
    booked: &BTreeSet<String>,
    told: &BTreeSet<String>,
) {
    let open =
        "select idempotency_key from outbox_message where sent_at_us is null or dead_at_us is not null";
    assert!(rows(connection, open).await.is_empty(), "{plan:?}: messages that were not sent");
    let told: BTreeSet<String> =
        told.iter().filter_map(|key| key.rsplit('/').next()).map(str::to_owned).collect();
    let untold: Vec<&String> = booked.difference(&told).collect();
    assert!(untold.is_empty(), "{plan:?}: booked and never told: {untold:?}");
    let unbooked: Vec<&String> = told.difference(booked).collect();
    assert!(unbooked.is_empty(), "{plan:?}: told and not booked: {unbooked:?}");
}
