//! Findings: values that rules emit. One file per kind. Pure.

pub mod doc;
mod finding;

pub use finding::{Action, Finding, Kind, Severity, Standing};

/// Each rule's source, whose head is its section of `docs/findings.md` (see [`doc::render`]).
pub const SOURCES: &[(Kind, &str)] = &[];
