//! Where a side is read: a read-only database, the team's statement files, and rows in batches.

use super::columns::{Columns, Contract};
use super::connect::{Purpose, open_mysql, open_postgres, open_sqlite};
use super::reader::{Bind, Pool, Reader};
use super::statement::{Statement, Syntax};
use super::trouble::Told;
use crate::config::{Secret, Settings, Side, Unusable};
use crate::proposal::Flavour;
use crate::record::{Fact, SECOND_US, Window};
use crate::store::{Database, shown_url};
use anyhow::Result;
use std::io::ErrorKind;
use std::path::Path;

/// Takes facts as they are read; an error of its stops the reading.
pub type FactSink<'a> = &'a mut (dyn FnMut(Fact) -> Result<()> + Send);

/// The statements that read recon's own tables: what `recon init` writes, and what stands in for a file
/// that is not there while a side is `store`.
pub const DEFAULT_QUERIES: [(&str, &str); 4] = [
    ("effects.sql", include_str!("../../queries/local/effects.sql")),
    ("states.sql", include_str!("../../queries/local/states.sql")),
    ("inbox.sql", include_str!("../../queries/local/inbox.sql")),
    ("inbox_body.sql", include_str!("../../queries/local/inbox_body.sql")),
];

/// Rows whose ids are resolved together.
pub(super) const BATCH_ROWS: usize = 5_000;
/// Ids in one filter. Where the team has no index for it, each filter reads the whole table.
pub(super) const FILTER_IDS: usize = 2_000;

/// All time, as a window that date functions of databases can still compute with (year 9999).
const ALL_TIME: Window = Window { from_us: 0, until_us: 253_402_300_799 * SECOND_US };
/// The same for MySQL and MariaDB, where `from_unixtime` gives null from 2038 on, later in newer releases
/// (<https://mariadb.com/kb/en/from_unixtime/>): a comparison with null finds nothing.
const ALL_TIME_MYSQL: Window = Window { from_us: 0, until_us: 2_147_483_647 * SECOND_US };

/// An open side.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pool: Pool,
    url: Secret,
    told: Told,
    is_store: bool,
}

impl Source {
    /// Opens a side for reading; `None` where the team has none. `setting` is what names it.
    pub async fn open(side: &Side, settings: &Settings, setting: &'static str) -> Result<Option<Self>> {
        let url = match side {
            Side::Absent => return Ok(None),
            Side::Store => &*settings.store_url,
            Side::Database(url) => url.reveal(),
        };
        let source = Self::open_url(url, settings, setting, Purpose::Read).await?;
        Ok(Some(Self { is_store: *side == Side::Store, ..source }))
    }

    /// Opens a database that is no store.
    pub async fn open_url(
        url: &str,
        settings: &Settings,
        setting: &'static str,
        purpose: Purpose,
    ) -> Result<Self> {
        let timeout = settings.limits.statement_timeout;
        let told = Told { setting, place: shown_url(url), timeout };
        let pool = match (Database::of_url(url), url.starts_with("mysql:")) {
            (Some(Database::Sqlite), _) => open_sqlite(&told.place, &told, purpose).await?,
            (Some(Database::Postgres), _) => open_postgres(url, &told).await?,
            (None, true) => open_mysql(url, &told, purpose).await?,
            (None, false) => {
                return Err(Unusable::new(
                    format!("{setting} is no sqlite:, postgres:, mysql: or mariadb: URL"),
                    "write it as sqlite:books.db or mysql://host/database, or \"store\" for recon's own tables",
                )
                .into());
            }
        };
        let url = Secret::new(url.to_owned());
        Ok(Self { pool, url, told, is_store: false })
    }

