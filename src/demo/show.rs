//! What the demonstration prints: planted against found, in aligned columns. Pure.

use super::faults::Planted;
use super::handlers::Books;
use super::verdict::{self, FoundRow, Verdict};
use super::world::World;
use crate::record::{decimal_from_minor, format_instant, iso_exponent};
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// With the margin and the mark a line fits a terminal of eighty columns.
const TITLE_WIDTH: usize = 37;
const KIND_WIDTH: usize = 22;
const COUNT_WIDTH: usize = 8;

/// Colour, on a terminal that wants it.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether to colour.
    pub is_on: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn mark(self, is_right: bool) -> String {
        if is_right { self.with("32", "✓") } else { self.with("31", "✗") }
    }
}

/// What the opening tells of.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The month.
    pub world: &'a World,
    /// Its faults.
    pub planted: &'a [Planted],
    /// What the shop holds.
    pub books: &'a Books,
    /// Where the provider is served.
    pub base_url: &'a str,
}

/// What is there before anything is reconciled.
#[must_use]
pub fn opening(paint: Paint, of: &Opening<'_>) -> String {
    let Opening { world, planted, books, base_url } = *of;
    let instant = |at_us: i64| format_instant(at_us, Tz::UTC);
    let loud = planted.iter().filter(|one| !one.expected.is_empty()).count();
    let quiet = planted.len() - loud;
    let window = format!("{} until {}", instant(world.from_us), instant(world.until_us));
    let planted = format!("{loud} faults, and {quiet} scenes that look wrong and are right");
    let mut rows = vec![("Seed", world.seed.to_string()), ("Window", window)];
    rows.extend(cast(world, books, base_url));
    rows.push(("Planted", planted));
    titled(paint, "recon demo: a month of payments, and what went wrong with it", &rows)
}

