//! The summary as text. What would make a reader act wrongly comes first and is loud: an incomplete
//! run, then an unexplained difference.

use super::summary::{KindSum, MoneySum, Summary};
use std::fmt::Write;

/// Lines of one list; the files have the rest.
const LIST_LINES_MAX: usize = 12;

/// The counts that say what was compared.
const COMPARED: [&str; 5] =
    ["provider_events", "inbox_events", "provider_effects", "local_effects", "local_states"];

/// Colours that stand out on dark and light grounds.
#[derive(Clone, Copy)]
enum Paint {
    Alarm,
    Good,
    Head,
}

struct Page {
    text: String,
    is_coloured: bool,
}

pub(super) fn render(summary: &Summary, is_coloured: bool) -> String {
    let mut page = Page { text: String::new(), is_coloured };
    page.head(summary);
    page.seen(summary);
    page.findings(summary);
    page.accepted(summary);
    page.counted(summary);
    page.tie_out(summary);
    page.next(summary);
    page.line(&summary.last_line);
    page.text
}

impl Page {
    fn line(&mut self, text: &str) {
        // What comes from outside must not steer the terminal.
        self.text.extend(text.chars().map(|c| if c.is_control() { '?' } else { c }));
        self.text.push('\n');
    }

    /// What must not be overlooked, with a blank line before it.
    fn alarm(&mut self, text: &str) {
        self.text.push('\n');
        self.painted(Paint::Alarm, text);
    }

    fn painted(&mut self, paint: Paint, text: &str) {
        let code = match paint {
            Paint::Alarm => "\x1b[1;31m",
            Paint::Good => "\x1b[32m",
            Paint::Head => "\x1b[1m",
        };
        if self.is_coloured {
            self.text.push_str(code);
        }
        self.text.extend(text.chars().map(|c| if c.is_control() { '?' } else { c }));
        if self.is_coloured {
            self.text.push_str("\x1b[0m");
        }
        self.text.push('\n');
    }

    fn section(&mut self, name: &str) {
        self.text.push('\n');
        self.painted(Paint::Head, name);
    }

    /// At most `LIST_LINES_MAX` lines, and where the rest is.
    fn list(&mut self, lines: &[String], file: &str) {
        for line in lines.iter().take(LIST_LINES_MAX) {
            self.line(line);
        }
        if lines.len() > LIST_LINES_MAX {
            self.line(&format!("  … and {} more in {file}", lines.len() - LIST_LINES_MAX));
        }
    }

    fn head(&mut self, summary: &Summary) {
        self.painted(Paint::Head, &format!("recon run {}", summary.run_id));
        self.line(&format!("  from    {}", summary.from));
        self.line(&format!("  until   {} (this instant is outside)", summary.until));
        self.line(&format!("  zone    {}, basis: {}", summary.time_zone, summary.basis));
        let gaps = summary.not_seen.iter().filter(|range| range.status == "gap").count();
        if gaps > 0 {
            let ranges = if gaps == 1 { "1 range" } else { &format!("{gaps} ranges") };
            self.alarm(&format!(
                "INCOMPLETE: {ranges} could not be seen. What follows holds only for the rest."
            ));
        } else if summary.outcome == "incomplete" && summary.tied_out {
            self.alarm("INCOMPLETE: the run did not come to its end.");
        }
        if !summary.tied_out {
            self.alarm("NOT TIED OUT: a difference is left that nothing explains. See below.");
        }
    }

    fn seen(&mut self, summary: &Summary) {
        self.section("Seen");
        let scope_width = width(summary.seen.iter().map(|seen| &*seen.scope));
        let stream_width = width(summary.seen.iter().map(|seen| &*seen.stream));
        let lines = summary.seen.iter().map(|seen| {
            let covered = if seen.is_covered { "whole window" } else { "in part" };
            format!(
                "  {:scope_width$}  {:stream_width$}  {:>8} records  {:>5} pages  {covered}",
                seen.scope, seen.stream, seen.records, seen.pages
            )
        });
        self.list(&lines.collect::<Vec<_>>(), "coverage.csv");
        if summary.seen.is_empty() {
            self.line("  nothing");
        }
        let lines = summary.not_seen.iter().map(|range| {
            let what = if range.status == "gap" { "GAP" } else { "not listed any more" };
            format!(
                "  {what}: {} {}, {} .. {} ({})",
                range.scope, range.stream, range.from, range.until, range.cause
            )
        });
        self.list(&lines.collect::<Vec<_>>(), "coverage.csv");
        let compared: Vec<String> = COMPARED
            .into_iter()
            .filter_map(|what| Some(format!("{} {}", summary.counted.get(what)?, what.replace('_', " "))))
            .collect();
        if !compared.is_empty() {
            self.line(&format!("  compared: {}", compared.join(", ")));
        }
    }

