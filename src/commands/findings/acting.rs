//! What a person does to findings: gives them to somebody, accepts them, closes them.
//!
//! Steps: check the words · take the write lock · look at every finding that is meant · keep one row for each, or nothing at
//! all · say what was done. The one thing to get right: what is accepted is the finding as it is under the lock, and its
//! amount is printed, so that nobody accepts another one than they think.

use super::{Standing, money, one};
use crate::cli::{AcceptArgs, AssignArgs, CloseArgs, UsageError};
use crate::commands::inbox::actor;
use crate::config::Settings;
use crate::findings::Kind;
use crate::findings::life::{Act, ActKind, Place};
use crate::record::{format_instant, parse_bound};
use crate::report::timeline::{is_steering, printable};
use crate::store::life as kept;
use crate::store::{Access, Store};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::Write;

const NAME_CHARS_MAX: usize = 100;
const REASON_CHARS_MAX: usize = 1_000;
/// What [`actor`] says where the shell names nobody.
const NOBODY: &str = "unknown";

pub(super) async fn assign(
    settings: &Settings,
    args: &AssignArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let owner = name("--to", &args.to)?;
    let by = args.by.as_deref().map_or_else(|| Ok(actor()), |by| name("--by", by))?;
    let reason = if args.reason.trim().is_empty() { String::new() } else { reason(&args.reason)? };
    let act = |row: &Standing| {
        Ok(Act { owner: owner.clone(), ..blank(row, ActKind::Assign, &by, &reason, now_us) })
    };
    for (row, is_kept) in act_on(settings, &args.findings, now_us, act).await? {
        let before = if row.owner.is_empty() { "nobody" } else { &row.owner };
        let told = if is_kept { format!("before: {before}") } else { "as it was".to_owned() };
        say(out, "assigned", &row, &format!("to {owner} ({told})"))?;
    }
    Ok(())
}

pub(super) async fn accept(
    settings: &Settings,
    args: &AcceptArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let zone = settings.report.time_zone;
    let (reason, by) = (reason(&args.reason)?, who(args.by.as_deref())?);
    let until_us = parse_bound(&args.until, zone, true)
        .map_err(|error| UsageError::new(format!("--until: {error}"), "such as --until 2024-06-30"))?;
    let until = format_instant(until_us, zone);
    if until_us <= now_us {
        let now = format_instant(now_us, zone);
        let message = format!("--until ends {until}, and now is {now}: it would be over already");
        return Err(UsageError::new(message, "name a later day; that day is the last one, whole").into());
    }
    let act = |row: &Standing| {
        refuse_to_accept(row)?;
        let blank = blank(row, ActKind::Accept, &by, &reason, now_us);
        Ok(Act { until_us: Some(until_us), amounts: row.finding.amounts.clone(), ..blank })
    };
    for (row, is_kept) in act_on(settings, &args.findings, now_us, act).await? {
        let before = row.life.acceptance.as_ref().filter(|_| is_kept && row.life.place == Place::Accepted);
        let before = before.map_or_else(String::new, |acceptance| {
            format!(" (before: by {} until {})", acceptance.by, format_instant(acceptance.until_us, zone))
        });
        let as_before = if is_kept { "" } else { ", as it was" };
        say(out, "accepted", &row, &format!("until {until}{before}{as_before}"))?;
    }
    Ok(())
}

fn refuse_to_accept(row: &Standing) -> Result<()> {
    let id = &row.finding.finding_id;
    if row.finding.kind == Kind::CoverageGap.as_str() {
        let message = format!("{id} is a coverage gap: what was not seen cannot be accepted as it is");
        return Err(UsageError::new(message, "a run over that time that sees everything clears it").into());
    }
    if row.finding.amounts.is_empty() {
        let message = format!("what {id} says was not kept by the version of recon that found it");
        return Err(UsageError::new(message, "run `recon` over it once more, then accept it").into());
    }
    if matches!(row.life.place, Place::Cleared | Place::Closed) {
        let message = format!("{id} is {}: there is nothing to live with", row.life.place);
        return Err(UsageError::new(message, "`recon findings list` shows what is open").into());
    }
    Ok(())
}

