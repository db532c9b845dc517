//! A run's numbers in Prometheus' text form
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), the same for a file and for a push. Pure.
//!
//! The one thing to get right: a run that reported nothing claims nothing. Its findings and sums are absent, not zero.

use super::found::{Ended, Found, Tally, by_kind};
use crate::findings::Standing;
use crate::record::SECOND_US;
use crate::report::Outcome;

/// The series that says when a run last saw everything.
pub const LAST_SUCCESS: &str = "recon_last_success_timestamp_seconds";

/// The numbers of a run; `last_success_us` is when a run last saw everything, Unix µs.
#[must_use]
pub fn render(ended: &Ended<'_>, last_success_us: Option<i64>) -> String {
    let mut text = Text::default();
    let name = "recon_last_run_timestamp_seconds";
    text.gauge(name, "When the last run ended, Unix time", &[("", seconds(ended.ended_at_us))]);
    if let Some(at_us) = last_success_us {
        let help = "When a run last saw everything, whatever it found, Unix time";
        text.gauge(LAST_SUCCESS, help, &[("", seconds(at_us))]);
    }
    let outcomes = [Outcome::Clean, Outcome::Findings, Outcome::Incomplete, Outcome::Config];
    let states = outcomes.map(|outcome| {
        (labels(&[("outcome", outcome.as_str())]), u8::from(outcome == ended.outcome).to_string())
    });
    text.gauge("recon_last_run_outcome", "1 for how the last run ended", &borrowed(&states));
    let took = format!("{}.{:03}", ended.took_ms / 1_000, ended.took_ms % 1_000);
    text.gauge("recon_last_run_duration_seconds", "How long the last run took", &[("", took)]);
    if let Some(found) = ended.found {
        found_in(&mut text, found);
    }
    text.0
}

fn found_in(text: &mut Text, found: &Found) {
    let kinds: Vec<(String, String)> = by_kind(found.findings.iter())
        .into_iter()
        .map(|((severity, kind), tally)| {
            let pairs = [("kind", kind.as_str()), ("severity", &*severity.to_string())];
            (labels(&pairs), tally.count.to_string())
        })
        .collect();
    text.gauge(
        "recon_findings",
        "Findings of the last run by kind; a kind without any is absent",
        &borrowed(&kinds),
    );
    let new = found.findings.iter().filter(|one| one.standing != Standing::Open).count();
    text.gauge(
        "recon_open_findings",
        "Findings of the last run in all",
        &[("", found.findings.len().to_string())],
    );
    text.gauge(
        "recon_new_findings",
        "Those among them that are new, or back again",
        &[("", new.to_string())],
    );
    let mut sums = Vec::new();
    for ((currency, _), (plus, minus)) in Tally::of(found.findings.iter()).sums {
        for (sign, sum) in [("plus", plus), ("minus", minus)] {
            sums.push((labels(&[("currency", &*currency), ("sign", sign)]), sum.to_string()));
        }
    }
    let help =
        "Provider minus local of the findings, minor units, what is missing and what is too much apart";
    text.gauge("recon_difference_minor", help, &borrowed(&sums));
    text.gauge(
        "recon_requests",
        "Requests that the last run sent to providers",
        &[("", found.requests.to_string())],
    );
    let waited = format!("{}.{:03}", found.waited_ms / 1_000, found.waited_ms % 1_000);
    let help = "How long the requests of the last run waited for their turn, added up";
    text.gauge("recon_waited_seconds", help, &[("", waited)]);
}

/// Whole seconds of an instant, with its microseconds as decimals.
fn seconds(at_us: i64) -> String {
    format!("{}.{:06}", at_us.div_euclid(SECOND_US), at_us.rem_euclid(SECOND_US))
}

/// When a run last saw everything, as an earlier text says: for the night on which the store cannot be read.
#[must_use]
pub fn last_success_us(earlier: &str) -> Option<i64> {
    let line = earlier.lines().find_map(|line| line.strip_prefix(LAST_SUCCESS)?.strip_prefix(' '))?;
    let (whole, part) = line.trim().split_once('.')?;
    let micros: i64 = (part.len() == 6).then(|| part.parse().ok())??;
    whole.parse::<i64>().ok()?.checked_mul(SECOND_US)?.checked_add(micros)
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let texts = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
}

fn borrowed(rows: &[(String, String)]) -> Vec<(&str, String)> {
    rows.iter().map(|(labels, value)| (labels.as_str(), value.clone())).collect()
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// One metric and its series; without any it is left out.
    fn gauge(&mut self, name: &str, help: &str, series: &[(&str, String)]) {
        if series.is_empty() {
            return;
        }
        self.0.extend(["# HELP ", name, " ", help, "\n# TYPE ", name, " gauge\n"]);
        for (labels, value) in series {
            self.0.extend([name, labels, " ", value, "\n"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_reported_nothing_claims_nothing() {
        let ended = Ended {
            run_id: "",
            outcome: Outcome::Incomplete,
            error: "x",
            found: None,
            program: "recon",
            seen_at_us: 0,
            ended_at_us: 1_781_526_896_000_001,
            took_ms: 61_005,
        };
        let text = render(&ended, Some(1_781_440_496_250_000));
        assert!(text.contains("\nrecon_last_run_outcome{outcome=\"incomplete\"} 1\n"), "{text}");
        assert!(text.contains("\nrecon_last_run_outcome{outcome=\"clean\"} 0\n"), "{text}");
        assert!(text.contains("\nrecon_last_run_duration_seconds 61.005\n"), "{text}");
        assert!(!text.contains("recon_findings") && !text.contains("recon_open_findings"), "{text}");
        assert_eq!(last_success_us(&text), Some(1_781_440_496_250_000));
        assert_eq!(last_success_us(&render(&ended, None)), None);
        assert_eq!(last_success_us("recon_last_success_timestamp_seconds 1e9"), None);
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(labels(&[("currency", "u\"s\\d\n")]), r#"{currency="u\"s\\d\n"}"#);
    }
}
