//! What part of the window a run can prove that it has seen: one row per stream and range.

use super::Scope;

/// Whether a range was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageStatus {
    /// Every slice of it is closed.
    Covered,
    /// It cannot be proven: the run is incomplete.
    Gap,
    /// The provider no longer lists it, and other streams stand in for it.
    NotListed,
}

impl CoverageStatus {
    /// The word in `coverage.csv`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Covered => "covered",
            Self::Gap => "gap",
            Self::NotListed => "not_listed",
        }
    }
}

/// One row of `coverage.csv`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coverage {
    /// Scope.
    pub scope: Scope,
    /// The stream (`events`, `charges`, …), `inbox` or `local`.
    pub stream: String,
    /// First instant, Unix µs.
    pub from_us: i64,
    /// First instant after, Unix µs.
    pub until_us: i64,
    /// Whether it was seen.
    pub status: CoverageStatus,
    /// Why not: `retention`, `cursor_lost`, `provider_empty`, `endpoint_disabled`, `no_permission`, …; empty when covered.
    pub cause: String,
    /// Slices that prove it.
    pub slices: u64,
    /// Pages read.
    pub pages: u64,
    /// Records held.
    pub records: u64,
}