/// The provider and the shop, as both stand before anything is reconciled.
fn cast(world: &World, books: &Books, base_url: &str) -> [(&'static str, String); 4] {
    let held = format!(
        "{} events in the inbox, {} ledger entries, {} statuses",
        grouped(books.inbox.len()),
        grouped(books.ledger.len()),
        grouped(books.states.len())
    );
    [
        ("Provider", format!("{base_url}, Stripe-shaped, on this machine only")),
        ("", format!("{} events, {} payments", grouped(world.events.len()), grouped(world.payments.len()))),
        ("Shop", format!("{} deliveries, in any order, some twice", grouped(books.deliveries))),
        ("", held),
    ]
}

fn titled(paint: Paint, title: &str, rows: &[(&str, String)]) -> String {
    let mut lines = vec![String::new(), paint.bold(title), String::new()];
    for (name, value) in rows {
        lines.push(format!("{}{value}", paint.dim(&format!("{name:<10}"))));
    }
    page(&lines)
}

/// A month that waits for the reader: what is there, and what to type in another terminal.
#[must_use]
pub fn practice(paint: Paint, of: &Opening<'_>, folder: &str, commands: &[String]) -> String {
    let Opening { world, planted, books, base_url } = *of;
    let loud = planted.iter().filter(|one| !one.expected.is_empty()).count();
    let mut rows = vec![("Seed", world.seed.to_string())];
    rows.extend(cast(world, books, base_url));
    rows.push(("Planted", format!("{loud} faults; a plan can put all of them right")));
    rows.push(("Folder", format!("{folder} (recon.toml and recon.db; nothing is corrected yet)")));
    let mut lines = vec![String::new(), paint.bold("In another terminal")];
    lines.extend(commands.iter().map(|command| format!("  {command}")));
    lines.push(String::new());
    let steps = [
        "1. The second command looks, and ends with exit 1: there are findings.",
        "2. Its summary says under `Next` what to type. Open plan.csv first, and",
        "   delete one row, as if you did not want it. Then apply the rest.",
        "3. Run it again: only what you deleted is found. (What you booked just now",
        "   lies after the month: it is listed as timing_difference, which is no",
        "   finding.) Apply the new plan too.",
        "4. Run it again: outcome=clean, exit 0.",
        "",
        "What each finding means: docs/findings.md. On call: docs/on-call.md.",
        "",
    ];
    lines.extend(steps.map(str::to_owned));
    lines.push(paint.bold("Ctrl-C here ends the provider; the same command begins anew."));
    titled(paint, "recon demo: a month to practise on", &rows) + &page(&lines)
}

/// Planted against found.
#[must_use]
pub fn comparison(paint: Paint, verdict: &Verdict) -> String {
    let note = "Planted is counted by the storyteller, found is read from findings.csv.";
    let head = columns("What happened", "Finding", "planted", "found");
    let mut lines = vec![String::new(), paint.bold("Planted against found"), paint.dim(note)];
    lines.extend([String::new(), paint.dim(&head), rule(paint)]);
    let (loud, quiet): (Vec<_>, Vec<_>) = verdict.lines.iter().partition(|line| !line.kind.is_empty());
    let (mut expected, mut found) = (0, 0);
    for line in loud {
        expected += line.expected;
        found += line.found;
        let title = verdict::title(line.fault);
        let row = columns(title, line.kind, &line.expected.to_string(), &line.found.to_string());
        lines.push(format!("{row}  {}", paint.mark(line.expected == line.found)));
    }
    lines.push(rule(paint));
    for line in quiet {
        let word = if line.planted == 1 { "scene" } else { "scenes" };
        let scenes = format!("nothing ({} {word})", line.planted);
        lines.push(columns(verdict::title(line.fault), &scenes, "–", "–"));
    }
    lines.push(rule(paint));
    let total = columns("Together", "", &expected.to_string(), &found.to_string());
    lines.push(format!("{}  {}", paint.bold(&total), paint.mark(expected == found)));
    let invented = verdict.invented.len();
    let row = columns("Found and never planted", "", "0", &invented.to_string());
    lines.push(format!("{row}  {}", paint.mark(invented == 0)));
    lines.extend(differences(verdict));
    page(&lines)
}

/// The differences that planted and found sum up to, per currency.
#[must_use]
pub fn money(paint: Paint, planted: &[Planted], found: &[FoundRow]) -> String {
    let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for expected in planted.iter().flat_map(|one| &one.expected) {
        if !expected.currency.is_empty() {
            let sum = sums.entry(&expected.currency).or_default();
            sum.0 = sum.0.saturating_add(expected.difference_minor.unwrap_or(0));
        }
    }
    for row in found.iter().filter(|row| !row.currency.is_empty()) {
        let sum = sums.entry(&row.currency).or_default();
        sum.1 = sum.1.saturating_add(row.difference_minor);
    }
    let head = format!("{:<10}{:>20}{:>20}", "Difference", "planted", "found");
    let mut lines = vec![String::new(), paint.dim(&head)];
    for (currency, (planted, found)) in sums {
        let exponent = iso_exponent(currency);
        let (left, right) = (decimal_from_minor(planted, exponent), decimal_from_minor(found, exponent));
        lines.push(format!("{currency:<10}{left:>20}{right:>20}  {}", paint.mark(planted == found)));
    }
    page(&lines)
}

/// What is left after applying.
#[must_use]
pub fn ending(paint: Paint, verdict: &Verdict, writes: u64) -> String {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in verdict.lines.iter().filter(|line| line.expected > 0) {
        let sum = kinds.entry(line.kind).or_default();
        *sum = (sum.0 + line.expected, sum.1 + line.found);
    }
    let head = columns("What is left", "", "expected", "found");
    let mut lines = vec![String::new(), paint.bold("Applied the plan, and reconciled again")];
    lines.extend([String::new(), paint.dim(&head), rule(paint)]);
    let mut row = |kind: &str, why: &str, (expected, found): (usize, usize)| {
        let row = columns(kind, why, &expected.to_string(), &found.to_string());
        lines.push(format!("{row}  {}", paint.mark(expected == found)));
    };
    for (kind, counts) in kinds {
        let why = if kind == "timing_difference" { "explained by cut-off" } else { "for a person" };
        row(kind, why, counts);
    }
    row("should have cleared, and did not", "", (0, verdict.invented.len()));
    row("write calls to the provider", "", (0, usize::try_from(writes).unwrap_or(usize::MAX)));
    lines.extend(differences(verdict));
    page(&lines)
}

/// What differs, by name: a demonstration that hid it would be worth nothing.
fn differences(verdict: &Verdict) -> Vec<String> {
    const SHOWN: usize = 10;
    let missed = verdict.missed.iter().take(SHOWN);
    let missed = missed.map(|one| format!("  not found as planted: {} {}", one.kind, one.object_id));
    let invented = verdict.invented.iter().take(SHOWN);
    let invented =
        invented.map(|row| format!("  never planted: {} {} {}", row.kind, row.cause, row.object_id));
    missed.chain(invented).collect()
}

fn columns(title: &str, kind: &str, planted: &str, found: &str) -> String {
    format!("{title:<TITLE_WIDTH$}{kind:<KIND_WIDTH$}{planted:>COUNT_WIDTH$}{found:>COUNT_WIDTH$}")
}

fn rule(paint: Paint) -> String {
    paint.dim(&"─".repeat(TITLE_WIDTH + KIND_WIDTH + 2 * COUNT_WIDTH + 3))
}

/// Lines with a margin.
pub(super) fn page(lines: &[String]) -> String {
    let margin = |line: &String| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    lines.iter().map(margin).collect()
}

/// Thousands apart: 1234567 → 1,234,567.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::faults::{Expected, Mix, plant};
    use crate::record::Status;

    #[test]
    fn thousands_stand_apart() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(count), text);
        }
    }

    /// The table as a newcomer sees it when all is well, and when one finding is missing.
    #[test]
    fn what_is_right_is_marked_right_and_what_is_not_is_not() {
        let mut world = World::new(1, 300, 1_789_473_600_000_000);
        let planted = plant(&mut world, 1, &Mix::each(1));
        let mut rows: Vec<FoundRow> = planted.iter().flat_map(|one| &one.expected).map(row_of).collect();
        let plain = Paint { is_on: false };
        let text = |rows: &[FoundRow]| {
            let verdict = verdict::judge(&planted, rows, false);
            comparison(plain, &verdict) + &money(plain, &planted, rows)
        };
        let right = text(&rows);
        assert!(!right.contains('✗') && !right.contains('\u{1b}'), "{right}");
        assert!(right.lines().filter(|line| line.contains('✓')).count() > 35, "{right}");
        assert!(right.lines().all(|line| line.chars().count() <= 80), "{right}");
        let gone = rows.remove(0);
        let wrong = text(&rows);
        assert!(
            wrong.contains(&format!("not found as planted: {} {}", gone.kind, gone.object_id)),
            "{wrong}"
        );
        assert!(wrong.contains('✗'), "{wrong}");
    }

    fn row_of(expected: &Expected) -> FoundRow {
        let word = |status: Option<Status>| status.map_or("", Status::as_str).to_owned();
        FoundRow {
            kind: expected.kind.to_owned(),
            cause: expected.cause.unwrap_or("any").to_owned(),
            object_id: expected.object_id.clone(),
            currency: expected.currency.clone(),
            expected_minor: expected.expected_minor.unwrap_or(0),
            found_minor: expected.found_minor.unwrap_or(0),
            difference_minor: expected.difference_minor.unwrap_or(0),
            expected_state: word(expected.expected_state),
            found_state: word(expected.found_state),
        }
    }
}
