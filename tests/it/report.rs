//! Whole reports from whole inputs: bytes, summary, and what must never be in them.

use crate::sample::{Sample, ZONE, sample, window};
use recon::config::Locale;
use recon::gather::{Coverage, CoverageStatus};
use recon::record::{EffectKind, Scope};
use recon::report::cell::{Column, Holds, Style};
use recon::report::last_line::LastLine;
use recon::report::summary::{Commands, Summary};
use recon::report::tie_out::TieOutInput;
use recon::report::{Outcome, coverage_csv, findings_csv, inbox_health, manifest, plan_csv, render, tie_out};

const COMMANDS: Commands<'_> = Commands {
    dir: "/var/my reports/r1",
    program: Some("recon --config /etc/recon.toml"),
    rerun: "recon --config /etc/recon.toml --month 2024-05",
};

fn file(sample: &Sample, style: Style, name: &str) -> String {
    let files = sample.with(style, |input| render(input).unwrap());
    let file = files.into_iter().find(|file| file.name == name).unwrap();
    String::from_utf8(file.bytes).unwrap()
}

fn text(sample: &Sample) -> String {
    sample.with(Style::Machine, |input| Summary::of(input, &COMMANDS).unwrap().text(false))
}

#[test]
fn the_order_of_the_input_does_not_show() {
    let forward = sample();
    let mut backward = sample();
    backward.coverage.reverse();
    let files = |sample: &Sample, is_reversed: bool| {
        sample.with(Style::Machine, |input| {
            let mut rows = input.findings.to_vec();
            if is_reversed {
                rows.reverse();
            }
            let input = recon::report::ReportInput { findings: &rows, ..*input };
            let files = render(&input).unwrap();
            let manifest = manifest::render(&input, &files).unwrap();
            (files, manifest, Summary::of(&input, &COMMANDS).unwrap().json().unwrap())
        })
    };
    assert_eq!(files(&forward, false), files(&backward, true));
}

#[test]
fn c59_a_pt_br_report_keeps_the_contract_columns_and_adds_decimals() {
    let sheet = file(&sample(), Style::Spreadsheet(Locale::PtBr), "findings.csv");
    let machine = file(&sample(), Style::Machine, "findings.csv");
    let header = sheet.lines().next().unwrap();
    assert_eq!(
        header,
        format!(
            "\u{feff}{};expected_decimal;found_decimal;difference_decimal",
            machine.lines().next().unwrap().replace(',', ";")
        )
    );
    assert!(!sheet.contains("sep="));
    assert_eq!(sheet.matches("\r\n").count(), 6);
    let row = |object: &str| sheet.lines().find(|line| line.contains(object)).unwrap().to_owned();
    assert!(row("ch_3PA").ends_with(";1234,56;;1234,56"), "{}", row("ch_3PA"));
    assert!(row("ch_3PB").contains(";'00367901234567890323|00367901234567890324;brl;5000;10000;-5000;"));
    assert!(row("ch_3PB").ends_with(";50,00;100,00;-50,00"));
    assert!(row("ch_3PC").ends_with(";found_minor is in usd.;9000;90,00;9000"), "each in its own currency");
    assert!(row("pi_3PD").contains(";'-- applied in the wrong order"), "c56: text is guarded");
}

#[test]
fn c61_no_column_takes_a_customers_data() {
    const WORDS: [&str; 18] = [
        // Closed sets of words, currency codes, and names from the configuration.
        "kind",
        "severity",
        "provider",
        "mode",
        "currency",
        "expected_state",
        "found_state",
        "status",
        "owner",
        "correction",
        "effect_kind",
        "stream",
        "action",
        "target_state",
        "allowed_by",
        // Made by rules, which see facts and never a body.
        "cause",
        "note",
        "reason",
    ];
    let files: [&[Column]; 5] = [
        &findings_csv::COLUMNS,
        &tie_out::COLUMNS,
        &coverage_csv::COLUMNS,
        &plan_csv::COLUMNS,
        &inbox_health::COLUMNS,
    ];
    for column in files.into_iter().flatten().filter(|column| column.holds == Holds::Text) {
        assert!(WORDS.contains(&column.name), "may {} hold personal data?", column.name);
    }
}

#[test]
fn an_incomplete_run_says_so_first_and_how_to_go_on() {
    let mut sample = sample();
    sample.outcome = Outcome::judge(4, false, true);
    sample.coverage.push(Coverage {
        scope: Scope::new("stripe", "acct_9", "live"),
        stream: "disputes".to_owned(),
        from_us: window().from_us,
        until_us: window().until_us,
        status: CoverageStatus::Gap,
        cause: "no_permission".to_owned(),
        slices: 0,
        pages: 0,
        records: 0,
    });
    let text = text(&sample);
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{text}"));
    assert!(place("INCOMPLETE: 1 range could not be seen.") < place("\nSeen\n"));
    place(
        "  GAP: stripe acct_9 live disputes, 2024-05-01T00:00:00-03:00 .. 2024-06-01T00:00:00-03:00 (no_permission)\n",
    );
    place("  1. give the API key read permission for the streams marked no_permission above\n");
    place("  2. run it again, it resumes where it stopped: recon --config /etc/recon.toml --month 2024-05\n");
    place("  4 lines add up, but not everything was seen\n");
    assert!(!text.contains("tied out:"));
    assert!(text.lines().last().unwrap().starts_with("outcome=incomplete findings=4 timing_differences=1 "));
}

