//! A small month that has one of everything: the sample in `reports/*.md` and the input of the tests
//! on whole reports.

use chrono_tz::Tz;
use recon::config::Basis;
use recon::correction::Correction;
use recon::findings::{Action, Finding, Kind, Severity, Standing};
use recon::gather::{Coverage, CoverageStatus};
use recon::record::{EffectKind, InboxStatus, SECOND_US, Scope, Status, Window, iso_exponent, parse_month};
use recon::report::cell::Style;
use recon::report::findings_csv::Row;
use recon::report::inbox_health::InboxHealth;
use recon::report::tie_out::{TieOutInput, TieOutRow};
use recon::report::{Outcome, ReportInput};
use std::collections::BTreeMap;

/// Owned values of a run; [`Sample::with`] lends them.
pub struct Sample {
    pub findings: Vec<Finding>,
    pub tie_out: Vec<TieOutRow>,
    pub coverage: Vec<Coverage>,
    pub corrections: Vec<Correction>,
    pub inbox_health: Vec<InboxHealth>,
    pub counted: BTreeMap<String, u64>,
    pub outcome: Outcome,
}

pub const ZONE: Tz = Tz::America__Sao_Paulo;

pub fn window() -> Window {
    parse_month("2024-05", ZONE).unwrap()
}

pub fn exponent(_provider: &str, currency: &str) -> u32 {
    iso_exponent(currency)
}

/// The day and hour of May 2024, finance time.
fn at(day: i64, hour: i64) -> i64 {
    window().from_us + ((day - 1) * 24 + hour) * 3600 * SECOND_US
}

fn scope() -> Scope {
    Scope::new("stripe", "", "live")
}

fn finding(kind: Kind, object_id: &str, action: Action) -> Finding {
    Finding {
        kind,
        cause: String::new(),
        severity: Severity::Critical,
        scope: scope(),
        object_id: object_id.to_owned(),
        root_id: object_id.to_owned(),
        effect: None,
        event_ids: Vec::new(),
        effect_ids: Vec::new(),
        currency: String::new(),
        found_currency: String::new(),
        explains: Vec::new(),
        target_state: None,
        expected_minor: None,
        found_minor: None,
        expected_state: None,
        found_state: None,
        occurred_at_us: at(7, 9),
        judged_at_us: at(7, 9),
        action,
        note: String::new(),
    }
}

fn findings() -> Vec<Finding> {
    let mut list = vec![
        Finding {
            effect: Some(EffectKind::Credit),
            event_ids: vec!["evt_3PA1".to_owned(), "evt_3PA2".to_owned()],
            currency: "brl".to_owned(),
            expected_minor: Some(123_456),
            note: "acknowledged by the endpoint and never stored".to_owned(),
            ..finding(Kind::MissedEvent, "ch_3PA", Action::ReplayEvent)
        },
        Finding {
            effect: Some(EffectKind::Credit),
            event_ids: vec!["evt_3PB1".to_owned()],
            effect_ids: vec!["00367901234567890323".to_owned(), "00367901234567890324".to_owned()],
            currency: "brl".to_owned(),
            expected_minor: Some(5_000),
            found_minor: Some(10_000),
            note: "booked 2 times; the excess is 1 row".to_owned(),
            ..finding(Kind::DuplicateEffect, "ch_3PB", Action::ReverseEntry)
        },
        Finding {
            effect: Some(EffectKind::Credit),
            effect_ids: vec!["1E5".to_owned()],
            currency: "jpy".to_owned(),
            found_currency: "usd".to_owned(),
            expected_minor: Some(9_000),
            found_minor: Some(9_000),
            ..finding(Kind::CurrencyMismatch, "ch_3PC", Action::Review)
        },
        Finding {
            severity: Severity::Major,
            expected_state: Some(Status::Refunded),
            found_state: Some(Status::Paid),
            note: "-- applied in the wrong order: evt_3PD2 before evt_3PD1".to_owned(),
            event_ids: vec!["evt_3PD1".to_owned(), "evt_3PD2".to_owned()],
            ..finding(Kind::StaleState, "pi_3PD", Action::SetState)
        },
        Finding {
            severity: Severity::Info,
            effect: Some(EffectKind::Refund),
            currency: "brl".to_owned(),
            expected_minor: Some(-1_500),
            occurred_at_us: at(31, 23),
            note: "booked after the cut-off".to_owned(),
            ..finding(Kind::TimingDifference, "re_3PE", Action::None)
        },
    ];
    for finding in list.iter_mut().filter(|finding| finding.effect.is_some()) {
        let (currency, difference) = (finding.currency.clone(), finding.difference_minor());
        finding.explains = difference.into_iter().map(|minor| (currency.clone(), minor)).collect();
        if !finding.found_currency.is_empty() {
            finding.explains.push((finding.found_currency.clone(), -finding.found_minor.unwrap_or(0)));
        }
    }
    list
}

