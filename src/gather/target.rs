//! A team's database as corrections write it: the key, the team's statement and what the team's own statements show
//! before and after, in one transaction.
//!
//! The one thing to get right: a transaction that is not committed leaves nothing behind, so whoever sees something that
//! was not reviewed lets it go.

use super::connect::Purpose;
use super::dialect::Dialect;
use super::inbox::Inbox;
use super::local::LocalBooks;
use super::reader::Reader;
use super::source::Source;
use super::target_keys::{self, Key, KeyAnswer};
use super::target_statement::{Doing, TargetStatement, TargetValues};
use super::trouble::{Trouble, is_in_the_way, said_against};
use super::unbooked::Unbooked;
use crate::config::{Settings, Side, Unusable};
use crate::record::{Fact, LocalEffect, LocalState, Scope, Window};
use crate::store::Store;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

const SETTING: &str = "[target] url";
const ALWAYS: Window = Window { from_us: i64::MIN, until_us: i64::MAX };

/// What the team's statements show of one payment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Team {
    /// Its rows, by id.
    pub effects: Vec<LocalEffect>,
    /// Its statuses.
    pub states: Vec<LocalState>,
    /// Its rows that are there and not booked.
    pub unbooked: Vec<Unbooked>,
}

impl Team {
    /// Takes a fact of the local side.
    ///
    /// # Errors
    /// Never; the shape of a sink.
    pub fn keep(&mut self, fact: Fact) -> Result<()> {
        match fact {
            Fact::LocalEffect(row) if !self.effects.contains(&row) => self.effects.push(row),
            Fact::LocalState(state) if !self.states.contains(&state) => self.states.push(state),
            _ => {}
        }
        Ok(())
    }
}

/// What became of a statement of the team's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It touched as many rows as it is to.
    Done,
    /// It did not, or the database refused it; one line.
    Refused(String),
    /// It touched nothing, and is to touch something; one line.
    Untouched(String),
    /// Others were in the way.
    Again,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// All of it is kept.
    Done,
    /// Others were in the way; nothing of it is kept.
    Again,
}

/// The team's database, open for writing and checked.
#[derive(Debug)]
pub struct TargetBooks {
    source: Source,
    books: LocalBooks,
    /// None where the inbox is elsewhere.
    inbox: Option<Inbox>,
    statements: BTreeMap<Doing, TargetStatement>,
}

impl TargetBooks {
    /// Opens it and checks the key table, the team's statements that read it, and those that write it. A file that is
    /// not in `needed` may be missing.
    ///
    /// # Errors
    /// [`Unusable`] when a statement or the key table cannot be used; else when the database cannot be reached.
    pub async fn open(
        settings: &Settings,
        store: &Store,
        dialect: Dialect,
        needed: &BTreeSet<Doing>,
    ) -> Result<Self> {
        let target = settings.targets.sql.as_ref().context("there is no [target]")?;
        let url = target.url.reveal();
        let source = Source::open_url(url, settings, SETTING, Purpose::Write).await?;
        target_keys::check(&source).await?;
        let books = LocalBooks::over(source.clone(), settings, store, dialect, ALWAYS).await?;
        let is_shared = settings.inbox != Side::Store && settings.inbox == settings.local.side;
        let inbox = if is_shared { Some(Inbox::over(source.clone(), settings).await?) } else { None };
        let mut statements = BTreeMap::new();
        for doing in Doing::ALL {
            let path = target.queries.join(doing.file());
            let label = path.display().to_string();
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == ErrorKind::NotFound && !needed.contains(&doing) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(Unusable::new(
                        format!("{label} is missing, and the plan needs it"),
                        "write the statement for your tables; docs/targets.md has an example of each",
                    )
                    .into());
                }
                Err(error) => return Err(Unusable::new(format!("cannot read {label}: {error}"), "").into()),
            };
            let parsed = TargetStatement::parse(&label, &text, source.syntax())?;
            source.check_write(&label, parsed.statement.sql(), &parsed.statement.binds).await?;
            statements.insert(doing, parsed);
        }
        Ok(Self { source, books, inbox, statements })
    }

    /// Whether the team wrote a statement for it.
    #[must_use]
    pub fn can(&self, doing: Doing) -> bool {
        self.statements.contains_key(&doing)
    }

    /// Whether a statement of the team's names this value.
    #[must_use]
    pub fn wants(&self, doing: Doing, bind: &str) -> bool {
        self.statements.get(&doing).is_some_and(|known| known.statement.binds.contains(&bind))
    }

    /// Statuses of rows that `apply_effect.sql` says it makes the booked effect of.
    pub fn taken_over(&self) -> impl Iterator<Item = &str> {
        let known = self.statements.get(&Doing::ApplyEffect);
        known.into_iter().flat_map(|known| known.takes_over.iter().map(String::as_str))
    }

    /// Whether the received events are in this database as well.
    #[must_use]
    pub const fn has_inbox(&self) -> bool {
        self.inbox.is_some()
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn begin(&self) -> Result<TargetWriter<'_>> {
        Ok(TargetWriter { target: self, writer: self.source.writer().await? })
    }
}

