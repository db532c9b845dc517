//! The story of one payment as a list in time: what each side says, and which steps were swapped or doubled.
//!
//! The one thing to get right: marks are about *booking*, so they compare when steps were applied with when they happened
//! at the provider. Nothing here prints a body; what comes from outside cannot steer a terminal.

use super::sums::signed;
use crate::record::{EffectKind, ProviderEffect, format_instant};
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teller {
    /// The provider's records, as kept.
    Provider,
    /// The inbox.
    Inbox,
    /// The local books.
    Effects,
    /// Runs that found it, and lost it.
    Run,
    /// Plans and what became of them.
    Corrections,
    /// Persons.
    Person,
}

impl Teller {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Inbox => "inbox",
            Self::Effects => "effects",
            Self::Run => "run",
            Self::Corrections => "correction",
            Self::Person => "person",
        }
    }
}

/// One step of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, Unix µs.
    pub at_us: i64,
    /// Who says so.
    pub teller: Teller,
    /// What, in one line.
    pub text: String,
    /// What is wrong about it.
    pub marks: Vec<String>,
}

impl Step {
    /// A step without marks.
    #[must_use]
    pub fn new(at_us: i64, teller: Teller, text: impl Into<String>) -> Self {
        Self { at_us, teller, text: text.into(), marks: Vec::new() }
    }
}

/// A row of the local books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    /// Its id.
    pub row: String,
    /// Kind; gives the direction.
    pub kind: EffectKind,
    /// What it is booked on: the anchor, or the payment.
    pub object_id: String,
    /// Magnitude in minor units; negative for the undoing of an earlier row.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// When it was booked, Unix µs.
    pub applied_at_us: i64,
    /// The event that it names, or empty.
    pub event_id: String,
    /// The row that it undoes, or empty.
    pub corrects: String,
    /// Who booked it and why, where that is known.
    pub why: String,
}

/// An event of the inbox that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its id.
    pub event_id: String,
    /// Its type.
    pub event_type: String,
    /// Creation at the provider, Unix µs.
    pub created_us: i64,
    /// When it was applied, Unix µs.
    pub applied_at_us: i64,
}

/// A word for what an effect is to a payment.
#[must_use]
pub const fn deed(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Credit => "paid",
        EffectKind::Refund => "refunded",
        EffectKind::DisputeWithdrawn => "disputed",
        EffectKind::DisputeReinstated => "reinstated",
        EffectKind::Fee => "charged a fee",
        EffectKind::Payout => "paid out",
    }
}

/// Booked rows as steps, with what is doubled or swapped marked. `root_id` is the payment; `duplicates` are the rows that
/// findings name as doubled, the kept one first.
#[must_use]
pub fn booked(
    root_id: &str,
    bookings: &[Booking],
    provider: &[ProviderEffect],
    duplicates: &[Vec<String>],
    exponent: impl Fn(&str) -> u32,
) -> Vec<Step> {
    let mut rows: Vec<&Booking> = bookings.iter().collect();
    rows.sort_by(|one, other| (one.applied_at_us, &one.row).cmp(&(other.applied_at_us, &other.row)));
    let mut marks = doubled(root_id, &rows, provider, duplicates);
    for (row, mark) in swapped(&rows, provider) {
        marks.entry(row).or_default().push(mark);
    }
    let undone: BTreeMap<&str, &str> =
        rows.iter().filter(|row| !row.corrects.is_empty()).map(|row| (&*row.corrects, &*row.row)).collect();
    let steps = rows.iter().enumerate().map(|(at, row)| {
        let amount = signed(row.amount_minor.saturating_mul(row.kind.sign()), exponent(&row.currency));
        let currency = row.currency.to_uppercase();
        let part = |before: &str, text: &str, after: &str| match text {
            "" => String::new(),
            text => format!("{before}{text}{after}"),
        };
        let text = format!(
            "row {}: {} {amount} {currency} on {}{}{}{}",
            row.row,
            row.kind,
            row.object_id,
            part(", undoes row ", &row.corrects, ""),
            part(", for ", &row.event_id, ""),
            part(" (", &row.why, ")")
        );
        let mut marks = marks.remove(&at).unwrap_or_default();
        if let (false, Some(by)) = (marks.is_empty(), undone.get(&*row.row)) {
            marks.push(format!("undone by row {by}"));
        }
        Step { at_us: row.applied_at_us, teller: Teller::Effects, text, marks }
    });
    steps.collect()
}

/// Marks by the place of the row that they stand at.
type Marks = BTreeMap<usize, Vec<String>>;

