//! Our own emulator against the official client: what it pages, filters and refuses must read like Stripe to
//! code that was written for Stripe.

use super::{ids, listed};
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::{Stream, World};
use serde_json::{Value, json};

/// Records of a world's stream, newest first, as (id, created).
fn of_world(world: &World, stream: Stream) -> Vec<(String, i64)> {
    let mut rows: Vec<(i64, u64, &String)> = match stream {
        Stream::Events => {
            let listed = world.events.iter().filter(|event| event.created_s >= world.events_from_s());
            listed.map(|event| (event.created_s, event.sequence, &event.id)).collect()
        }
        _ => world.records[&stream]
            .iter()
            .map(|record| (record.created_s, record.sequence, &record.id))
            .collect(),
    };
    rows.sort_by_key(|row| std::cmp::Reverse((row.0, row.1)));
    rows.into_iter().map(|(created_s, _, id)| (id.clone(), created_s)).collect()
}

/// The seeds' own present, 2026-06-15T12:34:56Z.
const NOW_US: i64 = 1_781_526_896_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_reads_our_emulator_as_it_reads_stripe() {
    let world = World::new(3, 900, NOW_US);
    let emulator = Emulator::start(&world, Faults::default()).await.unwrap();
    let from_s = world.from_us / 1_000_000 + 9 * 86_400;
    let until_s = from_s + 8 * 86_400;
    let slice = json!({ "gte": from_s, "lt": until_s });
    let mut asked = Vec::new();
    for stream in Stream::ALL {
        asked.push(json!([stream.path(), { "limit": 100 }]));
        asked.push(json!([stream.path(), { "limit": 7, "created": slice }]));
    }
    let charge = &of_world(&world, Stream::Charges)[0].0;
    let expand = ["balance_transaction"];
    asked.push(json!(["charges", { "id": charge, "expand": expand }]));
    asked.push(json!(["charges", { "limit": 100, "expand": ["data.balance_transaction"] }]));
    asked.push(json!(["charges", { "starting_after": "ch_unknown" }]));
    asked.push(json!(["charges", { "id": "ch_unknown" }]));
    asked.push(json!(["charges", { "limit": 101 }]));
    asked.push(json!(["events", { "limit": 100, "types": ["charge.succeeded", "refund.created"] }]));
    asked.push(json!(["events", { "limit": 100, "delivery_success": "false" }]));
    let answers = listed(&emulator.base_url, &emulator.key, &Value::from(asked));
    for (stream, pair) in Stream::ALL.into_iter().zip(answers.chunks(2)) {
        let all = of_world(&world, stream);
        let of = |rows: Vec<&(String, i64)>| rows.into_iter().map(|row| row.0.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&pair[0]), of(all.iter().collect()), "{stream:?}");
        let inside = all.iter().filter(|row| (from_s..until_s).contains(&row.1)).collect();
        assert_eq!(ids(&pair[1]), of(inside), "{stream:?}");
    }
    let rest = &answers[2 * Stream::ALL.len()..];
    assert_eq!(ids(&rest[0]), std::slice::from_ref(charge));
    assert_eq!(ids(&rest[1]).len(), world.records[&Stream::Charges].len());
    assert_eq!(rest[2], "InvalidRequestError 400 resource_missing");
    assert_eq!(rest[3], "InvalidRequestError 404 resource_missing");
    assert_eq!(rest[4], "InvalidRequestError 400 parameter_invalid_integer");
    let listed_events = || world.events.iter().filter(|event| event.created_s >= world.events_from_s());
    let of_types =
        listed_events().filter(|event| ["charge.succeeded", "refund.created"].contains(&event.kind));
    assert_eq!(ids(&rest[5]).len(), of_types.count());
    let pending = listed_events().filter(|event| event.pending_webhooks > 0).count();
    assert_eq!(ids(&rest[6]).len(), pending);
    let refused = listed(&emulator.base_url, "rk_live_wrong", &json!([["charges", {}]]));
    assert_eq!(refused[0], "AuthenticationError 401 None");
}
