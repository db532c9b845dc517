//! Random lists, random faults, random kills: every record is stored, or a gap says that it may not be.

use super::server::{Fault, row};
use super::*;
use recon::store::{SliceStatus, StreamKey};

/// `SplitMix64`.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

fn list(random: &mut Random) -> Vec<Row> {
    let span_max = if random.below(4) == 0 { 30 } else { 6000 };
    let (count, span) = (random.below(1600), 1 + random.below(span_max));
    let second = |random: &mut Random| 1000 + i64::try_from(random.below(span)).unwrap();
    let mut list: Vec<Row> = (0..count).map(|n| row(&format!("ev_{n}"), second(random))).collect();
    if random.below(3) == 0 {
        let tie = second(random);
        list.extend((0..250).map(|n| row(&format!("tie_{n}"), tie)));
    }
    list
}

/// Faults of a random mixture. Lies about the list's end come once per cursor: the same lie twice cannot be told
/// from the truth.
fn script(
    mut random: Random,
    until: i64,
) -> impl FnMut(&server::Asked, &mut Vec<Row>) -> Option<Fault> + Send {
    let mut some = |bound| if random.below(2) == 0 { random.below(bound) } else { 0 };
    let (lost, restart, empty, end, limited, failing) =
        (some(200), some(200), some(60), some(150), some(60), some(60));
    let mut ended = BTreeSet::new();
    let mut inserted = 0;
    move |asked, rows| {
        let roll = |random: &mut Random, per_mille: u64| random.below(1000) < per_mille;
        if roll(&mut random, 200) {
            inserted += 1;
            rows.push(row(&format!("late_{inserted}"), until + i64::from(inserted % 7)));
        }
        if roll(&mut random, limited) {
            return Some(Fault::refused(vec![]));
        }
        if roll(&mut random, failing) {
            return Some(
                [Fault::error(500, "", ""), Fault::CutOff, Fault::error(409, "", "")]
                    [usize::try_from(random.below(3)).unwrap()]
                .clone(),
            );
        }
        if let Some(cursor) = asked.query.get("starting_after") {
            if roll(&mut random, lost) {
                return Some(Fault::lost());
            }
            if roll(&mut random, restart) {
                return Some(Fault::Restart);
            }
            if roll(&mut random, end) && ended.insert(cursor.clone()) {
                return Some(Fault::Empty { has_more: false });
            }
        }
        roll(&mut random, empty).then_some(Fault::Empty { has_more: true })
    }
}

/// After a kill: what the store calls closed is held.
async fn check_closed_slices(bench: &Bench, list: &[Row], run: &RunContext) {
    let key = StreamKey {
        scope: bench.settings.scope(""),
        stream: THINGS.name.to_owned(),
        run_id: run.run_id.clone(),
    };
    // The slices first: a commit that was under way at the kill may still land, and rows are never taken back.
    let slices = bench.store.slices(&key).await.unwrap();
    let stored = bench.stored().await;
    for slice in slices {
        let range = Window { from_us: slice.from_us, until_us: slice.until_us };
        for row in list.iter().filter(|row| range.contains(row.created * SECOND_US)) {
            let is_held = slice.status != SliceStatus::Closed || stored.contains_key(&row.id);
            assert!(is_held, "{row:?} is lost in {slice:?}");
        }
    }
}

/// One seed: pages with kills until a run gets to its end; says whether everything was covered.
async fn check_seed(seed: u64) -> bool {
    let mut random = Random(seed);
    let list = list(&mut random);
    let (from, until) = (900, 1000 + i64::try_from(random.below(7000)).unwrap());
    let server = Server::scripted(list.clone(), script(random.clone(), until)).await;
    let bench = Bench::new(&server.url).await;
    let mut resume_of = None;
    for attempt in 0.. {
        let kill_after = server.asked().len() + 1 + usize::try_from(random.below(40)).unwrap();
        let this = RunContext { resume_of: resume_of.clone(), ..run(&format!("run_{attempt}")) };
        resume_of = Some(this.run_id.clone());
        let paged = tokio::select! {
            paged = bench.page(&this, from, until) => paged,
            () = server.asked_at_least(kill_after), if attempt < 4 => {
                check_closed_slices(&bench, &list, &this).await;
                continue;
            }
        };
        match paged {
            Ok(paged) => {
                check(&bench, &list, &paged, window(from, until)).await;
                return is_covered(&paged);
            }
            Err(error) => assert!(attempt < 8, "seed {seed}: {error:#}"),
        }
    }
    unreachable!("the loop ends by returning")
}

#[tokio::test]
async fn everything_before_the_bound_is_stored_or_a_gap_says_so() {
    let mut covered = 0;
    for seed in 0..60 {
        println!("seed {seed}");
        covered += u32::from(check_seed(seed).await);
    }
    assert!(covered > 30, "only {covered} of 60 windows are covered");
}
