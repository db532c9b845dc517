//! `recon`: gather, compare, find, plan, report, save.

use super::Outcome;
use crate::cli::RunRequest;
use crate::config::Settings;
use anyhow::{Result, bail};

/// Reconciles the requested window.
///
/// # Errors
/// When the work cannot be done.
#[expect(clippy::unused_async, reason = "the steps of a run are awaited")]
pub async fn run(_settings: &Settings, _request: &RunRequest) -> Result<Outcome> {
    bail!("a run is not available in this build")
}
