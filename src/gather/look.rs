//! A look at a side before it is relied on: does each statement keep its contract, what do its first rows say, and
//! which tables do its columns come from. A few rows are read, never a table.

use super::catalog::{self, Facts, TableName};
use super::columns::{Columns, Contract, Scopes};
use super::dialect::Dialect;
use super::inbox::{self, Inbox};
use super::local;
use super::origin::{Origin, origins};
use super::source::{Source, window_binds};
use super::statement::Statement;
use super::table::Table;
use crate::config::{Settings, Side};
use crate::record::{Scope, Window};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of a statement that are read.
const ROWS: usize = 20;

/// Which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// recon's own tables.
    Store,
    /// The received events.
    Inbox,
    /// The books.
    Local,
}

/// What became of a statement's first rows.
#[derive(Debug)]
pub enum Rows {
    /// So many were read and keep the contract; none is as good as not known.
    Read(usize),
    /// Why they could not be read, or what is wrong with one.
    Failed(anyhow::Error),
}

/// A statement that was looked at.
#[derive(Debug)]
pub struct Looked {
    /// File in the folder of queries.
    pub file: &'static str,
    /// Where its columns come from and what its rows say, or what is wrong with it.
    pub found: Result<(BTreeMap<String, Origin>, Rows)>,
}

/// A side that is open.
#[derive(Debug)]
pub struct Look<'a> {
    settings: &'a Settings,
    source: Source,
    which: Which,
    dialect: Dialect,
}

impl<'a> Look<'a> {
    /// Opens a side; `None` where the team has none.
    ///
    /// # Errors
    /// [`crate::config::Unusable`] when nobody gets in with the setting; else when it cannot be reached.
    pub async fn open(settings: &'a Settings, which: Which, dialect: Dialect) -> Result<Option<Self>> {
        let (side, setting) = match which {
            Which::Store => (&Side::Store, "[store] url"),
            Which::Inbox => (&settings.inbox, "[inbox] url"),
            Which::Local => (&settings.local.side, "[local] url"),
        };
        let source = Source::open(side, settings, setting).await?;
        Ok(source.map(|source| Self { settings, source, which, dialect }))
    }

    /// Host and database, or the path.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.source.told().place
    }

    /// What holds for the whole database.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn facts(&self) -> Result<Facts> {
        catalog::facts(&self.source).await
    }

    /// The description of a table; `None` where there is none of that name, or none that may be seen.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn table(&self, name: &TableName) -> Result<Option<Table>> {
        catalog::describe(&self.source, name).await
    }

    /// Looks at the side's statements.
    pub async fn statements(&self) -> Vec<Looked> {
        match self.which {
            Which::Store => Vec::new(),
            Which::Local => {
                let effects = ["object_id", "event_id"];
                vec![
                    self.looked("effects.sql", &local::BINDS, &local::EFFECTS, &effects).await,
                    self.looked("states.sql", &local::BINDS, &local::STATES, &effects[..1]).await,
                ]
            }
            Which::Inbox => {
                vec![
                    self.looked("inbox.sql", &inbox::BINDS, &inbox::INBOX, &["event_id"]).await,
                    Looked { file: "inbox_body.sql", found: self.body().await },
                ]
            }
        }
    }

    async fn looked(
        &self,
        file: &'static str,
        binds: &[&'static str],
        contract: &Contract,
        filters: &[&str],
    ) -> Looked {
        Looked { file, found: self.look_at(file, binds, contract, filters).await }
    }

    async fn look_at(
        &self,
        file: &'static str,
        binds: &[&'static str],
        contract: &Contract,
        filters: &[&str],
    ) -> Result<(BTreeMap<String, Origin>, Rows)> {
        let folder = &self.settings.local.queries;
        let (statement, columns) = self.source.statement(folder, file, binds, contract, filters).await?;
        let origins = origins(&self.source, &statement).await?;
        let rows = match self.first_rows(file, &statement, &columns).await {
            Ok((count, _)) => Rows::Read(count),
            Err(error) => Rows::Failed(error),
        };
        Ok((origins, rows))
    }

    /// How many rows were read, and an event of theirs.
    async fn first_rows(
        &self,
        file: &str,
        statement: &Statement,
        columns: &Columns,
    ) -> Result<(usize, Option<(Scope, String)>)> {
        let all_time = self.source.all_time();
        let window = Window { from_us: 0, until_us: 0 };
        let mut reader = self.source.reader().await?;
        let binds = window_binds(statement, all_time, &[]);
        let mut rows = reader.rows(&statement.file, statement.first_rows(ROWS), binds).await?;
        let (mut count, mut event, mut unknown) = (0, None, BTreeSet::new());
        let mut scopes = Scopes::default();
        while let Some(row) = rows.next().await? {
            count += 1;
            let row = columns.row(&row, u64::try_from(count).unwrap_or(0));
            match file {
                "effects.sql" => drop(local::effect(&row, self.dialect, window, &mut scopes)?),
                "states.sql" => {
                    unknown.extend(local::state(&row, &self.settings.local.status_map, &mut scopes)?.err());
                }
                _ => match inbox::event(&row, &mut scopes)? {
                    Ok(found) => event = Some((found.scope, found.event_id)),
                    Err(word) => drop(unknown.insert(word)),
                },
            }
        }
        if file == "states.sql" {
            local::refuse_unmapped(&statement.file, &unknown)?;
        } else {
            inbox::refuse_unknown(&statement.file, &unknown)?;
        }
        drop(rows);
        reader.end().await?;
        Ok((count, event))
    }

    /// `inbox_body.sql`, asked for an event that `inbox.sql` gave.
    async fn body(&self) -> Result<(BTreeMap<String, Origin>, Rows)> {
        let folder = &self.settings.local.queries;
        let (body, _) =
            self.source.statement(folder, "inbox_body.sql", &inbox::BODY_BINDS, &inbox::BODY, &[]).await?;
        drop(body);
        let of_event = self.source.statement(folder, "inbox.sql", &inbox::BINDS, &inbox::INBOX, &[]).await;
        // What is wrong with `inbox.sql` is told there.
        let Ok((statement, columns)) = of_event else { return Ok((BTreeMap::new(), Rows::Read(0))) };
        let Ok((_, Some((scope, event_id)))) = self.first_rows("inbox.sql", &statement, &columns).await
        else {
            return Ok((BTreeMap::new(), Rows::Read(0)));
        };
        let rows = match Inbox::open(self.settings).await? {
            None => Rows::Read(0),
            Some(inbox) => match inbox.body(&scope, &event_id).await {
                Ok(found) => Rows::Read(usize::from(found.is_some())),
                Err(error) => Rows::Failed(error),
            },
        };
        Ok((BTreeMap::new(), rows))
    }
}
