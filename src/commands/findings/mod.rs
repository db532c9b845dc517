//! `recon findings`: the findings that runs have left, how old they are, and what persons decide about them.
//!
//! Steps of a list: read what is kept · make out where each stands now · filter · print what counts, apart from it what is
//! accepted, and the ages. The one thing to get right: where a finding stands is worked out from what is kept and the time
//! of now, never stored, so an acceptance ends by itself.

mod acting;

use super::Outcome;
use crate::cli::{FindingsCommand, ListArgs, UsageError};
use crate::config::Settings;
use crate::findings::Kind;
use crate::findings::life::{Act, ActKind, Life, Place, Validity, life};
use crate::provider::stripe::exponent;
use crate::record::format_instant;
use crate::report::aging::{Aged, Bucket, aging};
use crate::report::sums::{MoneySum, signed};
use crate::report::timeline::printable;
use crate::store::life::{self as kept, KeptFinding, Listed};
use crate::store::{Access, Store};
use anyhow::{Context, Result};
use chrono_tz::Tz;
use serde::Serialize;
use sqlx::AnyConnection;
use std::io::Write;

const DAY_US: i64 = 86_400_000_000;

/// A finding and where it stands now.
pub(super) struct Standing {
    pub(super) finding: KeptFinding,
    pub(super) life: Life,
    /// What was done to it, oldest first.
    pub(super) acts: Vec<Act>,
    /// Whom it was given to, else who looks after its kind; empty where nobody is named.
    pub(super) owner: String,
}

/// Does it.
///
/// # Errors
/// When the store is missing, there is no such finding, or what is asked for makes no sense for it; then nothing is done.
pub async fn findings(
    settings: &Settings,
    command: &FindingsCommand,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    match command {
        FindingsCommand::List(args) => return list(settings, args, now_us, out).await,
        FindingsCommand::Show { finding } => {
            let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
            let mut connection = store.pool().acquire().await.context("open the store")?;
            let found = one(&mut connection, settings, finding, now_us).await?;
            drop(connection);
            store.close().await;
            out.write_all(described(&found, settings.report.time_zone, now_us).as_bytes())?;
        }
        FindingsCommand::Assign(args) => acting::assign(settings, args, now_us, out).await?,
        FindingsCommand::Accept(args) => acting::accept(settings, args, now_us, out).await?,
        FindingsCommand::Close(args) => acting::close(settings, args, now_us, out).await?,
    }
    writeln!(out, "outcome=clean findings=0")?;
    Ok(Outcome::Clean)
}

/// Makes out where findings stand.
pub(super) async fn standings(
    connection: &mut AnyConnection,
    settings: &Settings,
    found: Vec<KeptFinding>,
    now_us: i64,
) -> Result<Vec<Standing>> {
    let ids: Vec<String> = found.iter().map(|finding| finding.finding_id.clone()).collect();
    let mut acts = kept::acts(connection, &ids).await?;
    let standing = |finding: KeptFinding| {
        let acts = acts.remove(&finding.finding_id).unwrap_or_default();
        let life = life(finding.seen, finding.opening, &finding.amounts, &acts, now_us);
        let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == finding.kind);
        let by_kind = || kind.and_then(|kind| settings.owners.get(&kind)).cloned().unwrap_or_default();
        Standing { owner: life.owner.clone().unwrap_or_else(by_kind), finding, life, acts }
    };
    Ok(found.into_iter().map(standing).collect())
}

/// The one finding that an id or its first digits name.
pub(super) async fn one(
    connection: &mut AnyConnection,
    settings: &Settings,
    named: &str,
    now_us: i64,
) -> Result<Standing> {
    let mut found = match as_id(named) {
        Some(digits) => kept::beginning_with(connection, &digits).await?,
        None => Vec::new(),
    };
    if found.len() > 1 {
        let message = format!("{} is the beginning of several findings", crate::config::shown(named));
        return Err(UsageError::new(message, "give more digits of the id").into());
    }
    let Some(finding) = found.pop() else {
        let message = format!("no run of this store has a finding {}", crate::config::shown(named));
        return Err(UsageError::new(message, "`recon findings list` shows their ids").into());
    };
    let mut standing = standings(connection, settings, vec![finding], now_us).await?;
    standing.pop().context("make out where a finding stands")
}

