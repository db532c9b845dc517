//! Scatters records over partitions in a spill file, by the hash of the key that each opens with.
//!
//! A partition's blocks lie anywhere in the file; what is read back is in the order in which it was put in,
//! which nobody may rely on: partitions are sorted before they are judged.

use super::Hash;
use super::plan::Plan;
use crate::compact::put_varint;
use crate::spill::{Block, Spill};
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;

/// Most bytes that the length in front of a record takes.
const LENGTH_BYTES_MAX: usize = 10;

/// One partition's share of what was scattered.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) blocks: Vec<Block>,
    pub(super) bytes: usize,
    pub(super) rows: usize,
}

/// What one scatterer wrote, by leg and partition.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) spill: Arc<Spill>,
    pub(super) slots: Vec<Slot>,
}

/// Takes records and writes them in blocks of one partition each.
#[derive(Debug)]
pub(super) struct Scatter {
    plan: Plan,
    hash: Hash,
    stored: Stored,
    buffers: Vec<Vec<u8>>,
}

impl Scatter {
    /// An empty scatterer for `legs` legs, with a spill file of its own in `folder`.
    pub(super) fn new(folder: &Path, plan: Plan, hash: Hash, legs: usize) -> Result<Self> {
        let spill = Arc::new(Spill::create(folder)?);
        let places = legs * plan.partitions;
        let slots = (0..places).map(|_| Slot::default()).collect();
        Ok(Self { plan, hash, stored: Stored { spill, slots }, buffers: vec![Vec::new(); places] })
    }

    /// Appends the record to the partition of a leg that the hash of its first `key_len` bytes names.
    #[inline]
    pub(super) fn append(&mut self, leg: usize, record: &[u8], key_len: usize) -> Result<()> {
        let hash = (self.hash)(&record[..key_len]);
        let place = leg * self.plan.partitions + self.plan.partition_of(hash);
        let block_bytes = self.plan.block_bytes;
        if self.buffers[place].len() + record.len() + LENGTH_BYTES_MAX > block_bytes {
            self.flush(place)?;
        }
        let buffer = &mut self.buffers[place];
        if buffer.capacity() == 0 {
            buffer.reserve_exact(block_bytes);
        }
        put_varint(buffer, record.len() as u64);
        buffer.extend_from_slice(record);
        self.stored.slots[place].rows += 1;
        Ok(())
    }

    /// Writes what is still buffered.
    pub(super) fn close(mut self) -> Result<Stored> {
        for place in 0..self.buffers.len() {
            self.flush(place)?;
        }
        Ok(self.stored)
    }

    fn flush(&mut self, place: usize) -> Result<()> {
        let buffer = &mut self.buffers[place];
        if buffer.is_empty() {
            return Ok(());
        }
        let slot = &mut self.stored.slots[place];
        slot.blocks.push(self.stored.spill.append(buffer)?);
        slot.bytes += buffer.len();
        buffer.clear();
        Ok(())
    }
}