    /// Whether both are read in one database.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.url == other.url
    }

    /// Reads `file` of the folder and checks it against the database: the statement works, as it stands and with
    /// only rows whose column is one of some texts, for each of `filters`; and it gives the columns of the contract.
    pub async fn statement(
        &self,
        folder: &Path,
        file: &str,
        binds: &[&'static str],
        contract: &Contract,
        filters: &[&str],
    ) -> Result<(Statement, Columns)> {
        let path = folder.join(file);
        let (label, text) = match std::fs::read_to_string(&path) {
            Ok(text) => (path.display().to_string(), text),
            Err(error) if error.kind() == ErrorKind::NotFound && self.is_store => {
                let text = DEFAULT_QUERIES.iter().find(|(name, _)| *name == file).map(|(_, text)| *text);
                (file.to_owned(), text.unwrap_or_default().to_owned())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Unusable::new(
                    format!("{} is missing", path.display()),
                    "`recon init` writes one to begin with; rewrite it for your tables",
                )
                .into());
            }
            Err(error) => {
                return Err(Unusable::new(format!("cannot read {}: {error}", path.display()), "").into());
            }
        };
        let statement = Statement::parse(&label, &text, self.syntax(), binds)?;
        let names = self.pool.columns(&label, statement.sql(), &statement.binds, &self.told).await?;
        let columns = Columns::find(&label, contract, &names)?;
        for column in filters {
            let binds: Vec<&str> = statement.binds.iter().copied().chain(["id"]).collect();
            let told = format!("{label}: asked for one {column}, which must be a text");
            self.pool.columns(&told, &statement.filtered(column, 1), &binds, &self.told).await?;
        }
        Ok((statement, columns))
    }

    /// How its SQL is written.
    pub const fn flavour(&self) -> Flavour {
        match self.pool {
            Pool::Sqlite { .. } => Flavour::Sqlite,
            Pool::Postgres { .. } => Flavour::Postgres,
            Pool::MySql(_) => Flavour::MySql,
        }
    }

    /// Its connections.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Where it is and what errors say of it.
    pub const fn told(&self) -> &Told {
        &self.told
    }

    /// How its statements are written.
    pub const fn syntax(&self) -> Syntax {
        match self.pool {
            Pool::MySql(_) => Syntax::MySql,
            Pool::Sqlite { .. } | Pool::Postgres { .. } => Syntax::Numbered,
        }
    }

    /// Reads at one moment, which begins now.
    pub async fn reader(&self) -> Result<Reader> {
        self.pool.reader(&self.told).await
    }

    /// Begins to write: one transaction, which ends without a trace unless it is committed.
    pub async fn writer(&self) -> Result<Reader> {
        self.pool.writer(&self.told).await
    }

    /// Checks that the database takes a statement that writes, without running it.
    pub async fn check_write(&self, label: &str, sql: &str, binds: &[&str]) -> Result<()> {
        self.pool.check_write(label, sql, binds, &self.told).await
    }

    /// Which of the three it is, by the name of its files.
    pub const fn name(&self) -> &'static str {
        match self.pool {
            Pool::Sqlite { .. } => "sqlite",
            Pool::Postgres { .. } => "postgres",
            Pool::MySql(_) => "mysql",
        }
    }

    /// All time, as far as dates of this database go.
    pub const fn all_time(&self) -> Window {
        match self.pool {
            Pool::MySql(_) => ALL_TIME_MYSQL,
            Pool::Sqlite { .. } | Pool::Postgres { .. } => ALL_TIME,
        }
    }

    /// Whether this database can hold such a text: none of PostgreSQL's has a NUL, and binding one there is
    /// an error.
    pub fn can_hold(&self, text: &str) -> bool {
        !matches!(self.pool, Pool::Postgres { .. }) || !text.contains('\0')
    }
}

/// The window where the statement wants it, then ids.
pub(super) fn window_binds(statement: &Statement, window: Window, ids: &[&str]) -> Vec<Bind> {
    let instant = |bind: &&str| if *bind == "from_us" { window.from_us } else { window.until_us };
    let instants = statement.binds.iter().map(instant).map(Bind::Integer);
    instants.chain(ids.iter().map(|id| Bind::Text((*id).to_owned()))).collect()
}