fn doubled(
    root_id: &str,
    rows: &[&Booking],
    provider: &[ProviderEffect],
    duplicates: &[Vec<String>],
) -> Marks {
    let mut marks = Marks::new();
    let mut mark = |at: usize, first: &str| {
        let text = format!("booked twice: row {first} and row {}", rows[at].row);
        let told: &mut Vec<String> = marks.entry(at).or_default();
        if told.is_empty() {
            told.push(text);
        }
    };
    for named in duplicates {
        let Some((first, excess)) = named.split_first() else { continue };
        for row in excess {
            let last = rows.iter().rposition(|booking| booking.row == *row);
            if let Some(at) = last {
                mark(at, first);
            }
        }
    }
    let mut excess: BTreeMap<(EffectKind, &str), i128> = BTreeMap::new();
    for effect in provider {
        *excess.entry((effect.kind, &effect.currency)).or_default() -= i128::from(effect.amount_minor);
    }
    let is_booking = |row: &Booking| row.corrects.is_empty() && row.amount_minor > 0;
    for row in rows.iter().filter(|row| is_booking(row)) {
        if let Some(sum) = excess.get_mut(&(row.kind, &*row.currency)) {
            *sum += i128::from(row.amount_minor);
        }
    }
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| is_booking(row)) {
        let Some(left) = excess.get_mut(&(row.kind, &*row.currency)) else { continue };
        let is_same = |earlier: &&&Booking| {
            is_booking(earlier)
                && (earlier.kind, earlier.amount_minor, &earlier.currency)
                    == (row.kind, row.amount_minor, &row.currency)
                && (earlier.object_id == row.object_id
                    || [&earlier.object_id, &row.object_id].contains(&&root_id.to_owned()))
        };
        if let Some(earlier) = rows[..at].iter().find(is_same)
            && *left >= i128::from(row.amount_minor)
        {
            *left -= i128::from(row.amount_minor);
            mark(at, &earlier.row);
        }
    }
    marks
}

/// Rows that were booked before what must come first: money that went out before it had come in.
fn swapped(rows: &[&Booking], provider: &[ProviderEffect]) -> Vec<(usize, String)> {
    let before = |kind| match kind {
        EffectKind::Refund | EffectKind::DisputeWithdrawn => Some(EffectKind::Credit),
        EffectKind::DisputeReinstated => Some(EffectKind::DisputeWithdrawn),
        EffectKind::Credit | EffectKind::Fee | EffectKind::Payout => None,
    };
    let mut marks = Vec::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.corrects.is_empty()) {
        let Some(first) = before(row.kind) else { continue };
        let is_first = |other: &&&Booking| other.kind == first && other.corrects.is_empty();
        let (done, due) = (deed(row.kind), deed(first));
        if rows[..at].iter().any(|other| is_first(&other)) {
            continue;
        }
        match rows[at..].iter().find(is_first) {
            Some(later) if later.applied_at_us > row.applied_at_us => {
                marks.push((at, format!("{done} before {due} was applied")));
            }
            None if provider.iter().any(|effect| effect.kind == first) => {
                marks.push((at, format!("{done}, and {due} is not booked")));
            }
            _ => {}
        }
    }
    marks
}

/// For each event that was applied before an older one: the oldest such, by event id.
#[must_use]
pub fn overtaken(events: &[Ended]) -> BTreeMap<String, String> {
    let mut marks = BTreeMap::new();
    for event in events {
        let older = events
            .iter()
            .filter(|other| other.created_us < event.created_us && other.applied_at_us > event.applied_at_us);
        if let Some(older) = older.min_by_key(|other| (other.created_us, &other.event_id)) {
            let text = format!("applied before {} {}, which is older", older.event_type, older.event_id);
            marks.insert(event.event_id.clone(), text);
        }
    }
    marks
}

/// The list, ordered by time; of one instant the provider comes first.
#[must_use]
pub fn render(mut steps: Vec<Step>, zone: Tz) -> String {
    // Of one instant and teller, as they were told.
    steps.sort_by_key(|step| (step.at_us, step.teller));
    steps.dedup();
    let mut text = String::new();
    for step in &steps {
        let at = format_instant(step.at_us, zone);
        let line = format!("{at:<32}  {:<10}  {}", step.teller.as_str(), step.text);
        text.push_str(&printable(&line));
        for mark in &step.marks {
            text.push_str(&printable(&format!("  !! {mark}")));
        }
        text.push('\n');
    }
    text
}

/// A text that can neither steer a terminal nor turn the order of what is read: control characters, line separators and
/// marks of direction are `?`.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_steering(c) { '?' } else { c }).collect()
}

/// Whether a character changes how others are shown: Unicode's controls, line and paragraph separators, and bidirectional
/// formatting (<https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters>).
#[must_use]
pub fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' | '\u{feff}')
}
