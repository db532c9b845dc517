//! The demonstration's world, read by the provider's reader over real HTTP, is the truth that the world
//! itself knows: its effects, statuses and groups, and nothing that is not understood.

use recon::config::Basis;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix, plant};
use recon::demo::world::WANTED_TYPES;
use recon::demo::{Emulator, World};
use recon::provider::stripe::{self, Reading};
use recon::record::{EffectKind, Fact, Scope, Status, Window};
use std::collections::{BTreeMap, BTreeSet};

const NOW_US: i64 = 1_789_473_600_000_000;

fn reading(world: &World) -> Reading {
    Reading {
        scope: Scope::new("stripe", "", "live"),
        window: Window { from_us: world.from_us, until_us: world.until_us },
        basis: Basis::Created,
        wanted: Some(WANTED_TYPES.iter().map(|kind| (*kind).to_owned()).collect()),
        effects: EffectKind::ALL.into_iter().collect(),
        intent: Some("metadata.order_id".to_owned()),
        now_us: world.now_us,
        settle_delay_us: 300_000_000,
        grace: true,
    }
}

async fn read_all(world: &World) -> Vec<Fact> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let emulator = Emulator::start(world, Faults::default()).await.unwrap();
    let client = reqwest::Client::new();
    let reading = reading(world);
    let mut facts = Vec::new();
    for stream in stripe::STREAMS {
        let mut cursor: Option<String> = None;
        loop {
            let url = format!("{}{}", emulator.base_url, stream.path);
            let mut request =
                client.get(url).bearer_auth(&emulator.key).query(stream.query).query(&[("limit", "100")]);
            if let Some(id) = &cursor {
                request = request.query(&[("starting_after", id)]);
            }
            let text = request.send().await.unwrap().text().await.unwrap();
            let page: serde_json::Value = serde_json::from_str(&text).unwrap();
            let rows = page["data"].as_array().unwrap_or_else(|| panic!("{}: {page}", stream.name));
            for row in rows {
                facts.extend(stripe::facts(&reading, stream.name, row.to_string().as_bytes()).unwrap());
            }
            if page["has_more"] != true {
                break;
            }
            cursor = rows.last().map(|row| row["id"].as_str().unwrap().to_owned());
        }
    }
    facts
}

#[tokio::test]
async fn the_reader_sees_the_truth() {
    for seed in 0..6 {
        let mut world = World::new(seed, 600, NOW_US);
        let planted = plant(&mut world, seed, &Mix::each(1));
        let facts = read_all(&world).await;
        let teleported: BTreeSet<&str> =
            planted.iter().filter(|one| one.fault == Fault::UnknownType).map(|one| &*one.root_id).collect();
        let mut aliases: BTreeMap<String, String> = BTreeMap::new();
        let mut effects = BTreeSet::new();
        for fact in &facts {
            match fact {
                Fact::Alias(alias) => drop(aliases.insert(alias.alias_id.clone(), alias.root_id.clone())),
                Fact::Note(note) => {
                    assert!(
                        note.cause == "unknown_type" && teleported.contains(&*note.object_id),
                        "seed {seed}: {note:?}"
                    );
                }
                Fact::ProviderEffect(effect) if effect.kind != EffectKind::Fee => {
                    effects.insert((
                        effect.kind,
                        effect.object_id.clone(),
                        effect.amount_minor,
                        effect.currency.clone(),
                        effect.occurred_at_us / 1_000_000,
                    ));
                }
                _ => {}
            }
        }
        let truth: BTreeSet<_> = world
            .truth
            .iter()
            .map(|e| (e.kind, e.object_id.clone(), e.amount_minor, e.currency.to_owned(), e.occurred_s))
            .collect();
        let extra: Vec<_> = effects.difference(&truth).take(5).collect();
        let missing: Vec<_> = truth.difference(&effects).take(5).collect();
        assert!(extra.is_empty() && missing.is_empty(), "seed {seed}: extra {extra:?}, missing {missing:?}");

        let root = |id: &str| {
            let mut id = id.to_owned();
            for _ in 0..5 {
                match aliases.get(&id) {
                    Some(next) if *next != id => id.clone_from(next),
                    _ => break,
                }
            }
            id
        };
        let mut states: BTreeMap<String, Status> = BTreeMap::new();
        for fact in &facts {
            if let Fact::ProviderState(state) = fact {
                let status = states.entry(root(&state.root_id)).or_insert(state.status);
                *status = state.status.max(*status);
            }
        }
        for payment in &world.payments {
            let (id, truth) = (payment.root_id(), world.states[payment.root_id()]);
            assert_eq!(states.get(id), Some(&truth), "seed {seed}: {id} {payment:?}");
            // An invoice that several payments paid leads to none of them.
            let invoice = payment.invoice.iter().filter(|_| payment.invoice_also_paid_by.is_none());
            for alias in invoice.chain(&payment.session) {
                assert_eq!(root(alias), id, "seed {seed}");
            }
        }
    }
}

#[test]
fn events_are_of_a_realistic_size() {
    let world = World::new(14, 1000, NOW_US);
    let bytes: usize = world.events.iter().map(|event| event.body.len()).sum();
    let mean = bytes / world.events.len();
    assert!((1000..3000).contains(&mean), "{mean} bytes");
    assert!(world.events.windows(2).any(|pair| pair[0].created_s == pair[1].created_s), "ties");
}
