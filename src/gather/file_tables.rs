//! Sides from files: before a run, the files of a side become the tables of a database of their own, which the side's
//! statements then read as they read any other. It lies in the system's temporary folder and goes with the run.
//!
//! Every column of a file is a column of text; `file_name` and `line_number` say where a row stands. Reading is strict:
//! the first row that cannot be read ends the run before anything is compared.

use crate::config::{FileTable, Secret, Settings, Side, Unusable};
use crate::files::{
    Delimiter, Encoding, FileSettings, Row, RowFault, Source, expand, header_of, read_in_parallel,
};
use crate::leftover::OwnFolder;
use anyhow::{Context, Result, bail};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Its database lies in a folder that only this user may enter: it holds a copy of the files.
const FOLDER: &str = "recon-files-";
/// Values that one statement may bind (SQLite's default limit, <https://sqlite.org/limits.html>).
const BINDS_MAX: usize = 32_766;
const ROWS_MAX: usize = 500;
/// Batches that wait to be written.
const BATCHES_WAITING: usize = 4;
/// Where a row stands.
const PLACE: [&str; 2] = ["file_name", "line_number"];

/// Rows that are written by one statement: their cells one after the other, file and line behind them.
type Batch = Vec<Option<String>>;

/// A side's database; dropping it removes it.
#[derive(Debug)]
pub struct Loaded {
    folder: OwnFolder,
}

impl Loaded {
    fn path(&self) -> PathBuf {
        self.folder.path().join("files.db")
    }
}

/// Reads the files of all sides and lets the settings name the databases that they became. Keep what is handed out for
/// as long as the sides are read.
///
/// # Errors
/// When a file cannot be read or is not what it should be: named with line and column.
pub async fn prepare(settings: &mut Settings) -> Result<Vec<Loaded>> {
    let mut kept = Vec::new();
    let sides = [
        (&settings.file_tables.local, &mut settings.local.side),
        (&settings.file_tables.inbox, &mut settings.inbox),
    ];
    for (tables, side) in sides.into_iter().filter(|(tables, _)| !tables.is_empty()) {
        let loaded = load(tables).await?;
        *side = Side::Database(Secret::new(format!("sqlite:{}", loaded.path().display())));
        kept.push(loaded);
    }
    Ok(kept)
}

async fn load(tables: &[FileTable]) -> Result<Loaded> {
    let loaded = Loaded { folder: OwnFolder::new(&std::env::temp_dir(), FOLDER)? };
    let path = loaded.path();
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off);
    let opening = || format!("make a database for files at {}", path.display());
    let mut connection = options.connect().await.with_context(opening)?;
    for table in tables {
        load_table(&mut connection, table).await?;
    }
    connection.close().await.with_context(opening)?;
    Ok(loaded)
}

fn settings_of(table: &FileTable) -> Result<FileSettings> {
    let delimiter = table.delimiter.as_deref().and_then(Delimiter::parse);
    let encoding = match &table.encoding {
        None => Encoding::default(),
        Some(label) => Encoding::parse(label).ok_or_else(|| {
            Unusable::new(
                format!("files.{}: no encoding is called {label}", table.name),
                "such as latin1 or utf-16le",
            )
        })?,
    };
    Ok(FileSettings { columns: Vec::new(), delimiter, encoding })
}

async fn load_table(connection: &mut SqliteConnection, table: &FileTable) -> Result<()> {
    let paths = expand(&table.pattern)?;
    let mut settings = settings_of(table)?;
    // The first file's columns; one that lacks any of them is refused by name.
    settings.columns = paths.first().map_or_else(|| Ok(Vec::new()), |path| header_of(path, &settings))?;
    let header = settings.columns.clone();
    let columns: Vec<&str> = header.iter().map(String::as_str).chain(PLACE).collect();
    refuse_alike(&columns, table)?;
    let listed: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    execute(connection, format!("create table {} ({} text)", quoted(&table.name), listed.join(" text, ")))
        .await?;
    let rows_max = (BINDS_MAX / columns.len()).clamp(1, ROWS_MAX);
    let (sender, mut batches) = mpsc::channel::<Batch>(BATCHES_WAITING);
    let (count, per_batch) = (columns.len(), rows_max * columns.len());
    let reading = tokio::task::spawn_blocking(move || read(paths, settings, per_batch, &sender));
    let mut transaction = connection.begin().await.context("write rows of files")?;
    while let Some(batch) = batches.recv().await {
        let row = format!("({})", vec!["?"; count].join(", "));
        let rows = vec![row; batch.len() / count].join(", ");
        let sql = format!("insert into {} values {rows}", quoted(&table.name));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for cell in batch {
            query = query.bind(cell);
        }
        query.execute(&mut *transaction).await.context("write rows of files")?;
    }
    reading.await.context("read files")??;
    transaction.commit().await.context("write rows of files")?;
    for column in &table.index {
        if !columns.contains(&column.as_str()) {
            let message =
                format!("files.{}: index names `{column}`, which the file does not have", table.name);
            bail!(Unusable::new(message, "its columns are those of the header"));
        }
        let name = quoted(&format!("{} by {column}", table.name));
        let sql = format!("create index {name} on {} ({})", quoted(&table.name), quoted(column));
        execute(connection, sql).await?;
    }
    Ok(())
}

async fn execute(connection: &mut SqliteConnection, sql: String) -> Result<()> {
    sqlx::query(AssertSqlSafe(sql)).execute(connection).await.context("make a table for files")?;
    Ok(())
}

/// SQLite's names do not know case.
fn refuse_alike(columns: &[&str], table: &FileTable) -> Result<()> {
    for (place, column) in columns.iter().enumerate() {
        let is_alike = |other: &&str| other.eq_ignore_ascii_case(column);
        if column.is_empty() || columns[..place].iter().any(is_alike) {
            let message =
                format!("{}: the header has no name for a column, or `{column}` twice", table.pattern);
            bail!(Unusable::new(
                message,
                "rename it: file_name and line_number are added to what the file has"
            ));
        }
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// One thread reads in the order of the files and hands on full batches.
fn read(
    paths: Vec<PathBuf>,
    settings: FileSettings,
    per_batch: usize,
    sender: &mpsc::Sender<Batch>,
) -> Result<()> {
    let settings = Arc::new(settings);
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let source = Source::new(paths.into_iter().map(|path| (path, Arc::clone(&settings))).collect());
    let gone = || anyhow::anyhow!("nobody takes the rows any more");
    let take = |batch: &mut Batch, row: Row<'_, '_>| -> Result<(), RowFault> {
        batch.extend(row.fields.iter().map(|field| field.as_deref().map(str::to_owned)));
        batch.push(shown.get(row.file as usize).cloned());
        batch.push(Some(row.line.to_string()));
        if batch.len() >= per_batch {
            sender.blocking_send(std::mem::take(batch)).map_err(|_| gone())?;
        }
        Ok(())
    };
    let rest = read_in_parallel(&source, vec![Batch::new()], take)?;
    for note in source.notes() {
        tracing::warn!("{}: {}", note.path.display(), note.note);
    }
    for batch in rest.into_iter().filter(|batch| !batch.is_empty()) {
        sender.blocking_send(batch).map_err(|_| gone())?;
    }
    Ok(())
}
