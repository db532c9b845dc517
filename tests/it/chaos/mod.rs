//! Receivers, workers and the database are killed at points that a seed chooses, while a provider delivers from
//! several clients. Then all comes to rest, and everything is held against the provider's account (`books.rs`).
//!
//! The one thing to get right is what a kill proves. What a killed process has written stays with the operating
//! system, synced or not, so the cluster runs without `fsync`, and nothing here speaks of a power cut. What a killed
//! server does lose are commits that it was allowed to promise (`synchronous_commit = off`): half of the databases
//! have that as their default, and the program has to insist on more. SQLite has no server: there whoever writes is
//! killed in the middle of its commit.
//!
//! `RECON_SEEDS=N` runs the first N seeds instead of a few, `RECON_SEED=N` that one.

mod books;
mod first_start;
mod mishap;
mod provider;
mod site;
mod store_away;

use crate::postgres::Cluster;
use crate::random::Random;
use crate::serve::stripe;
use books::Model;
use mishap::{Mishap, happen, wait_for_point};
use provider::{Provider, until};
use recon::demo::world::Event;
use recon::store::Database;
use site::{NOW_S, SECRET, Site};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Seeds of one run of the suite: two on each database, of every form.
const SEEDS: [u64; 4] = [0, 1, 3, 4];
const CLIENTS: u64 = 4;
/// Longer than anything may take to come back by itself: whoever waits so long has found a fault.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than any wait of the worker but the last.
const LATER: Duration = Duration::from_hours(2);

/// Which processes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A receiver and two workers.
    Apart,
    /// `serve --work`.
    Together,
    /// That twice, side by side.
    Twice,
}

/// What a seed means.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a choice of its own, and a seed takes any of them"
)]
struct Plan {
    seed: u64,
    database: Database,
    form: Form,
    events: usize,
    batch: u64,
    mishaps: u64,
    spills: bool,
    /// Objects are asked for; else each event is believed, in whatever order they come.
    is_fetched: bool,
    has_outbox: bool,
    /// The provider's API fails now and then.
    has_faults: bool,
    /// The server may promise commits that it has not written down.
    is_lax: bool,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x0063_6861_6f73);
        let on_sqlite = seed % 5 > 2;
        Self {
            seed,
            database: if on_sqlite { Database::Sqlite } else { Database::Postgres },
            form: *random.pick(&[Form::Apart, Form::Apart, Form::Together, Form::Twice]),
            events: 110,
            batch: 1 + random.below(30),
            mishaps: 5 + random.below(3),
            spills: random.chance(50),
            is_fetched: random.chance(70),
            has_outbox: random.chance(50),
            has_faults: random.chance(30),
            is_lax: !on_sqlite && random.chance(50),
        }
    }
}

/// What happened, for whoever runs many seeds.
#[derive(Debug, Default)]
struct Figures {
    seeds: u64,
    events: usize,
    tried: u64,
    taken: u64,
    mishaps: BTreeMap<Mishap, u64>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn whatever_is_killed_when_the_books_are_the_providers() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match (number("RECON_SEED"), number("RECON_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, Some(count)) => (0..count).collect(),
        (None, None) => SEEDS.to_vec(),
    };
    let cluster = Cluster::own();
    let mut figures = Figures::default();
    for seed in seeds {
        let started = std::time::Instant::now();
        let plan = Plan::new(seed);
        run(&plan, &cluster, &mut figures).await;
        eprintln!("{:.1} s: {plan:?}", started.elapsed().as_secs_f32());
    }
    eprintln!("{figures:?}");
}

async fn run(plan: &Plan, cluster: &Arc<Cluster>, figures: &mut Figures) {
    let mut site = Site::new(plan, cluster).await;
    let events = events_of(plan, &site);
    let model = Model::new(&site, &events);
    let provider = Provider::new(&events, stripe(), SECRET, NOW_S);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            // A test that fails must not wait for its clients.
            let _over = Over(&provider);
            for client in 0..CLIENTS {
                let (provider, random) = (&provider, Random::new(plan.seed * 100 + client));
                scope.spawn(move || provider.deliver(random));
            }
            for place in 0..site.places() {
                site.start(place, &provider);
            }
            trouble(plan, &mut site, &provider, &model, figures);
        });
        site.end();
    });
    come_to_rest(plan, &site).await;
    let taken = provider.taken();
    books::check(&site, plan, &model, &taken).await;
    assert_eq!(site.spilled(), [""; 0], "{plan:?}");
    let log = site.log();
    assert!(!log.contains("panicked") && !log.contains(SECRET), "{plan:?}: {log}");
    figures.seeds += 1;
    figures.events += events.len();
    figures.tried += provider.tried();
    figures.taken += taken.values().sum::<u64>();
}

