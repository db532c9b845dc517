//! Compare: which groups disagree, in bounded memory.
//!
//! Facts of all sides are scattered by a hash of their key into partitions on disk; each partition is
//! loaded, sorted and judged in one pass. What comes out is *suspicious*, not yet wrong: only those
//! groups are loaded whole and handed to the rules. The one thing to get right: a group that is called
//! clean is never looked at again, so every doubt is called suspicious. Hashes only spread the work;
//! whether two ids are equal is decided on the ids.
//!
//! There are three legs: events (by event id), payments (by root id), intents (by intent). Two files are compared
//! row by row with a leg of their own (`pairs.rs`). Pure apart from its spill files (`src/spill.rs`).

mod event_leg;
mod fact_feed;
mod feed;
mod intent_leg;
mod leg;
mod loader;
mod pair_leg;
mod pair_record;
mod pairs;
mod partition;
mod plan;
mod root_leg;
mod scatter;
mod sorter;
mod stack;
mod suspicious;
mod totals;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod pair_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod judged;

pub use feed::{EffectRow, Feed, ScopeId};
pub use pair_record::{Difference, DifferenceKind, Place, Seen};
pub use pairs::{Compared, Differences, PairFeed, PairPart, PairRow, PairSums, Pairs};
pub use suspicious::{RootKey, Suspicious};
pub use totals::{Counts, Sums, Totals};

use crate::config::CompareSettings;
use crate::record::{Fact, Scope, Window};
use crate::spill::Spill;
use anyhow::{Result, ensure};
use feed::Part;
use plan::Plan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Spreads keys over partitions. Its quality costs time, never an answer.
type Hash = fn(&[u8]) -> u64;

/// What the feeds of one comparison share.
#[derive(Debug)]
struct Shared {
    plan: Plan,
    folder: PathBuf,
    hash: Hash,
    covered: BTreeMap<Scope, Vec<Window>>,
    collected: Mutex<Collected>,
}

#[derive(Debug, Default)]
struct Collected {
    scopes: BTreeMap<Scope, u32>,
    parts: Vec<Part>,
    open_feeds: usize,
}

impl Shared {
    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a scope: the same for every feed.
    fn number_of(&self, scope: &Scope) -> u32 {
        let mut collected = self.collected();
        let next = u32::try_from(collected.scopes.len()).unwrap_or(u32::MAX);
        assert!(next < u32::MAX, "more than 2^32 scopes");
        *collected.scopes.entry(scope.clone()).or_insert(next)
    }

    fn take(&self, part: Part) {
        let mut collected = self.collected();
        collected.parts.push(part);
        collected.open_feeds -= 1;
    }
}

/// Takes facts in any order and says which groups are suspicious.
#[derive(Debug)]
pub struct Comparer {
    shared: Arc<Shared>,
    own: Option<Feed>,
}

impl Comparer {
    /// An empty comparison that spills into `spill_dir` (made if missing).
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn new(settings: &CompareSettings, spill_dir: &Path) -> Result<Self> {
        Self::with_hash(settings, spill_dir, xxh3_64)
    }

    fn with_hash(settings: &CompareSettings, spill_dir: &Path, hash: Hash) -> Result<Self> {
        Spill::create(spill_dir)?;
        let shared = Arc::new(Shared {
            plan: Plan::new(settings),
            folder: spill_dir.to_owned(),
            hash,
            covered: BTreeMap::new(),
            collected: Mutex::default(),
        });
        Ok(Self { shared, own: None })
    }

    /// Says for which ranges the provider's event list was read, per scope.
    ///
    /// An inbox row received inside one of them whose event is not listed is reported, and so is a
    /// local row that names such an event; outside of them the absence of an event proves nothing. A
    /// scope that is not named counts as covered at all times, one with no ranges never.
    ///
    /// # Panics
    /// When facts were already added: they were read without knowing this.
    #[must_use]
    pub fn covering(mut self, covered: BTreeMap<Scope, Vec<Window>>) -> Self {
        let shared = Arc::get_mut(&mut self.shared);
        assert!(shared.is_some(), "coverage is said before the first fact");
        if let Some(shared) = shared {
            shared.covered = covered;
        }
        self
    }

    /// A feed for another thread. It must be closed before [`Comparer::finish`].
    ///
    /// # Errors
    /// When its spill file cannot be made.
    pub fn feed(&self) -> Result<Feed> {
        self.shared.collected().open_feeds += 1;
        Feed::new(Arc::clone(&self.shared))
    }

    /// Takes a fact.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn add(&mut self, fact: &Fact) -> Result<()> {
        if self.own.is_none() {
            self.own = Some(self.feed()?);
        }
        match &mut self.own {
            Some(own) => own.add(fact),
            None => Ok(()),
        }
    }

    /// Judges everything that was added.
    ///
    /// # Errors
    /// When a spill file cannot be written or read, or a feed was lost without being closed.
    pub fn finish(self) -> Result<Suspicious> {
        let Self { shared, own } = self;
        own.map_or(Ok(()), Feed::close)?;
        let Collected { scopes, parts, open_feeds } = std::mem::take(&mut *shared.collected());
        ensure!(open_feeds == 0, "{open_feeds} feeds of the comparison ended without handing in their facts");
        let mut by_number: Vec<(u32, Scope)> =
            scopes.into_iter().map(|(scope, number)| (number, scope)).collect();
        by_number.sort_unstable();
        let scopes: Vec<Scope> = by_number.into_iter().map(|(_, scope)| scope).collect();
        partition::judge(&shared, scopes, parts)
    }
}
