//! What the three legs share: records of one key arrive together and sorted, and a verdict on the
//! group is given in one pass, with state that does not grow with the group.

use super::sorter::{Run, Sorter, reduce};
use crate::compact::{Keyed, open_prefix};
use crate::spill::Spill;
use anyhow::Result;
use std::sync::Arc;

/// Which key a record is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegKind {
    /// By event id.
    Event,
    /// By root id.
    Root,
    /// By intent.
    Intent,
}

impl LegKind {
    /// Every leg; the largest first, so that workers end together.
    pub(super) const ALL: [Self; 3] = [Self::Event, Self::Root, Self::Intent];
}

/// Scope number and key of the group at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    /// Scope number.
    pub(super) scope: u32,
    /// Event id, root id or intent.
    pub(super) text: &'a [u8],
}

/// Judges groups of one key, record by record.
pub(super) trait Leg: Default {
    /// What takes the verdicts.
    type Sink;
    /// Takes the next record of the group; records come in byte order.
    fn row(&mut self, key: Key<'_>, rest: &[u8], sink: &mut Self::Sink) -> Result<()>;
    /// Whether all records of one hash, in byte order unless there are two, are clean at a glance; then they are counted
    /// and no record of them is taken. Every record of their keys is among them, and nothing says that it is one key.
    fn settles<'r>(_records: impl Iterator<Item = &'r [u8]>, _sink: &mut Self::Sink) -> Result<bool> {
        Ok(false)
    }
    /// Ends the group and makes ready for the next one.
    fn end(&mut self, key: Key<'_>, sink: &mut Self::Sink) -> Result<()>;
}

/// Cuts a sorted stream of records into groups.
#[derive(Debug, Default)]
pub(super) struct Grouping<L> {
    leg: L,
    prefix: Vec<u8>,
}

impl<L: Leg> Grouping<L> {
    /// Takes the next record.
    #[inline]
    pub(super) fn row(&mut self, record: Keyed<'_>, sink: &mut L::Sink) -> Result<()> {
        if self.prefix != record.prefix {
            self.end(sink)?;
            self.prefix.extend_from_slice(record.prefix);
        }
        let (scope, text) = open_prefix(&self.prefix)?;
        self.leg.row(Key { scope, text }, record.rest, sink)
    }

    /// Ends the last group. A prefix is never empty, so an empty one means that none is open.
    pub(super) fn end(&mut self, sink: &mut L::Sink) -> Result<()> {
        if !self.prefix.is_empty() {
            let (scope, text) = open_prefix(&self.prefix)?;
            self.leg.end(Key { scope, text }, sink)?;
            self.prefix.clear();
        }
        Ok(())
    }
}

/// Takes what is suspicious: in any order and repeated; it is sorted and freed of repeats later.
#[derive(Debug)]
pub(super) struct Sink {
    /// Position of each scope number in the order of scopes.
    ranks: Arc<[u32]>,
    roots: Sorter,
    events: Sorter,
    record: Vec<u8>,
}

impl Sink {
    /// An empty sink that uses about `bytes_max` of memory.
    pub(super) fn new(ranks: Arc<[u32]>, spill: &Arc<Spill>, bytes_max: usize) -> Self {
        let sorter = || Sorter::new(Arc::clone(spill), bytes_max / 2);
        Self { ranks, roots: sorter(), events: sorter(), record: Vec::new() }
    }

    /// A root to load whole.
    pub(super) fn root(&mut self, scope: u32, root_id: &[u8]) -> Result<()> {
        self.open_record(scope, root_id);
        self.roots.push(&self.record)
    }

    /// An event that the inbox has and the provider does not list.
    pub(super) fn inbox_only(&mut self, scope: u32, event_id: &[u8]) -> Result<()> {
        self.open_record(scope, event_id);
        self.events.push(&self.record)
    }

    fn open_record(&mut self, scope: u32, text: &[u8]) {
        self.record.clear();
        self.record.extend_from_slice(&self.ranks[scope as usize].to_be_bytes());
        self.record.extend_from_slice(text);
    }

    /// The runs of everything.
    pub(super) fn finish(self) -> Result<Found> {
        let Self { roots, events, .. } = self;
        Ok(Found { roots: roots.finish()?, events: events.finish()? })
    }
}

/// Sorted runs of what is suspicious.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) roots: Vec<Run>,
    pub(super) events: Vec<Run>,
}

impl Found {
    /// Adds another worker's.
    pub(super) fn add(&mut self, other: Self) {
        self.roots.extend(other.roots);
        self.events.extend(other.events);
    }

    /// Merges runs until each list can be read at once.
    pub(super) fn reduce(self, spill: &Arc<Spill>, bytes_max: usize) -> Result<Self> {
        Ok(Self {
            roots: reduce(self.roots, spill, bytes_max)?,
            events: reduce(self.events, spill, bytes_max)?,
        })
    }
}
