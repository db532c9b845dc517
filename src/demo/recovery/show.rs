//! What the demonstration of recovery prints: small tables of what is there, and checks. Pure.

use super::Point;
use super::check::{Check, Sent};
use super::snapshot::Snapshot;
use crate::demo::show::{Paint, page};
use crate::record::{decimal_from_minor, iso_exponent};

/// Who plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Seed of the four payments.
    pub seed: u64,
    /// The provider's URL.
    pub provider: String,
    /// The URL of the team's side.
    pub team: String,
    /// Where store and logs lie.
    pub folder: String,
    /// Whether they are still there afterwards.
    pub is_kept: bool,
}

/// Who is there before anything happens.
#[must_use]
pub fn opening(paint: Paint, cast: &Cast) -> String {
    let fate = if cast.is_kept { "stays" } else { "removed at the end, unless a check fails" };
    let rows = [
        ("Seed", cast.seed.to_string()),
        ("Provider", format!("{}, Stripe-shaped, signs and sends", cast.provider)),
        ("Receiver", "recon serve, a process of its own".to_owned()),
        ("Worker", "recon work, a process of its own".to_owned()),
        ("Team", format!("{}, one effect for each key", cast.team)),
        ("Folder", format!("{} ({fate})", cast.folder)),
    ];
    let mut lines =
        vec![String::new(), paint.bold("recon demo --recovery: four kills, and what is left of each")];
    lines.push(String::new());
    lines.extend(rows.map(|(name, value)| format!("{}{value}", paint.dim(&format!("{name:<10}")))));
    page(&lines)
}

/// What is about to happen.
#[must_use]
pub fn point(paint: Paint, number: usize, point: Point, sent: &Sent) -> String {
    let amount = amount(sent.amount_minor, &sent.currency);
    let title = format!("{number} of {}  Kill {}", Point::ALL.len(), point.title());
    let what = format!("{}: {} of {amount}", sent.event_id, sent.event_type);
    let mut lines = vec![String::new(), paint.bold(&title), what];
    lines.extend(point.story().map(str::to_owned));
    page(&lines)
}

/// What happens at the end.
#[must_use]
pub fn again(paint: Paint) -> String {
    let title = paint.bold("And then the provider sends everything once more");
    page(&[
        String::new(),
        title,
        "Every event of the four payments, also those that nobody needed so far.".to_owned(),
    ])
}

/// What is there, and what of it is right.
#[must_use]
pub fn scene(paint: Paint, title: &str, snapshot: &Snapshot, checks: &[Check]) -> String {
    let mut lines = vec![String::new(), format!("── {title}")];
    let mut table = |head: String, rows: Vec<String>| {
        lines.push(format!("  {}", paint.dim(head.trim_end())));
        if rows.is_empty() {
            lines.push("  (empty)".to_owned());
        }
        lines.extend(rows.into_iter().map(|row| format!("  {}", row.trim_end())));
    };
    let row = |event: &str, kind: &str, status: &str, came: &str, tried: &str| {
        format!("{event:<28}{kind:<27}{status:<11}{came:>4}{tried:>6}")
    };
    let rows = snapshot.inbox.iter().map(|one| {
        let (came, tried) = (one.deliveries.to_string(), one.attempts.to_string());
        row(&one.event_id, &one.event_type, &one.status, &came, &tried)
    });
    table(row("inbox", "type", "status", "came", "tried"), rows.collect());
    let row = |effect: &str, amount: &str, event: &str| format!("{effect:<34}{amount:>13}  {event}");
    let rows = snapshot
        .ledger
        .iter()
        .map(|one| row(&one.effect_key, &amount(one.amount_minor, &one.currency), &one.event_id));
    table(row("ledger", "amount", "by event"), rows.collect());
    let row = |key: &str, state: &str, tried: &str| format!("{key:<48}{state:<10}{tried:>6}");
    let rows = snapshot
        .outbox
        .iter()
        .map(|one| row(&one.key, if one.is_sent { "sent" } else { "not sent" }, &one.attempts.to_string()));
    table(row("outbox", "state", "tried"), rows.collect());
    let row = |key: &str, calls: &str, bodies: &str| format!("{key:<48}{calls:<10}{bodies:>7}");
    let rows =
        snapshot.calls.iter().map(|one| row(&one.key, &one.calls.to_string(), &one.bodies.to_string()));
    table(row("team", "calls", "effects"), rows.collect());
    lines.extend(checks.iter().map(|check| format!("{} {}", paint.mark(check.is_right), check.text)));
    page(&lines)
}

/// The last line.
#[must_use]
pub fn verdict(paint: Paint, checks: usize, wrong: usize) -> String {
    let line = if wrong == 0 {
        format!("{} Four kills: one effect each, nothing lost. {checks} checks.", paint.mark(true))
    } else {
        format!("{} {wrong} of {checks} checks failed.", paint.mark(false))
    };
    page(&[String::new(), line])
}

fn amount(minor: i64, currency: &str) -> String {
    format!("{} {currency}", decimal_from_minor(minor, iso_exponent(currency)))
}
