//! What a run found, in the form in which it is told: no ids but hashes, no names, no addresses. Pure.

use crate::findings::{Kind, Severity, Standing};
use crate::record::format_instant;
use crate::report::{Outcome, ReportInput};
use std::collections::BTreeMap;

/// Money of one currency, minor units, provider minus local: what should be added, and what should be taken away.
pub type Sums = BTreeMap<(String, u32), (i128, i128)>;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct One {
    /// Its id, a hash.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// How bad it is.
    pub severity: Severity,
    /// New, open, or back again.
    pub standing: Standing,
    /// When a run first saw it, Unix µs.
    pub first_seen_us: i64,
    /// (currency, decimals, minor units): provider minus local.
    pub money: Vec<(String, u32, i64)>,
}

impl One {
    /// Whether nobody was told of it, where somebody was told last at `told_us` (0: never).
    #[must_use]
    pub fn is_untold(&self, told_us: i64) -> bool {
        self.standing != Standing::Open || self.first_seen_us > told_us
    }
}

/// What a run that came to its report found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// First instant of its window, RFC 3339.
    pub from: String,
    /// First instant after it.
    pub until: String,
    /// Why it is incomplete; empty where it is not.
    pub why: String,
    /// Its findings, without timing differences.
    pub findings: Vec<One>,
    /// Requests sent to providers.
    pub requests: u64,
    /// How long requests waited for their turn, added up, ms.
    pub waited_ms: u64,
    /// The report's folder.
    pub dir: String,
}

impl Found {
    /// What is told of a report. Requests and waits are not in it.
    #[must_use]
    pub fn of(input: &ReportInput<'_>, why: String, dir: String) -> Self {
        let told = input.findings.iter().filter(|row| row.finding.kind != Kind::TimingDifference);
        let findings = told.map(|row| {
            let finding = row.finding;
            let booked =
                finding.found_minor.filter(|_| !finding.found_currency.is_empty()).map(|minor| -minor);
            let sides = [(&finding.currency, finding.difference_minor()), (&finding.found_currency, booked)];
            let money = sides.into_iter().filter_map(|(currency, minor)| {
                let exponent = (input.exponent)(&finding.scope.provider, currency);
                minor.filter(|minor| *minor != 0).map(|minor| (currency.clone(), exponent, minor))
            });
            One {
                id: finding.id(),
                kind: finding.kind,
                severity: finding.severity,
                standing: row.standing,
                first_seen_us: row.first_seen_us,
                money: money.collect(),
            }
        });
        Self {
            from: format_instant(input.window.from_us, input.zone),
            until: format_instant(input.window.until_us, input.zone),
            why,
            findings: findings.collect(),
            requests: 0,
            waited_ms: 0,
            dir,
        }
    }
}

/// How many there are, and their money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Findings.
    pub count: usize,
    /// Their money.
    pub sums: Sums,
}

impl Tally {
    /// One more.
    pub fn add(&mut self, one: &One) {
        self.count += 1;
        for (currency, exponent, minor) in &one.money {
            let (plus, minus) = self.sums.entry((currency.clone(), *exponent)).or_default();
            if *minor >= 0 { *plus += i128::from(*minor) } else { *minus += i128::from(*minor) }
        }
    }

    /// All of these together.
    #[must_use]
    pub fn of<'a>(findings: impl Iterator<Item = &'a One>) -> Self {
        let mut tally = Self::default();
        findings.for_each(|one| tally.add(one));
        tally
    }
}

/// By severity, the worst first, and kind.
#[must_use]
pub fn by_kind<'a>(findings: impl Iterator<Item = &'a One>) -> BTreeMap<(Severity, Kind), Tally> {
    let mut tallies: BTreeMap<(Severity, Kind), Tally> = BTreeMap::new();
    findings.for_each(|one| tallies.entry((one.severity, one.kind)).or_default().add(one));
    tallies
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The run; empty where it never began.
    pub run_id: &'a str,
    /// How.
    pub outcome: Outcome,
    /// Why nothing was reported, without secrets; empty where there is a report.
    pub error: &'a str,
    /// What was reported.
    pub found: Option<&'a Found>,
    /// The program with its configuration, such as `recon --config /etc/recon.toml`.
    pub program: &'a str,
    /// When its findings were seen: the run's one reading of the clock, Unix µs.
    pub seen_at_us: i64,
    /// When it ended, Unix µs.
    pub ended_at_us: i64,
    /// How long it took, ms.
    pub took_ms: u64,
}

impl Ended<'_> {
    /// Why it is incomplete, in one line; empty where it is not.
    #[must_use]
    pub fn why(&self) -> &str {
        match self.found {
            Some(found) if self.error.is_empty() => &found.why,
            _ => self.error,
        }
    }

    /// Whether it saw everything.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Clean | Outcome::Findings)
    }
}
