//! Gather: provider, inbox and local state become facts.

mod coverage;

pub use coverage::{Coverage, CoverageStatus};
