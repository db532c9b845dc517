//! Gather: provider, inbox and local state become facts.

mod aliases;
mod columns;
mod coverage;
mod dialect;
mod inbox;
mod local;
mod source;
mod statement;

pub use aliases::{known_as, resolve};
pub use coverage::{Coverage, CoverageStatus};
pub use dialect::Dialect;
pub use inbox::Inbox;
pub use local::LocalBooks;
pub use source::{DEFAULT_QUERIES, FactSink};