    fn findings(&mut self, summary: &Summary) {
        self.section("Findings (money is provider minus local)");
        if summary.kinds.is_empty() {
            self.painted(Paint::Good, "  none");
            return;
        }
        for kind in &summary.kinds {
            let line = kind_line(kind);
            self.line(&line);
        }
        let standing: Vec<String> =
            summary.standing.iter().map(|(standing, count)| format!("{count} {standing}")).collect();
        self.line(&format!("  {}; the oldest is {} days old", standing.join(", "), summary.oldest_days));
        if summary.largest.is_empty() {
            return;
        }
        self.section("Largest");
        let money: Vec<String> = summary
            .largest
            .iter()
            .map(|large| format!("{} {}", large.difference, large.currency.to_uppercase()))
            .collect();
        let money_width = width(money.iter().map(String::as_str));
        for (large, money) in summary.largest.iter().zip(money) {
            self.line(&format!(
                "  {money:>money_width$}  {:<20} {:<8}  {}  {}",
                large.kind, large.severity, large.object_id, large.scope
            ));
        }
    }

    fn accepted(&mut self, summary: &Summary) {
        if summary.accepted.is_empty() {
            return;
        }
        self.section("Accepted, not counted");
        let lines = summary.accepted.iter().map(|line| {
            let money = format!("{} {}", line.difference, line.currency.to_uppercase());
            let (kind, object, by) = (line.kind, &line.object_id, &line.by);
            format!("  {kind:<20} {object}  {}  until {} by {by}: {}", money.trim(), line.until, line.reason)
        });
        self.list(&lines.collect::<Vec<_>>(), "findings.csv");
    }

    /// What was compared is told with what was seen; this is what looked wrong and is no finding.
    fn counted(&mut self, summary: &Summary) {
        let is_compared = |what: &str| COMPARED.contains(&what);
        let counted: Vec<_> =
            summary.counted.iter().filter(|(what, count)| **count > 0 && !is_compared(what)).collect();
        if counted.is_empty() {
            return;
        }
        self.section("Counted, not findings");
        for (what, count) in counted {
            self.line(&format!("  {count:>8}  {}", what.replace('_', " ")));
        }
    }

    fn tie_out(&mut self, summary: &Summary) {
        self.section("Tie-out");
        if summary.tied_out {
            let (paint, text) = match (summary.outcome, summary.tie_out_lines) {
                (_, 0) => (Paint::Head, "  no money on either side in this window".to_owned()),
                ("incomplete", lines) => {
                    (Paint::Alarm, format!("  {lines} lines add up, but not everything was seen"))
                }
                (_, lines) => {
                    (Paint::Good, format!("  tied out: {lines} lines, every difference is explained"))
                }
            };
            self.painted(paint, &text);
            return;
        }
        self.painted(Paint::Alarm, "  NOT TIED OUT. Unexplained:");
        let lines = summary.unexplained.iter().map(|row| {
            format!(
                "  {} {}  {}  {}",
                row.unexplained,
                row.currency.to_uppercase(),
                row.effect_kind,
                row.scope
            )
        });
        self.list(&lines.collect::<Vec<_>>(), "tie_out.csv");
    }

    fn next(&mut self, summary: &Summary) {
        self.section("Next");
        if summary.next.is_empty() {
            self.painted(Paint::Good, "  nothing to do");
        }
        if summary.corrections > 0 {
            let money = net_text(&summary.correction_money);
            let moves =
                if money.is_empty() { String::new() } else { format!(", moving {money} in local books") };
            let plan = if summary.corrections == 1 {
                "1 correction"
            } else {
                &format!("{} corrections", summary.corrections)
            };
            self.line(&format!("  the plan has {plan}{moves}"));
        }
        for (index, step) in summary.next.iter().enumerate() {
            self.line(&format!("  {}. {step}", index + 1));
        }
        self.text.push('\n');
        self.line(&format!("Report: {}", summary.report));
    }
}

fn kind_line(kind: &KindSum) -> String {
    let mut money = money_text(&kind.money);
    if !kind.overcharged.is_empty() {
        let paid: Vec<String> = kind
            .overcharged
            .iter()
            .map(|sum| format!("{} {}", sum.plus, sum.currency.to_uppercase()))
            .collect();
        money = format!("customers paid {} too much", paid.join(", ").replace('+', ""));
    }
    format!("  {:<20} {:>7}  {money}", kind.kind, kind.count).trim_end().to_owned()
}

fn money_text(sums: &[MoneySum]) -> String {
    let mut text = String::new();
    for sum in sums {
        let amounts = [(sum.plus_minor, &sum.plus), (sum.minus_minor, &sum.minus)];
        for (_, amount) in amounts.into_iter().filter(|(minor, _)| *minor != 0) {
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing into a String cannot fail.
            write!(text, "{comma}{amount} {}", sum.currency.to_uppercase()).ok();
        }
    }
    text
}

/// What moves, and both directions where both are there: `+25.00 BRL (+75.00, -50.00)`.
fn net_text(sums: &[MoneySum]) -> String {
    let parts = sums.iter().map(|sum| {
        let net = format!("{} {}", sum.net, sum.currency.to_uppercase());
        let is_both = sum.plus_minor != 0 && sum.minus_minor != 0;
        if is_both { format!("{net} ({}, {})", sum.plus, sum.minus) } else { net }
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
