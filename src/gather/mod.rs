//! Gather: provider, inbox and local state become facts.

pub use crate::record::{Coverage, CoverageStatus};