/// One transaction. Dropped, it leaves nothing behind.
pub struct TargetWriter<'a> {
    target: &'a TargetBooks,
    writer: Reader,
}

impl TargetWriter<'_> {
    /// Takes a key, first of all: whoever comes second waits here.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn take(&mut self, key: &Key<'_>) -> Result<KeyAnswer> {
        target_keys::take(&self.target.source, &mut self.writer, key).await
    }

    /// What the team's statements show of a payment at this point of the transaction.
    ///
    /// # Errors
    /// [`Unusable`] when a row does not keep the contract; else when reading fails.
    pub async fn payment(&mut self, scope: &Scope, ids: &BTreeSet<String>) -> Result<Team> {
        let mut team = Team::default();
        let books = &self.target.books;
        books.effects_of(&mut self.writer, scope, ids, &mut |fact| team.keep(fact)).await?;
        books.states_of(&mut self.writer, scope, ids, &mut |fact| team.keep(fact)).await?;
        team.unbooked = books.unbooked_of(&mut self.writer, scope, ids).await?;
        Ok(team)
    }

    /// The events among these that the team's inbox has; `None` where the inbox is elsewhere.
    ///
    /// # Errors
    /// As [`Self::payment`].
    pub async fn received(
        &mut self,
        scope: &Scope,
        ids: &BTreeSet<String>,
    ) -> Result<Option<BTreeSet<String>>> {
        let Some(inbox) = &self.target.inbox else { return Ok(None) };
        let mut found = BTreeSet::new();
        let mut keep = |fact: Fact| {
            if let Fact::InboxEvent(event) = fact {
                found.insert(event.event_id);
            }
            Ok(())
        };
        inbox.events_of(&mut self.writer, scope, ids, &mut keep).await?;
        Ok(Some(found))
    }

    /// Runs a statement of the team's.
    ///
    /// # Errors
    /// When the database cannot be written, or the team wrote no such statement.
    pub async fn run(&mut self, doing: Doing, values: &TargetValues) -> Result<Ran> {
        let known = self.target.statements.get(&doing);
        let known = known.with_context(|| format!("there is no {}", doing.file()))?;
        let file = &known.statement.file;
        let binds = match values.of(&known.statement.binds) {
            Ok(binds) => binds,
            Err(name) => return Ok(Ran::Refused(format!("{file}: there is no :{name} for this correction"))),
        };
        Ok(match self.writer.execute(known.statement.sql(), binds).await {
            Ok(rows) if known.rows.contains(&rows) => Ran::Done,
            Ok(0) => Ran::Untouched(format!("{file}: touched no row instead of {}", known.rows_text())),
            Ok(rows) => Ran::Refused(format!("{file}: touched {rows} rows instead of {}", known.rows_text())),
            Err(error) if is_in_the_way(&error) => Ran::Again,
            Err(error) => match said_against(&error, known.is_quiet()) {
                Some(why) => Ran::Refused(format!("{file}: {why}")),
                None => return Err(self.target.source.told().stopped(file, &error)),
            },
        })
    }

    /// Keeps all of it.
    ///
    /// # Errors
    /// When the database does not say that it is kept: then nobody knows, and the key will tell.
    pub async fn commit(self) -> Result<Committed> {
        match self.writer.commit().await {
            Ok(()) => Ok(Committed::Done),
            Err(error) if is_in_the_way(&error) => Ok(Committed::Again),
            Err(error) => Err(Trouble::new(
                format!("{SETTING}: {} did not confirm a commit: {error}", self.target.source.told().place),
                "apply the same plan again: the table recon_applied knows what was done, and nothing is done twice",
            )
            .into()),
        }
    }

    /// Keeps nothing of it.
    ///
    /// # Errors
    /// When the database does not answer; nothing is kept then, either.
    pub async fn let_go(self) -> Result<()> {
        self.writer.end().await
    }
}
