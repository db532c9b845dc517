//! `recon serve`: takes deliveries.
//!
//! Steps: read the endpoints · use the spill folder · start the writer · listen · say where · serve until asked
//! to end · let what was accepted be written.

use super::Outcome;
use super::work::{WorkArgs, work_until};
use crate::config::{Settings, Unusable};
use crate::provider::{Cancel, Timing};
use crate::receive::Scheme;
use crate::serve::{
    App, Certificates, Gauges, Intake, Metrics, Refusals, Spill, Writing, body_memory, endpoints, router,
    serve_connections,
};
use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serves until `ending` resolves. Where it listens is said on `out`, so that port 0 can be used.
///
/// # Errors
/// When a setting cannot be used, the address cannot be listened on, or the writer ended early.
pub async fn serve(
    settings: &Settings,
    ending: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    serve_counting(settings, ending, out, Arc::new(Metrics::default())).await
}

/// Serves, and applies what was received, in one process. The worker ends first, after the batch at hand.
///
/// # Errors
/// As [`serve`].
pub async fn serve_and_work(
    settings: &Settings,
    ending: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let metrics = Arc::new(Metrics::default());
    let (canceller, cancel) = Cancel::new();
    let working =
        work_until(settings, WorkArgs::default(), Timing::real(), cancel, Some(Arc::clone(&metrics)));
    let ending = async {
        ending.await;
        canceller.cancel();
    };
    let serving = serve_counting(settings, ending, out, metrics);
    let (outcome, _) = tokio::try_join!(serving, working)?;
    Ok(outcome)
}

/// The folder of `[receive] spill_dir`. A place that cannot be one is a mistake in the configuration; a full disk is not.
fn spill_folder(folder: &Path) -> Result<Spill> {
    let error = match Spill::at(folder) {
        Ok(spill) => return Ok(spill),
        Err(error) => error,
    };
    let kind = error.root_cause().downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let hint = match kind {
        Some(ErrorKind::AlreadyExists | ErrorKind::NotADirectory) => {
            "that path, or a part of it, is a file: name a folder, or move the file away"
        }
        Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            "let the user that runs recon write there, or name another folder"
        }
        Some(ErrorKind::NotFound | ErrorKind::InvalidFilename | ErrorKind::InvalidInput) => {
            "it is not there and cannot be made: make the folder, or name another one"
        }
        _ => return Err(error),
    };
    Err(Unusable::new(format!("[receive] spill_dir cannot be used: {error:#}"), hint).into())
}

/// Listens. An address that this user may not have is a mistake in the configuration.
async fn listen_on(address: SocketAddr) -> Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let message = format!("[receive] listen: {address} cannot be had: {error}");
            let hint = "ports below 1024 are root's: set another one, and let the TLS proxy have 443";
            Err(Unusable::new(message, hint).into())
        }
        bound => bound.with_context(|| format!("listen on {address}")),
    }
}

async fn serve_counting(
    settings: &Settings,
    ending: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
    metrics: Arc<Metrics>,
) -> Result<Outcome> {
    let endpoints = endpoints(&settings.endpoints)?;
    let receive = &settings.receive;
    let spill = receive.spill_dir.as_deref().map(spill_folder).transpose()?;
    let has_certificates =
        endpoints.values().any(|endpoint| matches!(endpoint.settings.scheme, Scheme::PayPal(_)));
    let certificates = has_certificates.then(Certificates::new).transpose()?;
    let listener = listen_on(receive.listen).await?;
    let address = listener.local_addr().context("ask for the address")?;
    let writing = Writing {
        store_url: settings.store_url.clone(),
        waiting_max: receive.waiting_max,
        commit_timeout: receive.timeout * 3 / 4,
        spill,
    };
    let (intake, mut writer) = Intake::start(writing, Arc::clone(&metrics));
    // Held until connections are over, so that the writer cannot end before.
    let held = intake.clone();
    for name in endpoints.keys() {
        writeln!(out, "POST http://{address}/webhooks/{name}")?;
    }
    out.flush()?;
    let refusals = Arc::new(Refusals::new(Arc::clone(&metrics)));
    let app = App {
        endpoints,
        intake,
        metrics,
        refusals: Arc::clone(&refusals),
        gauges: Gauges::new(settings.store_url.clone(), settings.notify.waiting_age),
        certificates,
        body_bytes_max: receive.body_bytes_max,
        timeout: receive.timeout,
        memory: body_memory(),
    };
    let unreadable = Arc::clone(&refusals);
    let on_unreadable = move |reason| unreadable.turned_away("", reason);
    let router = router(Arc::new(app));
    let mut serving = pin!(serve_connections(listener, router, receive.timeout, on_unreadable, ending));
    tokio::select! {
        served = &mut serving => served?,
        () = refusals.tell_on() => {}
        // Without it every delivery would be answered 503 for ever.
        ended = &mut writer => {
            ended.context("the writer of deliveries ended early")?;
            anyhow::bail!("the writer of deliveries ended early");
        }
    }
    refusals.tell_rest();
    drop(held);
    // Nobody holds the intake any more: the writer ends when it has written what it was given.
    writer.await.context("the writer of deliveries ended early")?;
    Ok(Outcome::Clean)
}
