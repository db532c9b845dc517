//! Two sides, row by row: which rows have no equal one on the other side.
//!
//! The rules are in `pair_leg.rs`. The one thing to get right: sums are taken on the way in and never from what was
//! found, so that findings which do not explain the difference are noticed.

use super::Hash;
use super::loader::{Loader, each_place};
use super::pair_leg::{PairLeg, PairSink};
use super::pair_record::{Difference, Place, difference, put_row};
use super::plan::Plan;
use super::scatter::{Scatter, Stored};
use super::sorter::{Merge, Run, reduce};
use crate::config::CompareSettings;
use crate::spill::Spill;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A row of either side.
#[derive(Clone, Copy, Debug)]
pub struct PairRow<'a> {
    /// Key; parts of a key of several columns are separated by NUL, which no part may hold.
    pub key: &'a [u8],
    /// Number of the currency; the order of numbers is the order in which currencies are paired.
    pub currency: u16,
    /// Minor units.
    pub amount_minor: i64,
    /// UTF-8; empty where statuses are not compared.
    pub status: &'a [u8],
    /// Which side.
    pub is_left: bool,
    /// Where it stands; no two rows of one side stand at the same place.
    pub place: Place,
}

/// What both sides come to in one currency. 128 bits cannot overflow: there are fewer than 2⁶⁴ rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairSums {
    /// Minor units on the left.
    pub left_minor: i128,
    /// Minor units on the right.
    pub right_minor: i128,
    /// Rows on the left.
    pub left_rows: u64,
    /// Rows on the right.
    pub right_rows: u64,
}

impl PairSums {
    fn add(&mut self, other: &Self) {
        self.left_minor += other.left_minor;
        self.right_minor += other.right_minor;
        self.left_rows += other.left_rows;
        self.right_rows += other.right_rows;
    }
}

/// A comparison of two sides: give it feeds, close them, judge.
#[derive(Debug)]
pub struct Pairs {
    plan: Plan,
    folder: PathBuf,
    hash: Hash,
}

/// Takes rows on one thread.
#[derive(Debug)]
pub struct PairFeed {
    scattered: Scatter,
    sums: Vec<PairSums>,
    record: Vec<u8>,
}

/// What a feed leaves behind.
#[derive(Debug)]
pub struct PairPart {
    stored: Stored,
    sums: Vec<PairSums>,
}

impl Pairs {
    /// A comparison that spills into `spill_dir` (made if missing). The answer depends on neither setting.
    #[must_use]
    pub fn new(settings: &CompareSettings, spill_dir: &Path) -> Self {
        Self::with_hash(settings, spill_dir, xxh3_64)
    }

    pub(super) fn with_hash(settings: &CompareSettings, spill_dir: &Path, hash: Hash) -> Self {
        Self { plan: Plan::for_legs(settings, 1), folder: spill_dir.to_owned(), hash }
    }

    /// A feed for one thread; at most `threads` of the settings, for which memory was shared out.
    ///
    /// # Errors
    /// When its spill file cannot be made.
    pub fn feed(&self) -> Result<PairFeed> {
        let scattered = Scatter::new(&self.folder, self.plan, self.hash, 1)?;
        Ok(PairFeed { scattered, sums: Vec::new(), record: Vec::new() })
    }

    /// Pairs everything that the feeds took.
    ///
    /// # Errors
    /// When a spill file cannot be written or read.
    pub fn judge(&self, parts: Vec<PairPart>) -> Result<Compared> {
        let mut sums: Vec<PairSums> = Vec::new();
        let mut stored = Vec::new();
        for part in parts {
            sums.resize(sums.len().max(part.sums.len()), PairSums::default());
            sums.iter_mut().zip(&part.sums).for_each(|(whole, part)| whole.add(part));
            stored.push(part.stored);
        }
        let plan = self.plan;
        let outcomes = each_place(
            plan.threads,
            plan.partitions,
            || {
                let sink = PairSink::new(Spill::create(&self.folder)?, plan.sink_bytes);
                Ok((sink, Loader::new(&self.folder, plan.load_bytes, self.hash)?))
            },
            |(sink, loader), place| loader.judge::<PairLeg>(&stored, place, sink),
            |(sink, _)| sink.finish(),
        )?;
        let (mut runs, mut matched) = (Vec::new(), 0);
        for (found, count) in outcomes {
            runs.extend(found);
            matched += count;
        }
        let spill = Arc::new(Spill::create(&self.folder)?);
        let runs = reduce(runs, &spill, plan.load_bytes)?;
        Ok(Compared { runs, bytes_max: plan.load_bytes, matched, sums })
    }
}

impl PairFeed {
    /// Takes a row.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    #[inline]
    pub fn add(&mut self, row: &PairRow<'_>) -> Result<()> {
        let currency = usize::from(row.currency);
        if self.sums.len() <= currency {
            self.sums.resize(currency + 1, PairSums::default());
        }
        let sums = &mut self.sums[currency];
        if row.is_left {
            sums.left_minor += i128::from(row.amount_minor);
            sums.left_rows += 1;
        } else {
            sums.right_minor += i128::from(row.amount_minor);
            sums.right_rows += 1;
        }
        self.record.clear();
        let key_len = put_row(&mut self.record, row);
        self.scattered.append(0, &self.record, key_len)
    }

    /// Hands out what it took.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn close(self) -> Result<PairPart> {
        Ok(PairPart { stored: self.scattered.close()?, sums: self.sums })
    }
}

/// What comparing found, on disk.
#[derive(Debug)]
pub struct Compared {
    runs: Vec<Run>,
    bytes_max: usize,
    matched: u64,
    sums: Vec<PairSums>,
}

impl Compared {
    /// Rows of each side that have an equal one on the other.
    #[must_use]
    pub const fn matched(&self) -> u64 {
        self.matched
    }

    /// Sums of everything that the feeds took, by number of the currency.
    #[must_use]
    pub fn sums(&self) -> &[PairSums] {
        &self.sums
    }

    /// All differences by key, then kind; read from disk, so it may be asked for several times.
    ///
    /// # Errors
    /// When the spill folder cannot be read; the items too.
    pub fn differences(&self) -> Result<Differences> {
        Ok(Differences { merge: Merge::open(&self.runs, self.bytes_max)?, record: Vec::new() })
    }
}

/// Differences in order.
#[derive(Debug)]
pub struct Differences {
    merge: Merge,
    record: Vec<u8>,
}

impl Iterator for Differences {
    type Item = Result<Difference>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.merge.next(&mut self.record) {
            Ok(true) => Some(difference(&self.record)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
