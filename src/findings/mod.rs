//! Findings: values that rules emit. One file per kind. Pure.

mod finding;

pub use finding::{Action, Finding, Kind, Severity, Standing};
