//! What comparing found suspicious, read from disk in order.

use super::leg::Found;
use super::sorter::{Merge, Run};
use super::totals::Totals;
use crate::compact::damaged;
use crate::record::{EventKey, Scope};
use anyhow::Result;

/// A group to load whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RootKey {
    /// Scope.
    pub scope: Scope,
    /// Group.
    pub root_id: String,
}

/// Groups that the rules must see, and the totals of everything that was compared.
///
/// The keys lie on disk; each iterator reads them anew, sorted and without repeats, in little memory.
#[derive(Debug)]
pub struct Suspicious {
    scopes: Vec<Scope>,
    found: Found,
    bytes_max: usize,
    totals: Totals,
}

impl Suspicious {
    pub(super) const fn new(scopes: Vec<Scope>, found: Found, bytes_max: usize, totals: Totals) -> Self {
        Self { scopes, found, bytes_max, totals }
    }

    /// Sums and counts of everything that was added.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// All suspicious roots by (scope, root id), each once.
    ///
    /// # Errors
    /// When the spill folder cannot be read; the items too.
    pub fn roots(&self) -> Result<impl Iterator<Item = Result<RootKey>>> {
        let keys = Keys::open(&self.found.roots, self.bytes_max)?;
        Ok(keys.map(|key| {
            let (rank, root_id) = key?;
            Ok(RootKey { scope: self.scope(rank)?, root_id })
        }))
    }

    /// Events that the inbox has and the provider does not list although it lists events of that
    /// time, or that the inbox has twice, by (scope, event id), each once.
    ///
    /// # Errors
    /// When the spill folder cannot be read; the items too.
    pub fn inbox_only(&self) -> Result<impl Iterator<Item = Result<EventKey>>> {
        let keys = Keys::open(&self.found.events, self.bytes_max)?;
        Ok(keys.map(|key| {
            let (rank, event_id) = key?;
            Ok(EventKey { scope: self.scope(rank)?, event_id })
        }))
    }

    fn scope(&self, rank: usize) -> Result<Scope> {
        self.scopes.get(rank).cloned().ok_or_else(damaged)
    }
}

/// Records of a sink in order, without repeats.
struct Keys {
    merge: Merge,
    last: Vec<u8>,
    record: Vec<u8>,
    is_first: bool,
}

impl Keys {
    fn open(runs: &[Run], bytes_max: usize) -> Result<Self> {
        let merge = Merge::open(runs, bytes_max)?;
        Ok(Self { merge, last: Vec::new(), record: Vec::new(), is_first: true })
    }

    fn next_key(&mut self) -> Result<Option<(usize, String)>> {
        while self.merge.next(&mut self.record)? {
            if self.is_first || self.record != self.last {
                self.is_first = false;
                self.last.clone_from(&self.record);
                let (rank, text) = self.record.split_first_chunk::<4>().ok_or_else(damaged)?;
                let text = String::from_utf8(text.to_vec()).map_err(|_| damaged())?;
                return Ok(Some((u32::from_be_bytes(*rank) as usize, text)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Keys {
    type Item = Result<(usize, String)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_key().transpose()
    }
}
