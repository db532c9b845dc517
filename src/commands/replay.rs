//! `recon replay`: events once more, through the worker's door with their identity kept, or to a team's own handler.
//!
//! Steps: find the events · make them due, and keep why; or sign their bytes anew and post them.
//! The one thing to get right: a replay changes nothing that is right already. The keys are the live ones, times are the
//! event's own, and no message is sent.

use super::inbox::{actor, change, due, find, find_all, reason_given, shown};
use super::{Outcome, counted};
use crate::cli::{self, UsageError};
use crate::config::{Settings, check_called_url};
use crate::receive::{Kept, again};
use crate::record::{EventKey, parse_bound};
use crate::serve::endpoints;
use crate::store::operating::{self, Act, Action, Filed, Standing};
use crate::store::{Access, Store};
use crate::work::Caller;
use anyhow::{Context, Result};
use chrono_tz::Tz;
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
    let meant = Meant::of(args, zone)?;
    let store = Store::open(&settings.store_url, Access::Existing).await?;
    let replayed = match meant {
        Meant::OfTime { from_us, until_us } => {
            let act = Act { action: Action::Replay, reason, actor: &actor(), at_us: now_us };
            of_time(&store, from_us, until_us, act).await?
        }
        Meant::ById => by_id(&store, &args.events, reason, (zone, now_us)).await?,
    };
    store.close().await;
    let Replayed { count, left, left_lines } = replayed;
    let events = counted(count as u64, "event is", "events are");
    writeln!(out, "{events} due once more; `recon work` applies what is missing")?;
    for line in left_lines {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "outcome=clean findings=0 replayed={count} left={left}")?;
    Ok(Outcome::Clean)
}

/// Which events are to be replayed.
enum Meant {
    ById,
    /// Received from the one to before the other, Unix µs.
    OfTime {
        from_us: i64,
        until_us: i64,
    },
}

impl Meant {
    fn of(args: &ReplayArgs, zone: Tz) -> Result<Self, UsageError> {
        let bound = |text: &str, is_end| {
            parse_bound(text, zone, is_end).map_err(|error| {
                UsageError::new(error.to_string(), "dates are 2024-05-01, instants have an offset")
            })
        };
        match (&args.since, &args.until) {
            (Some(since), Some(until)) if args.events.is_empty() => {
                let (from_us, until_us) = (bound(since, false)?, bound(until, true)?);
                if until_us <= from_us {
                    let message = format!("--until {until} is not after --since {since}");
                    return Err(UsageError::new(message, "the earlier one is --since; both days are whole"));
                }
                Ok(Self::OfTime { from_us, until_us })
            }
            (None, None) if !args.events.is_empty() => Ok(Self::ById),
            _ => Err(UsageError::new(
                "what is to be replayed?",
                "name events, or a time with both --since and --until",
            )),
        }
    }
}

/// What a replay made due, and what it left and why.
struct Replayed {
    count: usize,
    left: usize,
    left_lines: Vec<String>,
}

/// Replays what came to an end in a time. What may not or cannot be replayed is left.
async fn of_time(store: &Store, from_us: i64, until_us: i64, act: Act<'_>) -> Result<Replayed> {
    let mut tx = store.begin_write().await?;
    let mut found: BTreeMap<Standing, Vec<EventKey>> = BTreeMap::new();
    for (key, standing) in operating::between(&mut tx, from_us, until_us).await? {
        found.entry(standing).or_default().push(key);
    }
    let ended = found.remove(&Standing::Ended).unwrap_or_default();
    let done = operating::act(&mut tx, &ended, act).await?;
    tx.commit().await.context("commit a replay")?;
    let left = found.values().map(Vec::len).sum();
    let left_lines = found.iter().filter_map(|(standing, keys)| left_line(*standing, keys)).collect();
    Ok(Replayed { count: done.len(), left, left_lines })
}

/// How many are left, why, and the first of them.
fn left_line(standing: Standing, keys: &[EventKey]) -> Option<String> {
    const NAMED_MAX: usize = 5;
    let (one, many, why) = match standing {
        Standing::Ended | Standing::Waits => return None,
        Standing::Dead => (
            "dead letter is",
            "dead letters are",
            "`recon inbox retry EVENT --reason …` applies it and sends its messages",
        ),
        Standing::Pruned => ("event is", "events are", "the bytes are no longer kept"),
        Standing::Discarded => {
            ("discarded event is", "discarded events are", "only by its id is one replayed")
        }
    };
    let mut named: Vec<String> = keys.iter().take(NAMED_MAX).map(shown).collect();
    if keys.len() > NAMED_MAX {
        named.push(format!("and {} more", keys.len() - NAMED_MAX));
    }
    let left = counted(keys.len() as u64, one, many);
    Some(format!("{left} left: {why} ({})", named.join(", ")))
}

/// Replays the events that are named. One that may not or cannot be replayed is an error, and nothing is done.
async fn by_id(store: &Store, events: &[String], reason: &str, at: (Tz, i64)) -> Result<Replayed> {
    let mut keys = Vec::new();
    let mut left_lines = Vec::new();
    for filed in find_all(store, events).await? {
        let event = shown(&filed.key);
        let refused = match filed.standing() {
            Standing::Ended | Standing::Discarded => {
                keys.push(filed.key);
                continue;
            }
            Standing::Waits => {
                left_lines.push(waits_line(&event, &filed, at));
                continue;
            }
            Standing::Dead => UsageError::new(
                format!("{event} is a dead letter, and a replay would not send its messages"),
                format!("`recon inbox retry {event} --reason …` applies it and sends its messages"),
            ),
            Standing::Pruned => UsageError::new(
                format!("the bytes of {event} are no longer kept, so it cannot be replayed"),
                "a run of `recon` over its time finds what is missing, and `recon apply` books it",
            ),
        };
        return Err(refused.into());
    }
    let done = change(store, Action::Replay, &keys, reason, at.1).await?;
    let left = keys.len() - done.len() + left_lines.len();
    if done.len() < keys.len() {
        left_lines.push(format!("{} have changed meanwhile", keys.len() - done.len()));
    }
    Ok(Replayed { count: done.len(), left, left_lines })
}

/// Why an event that has not ended is not replayed.
fn waits_line(event: &str, filed: &Filed, at: (Tz, i64)) -> String {
    let when = due(filed, at);
    match (&*filed.parked_for, &*when) {
        ("", "now") => format!("{event} is left: it is due already"),
        ("", when) => format!("{event} is left: it is due already, at {when}"),
        (parked_for, _) => format!("{event} is left: it waits for {parked_for}"),
    }
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
    check_called_url(url, true).map_err(|why| UsageError::new(format!("--to {why}"), ""))?;
    let endpoints = endpoints(&settings.endpoints)?;
    let store = Store::open(&settings.store_url, Access::Existing).await?;
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
