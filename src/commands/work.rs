//! `recon work`: applies what was received.
//!
//! Steps: open the store, or wait for it · apply batches, send messages, tell of trouble, side by side · end after
//! the batch at hand when asked to.

use super::{Outcome, counted};
use crate::config::Settings;
use crate::provider::{Cancel, Timing};
use crate::record::InboxStatus;
use crate::serve::Metrics;
use crate::store::{Access, Store};
use crate::telemetry;
use crate::work::{Notifier, Sender, Tally, Worker};
use anyhow::Result;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `recon work`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkArgs {
    /// End when nothing is due.
    pub drain: bool,
}

/// Works until `ending` resolves. What became of events is the last line on `out`. A drain that made dead letters ends as
/// findings; one after which events still wait that failed in it, or that was asked to end, as incomplete.
///
/// # Errors
/// When draining, and the store cannot be opened or fails. Else it is waited for.
pub async fn work(
    settings: &Settings,
    args: WorkArgs,
    ending: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    if !args.drain {
        telemetry::say("applying what is received; Ctrl-C or SIGTERM ends it after the batch at hand");
    }
    let (canceller, cancel) = Cancel::new();
    let working = work_until(settings, args, Timing::real(), cancel, None);
    let mut working = std::pin::pin!(working);
    let (tally, is_cut_off) = tokio::select! {
        tally = &mut working => (tally?, false),
        () = ending => {
            canceller.cancel();
            (working.await?, true)
        }
    };
    let (outcome, findings) = if args.drain { judge(&tally, is_cut_off) } else { (Outcome::Clean, 0) };
    if args.drain {
        explain(&tally, is_cut_off, out)?;
    }
    write!(out, "outcome={} findings={findings}", outcome.as_str())?;
    for (status, events) in &tally {
        write!(out, " {status}={events}")?;
    }
    writeln!(out)?;
    Ok(outcome)
}

/// What a drain has left that is not done, and where it is looked at.
fn explain(tally: &Tally, is_cut_off: bool, out: &mut (dyn Write + Send)) -> Result<()> {
    let left = |status: InboxStatus, one: &str, many: &str| {
        let events = tally.get(status.as_str()).copied().filter(|events| *events > 0)?;
        let listed = format!("`recon inbox list --status {}` says why", status.as_str());
        Some(format!("{}: {listed}", counted(events, one, many)))
    };
    let lines = [
        left(InboxStatus::Dead, "event became a dead letter", "events became dead letters"),
        left(InboxStatus::Received, "event failed and is due again", "events failed and are due again"),
        is_cut_off.then(|| "asked to end before nothing was due any more".to_owned()),
    ];
    for line in lines.into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// What a drain ended as, and its dead letters. Parked events are no failure: they wait for one that is to come.
fn judge(tally: &Tally, is_cut_off: bool) -> (Outcome, u64) {
    let count = |status: InboxStatus| tally.get(status.as_str()).copied().unwrap_or(0);
    let dead = count(InboxStatus::Dead);
    let is_complete = !is_cut_off && count(InboxStatus::Received) == 0;
    (Outcome::judge(usize::from(dead > 0), is_complete, true), dead)
}

/// Works until the flag is up, counting into `metrics`.
///
/// # Errors
/// As [`work`].
pub async fn work_until(
    settings: &Settings,
    args: WorkArgs,
    timing: Timing,
    cancel: Cancel,
    metrics: Option<Arc<Metrics>>,
) -> Result<Tally> {
    let store = if args.drain {
        Store::open(&settings.store_url, Access::ReadWrite).await?
    } else {
        match reached(settings, &timing, &cancel).await {
            Some(store) => store,
            None => return Ok(Tally::new()),
        }
    };
    let mut worker = Worker::new(settings, store.clone(), timing.clone(), cancel.clone())?;
    if let Some(metrics) = metrics {
        worker = worker.counting(metrics);
    }
    let sender = Sender::new(&settings.outbox, store.clone(), timing.clone(), cancel.clone())?;
    let notifier = Notifier::new(&settings.notify, store.clone(), timing, cancel)?;
    let applying = worker.run(args.drain, async |ends: &[crate::work::End]| {
        if let Some(notifier) = &notifier {
            notifier.after(ends);
        }
    });
    let tally = if args.drain {
        let tally = applying.await?;
        if let Some(sender) = &sender {
            sender.run(true).await?;
        }
        if let Some(notifier) = &notifier {
            notifier.look().await?;
        }
        tally
    } else {
        let sending = async {
            match &sender {
                Some(sender) => sender.run(false).await.map(drop),
                None => Ok(()),
            }
        };
        let telling = async {
            if let Some(notifier) = &notifier {
                notifier.run().await;
            }
        };
        let (tally, sent, ()) = tokio::join!(applying, sending, telling);
        sent?;
        tally?
    };
    store.close().await;
    Ok(tally)
}

/// The store, as soon as it can be opened: a service that starts before its database is there must not end, least of
/// all where it also takes deliveries. `None`: asked to end meanwhile.
async fn reached(settings: &Settings, timing: &Timing, cancel: &Cancel) -> Option<Store> {
    const PAUSE_MIN: Duration = Duration::from_millis(500);
    const PAUSE_MAX: Duration = Duration::from_secs(30);
    let mut pause = PAUSE_MIN;
    while !cancel.is_cancelled() {
        let opened = tokio::select! {
            opened = Store::open(&settings.store_url, Access::ReadWrite) => opened,
            () = cancel.cancelled() => return None,
        };
        match opened {
            Ok(store) => return Some(store),
            Err(error) => tracing::error!("the store cannot be reached: {}", telemetry::told(&error)),
        }
        tokio::select! {
            () = timing.sleep(pause) => {}
            () = cancel.cancelled() => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    None
}
