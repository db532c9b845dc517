//! The message of a run: what is new, in a few lines. Pure.
//!
//! The one thing to get right: nobody is bothered by what they know. A finding that was told once is not told again
//! while it is open; a run that could not see everything always is.

use super::found::{Ended, One, Sums, Tally, by_kind};
use crate::record::decimal_from_minor;
use crate::report::Outcome;
use crate::report::next_steps::shell_word;

/// How many findings are named by their ids.
const NAMED_COUNT_MAX: usize = 10;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its first line, for a mail's subject.
    pub subject: String,
    /// The whole text, first line included.
    pub body: String,
}

/// What to tell of a run, where somebody was told last at `told_us` (Unix µs; 0: never); `None`: nothing, because it
/// saw everything and nothing is new. With `every_run` there is always something.
#[must_use]
pub fn message(ended: &Ended<'_>, told_us: i64, every_run: bool) -> Option<Message> {
    let untold: Vec<&One> = ended
        .found
        .map_or_else(Vec::new, |found| found.findings.iter().filter(|one| one.is_untold(told_us)).collect());
    if ended.outcome == Outcome::Locked || (ended.is_success() && untold.is_empty() && !every_run) {
        return None;
    }
    let subject = subject(ended, &untold);
    let mut body = format!("{subject}\n");
    if !ended.is_success() {
        let why = if ended.why().is_empty() { "the log says why" } else { ended.why() };
        line(&mut body, &format!("why: {why}"));
    }
    let sum = money(&Tally::of(untold.iter().copied()).sums);
    if !sum.is_empty() {
        line(&mut body, &format!("money, provider minus local: {sum}"));
    }
    for ((severity, kind), tally) in by_kind(untold.iter().copied()) {
        let money = money(&tally.sums);
        line(&mut body, format!("  {severity:<8}  {kind:<20}  {:>6}  {money}", tally.count).trim_end());
    }
    named(&mut body, &untold);
    if let Some(found) = ended.found {
        line(&mut body, &format!("window: {} to {}", found.from, found.until));
        let findings = shell_word(&format!("{}/findings.csv", found.dir.trim_end_matches('/')));
        line(&mut body, &format!("look: {findings} on the host of the run"));
    }
    line(&mut body, &format!("status: {} status", ended.program));
    if !ended.run_id.is_empty() {
        line(&mut body, &format!("run: {}", ended.run_id));
    }
    Some(Message { subject, body })
}

/// A text as Slack takes it: `&`, `<` and `>` are its own marks
/// (<https://docs.slack.dev/messaging/formatting-message-text>), and a cause from outside must not call everybody.
#[must_use]
pub fn for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn subject(ended: &Ended<'_>, untold: &[&One]) -> String {
    let all = ended.found.map_or(0, |found| found.findings.len());
    let new = if untold.is_empty() {
        "nothing new".to_owned()
    } else {
        let plural = if untold.len() == 1 { "" } else { "s" };
        format!("{} new finding{plural}", untold.len())
    };
    match ended.outcome {
        Outcome::Incomplete | Outcome::Config if ended.found.is_none() => {
            "recon: INCOMPLETE, nothing was reported; the next run starts at the same place".to_owned()
        }
        Outcome::Incomplete | Outcome::Config => {
            format!("recon: INCOMPLETE, not everything was seen; {new}")
        }
        Outcome::Clean => "recon: everything ties out".to_owned(),
        Outcome::Findings | Outcome::Locked => format!("recon: {new}, {all} in all"),
    }
}

/// The first of them, the worst first, by their ids in `findings.csv`.
fn named(body: &mut String, untold: &[&One]) {
    let mut sorted: Vec<&One> = untold.to_vec();
    sorted.sort_by(|a, b| (a.severity, a.kind, &*a.id).cmp(&(b.severity, b.kind, &*b.id)));
    for one in sorted.iter().take(NAMED_COUNT_MAX) {
        let money = money(&Tally::of(std::iter::once(*one)).sums);
        line(body, format!("  {}  {}  {money}", one.id, one.kind).trim_end());
    }
    if sorted.len() > NAMED_COUNT_MAX {
        line(body, &format!("  and {} more", sorted.len() - NAMED_COUNT_MAX));
    }
}

/// `usd +10.00 -4.00, brl -1.00`: what should be added and what should be taken away stand apart.
fn money(sums: &Sums) -> String {
    let entries = sums.iter().map(|((currency, exponent), (plus, minus))| {
        let mut text = currency.clone();
        for (sign, sum) in [("+", plus), ("", minus)] {
            if *sum != 0 {
                // More than 64 bits is no sum of money that anybody has.
                let sum = i64::try_from(*sum).map(|minor| decimal_from_minor(minor, *exponent));
                let sum = sum.unwrap_or_else(|_| "beyond 64 bits".to_owned());
                text.extend([" ", sign, &*sum]);
            }
        }
        text
    });
    entries.collect::<Vec<_>>().join(", ")
}

