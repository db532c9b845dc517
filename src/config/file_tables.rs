//! `[local.files]` and `[inbox.files]`: files that stand for the tables of a side. Each is a table with the name that
//! the statements use; the statements are the map of columns.

use super::Side;
use super::document::Section;
use super::unusable::Unusable;
use super::values::beside;
use std::path::Path;

/// What a side's URL is until its files are read into tables.
pub(super) const URL: &str = "files:";
const DELIMITERS: [&str; 4] = ["comma", "semicolon", "tab", "pipe"];

/// A table whose rows stand in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTable {
    /// Its name in statements.
    pub name: String,
    /// Path or glob.
    pub pattern: String,
    /// `comma`, `semicolon`, `tab` or `pipe`; `None`: what the header shows.
    pub delimiter: Option<String>,
    /// Label of an encoding; `None`: UTF-8.
    pub encoding: Option<String>,
    /// Columns that are looked up, each on its own.
    pub index: Vec<String>,
}

/// The tables of both sides that are read from files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTables {
    /// `[local.files]`.
    pub local: Vec<FileTable>,
    /// `[inbox.files]`.
    pub inbox: Vec<FileTable>,
}

/// The `files` of a side's section; none unless its URL is `"files"`, then at least one.
pub(super) fn read(section: &Section<'_>, side: &Side, folder: &Path) -> Result<Vec<FileTable>, Unusable> {
    let files = section.open_section("files")?;
    let mut tables = Vec::new();
    for (name, value) in files.entries() {
        if !is_name(name) {
            return Err(files.bad(name, "is no name of a table: small letters, digits and _", ""));
        }
        let beside = |pattern: &str| beside(folder, pattern).to_string_lossy().into_owned();
        if let Some(pattern) = value.get_ref().as_str() {
            let (pattern, name) = (beside(pattern), name.to_owned());
            tables.push(FileTable { name, pattern, delimiter: None, encoding: None, index: Vec::new() });
            continue;
        }
        let table = files.section(name, &["path", "delimiter", "encoding", "index"])?;
        let Some(pattern) = table.text("path")? else {
            return Err(table.bad("path", "is missing", "name the file, or a glob such as exports/*.csv"));
        };
        let delimiter = table.text("delimiter")?;
        if delimiter.is_some_and(|word| !DELIMITERS.contains(&word)) {
            let known = format!("must be one of {}", DELIMITERS.join(", "));
            return Err(table.bad("delimiter", &known, ""));
        }
        tables.push(FileTable {
            name: name.to_owned(),
            pattern: beside(pattern),
            delimiter: delimiter.map(str::to_owned),
            encoding: table.text("encoding")?.map(str::to_owned),
            index: table.texts("index")?.unwrap_or_default().into_iter().map(str::to_owned).collect(),
        });
    }
    let is_files = matches!(side, Side::Database(url) if url.reveal() == URL);
    match (is_files, tables.is_empty()) {
        (true, true) => Err(section.bad(
            "url",
            "is \"files\", and no file is named",
            "name each as a table, such as payments = \"exports/*.csv\" below a line [local.files]",
        )),
        (false, false) => Err(section.bad("files", "needs url = \"files\"", "")),
        _ => Ok(tables),
    }
}

fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_fit) && name.starts_with(|first: char| first.is_ascii_lowercase())
}
