//! Sorting more records than memory holds: sorted runs on disk, merged when read.
//!
//! Equal records are kept, each of them; the reader drops repeats where it wants none.

use crate::compact::{damaged, put_varint};
use crate::spill::{Block, Spill};
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Runs that are merged at once.
const FAN_IN: usize = 32;
/// Bounds of one run's read buffer.
const READ_BYTES_MIN: usize = 1 << 10;
const READ_BYTES_MAX: usize = 1 << 16;

/// Records in byte order, in one piece of a spill file.
#[derive(Clone, Debug)]
pub(super) struct Run {
    spill: Arc<Spill>,
    block: Block,
}

/// Collects records and writes them as sorted runs of at most the memory that it may use.
#[derive(Debug)]
pub(super) struct Sorter {
    spill: Arc<Spill>,
    bytes_max: usize,
    arena: Vec<u8>,
    spans: Vec<(u32, u32)>,
    runs: Vec<Run>,
}

impl Sorter {
    /// An empty sorter that uses about `bytes_max` of memory.
    pub(super) fn new(spill: Arc<Spill>, bytes_max: usize) -> Self {
        let bytes_max = bytes_max.clamp(4 << 10, 1 << 30);
        Self { spill, bytes_max, arena: Vec::new(), spans: Vec::new(), runs: Vec::new() }
    }

    /// Adds a record.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<()> {
        let held = self.arena.len() + self.spans.len() * size_of::<(u32, u32)>();
        if held + record.len() > self.bytes_max && !self.spans.is_empty() {
            self.write_run()?;
        }
        let start = u32::try_from(self.arena.len())?;
        self.arena.extend_from_slice(record);
        self.spans.push((start, u32::try_from(self.arena.len())?));
        Ok(())
    }

    /// Writes what is left and hands out the runs.
    pub(super) fn finish(mut self) -> Result<Vec<Run>> {
        if !self.spans.is_empty() {
            self.write_run()?;
        }
        Ok(self.runs)
    }

    fn write_run(&mut self) -> Result<()> {
        let arena = &self.arena;
        let record = |span: &(u32, u32)| &arena[span.0 as usize..span.1 as usize];
        self.spans.sort_unstable_by(|one, other| record(one).cmp(record(other)));
        let mut writer = RunWriter::new(Arc::clone(&self.spill));
        for span in &self.spans {
            writer.push(record(span))?;
        }
        self.runs.extend(writer.finish()?);
        self.arena.clear();
        self.spans.clear();
        Ok(())
    }
}

/// Writes one run in blocks that lie side by side: nobody else may append to the file meanwhile.
struct RunWriter {
    spill: Arc<Spill>,
    buffer: Vec<u8>,
    start: Option<u64>,
    len: usize,
}

impl RunWriter {
    fn new(spill: Arc<Spill>) -> Self {
        Self { spill, buffer: Vec::new(), start: None, len: 0 }
    }

    fn push(&mut self, record: &[u8]) -> Result<()> {
        put_varint(&mut self.buffer, record.len() as u64);
        self.buffer.extend_from_slice(record);
        if self.buffer.len() >= READ_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let block = self.spill.append(&self.buffer)?;
        let start = *self.start.get_or_insert(block.offset);
        assert_eq!(block.offset, start + self.len as u64, "one writer at a time per spill file");
        self.len += block.len;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Option<Run>> {
        if !self.buffer.is_empty() {
            self.flush()?;
        }
        let Self { spill, start, len, .. } = self;
        Ok(start.map(|offset| Run { spill, block: Block { offset, len } }))
    }
}

/// Reads one run record by record.
#[derive(Debug)]
struct RunReader {
    run: Run,
    read_bytes: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl RunReader {
    fn new(run: Run, read_bytes: usize) -> Self {
        Self { run, read_bytes, buffer: Vec::new(), at: 0 }
    }

    /// The next record into `out`; false at the end.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if self.at == self.buffer.len() && self.run.block.len == 0 {
            return Ok(false);
        }
        let mut len = 0_u64;
        for shift in (0..64).step_by(7) {
            self.fill(1)?;
            let byte = self.buffer[self.at];
            self.at += 1;
            len |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let len = usize::try_from(len)?;
        self.fill(len)?;
        out.clear();
        out.extend_from_slice(&self.buffer[self.at..self.at + len]);
        self.at += len;
        Ok(true)
    }

