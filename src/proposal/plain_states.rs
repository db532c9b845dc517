//! Statuses of plain books: `states.sql`, and what the team's words mean.

use super::Part;
use super::plain::REFUNDED;
use super::plain_books::Found;
use super::plain_inbox::{account, mode, only_stripe};
use super::schema::{Column, Flavour, Kind, Table};
use super::words;

pub(super) fn states(flavour: Flavour, found: &Found<'_>, part: &mut Part) -> String {
    let table = found.table;
    let name = |column: &Column| flavour.column("p", column);
    let mut quiet = Part::new("", &[]);
    let (status, none) = if let Some(column) = found.status.filter(|_| found.kind.is_none()) {
        map_words(table, column, part);
        (flavour.word("p", column), "")
    } else {
        part.missing.push(format!(
            "{} has no status of a payment: states.sql gives no rows, and statuses are not compared",
            table.shown()
        ));
        ("'paid'".to_owned(), "\n    and 1 = 0")
    };
    let minor = table.first(&REFUNDED).filter(|column| column.kind == Kind::Integer);
    let minor = minor.filter(|_| found.amount.as_name == "amount_minor");
    format!(
        "select
    'stripe' as provider,
    {} as account,
    {} as mode,
    {} as object_id,
    {status} as status,
    {} as refunded_minor,
    {} as updated_at_us
from {} p
where {} is not null
    and {}{}
    and {} is not null{none}",
        account(flavour, table, "p", &mut quiet),
        mode(flavour, table, "p", &mut quiet),
        name(found.object),
        minor.map_or_else(|| "null".to_owned(), &name),
        flavour.instant_us(found.changed_clock.0, &name(found.changed)),
        flavour.table(table),
        name(found.changed),
        flavour.window(found.changed_clock.0, &name(found.changed), "updated_at_us"),
        only_stripe(flavour, table, "p", &mut quiet),
        name(found.object),
    )
}

/// The team's words for statuses; ours need no map.
pub(super) fn map_words(table: &Table, column: &Column, part: &mut Part) {
    let mut unknown = Vec::new();
    for word in table.words(column) {
        match words::status(word) {
            Some((status, _)) if status != word => {
                part.status_map.insert(word.to_owned(), status);
            }
            Some(_) => {}
            None => unknown.push(word),
        }
    }
    if !unknown.is_empty() {
        part.missing.push(format!(
            "no status is known for {} in {}.{}: the run will stop there. Map them in [local.status_map], and add those \
             that mean money to the lists in effects.sql, else their rows are taken for missing",
            unknown.join(", "),
            table.shown(),
            column.name
        ));
    }
}
