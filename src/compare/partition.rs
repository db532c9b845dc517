//! Workers take partitions one by one, load, sort and judge them.
//!
//! A partition that does not fit (a hot object, a memory setting that is too small for the input) is
//! sorted in runs on disk and judged from there, by the same code and with the same answer.

use super::compact::{Cursor, Keyed, split};
use super::event_leg::EventLeg;
use super::feed::Part;
use super::intent_leg::IntentLeg;
use super::leg::{Found, Grouping, Leg, LegKind, Sink};
use super::root_leg::RootLeg;
use super::sorter::{Merge, Sorter, reduce};
use super::spill::Spill;
use super::suspicious::Suspicious;
use super::totals::Totals;
use super::{Hash, Shared};
use crate::record::Scope;
use anyhow::{Context, Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Judges all partitions and gathers what is suspicious.
pub(super) fn judge(shared: &Shared, scopes: Vec<Scope>, mut parts: Vec<Part>) -> Result<Suspicious> {
    let mut totals = Totals::default();
    for part in &mut parts {
        totals.counts.add(&part.counts);
        for (number, sums) in std::mem::take(&mut part.sums) {
            sums.add_to(&mut totals, &scopes[number as usize]);
        }
    }
    let (scopes, ranks) = ranked(scopes);
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Result<Found>> = std::thread::scope(|scope| {
        let work = || Worker::new(shared, Arc::clone(&ranks))?.run(shared, &parts, &next);
        let workers: Vec<_> = (0..shared.plan.threads).map(|_| scope.spawn(work)).collect();
        let lost = || Err(anyhow!("a worker of the comparison broke down"));
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| lost())).collect()
    });
    let mut found = Found::default();
    for outcome in outcomes {
        found.add(outcome?);
    }
    let spill = Arc::new(Spill::create(&shared.folder)?);
    let bytes_max = shared.plan.load_bytes;
    Ok(Suspicious::new(scopes, found.reduce(&spill, bytes_max)?, bytes_max, totals))
}

/// Scopes in order, and the position of each scope number in it.
fn ranked(scopes: Vec<Scope>) -> (Vec<Scope>, Arc<[u32]>) {
    let mut order: Vec<(Scope, usize)> =
        scopes.into_iter().enumerate().map(|(number, scope)| (scope, number)).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    for (rank, (_, number)) in (0..).zip(&order) {
        ranks[*number] = rank;
    }
    (order.into_iter().map(|(scope, _)| scope).collect(), ranks.into())
}

struct Worker {
    sink: Sink,
    spill: Arc<Spill>,
    arena: Vec<u8>,
    index: Vec<Entry>,
}

/// One record of the loaded partition.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    start: u32,
    len: u32,
}

impl Entry {
    fn record(self, arena: &[u8]) -> &[u8] {
        &arena[self.start as usize..][..self.len as usize]
    }
}

impl Worker {
    fn new(shared: &Shared, ranks: Arc<[u32]>) -> Result<Self> {
        let spill = Arc::new(Spill::create(&shared.folder)?);
        let sink = Sink::new(ranks, &spill, shared.plan.sink_bytes);
        Ok(Self { sink, spill, arena: Vec::new(), index: Vec::new() })
    }

    fn run(mut self, shared: &Shared, parts: &[Part], next: &AtomicUsize) -> Result<Found> {
        let partitions = shared.plan.partitions;
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let judged = match LegKind::ALL.get(place / partitions) {
                Some(LegKind::Event) => self.partition::<EventLeg>(shared, parts, place),
                Some(LegKind::Root) => self.partition::<RootLeg>(shared, parts, place),
                Some(LegKind::Intent) => self.partition::<IntentLeg>(shared, parts, place),
                None => return self.sink.finish(),
            };
            if judged.is_err() {
                // The others have nothing to gain from going on.
                next.store(usize::MAX / 2, Ordering::Relaxed);
            }
            judged.with_context(|| format!("compare partition {place}"))?;
        }
    }

    fn partition<L: Leg>(&mut self, shared: &Shared, parts: &[Part], place: usize) -> Result<()> {
        let slots = || parts.iter().map(|part| &part.slots[place]);
        let bytes: usize = slots().map(|slot| slot.bytes).sum();
        let rows: usize = slots().map(|slot| slot.rows).sum();
        let fits = bytes + rows * size_of::<Entry>() <= shared.plan.load_bytes;
        if fits && u32::try_from(bytes).is_ok() {
            self.loaded::<L>(shared.hash, parts, place, bytes, rows)
        } else {
            self.in_runs::<L>(shared.plan.load_bytes, parts, place)
        }
    }

    fn loaded<L: Leg>(
        &mut self,
        hash: Hash,
        parts: &[Part],
        place: usize,
        bytes: usize,
        rows: usize,
    ) -> Result<()> {
        let Self { sink, arena, index, .. } = self;
        if arena.len() < bytes {
            arena.resize(bytes, 0);
        }
        let mut end = 0;
        for part in parts {
            for block in &part.slots[place].blocks {
                part.spill.read(&mut arena[end..end + block.len], block.offset)?;
                end += block.len;
            }
        }
        let arena = &arena[..bytes];
        index.clear();
        index.reserve(rows);
        let mut cursor = Cursor::new(arena);
        while !cursor.is_empty() {
            let record = cursor.text()?;
            let start = u32::try_from(bytes - cursor.rest().len() - record.len())?;
            let len = u32::try_from(record.len())?;
            index.push(Entry { hash: hash(split(record)?.prefix), start, len });
        }
        index.sort_unstable_by_key(|entry| entry.hash);
        let mut groups = Grouping::<L>::default();
        for same in index.chunk_by_mut(|one, other| one.hash == other.hash) {
            if same.len() > 1 {
                same.sort_unstable_by(|one, other| one.record(arena).cmp(other.record(arena)));
            }
            for entry in same {
                groups.row(split(entry.record(arena))?, sink)?;
            }
        }
        groups.end(sink)
    }

    fn in_runs<L: Leg>(&mut self, bytes_max: usize, parts: &[Part], place: usize) -> Result<()> {
        // What a smaller partition left behind counts too.
        (self.arena, self.index) = (Vec::new(), Vec::new());
        let mut sorter = Sorter::new(Arc::clone(&self.spill), bytes_max);
        let mut buffer = Vec::new();
        for part in parts {
            for block in &part.slots[place].blocks {
                buffer.resize(block.len, 0);
                part.spill.read(&mut buffer, block.offset)?;
                let mut cursor = Cursor::new(&buffer);
                while !cursor.is_empty() {
                    sorter.push(cursor.text()?)?;
                }
            }
        }
        let runs = reduce(sorter.finish()?, &self.spill, bytes_max)?;
        let mut merge = Merge::open(&runs, bytes_max)?;
        let mut groups = Grouping::<L>::default();
        let mut record = Vec::new();
        while merge.next(&mut record)? {
            let keyed: Keyed<'_> = split(&record)?;
            groups.row(keyed, &mut self.sink)?;
        }
        groups.end(&mut self.sink)
    }
}
