//! Has the records of one partition judged group by group: loaded whole where it fits, else from sorted runs.
//!
//! Within a group records come in byte order; the order of groups is that of their hashes in the one case and of
//! their bytes in the other, so nothing may depend on it.

use super::Hash;
use super::leg::{Grouping, Leg};
use super::scatter::Stored;
use super::sorter::{Merge, Sorter, reduce};
use crate::compact::{Cursor, split};
use crate::spill::Spill;
use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most records of one hash that are looked at twice: at a glance first.
const SETTLED_MAX: usize = 64;

/// What one worker needs to go through partitions.
pub(super) struct Loader {
    spill: Arc<Spill>,
    bytes_max: usize,
    hash: Hash,
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

impl Loader {
    /// A loader that holds about `bytes_max` and spills what does not fit into `folder`.
    pub(super) fn new(folder: &Path, bytes_max: usize, hash: Hash) -> Result<Self> {
        let spill = Arc::new(Spill::create(folder)?);
        Ok(Self { spill, bytes_max, hash, arena: Vec::new(), index: Vec::new() })
    }

    /// Judges every group of a partition, one after the other.
    pub(super) fn judge<L: Leg>(
        &mut self,
        stored: &[Stored],
        place: usize,
        sink: &mut L::Sink,
    ) -> Result<()> {
        let slots = || stored.iter().map(|stored| &stored.slots[place]);
        let bytes: usize = slots().map(|slot| slot.bytes).sum();
        let rows: usize = slots().map(|slot| slot.rows).sum();
        let fits = bytes + rows * size_of::<Entry>() <= self.bytes_max;
        if fits && u32::try_from(bytes).is_ok() {
            self.loaded::<L>(stored, place, (bytes, rows), sink)
        } else {
            self.in_runs::<L>(stored, place, sink)
        }
    }

    fn loaded<L: Leg>(
        &mut self,
        stored: &[Stored],
        place: usize,
        (bytes, rows): (usize, usize),
        sink: &mut L::Sink,
    ) -> Result<()> {
        let Self { hash, arena, index, .. } = self;
        if arena.len() < bytes {
            arena.resize(bytes, 0);
        }
        let mut end = 0;
        for part in stored {
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
            if same.len() > 2 {
                same.sort_unstable_by(|one, other| one.record(arena).cmp(other.record(arena)));
            }
            if same.len() <= SETTLED_MAX && L::settles(same.iter().map(|entry| entry.record(arena)), sink)? {
                continue;
            }
            if same.len() == 2 {
                same.sort_unstable_by(|one, other| one.record(arena).cmp(other.record(arena)));
            }
            for entry in same {
                groups.row(split(entry.record(arena))?, sink)?;
            }
        }
        groups.end(sink)
    }

    fn in_runs<L: Leg>(&mut self, stored: &[Stored], place: usize, sink: &mut L::Sink) -> Result<()> {
        // What a smaller partition left behind counts too.
        (self.arena, self.index) = (Vec::new(), Vec::new());
        let mut sorter = Sorter::new(Arc::clone(&self.spill), self.bytes_max);
        let mut buffer = Vec::new();
        for part in stored {
            for block in &part.slots[place].blocks {
                buffer.resize(block.len, 0);
                part.spill.read(&mut buffer, block.offset)?;
                let mut cursor = Cursor::new(&buffer);
                while !cursor.is_empty() {
                    sorter.push(cursor.text()?)?;
                }
            }
        }
        let runs = reduce(sorter.finish()?, &self.spill, self.bytes_max)?;
        let mut merge = Merge::open(&runs, self.bytes_max)?;
        let (mut groups, mut record) = (Grouping::<L>::default(), Vec::new());
        while merge.next(&mut record)? {
            groups.row(split(&record)?, sink)?;
        }
        groups.end(sink)
    }
}

/// Lets workers take places one by one until all are done; each is started, judges, and hands out what it has.
/// The first failure ends all of them: the others have nothing to gain from going on.
pub(super) fn each_place<W, T: Send>(
    threads: usize,
    places: usize,
    start: impl Fn() -> Result<W> + Sync,
    judge: impl Fn(&mut W, usize) -> Result<()> + Sync,
    end: impl Fn(W) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<T> {
        let mut worker = start()?;
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= places {
                return end(worker);
            }
            let judged = judge(&mut worker, place);
            if judged.is_err() {
                next.store(usize::MAX / 2, Ordering::Relaxed);
            }
            judged.with_context(|| format!("compare partition {place}"))?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let lost = || Err(anyhow!("a worker of the comparison broke down"));
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| lost())).collect()
    })
}