fn tie_out(findings: &[Finding]) -> Vec<TieOutRow> {
    let mut input = TieOutInput::default();
    let scope = scope();
    for (currency, kind, provider, local) in [
        ("brl", EffectKind::Credit, 9_328_456, 9_210_000),
        ("brl", EffectKind::Refund, -76_500, -75_000),
        ("jpy", EffectKind::Credit, 9_000, 0),
        ("usd", EffectKind::Credit, 0, 9_000),
    ] {
        input.add_provider(&scope, currency, kind, provider);
        input.add_local(&scope, currency, kind, local);
    }
    input.add_in_flight(&scope, "brl", EffectKind::Credit, 0);
    for finding in findings {
        input.add_finding(finding);
    }
    input.rows().unwrap()
}

fn coverage() -> Vec<Coverage> {
    let row = |stream: &str, from_us, until_us, status, cause: &str, records| Coverage {
        scope: scope(),
        stream: stream.to_owned(),
        from_us,
        until_us,
        status,
        cause: cause.to_owned(),
        slices: 4,
        pages: 12,
        records,
    };
    let Window { from_us, until_us } = window();
    vec![
        row("events", at(4, 0), until_us, CoverageStatus::Covered, "", 1_140),
        Coverage {
            slices: 0,
            pages: 0,
            ..row("events", from_us, at(4, 0), CoverageStatus::NotListed, "retention", 0)
        },
        row("charges", from_us, until_us, CoverageStatus::Covered, "", 431),
        row("refunds", from_us, until_us, CoverageStatus::Covered, "", 17),
    ]
}

fn corrections(findings: &[Finding]) -> Vec<Correction> {
    let row = |at: usize, id: &str, effect_key: &str, amount_minor| Correction {
        correction_id: id.to_owned(),
        finding_id: findings[at].id(),
        scope: scope(),
        action: findings[at].action,
        effect_key: effect_key.to_owned(),
        object_id: findings[at].object_id.clone(),
        root_id: findings[at].root_id.clone(),
        effect: findings[at].effect,
        currency: findings[at].currency.clone(),
        amount_minor,
        target_state: findings[at].expected_state,
        reason: findings[at].kind.to_string(),
        allowed_by: "review".to_owned(),
        event_ids: findings[at].event_ids.clone(),
        effect_ids: findings[at].effect_ids.clone(),
        occurred_at_us: findings[at].occurred_at_us,
    };
    vec![
        row(0, "5f0c1d7a9b3e48c2a1d4e6f708192a3b", "credit:ch_3PA", 123_456),
        row(1, "77aa01bb23cc45dd67ee89ff0a1b2c3d", "reverse:00367901234567890324", -5_000),
        row(3, "c0a8b1f29d3e4c5b6a7f8091a2b3c4d5", "state:pi_3PD", 0),
    ]
}

pub fn sample() -> Sample {
    let findings = findings();
    Sample {
        tie_out: tie_out(&findings),
        coverage: coverage(),
        corrections: corrections(&findings),
        inbox_health: vec![InboxHealth {
            scope: scope(),
            events: BTreeMap::from([
                (InboxStatus::Applied, 1_121),
                (InboxStatus::Parked, 2),
                (InboxStatus::Dead, 1),
            ]),
            duplicates_dropped: 37,
            conflicting_deliveries: 1,
            refused_deliveries: 12,
            waiting_age_seconds_max: 900,
            waiting_above_age: 2,
            oldest_waiting_us: Some(at(30, 14)),
            completion_mean_ms: Some(412),
            completion_p99_ms: Some(2_030),
            completion_slowest_ms: Some(98_110),
        }],
        counted: BTreeMap::from([
            ("in_flight".to_owned(), 3),
            ("missed_without_consequence".to_owned(), 12),
            ("reordered_harmlessly".to_owned(), 0),
        ]),
        outcome: Outcome::Findings,
        findings,
    }
}

impl Sample {
    /// Lends a report's input.
    pub fn with<T>(&self, style: Style, use_it: impl FnOnce(&ReportInput<'_>) -> T) -> T {
        let row = |(index, finding)| Row {
            finding,
            first_seen_us: at(if index == 1 { 20 } else { 31 }, 0),
            age_days: if index == 1 { 11 } else { 0 },
            standing: if index == 1 { Standing::Open } else { Standing::New },
            owner: if index == 1 { "finance" } else { "" },
            acceptance: None,
        };
        let rows: Vec<Row<'_>> = self.findings.iter().enumerate().map(row).collect();
        use_it(&ReportInput {
            run_id: "20240601T061500Z-4f1d",
            version: "0.1.0",
            window: window(),
            zone: ZONE,
            basis: Basis::Created,
            as_of_us: at(31, 0),
            style,
            outcome: self.outcome,
            exponent: &exponent,
            findings: &rows,
            tie_out: &self.tie_out,
            coverage: &self.coverage,
            corrections: &self.corrections,
            inbox_health: &self.inbox_health,
            counted: &self.counted,
        })
    }
}