    /// Makes sure that `len` bytes are buffered.
    fn fill(&mut self, len: usize) -> Result<()> {
        if self.buffer.len() - self.at >= len {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let kept = self.buffer.len();
        let wanted = (len - kept).max(self.read_bytes).min(self.run.block.len);
        if kept + wanted < len {
            return Err(damaged());
        }
        self.buffer.resize(kept + wanted, 0);
        self.run.spill.read(&mut self.buffer[kept..], self.run.block.offset)?;
        self.run.block.offset += wanted as u64;
        self.run.block.len -= wanted;
        Ok(())
    }
}

/// The records of several runs in byte order.
#[derive(Debug)]
pub(super) struct Merge {
    readers: Vec<RunReader>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

impl Merge {
    /// Opens runs with about `bytes_max` of memory. There may be at most [`FAN_IN`]: see [`reduce`].
    pub(super) fn open(runs: &[Run], bytes_max: usize) -> Result<Self> {
        let read_bytes = (bytes_max / runs.len().max(1)).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        let mut merge = Self { readers: Vec::new(), heap: BinaryHeap::new() };
        for (number, run) in runs.iter().enumerate() {
            let mut reader = RunReader::new(run.clone(), read_bytes);
            let mut record = Vec::new();
            if reader.next(&mut record)? {
                merge.heap.push(Reverse((record, number)));
            }
            merge.readers.push(reader);
        }
        Ok(merge)
    }

    /// The next record into `out`; false at the end.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let Some(mut top) = self.heap.peek_mut() else { return Ok(false) };
        let Reverse((record, number)) = &mut *top;
        std::mem::swap(out, record);
        if !self.readers[*number].next(record)? {
            std::collections::binary_heap::PeekMut::pop(top);
        }
        Ok(true)
    }
}

/// Merges runs until few enough are left to be read at once.
pub(super) fn reduce(mut runs: Vec<Run>, spill: &Arc<Spill>, bytes_max: usize) -> Result<Vec<Run>> {
    while runs.len() > FAN_IN {
        let later = runs.split_off(FAN_IN);
        let mut merge = Merge::open(&runs, bytes_max)?;
        let mut writer = RunWriter::new(Arc::clone(spill));
        let mut record = Vec::new();
        while merge.next(&mut record)? {
            writer.push(&record)?;
        }
        runs = later;
        runs.extend(writer.finish()?);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_come_back_sorted_with_every_repeat() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::create(folder.path()).unwrap());
        let mut sorter = Sorter::new(Arc::clone(&spill), 0);
        let mut records: Vec<Vec<u8>> = (0..20_000_u64)
            .map(|number| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 5_000).to_string().into_bytes())
            .collect();
        records.push(vec![b'x'; 200_000]);
        records.push(Vec::new());
        for record in &records {
            sorter.push(record).unwrap();
        }
        let runs = sorter.finish().unwrap();
        assert!(runs.len() > FAN_IN, "{}", runs.len());
        let runs = reduce(runs, &spill, 0).unwrap();
        assert!(runs.len() <= FAN_IN);
        let mut merge = Merge::open(&runs, 0).unwrap();
        let (mut found, mut record) = (Vec::new(), Vec::new());
        while merge.next(&mut record).unwrap() {
            found.push(record.clone());
        }
        records.sort();
        assert_eq!(found, records);
    }

    #[test]
    fn nothing_is_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::create(folder.path()).unwrap());
        let runs = Sorter::new(spill, 0).finish().unwrap();
        assert!(runs.is_empty());
        assert!(!Merge::open(&runs, 0).unwrap().next(&mut Vec::new()).unwrap());
    }
}