pub(super) async fn close(
    settings: &Settings,
    args: &CloseArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let zone = settings.report.time_zone;
    let (reason, by) = (reason(&args.reason)?, who(args.by.as_deref())?);
    let act = |row: &Standing| {
        let finding = &row.finding;
        let is_confirmed = finding.cleared_us.is_some();
        if !is_confirmed && !args.unconfirmed {
            let last = format_instant(finding.last_seen_us, zone);
            let message = format!(
                "{} is not gone: a run saw it at {last}, and no later one has found it gone",
                finding.finding_id
            );
            let hint = "run `recon` over it first; or close it on your own word with --unconfirmed";
            return Err(UsageError::new(message, hint).into());
        }
        let run_id = match &*finding.cleared_run {
            _ if !is_confirmed => String::new(),
            "" => "(not kept)".to_owned(),
            run_id => run_id.to_owned(),
        };
        Ok(Act { run_id, ..blank(row, ActKind::Close, &by, &reason, now_us) })
    };
    for (row, is_kept) in act_on(settings, &args.findings, now_us, act).await? {
        let confirmed = match (&*row.finding.cleared_run, row.finding.cleared_us) {
            (_, None) => "unconfirmed: the next run that finds it reopens it".to_owned(),
            (run_id, Some(_)) => format!("confirmed by run {run_id}"),
        };
        let as_before = if is_kept { "" } else { ", as it was" };
        say(out, "closed", &row, &format!("{confirmed}{as_before}"))?;
    }
    Ok(())
}

/// Does one thing to every finding that is meant, in one transaction, and answers them as they were, with whether anything
/// was kept: what was done before in the same words is not kept again.
async fn act_on(
    settings: &Settings,
    named: &[String],
    now_us: i64,
    act: impl Fn(&Standing) -> Result<Act>,
) -> Result<Vec<(Standing, bool)>> {
    let store = Store::open(&settings.store_url, Access::Existing).await?;
    let mut tx = store.begin_write().await?;
    let mut meant = BTreeMap::new();
    for named in named {
        let row = one(&mut tx, settings, named, now_us).await?;
        meant.insert(row.finding.finding_id.clone(), row);
    }
    let mut done = Vec::with_capacity(meant.len());
    let mut acts = Vec::with_capacity(meant.len());
    for row in meant.into_values() {
        let act = act(&row)?;
        let is_new = !is_said(&row, &act);
        acts.extend(is_new.then_some(act));
        done.push((row, is_new));
    }
    kept::keep(&mut tx, &acts).await?;
    tx.commit().await.context("commit what was done to findings")?;
    store.close().await;
    Ok(done)
}

/// Whether the last word on this says the same already.
fn is_said(row: &Standing, act: &Act) -> bool {
    let is_same_matter = |kind: ActKind| (kind == ActKind::Assign) == (act.kind == ActKind::Assign);
    let is_person = |kind: ActKind| matches!(kind, ActKind::Assign | ActKind::Accept | ActKind::Close);
    let mut before = row.acts.iter().rev().filter(|one| is_person(one.kind) && is_same_matter(one.kind));
    before.next().is_some_and(|last| {
        let at_the_time = Act { sequence: last.sequence, at_us: last.at_us, ..act.clone() };
        *last == at_the_time
    })
}

fn blank(row: &Standing, kind: ActKind, by: &str, reason: &str, now_us: i64) -> Act {
    Act {
        sequence: 0,
        finding_id: row.finding.finding_id.clone(),
        kind,
        opening: row.finding.opening,
        owner: String::new(),
        until_us: None,
        amounts: String::new(),
        run_id: String::new(),
        reason: reason.to_owned(),
        actor: by.to_owned(),
        at_us: now_us,
    }
}

fn say(out: &mut (dyn Write + Send), done: &str, row: &Standing, more: &str) -> Result<()> {
    let finding = &row.finding;
    let words = [done, &finding.finding_id, &finding.kind, &finding.object_id, &money(finding), more];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    writeln!(out, "{}", printable(&words.join(" ")))?;
    Ok(())
}

/// The name of whoever answers for it.
fn who(by: Option<&str>) -> Result<String> {
    let found = by.map_or_else(actor, str::to_owned);
    if by.is_none() && (found == NOBODY || found.starts_with("uid ")) {
        let message = "nobody's name is known, and somebody has to answer for this";
        return Err(UsageError::new(message, "say who: --by ana").into());
    }
    name("--by", &found)
}

/// A name that every list can show on one line.
fn name(argument: &str, text: &str) -> Result<String> {
    let text = text.trim();
    let problem = if text.is_empty() {
        "is empty"
    } else if text.chars().any(is_steering) {
        "has a character that cannot be shown"
    } else if text.chars().count() > NAME_CHARS_MAX {
        "is longer than 100 characters"
    } else {
        return Ok(text.to_owned());
    };
    Err(UsageError::new(format!("{argument} {problem}"), "give the name of a person or a team").into())
}

/// A reason on one line, with something in it.
fn reason(text: &str) -> Result<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let problem = if line.is_empty() {
        "is empty"
    } else if line.chars().any(is_steering) {
        "has a character that cannot be shown"
    } else if line.chars().count() > REASON_CHARS_MAX {
        "is longer than 1000 characters"
    } else {
        return Ok(line);
    };
    let hint = "say why, for whoever asks later: --reason \"fixed in ticket 42\"";
    Err(UsageError::new(format!("--reason {problem}"), hint).into())
}
