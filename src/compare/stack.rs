//! A stack of byte strings that holds little in memory, however deep it grows.

use crate::compact::damaged;
use crate::spill::{Block, Spill};
use anyhow::Result;

/// Bytes after which a piece of the stack is set aside; two pieces are held at most.
const PIECE_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = size_of::<u32>();

/// Last in, first out. Its deep pieces lie in a spill file.
#[derive(Debug, Default)]
pub(super) struct Stack {
    top: Vec<u8>,
    below: Vec<u8>,
    deep: Vec<Block>,
}

impl Stack {
    /// Puts an entry on top.
    #[inline]
    pub(super) fn push(&mut self, entry: &[u8], spill: &Spill) -> Result<()> {
        if self.top.len() >= PIECE_BYTES {
            if !self.below.is_empty() {
                self.deep.push(spill.append(&self.below)?);
                self.below.clear();
            }
            std::mem::swap(&mut self.top, &mut self.below);
        }
        self.top.extend_from_slice(entry);
        self.top.extend_from_slice(&u32::try_from(entry.len())?.to_le_bytes());
        Ok(())
    }

    /// Takes the entry on top into `out`; false where there is none.
    #[inline]
    pub(super) fn pop(&mut self, out: &mut Vec<u8>, spill: &Spill) -> Result<bool> {
        if self.top.is_empty() {
            std::mem::swap(&mut self.top, &mut self.below);
        }
        if self.top.is_empty() {
            let Some(block) = self.deep.pop() else { return Ok(false) };
            self.top.resize(block.len, 0);
            spill.read(&mut self.top, block.offset)?;
        }
        let (rest, len) = self.top.split_last_chunk::<LENGTH_BYTES>().ok_or_else(damaged)?;
        let start = rest.len().checked_sub(u32::from_le_bytes(*len) as usize).ok_or_else(damaged)?;
        out.clear();
        out.extend_from_slice(&rest[start..]);
        self.top.truncate(start);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_last_first_from_memory_and_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::create(folder.path()).unwrap();
        let (mut stack, mut model, mut out) = (Stack::default(), Vec::new(), Vec::new());
        for round in 0..4_u32 {
            for number in 0..60_000_u32 {
                let entry = format!("{round}-{number}").into_bytes();
                stack.push(&entry, &spill).unwrap();
                model.push(entry);
            }
            for _ in 0..45_000 {
                assert!(stack.pop(&mut out, &spill).unwrap());
                assert_eq!(Some(&out), model.pop().as_ref());
            }
        }
        assert!(stack.top.len() + stack.below.len() <= 3 * PIECE_BYTES);
        stack.push(b"", &spill).unwrap();
        model.push(Vec::new());
        while let Some(entry) = model.pop() {
            assert!(stack.pop(&mut out, &spill).unwrap());
            assert_eq!(out, entry);
        }
        assert!(!stack.pop(&mut out, &spill).unwrap());
    }
}