fn line(body: &mut String, text: &str) {
    body.push_str(text);
    body.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Kind, Severity, Standing};
    use crate::night::Found;

    fn one(id: &str, kind: Kind, standing: Standing, first_seen_us: i64, minor: i64) -> One {
        let money = vec![("usd".to_owned(), 2, minor)];
        One { id: id.to_owned(), kind, severity: Severity::Critical, standing, first_seen_us, money }
    }

    fn ended(outcome: Outcome, found: Option<&Found>) -> Ended<'_> {
        Ended {
            run_id: "R1",
            outcome,
            error: "",
            found,
            program: "recon --config /etc/recon.toml",
            seen_at_us: 100,
            ended_at_us: 200,
            took_ms: 1,
        }
    }

    fn found(findings: Vec<One>) -> Found {
        Found { findings, dir: "/out/R1".to_owned(), ..Found::default() }
    }

    #[test]
    fn only_what_is_new_is_told() {
        let known = one("aa", Kind::MissedEvent, Standing::Open, 50, 700);
        let new = one("bb", Kind::DuplicateEffect, Standing::New, 100, -1200);
        let back = one("cc", Kind::DuplicateEffect, Standing::Reopened, 10, 50);
        let found = found(vec![known, new, back]);
        let told = message(&ended(Outcome::Findings, Some(&found)), 60, false).unwrap();
        assert_eq!(told.subject, "recon: 2 new findings, 3 in all");
        assert!(
            told.body.contains("  critical  duplicate_effect           2  usd +0.50 -12.00\n"),
            "{}",
            told.body
        );
        assert!(told.body.contains("  bb  duplicate_effect  usd -12.00\n"), "{}", told.body);
        assert!(told.body.contains("\nmoney, provider minus local: usd +0.50 -12.00\n"), "{}", told.body);
        assert!(!told.body.contains("missed_event") && !told.body.contains("aa"), "{}", told.body);
        assert!(told.body.contains("look: /out/R1/findings.csv"), "{}", told.body);
        assert!(told.body.contains("status: recon --config /etc/recon.toml status\n"), "{}", told.body);
        // What is open and was never told of, because nobody could be reached, is new to them.
        let late = message(&ended(Outcome::Findings, Some(&found)), 0, false).unwrap();
        assert!(late.subject.contains("3 new findings"), "{}", late.subject);
    }

    #[test]
    fn a_quiet_night_is_quiet_and_an_incomplete_one_never_is() {
        let known = found(vec![one("aa", Kind::MissedEvent, Standing::Open, 50, 700)]);
        let nothing = found(Vec::new());
        assert_eq!(message(&ended(Outcome::Findings, Some(&known)), 60, false), None);
        assert_eq!(message(&ended(Outcome::Clean, Some(&nothing)), 60, false), None);
        assert_eq!(message(&ended(Outcome::Locked, None), 0, true), None);
        let asked = message(&ended(Outcome::Clean, Some(&nothing)), 60, true).unwrap();
        assert_eq!(asked.subject, "recon: everything ties out");
        let asked = message(&ended(Outcome::Findings, Some(&known)), 60, true).unwrap();
        assert_eq!(asked.subject, "recon: nothing new, 1 in all");
        let cut = message(&ended(Outcome::Incomplete, Some(&known)), 60, false).unwrap();
        assert_eq!(cut.subject, "recon: INCOMPLETE, not everything was seen; nothing new");
        let failed = Ended { error: "read stripe: no answer", ..ended(Outcome::Incomplete, None) };
        let told = message(&failed, 60, false).unwrap();
        assert!(told.subject.starts_with("recon: INCOMPLETE, nothing was reported"), "{}", told.subject);
        assert!(told.body.contains("why: read stripe: no answer\n"), "{}", told.body);
    }

    #[test]
    fn a_cause_from_outside_calls_nobody() {
        assert_eq!(for_slack("why: <!channel> & more"), "why: &lt;!channel&gt; &amp; more");
    }

    #[test]
    fn many_are_counted_and_ten_are_named() {
        let many: Vec<One> = (0..25)
            .map(|n| one(&format!("id{n:02}"), Kind::OrphanEffect, Standing::New, 1, i64::MAX))
            .collect();
        let found = found(many);
        let told = message(&ended(Outcome::Findings, Some(&found)), 0, false).unwrap();
        assert_eq!(told.body.matches("  id").count(), NAMED_COUNT_MAX, "{}", told.body);
        assert!(told.body.contains("  and 15 more\n"), "{}", told.body);
        assert!(told.body.contains(": usd +beyond 64 bits\n"), "{}", told.body);
    }
}
