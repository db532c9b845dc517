//! `recon replay`: events once more, through the worker's door with their identity kept, or to a team's own handler.
//!
//! Steps: find the events · make them due, and keep why; or sign their bytes anew and post them.
//! The one thing to get right: a replay changes nothing that is right already. The keys are the live ones, times are the
//! event's own, and no message is sent.

use super::Outcome;
use super::inbox::{actor, change, find, reason_given, shown};
use crate::cli::{self, UsageError};
use crate::config::{Settings, check_called_url};
use crate::receive::{Kept, again};
use crate::record::{EventKey, parse_bound};
use crate::serve::endpoints;
use crate::store::operating::{self, Act, Action};
use crate::store::{Access, Store};
use crate::work::Caller;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// How long a handler may take; the strictest providers wait 3 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Arguments of `recon replay`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayArgs {
    /// Event ids.
    pub events: Vec<String>,
    /// First day or instant of receipt.
    pub since: Option<String>,
    /// Last day, whole, or instant.
    pub until: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// A handler's URL.
    pub to: Option<String>,
    /// How often it is sent there.
    pub times: u32,
}

impl From<cli::ReplayArgs> for ReplayArgs {
    fn from(args: cli::ReplayArgs) -> Self {
        let cli::ReplayArgs { events, since, until, reason, to, times } = args;
        Self { events, since, until, reason, to, times }
    }
}

/// Does it.
///
/// # Errors
/// When the arguments do not go together, there is no such event, or the store fails.
pub async fn replay(
    settings: &Settings,
    args: &ReplayArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    if let Some(url) = &args.to {
        return redeliver(settings, args, url, now_us, out).await;
    }
    let reason = reason_given(args.reason.as_deref().unwrap_or_default())?;
    let zone = settings.report.time_zone;
    let store = Store::open(&settings.store_url, Access::ReadWrite).await?;
    let done = match (&args.since, &args.until) {
        (Some(since), Some(until)) if args.events.is_empty() => {
            let bound = |text: &str, is_end| {
                parse_bound(text, zone, is_end).map_err(|error| {
                    UsageError::new(error.to_string(), "dates are 2024-05-01, instants have an offset")
                })
            };
            let keys = operating::between(&store, bound(since, false)?, bound(until, true)?).await?;
            let mut tx = store.begin_write().await?;
            let act = Act { action: Action::Replay, reason, actor: &actor(), at_us: now_us };
            let done = operating::act(&mut tx, &keys, act).await?;
            tx.commit().await.context("commit a replay")?;
            done
        }
        (None, None) if !args.events.is_empty() => {
            change(&store, Action::Replay, &args.events, reason, now_us).await?
        }
        _ => {
            let hint = "name events, or a time with both --since and --until";
            return Err(UsageError::new("what is to be replayed?", hint).into());
        }
    };
    store.close().await;
    writeln!(out, "{} events are due once more; `recon work` applies what is missing of them", done.len())?;
    writeln!(out, "outcome=clean findings=0 replayed={}", done.len())?;
    Ok(Outcome::Clean)
}

/// Sends events to a handler, freshly signed, and says what it answered: the same answer each time, and one effect, is
/// what a handler must give.
async fn redeliver(
    settings: &Settings,
    args: &ReplayArgs,
    url: &str,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    if args.events.is_empty() || args.since.is_some() || args.until.is_some() {
        return Err(UsageError::new(
            "--to needs events by their ids",
            "recon replay EVENT --to URL --times 10",
        )
        .into());
    }
    check_called_url(url).map_err(|why| UsageError::new(format!("--to {why}"), ""))?;
    let endpoints = endpoints(&settings.endpoints)?;
    let store = Store::open(&settings.store_url, Access::ReadWrite).await?;
    let mut is_fine = true;
    for event in &args.events {
        let key = find(&store, event).await?.key;
        let endpoint = endpoints.get(&*key.scope.provider).ok_or_else(|| unsigned(&key))?;
        let raw = operating::raw(&store, &key).await?;
        let body = raw.body.with_context(|| format!("the bytes of {event} are no longer kept"))?;
        let kept = Kept { body: &body, headers: &raw.headers, url: &raw.url, mode: &key.scope.mode };
        let again = again(&endpoint.settings.scheme, &endpoint.secrets, kept, url, now_us);
        let headers: Vec<(&str, &str)> =
            again.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let caller = Caller::new(&again.url, ANSWER_TIMEOUT)?;
        let mut answers: BTreeMap<String, u32> = BTreeMap::new();
        for _ in 0..args.times {
            let answer = match caller.post(&headers, again.body.clone()).await {
                Ok(status) => status.to_string(),
                Err(error) => format!("{error:#}"),
            };
            is_fine &= answer.starts_with('2') && answer.len() == 3;
            *answers.entry(answer).or_default() += 1;
        }
        let said: Vec<String> = answers.iter().map(|(answer, times)| format!("{answer} × {times}")).collect();
        let as_it_came = if again.is_fresh { "" } else { " (signed as it came: only the provider can sign)" };
        writeln!(out, "{}: {}{as_it_came}", shown(&key), said.join(", "))?;
        let mut tx = store.begin_write().await?;
        let why = args.reason.as_deref().unwrap_or("sent to a handler once more");
        let act = Act { action: Action::Redeliver, reason: why, actor: &actor(), at_us: now_us };
        operating::act(&mut tx, &[key], act).await?;
        tx.commit().await.context("commit a redelivery")?;
    }
    store.close().await;
    let outcome = if is_fine { Outcome::Clean } else { Outcome::Findings };
    writeln!(out, "outcome={} findings=0", outcome.as_str())?;
    Ok(outcome)
}

fn unsigned(key: &EventKey) -> UsageError {
    UsageError::new(
        format!("the provider {} has no `webhook_secrets` to sign with", key.scope.provider),
        "set the secret that your handler knows",
    )
}
