//! One integration binary: features are tested at the boundary.
#![expect(clippy::unwrap_used, reason = "a helper of tests may stop its test")]

mod cli;
mod config;
mod local_side;
mod tidy;