/// Digits of an id, where a text can be the beginning of one.
pub(super) fn as_id(text: &str) -> Option<String> {
    let is_id = (8..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase())
}

async fn list(
    settings: &Settings,
    args: &ListArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
    let severity = args.severity.map(|severity| severity.to_string()).unwrap_or_default();
    let is_gone = |place: &Place| matches!(place, Place::Cleared | Place::Closed);
    let age_us = |age: std::time::Duration| i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    let listed = Listed {
        kind: args.kind.map_or("", Kind::as_str),
        severity: &severity,
        account: args.account.as_deref(),
        first_seen_until_us: args.older_than.map(|age| now_us.saturating_sub(age_us(age))),
        with_cleared: args.status.iter().any(is_gone),
    };
    let found = kept::list(&store, &listed).await?;
    let mut connection = store.pool().acquire().await.context("open the store")?;
    let mut found = standings(&mut connection, settings, found, now_us).await?;
    drop(connection);
    store.close().await;
    let is_listed = |place: &Place| {
        if args.status.is_empty() { !is_gone(place) } else { args.status.contains(place) }
    };
    found.retain(|row| is_listed(&row.life.place));
    found.retain(|row| args.owner.as_ref().is_none_or(|owner| *owner == row.owner));
    let listed = found.len();
    // What the cut-off explains clears by itself: it is listed for whoever asks for it.
    found.retain(|row| args.kind.is_some() || row.finding.kind != Kind::TimingDifference.as_str());
    let left_out = listed - found.len();
    let aged: Vec<Aged<'_>> = found.iter().filter(|row| counts(row)).map(|row| aged(row, now_us)).collect();
    let buckets = aging(&aged)?;
    let zone = settings.report.time_zone;
    let text = if args.json {
        json(&found, (&buckets, left_out), zone, now_us)?
    } else {
        text(&found, (&buckets, left_out), zone, now_us)
    };
    out.write_all(text.as_bytes())?;
    let accepted = found.iter().filter(|row| row.life.place == Place::Accepted).count();
    let told = if accepted == 0 { String::new() } else { format!(" accepted={accepted}") };
    let word = if aged.is_empty() { Outcome::Clean } else { Outcome::Findings };
    writeln!(out, "outcome={} findings={} listed={}{told}", word.as_str(), aged.len(), found.len())?;
    // It did what it was asked for, whatever there was.
    Ok(Outcome::Clean)
}

/// Whether it makes a run end with findings.
pub(super) fn counts(row: &Standing) -> bool {
    row.life.place.counts() && row.finding.kind != Kind::TimingDifference.as_str()
}

fn age_days(finding: &KeptFinding, now_us: i64) -> u64 {
    u64::try_from((now_us - finding.first_seen_us) / DAY_US).unwrap_or(0)
}

fn aged(row: &Standing, now_us: i64) -> Aged<'_> {
    let finding = &row.finding;
    let booked = finding.found_minor.filter(|_| !finding.found_currency.is_empty()).map(|minor| -minor);
    let shares = [(&*finding.currency, finding.difference_minor), (&*finding.found_currency, booked)];
    let money =
        shares.into_iter().filter_map(|(currency, minor)| Some((currency, exponent(currency), minor?)));
    Aged { age_days: age_days(finding, now_us), money: money.collect() }
}

/// `-50.00 BRL`, or empty where it is not about money.
pub(super) fn money(finding: &KeptFinding) -> String {
    finding.difference_minor.map_or_else(String::new, |minor| {
        format!("{} {}", signed(minor, exponent(&finding.currency)), finding.currency.to_uppercase())
    })
}

