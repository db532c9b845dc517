//! After a run, whatever came of it: those who were not there are told. See [`crate::night`].

use super::{Finished, Outcome};
use crate::cli::{RunRequest, UsageError};
use crate::clock;
use crate::commands::run::reporting::configured_program;
use crate::config::{Settings, Unusable};
use crate::night::{self, Ended};
use crate::provider::Timing;
use anyhow::Result;

/// Tells of a run that began at `began_us` by the machine's clock. An offline run asks nobody and tells nobody; one that
/// was kept out by another has nothing to tell.
pub(super) async fn tell(
    settings: &Settings,
    request: &RunRequest,
    began_us: i64,
    finished: &Result<Finished>,
) {
    if request.offline || settings.night.is_silent() {
        return;
    }
    let (outcome, error) = match finished {
        Ok(finished) if finished.outcome == Outcome::Locked => return,
        Ok(finished) => (finished.outcome, String::new()),
        Err(error) => (outcome_of(error), super::short(error)),
    };
    let took_us = clock::machine_now_us().saturating_sub(began_us).max(0);
    let program = configured_program();
    let run_id = crate::telemetry::current_run_id();
    let ended = Ended {
        run_id: &run_id,
        outcome,
        error: &error,
        found: finished.as_ref().ok().and_then(|finished| finished.found.as_ref()),
        program: &program,
        seen_at_us: request.now_us,
        ended_at_us: clock::now_us(),
        took_ms: took_us.unsigned_abs() / 1_000,
    };
    night::tell(&settings.night, &settings.store_url, &ended, &Timing::real()).await;
}

/// As `main` ends it.
fn outcome_of(error: &anyhow::Error) -> Outcome {
    let is_unusable = error.chain().any(|cause| cause.is::<Unusable>() || cause.is::<UsageError>());
    if is_unusable { Outcome::Config } else { Outcome::Incomplete }
}
