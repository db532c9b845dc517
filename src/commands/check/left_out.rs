//! What `effects.sql` leaves out, as `unbooked.sql` gives it: which words its rows have, and whether anything says what
//! each means. Pure.
//!
//! The one thing to get right: a word that nobody explained is failing. Its rows may be money that is found missing, and
//! booked a second time.

use super::lines::{Grade, Line};
use crate::commands::counted;
use crate::config::shown;
use crate::gather::LeftOut;

const CHECK: &str = "left_out";
/// Words that one line lists.
const WORDS_MAX: usize = 20;

/// The lines about the words of the rows that are left out; `None` where the team has no `unbooked.sql`.
#[must_use]
pub fn left_out(words: Option<&[LeftOut]>) -> Vec<Line> {
    let Some(words) = words else { return vec![not_said()] };
    let mut lines = Vec::new();
    let of = |is_it: fn(&&LeftOut) -> bool| words.iter().filter(is_it).collect::<Vec<_>>();
    let unknown = of(|one| one.status.is_none() && !one.word.is_empty() && one.rows > one.rows_without_id);
    if !unknown.is_empty() {
        let says = format!(
            "effects.sql leaves out rows with a status that neither its list nor [local.status_map] names: {}",
            listed(&unknown)
        );
        lines.push(
            Line::new(Grade::Failing, CHECK, says)
                .told(
                    "If money came in with such a status, the payment is found missing although its row is there. Where a \
                     correction then books it, it stands there twice.",
                )
                .hinted(
                    "A word that means money belongs into the lists in effects.sql and unbooked.sql; every word belongs into \
                     [local.status_map], with what it means.",
                ),
        );
    }
    let of_money = of(|one| one.means_money() && one.rows > one.rows_without_id);
    if !of_money.is_empty() {
        let says = format!(
            "effects.sql leaves out rows with a status that [local.status_map] calls paid or what follows it: {}",
            listed(&of_money)
        );
        lines.push(
            Line::new(Grade::Failing, CHECK, says)
                .told(
                    "Each of these payments is found missing although its row is there. The first run that would book one \
                     ends here with exit 78.",
                )
                .hinted(
                    "Add the words to the lists in effects.sql and unbooked.sql, or map them to pending, failed or canceled.",
                ),
        );
    }
    let without_id: u64 = words.iter().filter(|one| is_nameless(one)).map(|one| one.rows_without_id).sum();
    if without_id > 0 {
        let rows = counted(without_id, "row names", "rows name");
        let says = format!("{rows} no object of the provider, and effects.sql leaves them out");
        lines.push(
            Line::new(Grade::Warning, CHECK, says)
                .told(
                    "Where such a row is a payment by the provider, nobody sees that it is booked: the payment is found \
                     missing. A correction then books it a second time.",
                )
                .hinted("Fill the id in; where they are payments by other means, all is well."),
        );
    }
    let without_word: u64 = words
        .iter()
        .filter(|one| one.word.is_empty())
        .map(|one| one.rows.saturating_sub(one.rows_without_id))
        .sum();
    if without_word > 0 {
        let rows = counted(without_word, "row has", "rows have");
        let says = format!("{rows} no status, and effects.sql leaves them out");
        lines.push(
            Line::new(Grade::Warning, CHECK, says)
                .hinted("Give them one, or say in effects.sql what they are."),
        );
    }
    if lines.is_empty() {
        let known = of(|one| !one.word.is_empty());
        let says = if known.is_empty() {
            "unbooked.sql: effects.sql leaves no row out".to_owned()
        } else {
            format!("unbooked.sql: what effects.sql leaves out moved no money: {}", listed(&known))
        };
        lines.push(Line::new(Grade::Ok, CHECK, says));
    }
    lines
}

/// Paid, as far as anything says, and without an id.
fn is_nameless(one: &LeftOut) -> bool {
    one.word.is_empty() || one.means_money()
}

fn listed(words: &[&LeftOut]) -> String {
    let some = words
        .iter()
        .take(WORDS_MAX)
        .map(|one| format!("{} ({})", shown(&one.word), counted(one.rows, "row", "rows")));
    let more = words.len().saturating_sub(WORDS_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    some.collect::<Vec<_>>().join(", ") + &more
}

fn not_said() -> Line {
    Line::new(
        Grade::NotChecked,
        CHECK,
        "there is no unbooked.sql, so that nobody knows which rows effects.sql leaves out",
    )
    .told(
        "A payment whose row stands there as pending is found missing, like one that has no row. A correction by a statement \
         that inserts then books it beside that row.",
    )
    .hinted(
        "Write queries/local/unbooked.sql (docs/targets.md, \"A row that is there with another status\"); `recon init --from` \
         proposes one.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;

    fn one(word: &str, rows: u64, rows_without_id: u64, status: Option<Status>) -> LeftOut {
        LeftOut { word: word.to_owned(), rows, rows_without_id, status }
    }

    fn said(words: &[LeftOut]) -> Vec<(Grade, String)> {
        left_out(Some(words)).into_iter().map(|line| (line.status, line.says)).collect()
    }

    #[test]
    fn words_that_move_no_money_are_well() {
        let found =
            said(&[one("failed", 1, 0, Some(Status::Failed)), one("open", 2, 2, Some(Status::Pending))]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, Grade::Ok);
        assert!(found[0].1.ends_with("moved no money: `failed` (1 row), `open` (2 rows)"), "{}", found[0].1);
        assert_eq!(said(&[])[0].0, Grade::Ok);
        assert_eq!(left_out(None)[0].status, Grade::NotChecked);
    }

    #[test]
    fn words_of_nobody_and_words_of_money_fail() {
        let found = said(&[one("on_hold", 3, 0, None), one("done", 1, 0, Some(Status::Paid))]);
        assert_eq!(
            found.iter().map(|(grade, _)| *grade).collect::<Vec<_>>(),
            [Grade::Failing, Grade::Failing]
        );
        assert!(
            found[0].1.contains("`on_hold` (3 rows)") && found[1].1.contains("`done` (1 row)"),
            "{found:?}"
        );
    }

    #[test]
    fn rows_without_an_id_or_a_status_are_told() {
        let found = said(&[one("done", 2, 2, Some(Status::Paid)), one("", 5, 1, None), one("x", 1, 1, None)]);
        assert_eq!(
            found.iter().map(|(grade, _)| *grade).collect::<Vec<_>>(),
            [Grade::Warning, Grade::Warning]
        );
        assert!(found[0].1.starts_with("3 rows name no object"), "{found:?}");
        assert!(found[1].1.starts_with("4 rows have no status"), "{found:?}");
    }
}