fn text(found: &[Standing], (buckets, left_out): (&[Bucket], usize), zone: Tz, now_us: i64) -> String {
    let mut lines = Vec::new();
    let (accepted, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|row| row.life.place == Place::Accepted);
    lines.extend(others.iter().map(|row| line(row, now_us)));
    if !accepted.is_empty() {
        lines.extend([String::new(), "Accepted, not counted".to_owned()]);
    }
    for row in accepted {
        lines.push(line(row, now_us));
        if let Some(acceptance) = &row.life.acceptance {
            let until = format_instant(acceptance.until_us, zone);
            lines.push(format!("    until {until} by {}: {}", acceptance.by, acceptance.reason));
        }
    }
    if left_out > 0 {
        let are = if left_out == 1 {
            "1 timing difference is"
        } else {
            &format!("{left_out} timing differences are")
        };
        lines.push(format!("{are} left out: --kind timing_difference"));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push("Open, by age (money is provider minus local)".to_owned());
    for bucket in buckets {
        let line = format!("  {:<10} {:>7}  {}", bucket.age, bucket.count, both_ways(&bucket.money));
        lines.push(line.trim_end().to_owned());
    }
    lines.iter().map(|line| printable(line) + "\n").collect()
}

fn both_ways(sums: &[MoneySum]) -> String {
    let amounts = sums.iter().flat_map(|sum| {
        let amounts = [(sum.plus_minor, &sum.plus), (sum.minus_minor, &sum.minus)];
        let moved = amounts.into_iter().filter(|(minor, _)| *minor != 0);
        moved.map(|(_, amount)| format!("{amount} {}", sum.currency.to_uppercase()))
    });
    amounts.collect::<Vec<_>>().join(", ")
}

fn line(row: &Standing, now_us: i64) -> String {
    let finding = &row.finding;
    let scope = &finding.scope;
    let parts = [&*scope.provider, &*scope.account, &*scope.mode];
    let scope = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let owner = if row.owner.is_empty() { "nobody" } else { &row.owner };
    let age = age_days(finding, now_us);
    let line = format!(
        "{}  {:<8}  {:<8}  {age:>4}d  {:<20}  {}  {scope}  owner={owner}  {}",
        finding.finding_id,
        row.life.place,
        finding.severity,
        finding.kind,
        finding.object_id,
        money(finding)
    );
    line.trim_end().to_owned()
}

#[derive(Serialize)]
struct ListJson<'a> {
    findings: Vec<FindingJson<'a>>,
    /// Timing differences that are not listed.
    timing_differences: usize,
    aging: &'a [Bucket],
}

#[derive(Serialize)]
struct FindingJson<'a> {
    finding_id: &'a str,
    status: &'static str,
    kind: &'a str,
    cause: &'a str,
    severity: &'a str,
    provider: &'a str,
    account: &'a str,
    mode: &'a str,
    object_id: &'a str,
    currency: &'a str,
    difference_minor: Option<i64>,
    first_seen_at: String,
    last_seen_at: String,
    age_days: u64,
    owner: &'a str,
    accepted_by: Option<&'a str>,
    accepted_until: Option<String>,
    accepted_reason: Option<&'a str>,
    note: &'a str,
}

