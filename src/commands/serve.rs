//! `recon serve`: takes deliveries.
//!
//! Steps: read the endpoints · use the spill folder · start the writer · listen · say where · serve until asked
//! to end · let what was accepted be written.

use super::Outcome;
use crate::config::Settings;
use crate::serve::{App, Intake, Metrics, Spill, Writing, endpoints, router, serve_connections};
use anyhow::{Context, Result};
use std::io::Write;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serves until `ending` resolves. Where it listens is said on `out`, so that port 0 can be used.
///
/// # Errors
/// When a setting cannot be used, or the address cannot be listened on.
pub async fn serve(
    settings: &Settings,
    ending: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let endpoints = endpoints(&settings.endpoints)?;
    let receive = &settings.receive;
    let spill = receive.spill_dir.as_deref().map(Spill::at).transpose()?;
    let metrics = Arc::new(Metrics::default());
    let writing = Writing {
        store_url: settings.store_url.clone(),
        waiting_max: receive.waiting_max,
        commit_timeout: receive.timeout * 3 / 4,
        spill,
    };
    let (intake, writer) = Intake::start(writing, Arc::clone(&metrics));
    let listener =
        TcpListener::bind(receive.listen).await.with_context(|| format!("listen on {}", receive.listen))?;
    let address = listener.local_addr().context("ask for the address")?;
    for name in endpoints.keys() {
        writeln!(out, "POST http://{address}/webhooks/{name}")?;
    }
    out.flush()?;
    let app = App::new(endpoints, intake, metrics, receive.body_bytes_max, receive.timeout);
    serve_connections(listener, router(Arc::new(app)), receive.timeout, ending).await?;
    // The router was the last to hold the intake: the writer ends when it has written what it was given.
    writer.await.context("the writer ended early")?;
    Ok(Outcome::Clean)
}