/// Ends the clients, also when the test fails.
struct Over<'p, 'w>(&'p Provider<'w>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The events that are delivered, oldest first. Where nobody asks the provider, a refund that fails after it had
/// succeeded is booked or not as its events happen to come: a run finds that, so those payments are left out.
fn events_of(plan: &Plan, site: &Site) -> Vec<Event> {
    let payments = &site.world.payments;
    let is_clear = |event: &&Event| {
        let payment = event.payment.map(|payment| &payments[payment]);
        plan.is_fetched
            || payment.is_none_or(|payment| payment.refunds.iter().all(|refund| refund.failed_s.is_none()))
    };
    site.world.events.iter().rev().filter(is_clear).cloned().collect()
}

/// Deliveries in parts, in each of which something happens.
fn trouble(plan: &Plan, site: &mut Site, provider: &Provider<'_>, model: &Model<'_>, figures: &mut Figures) {
    let mut random = Random::new(plan.seed);
    let mut order: Vec<usize> = (0..model.events.len()).collect();
    // The provider's order in one seed of three; in the others a refund comes before its charge as often as not.
    if random.below(3) > 0 {
        random.shuffle(&mut order);
    }
    let is_charge = |index: &usize| model.events[*index].kind == "charge.succeeded";
    let last = order.remove(order.iter().rposition(is_charge).unwrap());
    // In one seed of four trouble begins while the tables are still being made.
    if !random.chance(25) {
        let tables = "select count(*) from refused_delivery";
        let are_there = || Handle::current().block_on(site.try_number(tables)).is_some();
        assert!(until(PATIENCE, are_there), "{plan:?}: {}", site.log());
    }
    for part in order.chunks(order.len() / usize::try_from(plan.mishaps).unwrap() + 1) {
        provider.release(part.iter().copied());
        wait_for_point(site, provider, &mut random);
        let mishap = happen(site, provider, &mut random);
        *figures.mishaps.entry(mishap).or_default() += 1;
        site.is_alive();
    }
    // Whoever is left goes on by itself: an event that comes now is applied without anybody's help.
    provider.release([last]);
    provider.settle(PATIENCE);
    let id = &model.events[last].id;
    let ended = format!("select count(*) from inbox_event where event_id = '{id}' and status <> 'received'");
    let is_done = || Handle::current().block_on(site.try_number(&ended)) == Some(1);
    assert!(until(PATIENCE, is_done), "{plan:?}: nobody applies {id}\n{}", site.log());
    site.is_alive();
}

/// Attempts that were cut off are due again in their time: that is let pass. So is an event that a drain says it has to try
/// again; the last drain must leave none.
async fn come_to_rest(plan: &Plan, site: &Site) {
    let open = "select (select count(*) from inbox_event where status in ('received', 'parked'))
                     + (select count(*) from outbox_message where sent_at_us is null and dead_at_us is null)";
    let mut later = Duration::ZERO;
    let mut is_clean = false;
    for _ in 0..8 {
        later += LATER;
        let output = site.command(&["work", "--drain"], later).output().unwrap();
        is_clean = output.status.success();
        let said = String::from_utf8_lossy(&output.stdout);
        let is_due_again = output.status.code() == Some(2) && said.contains(" received=");
        assert!(is_clean || is_due_again, "{plan:?}: {said}{}", site.log());
        if is_clean && site.number(open).await == 0 {
            return;
        }
    }
    assert!(is_clean, "{plan:?}: {}", site.log());
}