fn json(
    found: &[Standing],
    (buckets, left_out): (&[Bucket], usize),
    zone: Tz,
    now_us: i64,
) -> Result<String> {
    let rows = found.iter().map(|row| {
        let finding = &row.finding;
        let in_force = row.life.acceptance.as_ref().filter(|_| row.life.place == Place::Accepted);
        FindingJson {
            finding_id: &finding.finding_id,
            status: row.life.place.as_str(),
            kind: &finding.kind,
            cause: &finding.cause,
            severity: &finding.severity,
            provider: &finding.scope.provider,
            account: &finding.scope.account,
            mode: &finding.scope.mode,
            object_id: &finding.object_id,
            currency: &finding.currency,
            difference_minor: finding.difference_minor,
            first_seen_at: format_instant(finding.first_seen_us, zone),
            last_seen_at: format_instant(finding.last_seen_us, zone),
            age_days: age_days(finding, now_us),
            owner: &row.owner,
            accepted_by: in_force.map(|acceptance| &*acceptance.by),
            accepted_until: in_force.map(|acceptance| format_instant(acceptance.until_us, zone)),
            accepted_reason: in_force.map(|acceptance| &*acceptance.reason),
            note: &finding.note,
        }
    });
    let list = ListJson { findings: rows.collect(), timing_differences: left_out, aging: buckets };
    Ok(serde_json::to_string(&list).context("write the list as JSON")? + "\n")
}

/// What is known of a finding, and what was done to it.
pub(super) fn described(row: &Standing, zone: Tz, now_us: i64) -> String {
    let finding = &row.finding;
    let instant = |at_us: i64| format_instant(at_us, zone);
    let states = match (&*finding.expected_state, &*finding.found_state) {
        ("", "") => String::new(),
        (expected, found) => format!("{expected} at the provider, {found} in the books"),
    };
    let cleared =
        finding.cleared_us.map(|at_us| format!("{} by run {}", instant(at_us), finding.cleared_run));
    let accepted = row.life.acceptance.as_ref().map(|acceptance| {
        let (until, by) = (instant(acceptance.until_us), &acceptance.by);
        match acceptance.validity {
            Validity::InForce => format!("by {by} until {until}: {}", acceptance.reason),
            Validity::Ended => format!("by {by}, ended {until}"),
            Validity::Changed => format!("by {by} until {until}, but it changed since and counts again"),
        }
    });
    let rows = [
        ("finding", finding.finding_id.clone()),
        ("status", row.life.place.to_string()),
        ("kind", format!("{} {}", finding.kind, finding.cause).trim_end().to_owned()),
        ("severity", finding.severity.clone()),
        ("object", format!("{} ({})", finding.object_id, finding.scope)),
        ("difference", money(finding)),
        ("statuses", states),
        ("first seen", format!("{}, {} days ago", instant(finding.first_seen_us), age_days(finding, now_us))),
        ("last seen", format!("{} by run {}", instant(finding.last_seen_us), finding.run_id)),
        ("cleared", cleared.unwrap_or_default()),
        ("owner", row.owner.clone()),
        ("accepted", accepted.unwrap_or_default()),
        ("events", finding.event_ids.join(", ")),
        ("rows", finding.effect_ids.join(", ")),
        ("correction", finding.correction.clone()),
        ("note", finding.note.clone()),
    ];
    let mut lines: Vec<String> = rows
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name:<18}{value}"))
        .collect();
    let act = |act: &Act| format!("{:<18}{}  {}", act.kind.as_str(), instant(act.at_us), told(act, zone));
    lines.extend(row.acts.iter().map(act));
    lines.iter().map(|line| printable(line) + "\n").collect()
}

/// An act in one line.
pub(super) fn told(act: &Act, zone: Tz) -> String {
    let because = if act.reason.is_empty() { String::new() } else { format!(": {}", act.reason) };
    match act.kind {
        ActKind::Cleared => format!("cleared: run {} no longer found it", act.run_id),
        ActKind::Reopened => format!("reopened: run {} found it again", act.run_id),
        ActKind::Assign => format!("given to {} by {}{because}", act.owner, act.actor),
        ActKind::Accept => {
            let until = act.until_us.map(|at_us| format_instant(at_us, zone)).unwrap_or_default();
            format!("accepted by {} until {until}{because}", act.actor)
        }
        ActKind::Close if act.run_id.is_empty() => {
            format!("closed by {} on their own word, unconfirmed{because}", act.actor)
        }
        ActKind::Close => format!("closed by {}, confirmed by run {}{because}", act.actor, act.run_id),
    }
}
