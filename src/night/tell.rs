//! Tells of a run: webhook, mail, ping, file and push, side by side, each tried a few times.

use super::found::Ended;
use super::mail::{Mailer, NotTaken};
use super::metrics;
use super::text::{Message, for_slack, message};
use crate::config::{NightSettings, Secret};
use crate::leftover::unfinished;
use crate::provider::Timing;
use crate::store::notification::Free;
use crate::store::{Access, Store, notification, runs};
use crate::work::Caller;
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Waits between attempts; there is one attempt more.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// The media type of a text of metrics.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4";

/// Who was told when, in the store.
const WEBHOOK: &str = "run_webhook";
const MAIL: &str = "run_mail";

/// Tells of a run whatever is set. Nothing here fails: what was not taken is said on stderr.
pub async fn tell(settings: &NightSettings, store_url: &str, ended: &Ended<'_>, timing: &Timing) {
    if settings.is_silent() {
        return;
    }
    let store = match Store::open(store_url, Access::ReadWrite).await {
        Ok(store) => Some(store),
        Err(error) => {
            tracing::warn!("who was told of which run cannot be read: {error:#}");
            None
        }
    };
    let store = store.as_ref();
    let numbers = numbers(settings, store, ended).await;
    tokio::join!(
        by_webhook(settings, store, ended, timing),
        by_mail(settings, store, ended, timing),
        ping(settings, ended, timing),
        push(settings, &numbers, timing),
        async {
            if let Some(path) = &settings.textfile
                && let Err(error) = replace(path, &numbers)
            {
                tracing::error!("[metrics] textfile was not written: {error:#}");
            }
        },
    );
    if let Some(store) = store {
        store.close().await;
    }
}

async fn by_webhook(settings: &NightSettings, store: Option<&Store>, ended: &Ended<'_>, timing: &Timing) {
    #[derive(Serialize)]
    struct Body<'t> {
        text: &'t str,
    }
    let Some(url) = &settings.run_url else { return };
    let Some(Message { body, .. }) = message(ended, told_us(store, WEBHOOK).await, settings.every_run) else {
        return;
    };
    let text = for_slack(&body);
    let Ok(bytes) = serde_json::to_vec(&Body { text: &text }) else { return };
    let headers = [("content-type", "application/json")];
    let was_told = called("the webhook of [notify]", url, timing, async |caller: &Caller| {
        caller.post(&headers, bytes.clone()).await
    });
    if was_told.await {
        note_told(store, WEBHOOK, ended).await;
    }
}

async fn by_mail(settings: &NightSettings, store: Option<&Store>, ended: &Ended<'_>, timing: &Timing) {
    let Some(mail) = &settings.mail else { return };
    let Some(told) = message(ended, told_us(store, MAIL).await, settings.every_run) else { return };
    let mailer = match Mailer::new(mail) {
        Ok(mailer) => mailer,
        Err(error) => return tracing::error!("[notify.mail] was not reached: {error:#}"),
    };
    let was_told = several_times("[notify.mail]", timing, async || {
        let NotTaken { why, may_pass } = match mailer.send(&told.subject, &told.body).await {
            Ok(()) => return Ok(()),
            Err(not_taken) => not_taken,
        };
        Err((why, may_pass))
    });
    if was_told.await {
        note_told(store, MAIL, ended).await;
    }
}

/// A monitor that hears nothing sounds the alarm. So nothing is said of a run that did not see everything.
async fn ping(settings: &NightSettings, ended: &Ended<'_>, timing: &Timing) {
    if let Some(url) = settings.dead_man_url.as_ref().filter(|_| ended.is_success()) {
        called("[notify] dead_man_url", url, timing, async |caller: &Caller| caller.get().await).await;
    }
}

async fn push(settings: &NightSettings, numbers: &str, timing: &Timing) {
    if let Some(url) = &settings.push_url {
        called("[metrics] push_url", url, timing, async |caller: &Caller| {
            caller.put(TEXT_FORMAT, numbers.as_bytes().to_vec()).await
        })
        .await;
    }
}

/// The numbers, with the last success as the store says, else as the file that is there says.
async fn numbers(settings: &NightSettings, store: Option<&Store>, ended: &Ended<'_>) -> String {
    if settings.textfile.is_none() && settings.push_url.is_none() {
        return String::new();
    }
    let stored = match store {
        Some(store) => runs::last_success(store.pool()).await.ok().flatten(),
        None => None,
    };
    let last_success_us = stored.and_then(|run| run.finished_at_us).or_else(|| {
        let earlier = std::fs::read_to_string(settings.textfile.as_ref()?).ok()?;
        metrics::last_success_us(&earlier)
    });
    metrics::render(ended, last_success_us)
}

/// Calls a URL until it answers 2xx, a few times at most. Whether it did.
async fn called(
    what: &str,
    url: &Secret,
    timing: &Timing,
    call: impl AsyncFn(&Caller) -> Result<u16>,
) -> bool {
    let caller = match Caller::new(url.reveal(), CALL_TIMEOUT) {
        Ok(caller) => caller,
        Err(error) => {
            tracing::error!("{what} was not reached: {error:#}");
            return false;
        }
    };
    several_times(what, timing, async || match call(&caller).await {
        Ok(200..=299) => Ok(()),
        Ok(status) => Err((format!("answered {status}"), status == 429 || status >= 500)),
        Err(error) => Err((format!("{error:#}"), true)),
    })
    .await
}

/// Tries until it is done, or another attempt cannot help, or there were enough of them. Whether it was done.
async fn several_times(
    what: &str,
    timing: &Timing,
    attempt: impl AsyncFn() -> Result<(), (String, bool)>,
) -> bool {
    let mut waits = WAITS.iter();
    let mut attempts = 1;
    loop {
        let Err((why, may_pass)) = attempt().await else { return true };
        let Some(wait) = waits.next().filter(|_| may_pass) else {
            tracing::error!(
                "{what} was not reached: {why} (attempts: {attempts}); how the run ended stays as it is"
            );
            return false;
        };
        timing.sleep(*wait).await;
        attempts += 1;
    }
}

/// When somebody was last told there; for ever, where the store cannot say: then only what this run calls new is.
async fn told_us(store: Option<&Store>, kind: &'static str) -> i64 {
    let Some(store) = store else { return i64::MAX };
    notification::told_at(store, kind).await.unwrap_or_else(|error| {
        tracing::warn!("{error:#}");
        i64::MAX
    })
}

async fn note_told(store: Option<&Store>, kind: &'static str, ended: &Ended<'_>) {
    // What was not found could not be told.
    let (Some(store), Some(_)) = (store, ended.found) else { return };
    let note = async {
        let at_us = ended.seen_at_us;
        // Nobody else tells of runs: they hold the lease in turn.
        let free = Free {
            told_before_us: i64::MAX,
            now_us: i64::MAX,
            told_by_wrong_clock_us: i64::MAX,
            held_by_wrong_clock_us: i64::MAX,
        };
        if notification::claim(store, kind, free, at_us).await? {
            notification::settle(store, kind, Some(at_us), at_us).await?;
        }
        anyhow::Ok(())
    };
    if let Err(error) = note.await {
        tracing::warn!("it is told once more the next time: {error:#}");
    }
}

/// Replaces a file by another in one step, so that no reader meets half of it. The other name does not end as the file
/// does: whoever collects by that ending leaves it alone.
fn replace(path: &Path, text: &str) -> Result<()> {
    path.file_name().context("it names no file")?;
    let temporary = unfinished(path);
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write()
        .inspect_err(|_| drop(std::fs::remove_file(&temporary)))
        .with_context(|| path.display().to_string())
}