#[test]
fn an_unexplained_difference_is_loud_and_never_clean() {
    let mut input = TieOutInput::default();
    input.add_local(&Scope::new("stripe", "", "live"), "kwd", EffectKind::Refund, -1_860);
    let mut sample = sample();
    sample.tie_out = input.rows().unwrap();
    sample.outcome = Outcome::judge(0, true, tie_out::is_tied_out(&sample.tie_out));
    sample.findings.clear();
    sample.corrections.clear();
    assert_eq!((sample.outcome, sample.outcome.exit_code()), (Outcome::Incomplete, 2));
    let text = text(&sample);
    assert!(
        text.contains("\nNOT TIED OUT: a difference is left that nothing explains. See below.\n\nSeen\n"),
        "{text}"
    );
    assert!(text.contains("\n  NOT TIED OUT. Unexplained:\n  +1.860 KWD  refund  stripe live\n"), "{text}");
    assert!(text.contains("  1. do not close the period on these numbers"), "{text}");
    let manifest = sample.with(Style::Machine, |input| manifest::render(input, &[]).unwrap());
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["totals"]["tied_out"], false);
    assert_eq!(manifest["totals"]["tie_out"][0]["unexplained_minor"], 1860);
}

#[test]
fn a_clean_run_has_nothing_to_do() {
    let mut sample = sample();
    sample.findings.clear();
    sample.corrections.clear();
    sample.tie_out.clear();
    sample.coverage.clear();
    sample.outcome = Outcome::judge(0, true, true);
    let text = text(&sample);
    assert!(
        text.contains("\nNext\n  nothing to do\n\nReport: /var/my reports/r1\noutcome=clean findings=0 "),
        "{text}"
    );
    assert!(text.contains("Findings (money is provider minus local)\n  none\n"), "{text}");
}

#[test]
fn commands_can_be_pasted() {
    let text = text(&sample());
    assert!(
        text.contains(
            "carry out the rest: recon --config /etc/recon.toml apply '/var/my reports/r1/plan.csv'\n"
        ),
        "{text}"
    );
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = text(&sample());
    let painted = sample().with(Style::Machine, |input| Summary::of(input, &COMMANDS).unwrap().text(true));
    assert!(!plain.contains('\x1b') && painted.contains("\x1b[32m"));
    let mut stripped = painted;
    for code in ["\x1b[1;31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn what_comes_from_outside_does_not_steer_the_terminal() {
    let mut sample = sample();
    sample.findings[0].object_id = "ch_\x1b[2J\n1".to_owned();
    let text = text(&sample);
    assert!(text.contains("ch_?[2J?1") && !text.contains('\x1b'), "{text}");
}

#[test]
fn the_largest_of_each_currency_are_shown() {
    let mut sample = sample();
    let model = sample.findings[0].clone();
    for number in 0..12_i64 {
        let mut finding = model.clone();
        finding.object_id = format!("ch_many_{number:02}");
        finding.expected_minor = Some(200_000 + number);
        sample.findings.push(finding);
    }
    let json = sample.with(Style::Machine, |input| Summary::of(input, &COMMANDS).unwrap().json().unwrap());
    let (line, last) = json.split_once('\n').unwrap();
    let summary: serde_json::Value = serde_json::from_str(line).unwrap();
    let largest: Vec<&str> =
        summary["largest"].as_array().unwrap().iter().map(|one| one["object_id"].as_str().unwrap()).collect();
    let mut expected: Vec<String> = (3..12).rev().map(|number| format!("ch_many_{number:02}")).collect();
    expected.push("ch_3PC".to_owned());
    assert_eq!(largest, expected, "the one in yen is not crowded out");
    assert_eq!(summary["largest"][0]["difference"], "+2000.11");
    assert!(last.starts_with("outcome=findings findings=16 "), "{last}");
}

#[test]
fn both_directions_of_one_currency_are_shown_apart() {
    let mut sample = sample();
    let mut opposite = sample.findings[0].clone();
    opposite.object_id = "ch_opposite".to_owned();
    opposite.expected_minor = Some(0);
    opposite.found_minor = Some(123_456);
    sample.findings.push(opposite);
    let text = text(&sample);
    assert!(text.contains("missed_event               2  +1234.56 BRL, -1234.56 BRL\n"), "{text}");
}

#[test]
fn a_sum_beyond_64_bits_is_an_error_that_says_what_was_added() {
    let mut sample = sample();
    for finding in &mut sample.findings[..2] {
        (finding.kind, finding.expected_minor, finding.found_minor) =
            (recon::findings::Kind::MissedEvent, Some(i64::MAX), None);
    }
    let error = sample.with(Style::Machine, |input| Summary::of(input, &COMMANDS).unwrap_err().to_string());
    assert_eq!(error, "add up missed_event in brl: 18446744073709551614 leaves 64 bits");
}

#[test]
fn the_last_line_of_a_run_that_never_started() {
    let line = LastLine {
        outcome: Outcome::Locked,
        findings: 0,
        timing_differences: 0,
        accepted: 0,
        corrections: 0,
        window: None,
        report: "",
    };
    assert_eq!(
        line.to_string(),
        "outcome=locked findings=0 timing_differences=0 corrections=0 window= report="
    );
    let line = LastLine { outcome: Outcome::Clean, window: Some((window(), ZONE)), report: "out/r1", ..line };
    assert_eq!(
        line.to_string(),
        "outcome=clean findings=0 timing_differences=0 corrections=0 \
         window=2024-05-01T00:00:00-03:00..2024-06-01T00:00:00-03:00 report=out/r1"
    );
    let line = LastLine { accepted: 3, ..line }.to_string();
    assert!(line.ends_with("T00:00:00-03:00 accepted=3 report=out/r1"), "{line}");
}
