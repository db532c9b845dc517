//! How the memory setting is shared out.

use super::leg::LegKind;
use crate::config::CompareSettings;

/// Least memory that comparing works with, bytes; a smaller setting is raised to it.
const MEMORY_BYTES_MIN: usize = 1 << 20;
/// Most partitions of a leg.
const PARTITIONS_MAX: usize = 512;
/// Bounds of the write buffer of one partition.
const BLOCK_BYTES_MIN: usize = 512;
const BLOCK_BYTES_MAX: usize = 16 << 10;

/// Sizes of everything that grows with the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Workers.
    pub(super) threads: usize,
    /// Partitions of each leg, a power of two.
    pub(super) partitions: usize,
    /// Write buffer of a partition, for each feed.
    pub(super) block_bytes: usize,
    /// A partition with its index that is larger is sorted in runs; for each worker.
    pub(super) load_bytes: usize,
    /// Suspicious keys that a worker holds before it writes them out.
    pub(super) sink_bytes: usize,
}

impl Plan {
    /// Shares out the memory: three eighths to write buffers while facts come in, for one feed a thread
    /// and the comparer's own; after that half to partitions and an eighth to what is suspicious.
    pub(super) fn new(settings: &CompareSettings) -> Self {
        Self::for_legs(settings, LegKind::ALL.len())
    }

    /// The same for another number of legs.
    pub(super) fn for_legs(settings: &CompareSettings, legs: usize) -> Self {
        let memory = settings.memory_bytes_max.max(MEMORY_BYTES_MIN);
        let threads = settings.threads.clamp(1, 256);
        let buffers = memory / 8 * 3 / ((threads + 1) * legs);
        let partitions = (buffers / BLOCK_BYTES_MAX).clamp(4, PARTITIONS_MAX);
        let partitions =
            if partitions.is_power_of_two() { partitions } else { partitions.next_power_of_two() / 2 };
        Self {
            threads,
            partitions,
            block_bytes: (buffers / partitions).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX),
            load_bytes: memory / 2 / threads,
            sink_bytes: memory / 8 / threads,
        }
    }

    /// The partition of a hash: its highest bits.
    #[inline]
    pub(super) fn partition_of(&self, hash: u64) -> usize {
        let [.., low, high] = hash.to_le_bytes();
        usize::from(u16::from_le_bytes([low, high]) >> (u16::BITS - self.partitions.trailing_zeros()))
    }
}
