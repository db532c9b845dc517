//! What would go wrong with each fault, as it goes for people, in two sentences. Pure.

use super::faults::Fault;
use super::keys::{Key, Of};
use crate::gather::table::{Dbms, Table};

/// What there is, and what would go wrong with it.
pub struct Told {
    /// The word of the line.
    pub check: &'static str,
    /// What there is.
    pub says: String,
    /// What would go wrong.
    pub story: String,
}

fn told(check: &'static str, says: String, story: impl Into<String>) -> Told {
    Told { check, says, story: story.into() }
}

/// Tells a fault of an index by its name; empty where there is none.
#[must_use]
pub fn tell(table: &Table, key: &Key, index: &str, fault: &Fault) -> Told {
    let key_names = key.names().join(", ");
    match fault {
        Fault::NoKey => {
            told("no_key", format!("{table}: nothing makes ({key_names}) unique"), no_key(key.of))
        }
        Fault::OtherKey(name, columns) => told(
            key.of.setting(),
            format!("{table}: nothing makes ({key_names}) unique, and ({}) is by {name}", columns.join(", ")),
            "",
        ),
        Fault::Condition(condition) => told(
            "key_condition",
            format!("{table}: the unique index {index} covers only the rows where {condition}"),
            partial(table.dbms, key),
        ),
        Fault::Invalid => told(
            "key_invalid",
            format!("{table}: the unique index {index} is not valid"),
            "A `create unique index concurrently` failed and left it behind, and since then it keeps nothing out: the \
             same id goes in twice and is booked twice. An insert with `on conflict` finds no index that it may use and \
             is refused.",
        ),
        Fault::Deferrable => told(
            "key_deferrable",
            format!("{table}: the unique constraint {index} is deferrable"),
            "An insert with `on conflict` may not use it, and the database refuses every one of them. Where it is \
             deferred, two bookings of one event both go through, and the commit that notices undoes all the others of \
             its transaction, too.",
        ),
        Fault::Expression => told(
            "key_expression",
            format!("{table}: the unique index {index} is made of an expression"),
            "An insert with `on conflict` on the columns does not fit it and is refused. What the expression makes alike \
             is kept out as if it were the same, and that payment is never booked.",
        ),
        Fault::TooWide(columns) => too_wide(table, key, index, columns),
        Fault::PerhapsTooWide(columns) => told(
            "key_too_wide",
            format!(
                "{table}: the unique index {index} has the column {} besides, and {} does not show whether it tells \
                 whose row it is",
                columns.join(", "),
                key.of.file()
            ),
            "",
        ),
        Fault::Nullable(column) => told(
            "key_nullable",
            format!("{table}: the key's column {column} may be null"),
            format!(
                "Two nulls are never the same, so that a row without {column} goes in as often as it is delivered. Each \
                 of them is booked, and the unique index says nothing."
            ),
        ),
        Fault::Prefix(column, length) => told(
            "key_prefix",
            format!("{table}: the unique index {index} compares only {length} characters of {column}"),
            "Two ids that begin alike are one for it: the second is taken for a repetition, answered 200 and dropped. \
             Nobody hears of that payment until somebody misses the money.",
        ),
        Fault::Folds(column, by) => told(
            "key_folds_case",
            format!("{table}: {column} is compared without regard to case ({by})"),
            "evt_1AbC and evt_1aBc are two ids, and here they are one: the second is taken for a repetition, answered \
             200 and dropped. Nobody hears of that payment until somebody misses the money.",
        ),
        Fault::IgnoresBlanks(column, by) => told(
            "key_ignores_blanks",
            format!("{table}: {column} is compared without the blanks at its end ({by})"),
            "evt_1 and the same with a blank behind it are one id here. No provider is known to make such a pair; a \
             file that was padded on its way does.",
        ),
    }
}

const fn no_key(of: Of) -> &'static str {
    match of {
        Of::Event => {
            "The provider delivers evt_1 twice within a second: both handlers look, find nothing, and both insert and \
             book. A replay does so once more, and nothing in the database minds."
        }
        Of::Effect => {
            "One payment is told by two events, charge.succeeded and checkout.session.completed, with ids of their own, \
             and each handler books it. The customer has the credit twice, and a correction that is carried out twice \
             books it again."
        }
    }
}

fn partial(dbms: Dbms, key: &Key) -> String {
    let id = key.ids().last().unwrap_or_default();
    let refused = if dbms == Dbms::Postgres {
        "there is no unique constraint that fits"
    } else {
        "the clause matches no unique constraint"
    };
    format!(
        "A handler that inserts with `on conflict ({id}) do nothing` names no condition, so the database refuses every \
         insert ({refused}): not one event is stored. A handler without it inserts what lies outside of the condition \
         as often as it comes, and each is booked."
    )
}

fn too_wide(table: &Table, key: &Key, index: &str, columns: &[String]) -> Told {
    let list = columns.join(", ");
    let says = format!("{table}: the unique index {index} has {list} besides ({})", key.names().join(", "));
    let id = match key.of {
        Of::Event => "evt_1",
        Of::Effect => "the same payment",
    };
    told(
        "key_too_wide",
        says,
        format!(
            "The retry of {id} comes with another {list}, so for the index it is another row, and it goes in. It is \
             booked a second time, although there is a unique index."
        ),
    )
}
