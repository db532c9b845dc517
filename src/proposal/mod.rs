//! From the tables that a database has to the statements that read them: which stack is this, what of it is an inbox and
//! what are books, and what can therefore be checked. Pure.
//!
//! The one thing to get right: nothing is guessed in silence. What a statement takes for granted stands in its opening
//! comment and is printed, and so does what was looked for and is not there.

mod cashier;
mod djstripe;
mod pay;
mod plain;
mod plain_books;
mod plain_inbox;
mod plain_states;
mod plain_unbooked;
mod schema;
mod sql;
mod sync_engine;
mod text;
mod words;
#[cfg(test)]
mod tests;

pub use schema::{Column, Flavour, Kind, Schema, Table};
pub use text::{Place, configuration};

use std::collections::BTreeMap;

/// Which side a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The received events.
    Inbox,
    /// What was booked.
    Books,
}

/// What was recognised of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it was recognised as, such as "dj-stripe".
    pub stack: &'static str,
    /// The tables that it reads.
    pub tables: Vec<String>,
    /// Files of `queries/local/` and their statements, without the opening comment.
    pub statements: Vec<(&'static str, String)>,
    /// What the statements take for granted.
    pub assumed: Vec<String>,
    /// What was looked for and is not there, and what follows.
    pub missing: Vec<String>,
    /// Kinds of effect that the books hold.
    pub effects: Vec<&'static str>,
    /// Words of the team's = ours.
    pub status_map: BTreeMap<String, &'static str>,
}

impl Part {
    fn new(stack: &'static str, tables: &[&Table]) -> Self {
        Self {
            stack,
            tables: tables.iter().map(|table| table.shown()).collect(),
            statements: Vec::new(),
            assumed: Vec::new(),
            missing: Vec::new(),
            effects: Vec::new(),
            status_map: BTreeMap::new(),
        }
    }
}

/// What is proposed for a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The received events, where they are kept.
    pub inbox: Option<Part>,
    /// What was booked, where it is kept.
    pub books: Option<Part>,
    /// What is known of the stack as a whole, such as that it keeps no events.
    pub notes: Vec<String>,
    /// Tables that look near and are not read: name, and why not.
    pub near: Vec<(String, String)>,
}

impl Proposal {
    /// Whether there is anything to compare.
    #[must_use]
    pub const fn is_useful(&self) -> bool {
        self.inbox.is_some() || self.books.is_some()
    }

    /// The statements with their opening comments, by file.
    #[must_use]
    pub fn files(&self) -> Vec<(&'static str, String)> {
        [&self.books, &self.inbox].into_iter().flatten().flat_map(text::files).collect()
    }

    /// What can be checked and what cannot, a line each.
    #[must_use]
    pub fn reach(&self) -> Vec<String> {
        text::reach(self)
    }
}

/// What these tables are.
#[must_use]
pub fn recognise(schema: &Schema) -> Proposal {
    let inbox = djstripe::inbox(schema)
        .or_else(|| plain_inbox::webhook_calls(schema))
        .or_else(|| plain_inbox::inbox(schema));
    let books = pay::books(schema)
        .or_else(|| djstripe::books(schema))
        .or_else(|| sync_engine::books(schema))
        .or_else(|| plain_books::books(schema));
    let notes = [
        pay::note(schema),
        cashier::note(schema),
        sync_engine::note(schema),
        unknown_version("the pay gem", schema.table("pay_charges"), &pay::CHARGES),
        unknown_version("dj-stripe", schema.table("djstripe_charge"), &djstripe::CHARGES),
        unknown_version("stripe-sync-engine", schema.table_in("stripe", "charges"), &sync_engine::CHARGES),
    ];
    let read: Vec<&String> = [&inbox, &books].into_iter().flatten().flat_map(|part| &part.tables).collect();
    let near = plain::near(schema).into_iter().filter(|(name, _)| !read.contains(&name)).collect();
    Proposal { inbox, books, notes: notes.into_iter().flatten().collect(), near }
}

/// A stack is there, in a version whose tables are not known.
fn unknown_version(stack: &str, table: Option<&Table>, columns: &[&str]) -> Option<String> {
    let table = table?;
    let lacking = table.lacking(columns);
    (!lacking.is_empty()).then(|| {
        format!(
            "{} is that of {stack}, in a version that is not known here: it has no {}. So it is not read; write the \
             statements by hand",
            table.shown(),
            lacking.join(", ")
        )
    })
}
