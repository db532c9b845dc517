//! Gather: provider, inbox and local state become facts.

mod catalog;
mod columns;
mod complete;
mod connect;
mod dialect;
mod endpoints;
mod fresh;
mod inbox;
mod local;
mod moment;
mod mysql_value;
mod provider;
mod reader;
mod rows;
mod source;
mod standing;
mod statement;
mod trouble;
mod whole;
mod file_tables;

pub use crate::record::{Coverage, CoverageStatus};
pub use catalog::describe;
pub use complete::{Whole, fetch_whole};
pub use dialect::Dialect;
pub use endpoints::{Endpoints, endpoints, fetch_endpoints};
pub use file_tables::{Loaded, prepare};
pub use fresh::{FreshState, fetch_state};
pub use inbox::Inbox;
pub use local::LocalBooks;
pub use moment::Moment;
pub use provider::{Outside, ProviderSide};
pub use source::{DEFAULT_QUERIES, FactSink};
pub use standing::{ExpectedEffect, Standing, fetch_standings};
pub use trouble::hint_of;
pub use whole::{Sides, ids_without_record};
