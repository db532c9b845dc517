//! From the text of `recon.toml` to [`Settings`]. Every setting has a default except a provider's
//! name and key; a setting that is not known, or a secret written out, stops here.

use super::document::{Document, Section};
use super::provider::read_providers;
use super::unusable::{Unusable, suggestion};
use super::values::{beside, check_postgres_url, parse_duration, parse_size, shown};
use super::{
    Basis, CompareSettings, CorrectionSettings, LimitSettings, LocalSettings, Locale, ReportSettings, Secret,
    Settings, Side, StoreUrl,
};
use crate::findings::Kind;
use crate::record::{Status, parse_zone};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// The configuration file's name.
pub const FILE_NAME: &str = "recon.toml";

/// Kinds whose default correction `recon apply` can carry out; the others are a person's decision.
const CORRECTABLE: [Kind; 6] = [
    Kind::MissedEvent,
    Kind::UnappliedEvent,
    Kind::MissingEffect,
    Kind::DuplicateEffect,
    Kind::StaleState,
    Kind::ForbiddenTransition,
];
const LOOKUPS_MAX: i64 = 1_000_000;
const ROOT: [&str; 9] =
    ["store", "report", "provider", "inbox", "local", "corrections", "owners", "compare", "limits"];

/// Where secrets named by `{ env = … }` are looked up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the settings from `path`, or from `recon.toml` in the working directory.
///
/// # Errors
/// When the file is missing, unreadable, or does not hold usable settings.
pub fn load(path: Option<&Path>) -> Result<Settings, Unusable> {
    read(path, Keys::Read)
}

/// As [`load`], for what asks no provider: keys are not read, so that whoever only looks at stored runs need
/// not hold one. They are empty in the answer.
///
/// # Errors
/// As [`load`], except for keys that cannot be read.
pub fn load_without_keys(path: Option<&Path>) -> Result<Settings, Unusable> {
    read(path, Keys::Leave)
}

fn read(path: Option<&Path>, keys: Keys) -> Result<Settings, Unusable> {
    let path = path.unwrap_or_else(|| Path::new(FILE_NAME));
    let here = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Unusable::new(
            format!("there is no configuration at {} (working directory {here})", path.display()),
            "write one with `recon init`, or name it with --config FILE",
        ),
        _ => Unusable::new(format!("cannot read {}: {error}", path.display()), ""),
    })?;
    parse_with(&text, path, &|name| std::env::var(name).ok(), keys)
}

/// Reads the settings from a text that stands at `path`; relative paths in it are beside `path`.
///
/// # Errors
/// When the text does not hold usable settings.
pub fn parse(text: &str, path: &Path, environment: Environment<'_>) -> Result<Settings, Unusable> {
    parse_with(text, path, environment, Keys::Read)
}

/// Whether a provider's key is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Read,
    /// Only its form is checked.
    Leave,
}

fn parse_with(
    text: &str,
    path: &Path,
    environment: Environment<'_>,
    keys: Keys,
) -> Result<Settings, Unusable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = Document { path, text };
    let table = DeTable::parse(text).map_err(|error| {
        let place = document.place(error.span().map_or(0, |span| span.start));
        // The parser's message describes the grammar; it does not repeat the text.
        let why = error.message().lines().next().unwrap_or("unreadable").to_owned();
        Unusable::new(format!("{place}: not readable as TOML: {why}"), "")
    })?;
    let root = Section::root(document, table.get_ref(), &ROOT)?;
    let context = Context { folder: folder_of(path), environment, keys };
    Ok(Settings {
        store_url: read_store(&root, &context)?,
        report: read_report(&root, &context)?,
        providers: read_providers(&root, &context)?,
        inbox: context.side(&root.section("inbox", &["url"])?, "url")?,
        local: read_local(&root, &context)?,
        corrections: read_corrections(&root)?,
        owners: read_owners(&root)?,
        compare: read_compare(&root)?,
        limits: read_limits(&root)?,
    })
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// What reading a value may need besides the value.
pub(super) struct Context<'a> {
    folder: PathBuf,
    environment: Environment<'a>,
    keys: Keys,
}

impl Context<'_> {
    /// A provider's key: `{ env = "NAME" }` or `{ file = "PATH" }`, never the key itself.
    pub fn secret(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        let Some(value) = section.raw(key) else { return Ok(None) };
        if self.keys == Keys::Leave {
            secret_source(section, key, value.get_ref())?;
            return Ok(Some(Secret::new(String::new())));
        }
        self.secret_value(section, key, value.get_ref()).map(Some)
    }

    fn secret_value(
        &self,
        section: &Section<'_>,
        key: &str,
        value: &DeValue<'_>,
    ) -> Result<Secret, Unusable> {
        let text = match secret_source(section, key, value)? {
            SecretSource::Env(name) => (self.environment)(name).ok_or_else(|| {
                section.bad(
                    key,
                    &format!("needs the environment variable {name}, which is not set"),
                    format!(
                        "set {name} where this command runs; cron starts with a bare environment, \
                         so set it in the crontab or use {{ file = \"…\" }}"
                    ),
                )
            })?,
            SecretSource::File(name) => {
                let path = beside(&self.folder, name);
                std::fs::read_to_string(&path).map_err(|error| {
                    section.bad(key, &format!("cannot be read from {}: {error}", path.display()), "")
                })?
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(section.bad(key, "is empty where the configuration says to read it", ""));
        }
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err(section.bad(
                key,
                "holds spaces or line breaks where it is read",
                "give one line, the key alone",
            ));
        }
        Ok(Secret::new(text.to_owned()))
    }

    /// Where a side is read: `store`, `none`, or a database.
    pub fn side(&self, section: &Section<'_>, key: &str) -> Result<Side, Unusable> {
        let Some(url) = self.url(section, key)? else { return Ok(Side::Store) };
        match url.text.as_str() {
            "store" => Ok(Side::Store),
            "none" => Ok(Side::Absent),
            _ => {
                const HINT: &str = "write it as sqlite:books.db or postgres://host/database, or \"store\" for recon's own tables";
                Ok(Side::Database(Secret::new(self.database(section, key, &url, HINT)?)))
            }
        }
    }

    /// A URL as it stands in the file, or where the file says to read it.
    fn url(&self, section: &Section<'_>, key: &str) -> Result<Option<Url>, Unusable> {
        let Some(value) = section.raw(key).map(toml::Spanned::get_ref) else { return Ok(None) };
        if value.is_table() {
            let text = self.secret_value(section, key, value)?.reveal().to_owned();
            return Ok(Some(Url { text, is_secret: true }));
        }
        let text = section.text(key)?.unwrap_or_default().trim().to_owned();
        Ok(Some(Url { text, is_secret: false }))
    }

    /// `sqlite:PATH` with the path made relative to the configuration file, or a `postgres://` URL.
    fn database(
        &self,
        section: &Section<'_>,
        key: &str,
        url: &Url,
        hint: &'static str,
    ) -> Result<String, Unusable> {
        // The URL may hold a password, so only its scheme is ever shown.
        let Some((scheme, rest)) = url.text.split_once(':') else {
            return Err(section.bad(key, "is no database URL", hint));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "sqlite" => self.sqlite_path(section, key, rest),
            "postgres" | "postgresql" => {
                let text = format!("postgres:{rest}");
                check_postgres_url(&text, url.is_secret).map_err(|why| {
                    section.bad(
                        key,
                        why,
                        "write it as postgres://user@host/database; one with a password is read from \
                         { env = \"NAME\" } or { file = \"PATH\" }, or the password alone from PGPASSFILE",
                    )
                })?;
                Ok(text)
            }
            _ => {
                let why = format!(
                    "has the scheme {}, and this release reads sqlite: and postgres: only",
                    shown(scheme)
                );
                Err(section.bad(key, &why, hint))
            }
        }
    }

    fn sqlite_path(&self, section: &Section<'_>, key: &str, path: &str) -> Result<String, Unusable> {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains(['?', '#', '%']) {
            return Err(section.bad(key, "must be sqlite: and a plain path", ""));
        }
        if path == ":memory:" {
            return Err(section.bad(key, "must be a file; one in memory is gone after the run", ""));
        }
        Ok(format!("sqlite:{}", beside(&self.folder, path).display()))
    }
}

/// A URL and whether it was read from outside of the configuration file.
struct Url {
    text: String,
    is_secret: bool,
}

enum SecretSource<'a> {
    Env(&'a str),
    File(&'a str),
}

/// Reads the form of a secret without reading the secret.
fn secret_source<'a>(
    section: &Section<'_>,
    key: &str,
    value: &'a DeValue<'a>,
) -> Result<SecretSource<'a>, Unusable> {
    const HINT: &str = "write { env = \"NAME\" } or { file = \"PATH\" }; secrets stay out of the file";
    let Some(table) = value.as_table() else {
        let why =
            if value.is_str() { "holds a secret written out, which is refused" } else { "is no secret" };
        return Err(section.bad(key, why, HINT));
    };
    let mut entries = table.iter().map(|(name, value)| (name.get_ref().as_ref(), value.get_ref().as_str()));
    match (entries.next(), entries.next()) {
        (Some(("env", Some(name))), None) if !name.is_empty() => Ok(SecretSource::Env(name)),
        (Some(("file", Some(name))), None) if !name.is_empty() => Ok(SecretSource::File(name)),
        _ => Err(section.bad(key, "must be exactly one of env and file", HINT)),
    }
}

/// Checks the form of a list of secrets that this command does not need, and reads none of them.
pub(super) fn check_secret_list(section: &Section<'_>, key: &str) -> Result<(), Unusable> {
    for item in section.items(key)?.unwrap_or_default() {
        secret_source(section, key, item.get_ref())?;
    }
    Ok(())
}

/// A duration setting.
pub(super) fn duration(section: &Section<'_>, key: &str, default: &str) -> Result<Duration, Unusable> {
    let text = section.text(key)?.unwrap_or(default);
    parse_duration(text).map_err(|why| section.bad(key, &format!("cannot be read: {why}"), ""))
}

fn read_store(root: &Section<'_>, context: &Context<'_>) -> Result<StoreUrl, Unusable> {
    const HINT: &str = "write it as sqlite:recon.db or postgres://host/database";
    let section = root.section("store", &["url"])?;
    let default = || Url { text: "sqlite:recon.db".to_owned(), is_secret: false };
    let url = context.url(&section, "url")?.unwrap_or_else(default);
    Ok(context.database(&section, "url", &url, HINT)?.into())
}

fn read_report(root: &Section<'_>, context: &Context<'_>) -> Result<ReportSettings, Unusable> {
    let section = root.section("report", &["dir", "time_zone", "locale", "spreadsheet", "basis"])?;
    let zone = section.text("time_zone")?.unwrap_or("UTC");
    let locale = match section.text("locale")? {
        None => Locale::En,
        Some(text) => {
            Locale::parse(text).ok_or_else(|| section.bad("locale", "must be \"en\" or \"pt-BR\"", ""))?
        }
    };
    let basis = match section.text("basis")? {
        None | Some("created") => Basis::Created,
        Some("available") => Basis::Available,
        Some(_) => return Err(section.bad("basis", "must be \"created\" or \"available\"", "")),
    };
    Ok(ReportSettings {
        dir: beside(&context.folder, section.text("dir")?.unwrap_or("reports/out")),
        time_zone: parse_zone(zone).map_err(|_| {
            section.bad(
                "time_zone",
                &format!("{} is not in the IANA database", shown(zone)),
                "write a name such as America/Sao_Paulo",
            )
        })?,
        locale,
        spreadsheet: section.flag("spreadsheet")?.unwrap_or(false),
        basis,
    })
}

fn read_local(root: &Section<'_>, context: &Context<'_>) -> Result<LocalSettings, Unusable> {
    let section = root.section("local", &["url", "queries", "status_map"])?;
    let map = section.open_section("status_map")?;
    let words = Status::ALL.map(Status::as_str);
    let mut status_map = BTreeMap::new();
    for (word, value) in map.entries() {
        let ours = value.get_ref().as_str().unwrap_or_default();
        let status = ours.parse::<Status>().map_err(|()| {
            map.bad(word, &format!("leads to {}, which is no status", shown(ours)), suggestion(ours, &words))
        })?;
        status_map.insert(word.to_owned(), status);
    }
    Ok(LocalSettings {
        side: context.side(&section, "url")?,
        queries: beside(&context.folder, section.text("queries")?.unwrap_or("queries/local")),
        status_map,
    })
}

fn read_corrections(root: &Section<'_>) -> Result<CorrectionSettings, Unusable> {
    let section = root.section("corrections", &["auto", "count_max", "minor_max"])?;
    let words = CORRECTABLE.map(Kind::as_str);
    let mut auto = BTreeSet::new();
    for word in section.texts("auto")?.unwrap_or_default() {
        match kind_of(word) {
            Some(kind) if CORRECTABLE.contains(&kind) => auto.insert(kind),
            Some(_) => {
                let why = format!("names `{word}`, which only a person can put right");
                return Err(section.bad("auto", &why, format!("allowed here: {}", words.join(", "))));
            }
            None => {
                let why = format!("names {}, which is no kind of finding", shown(word));
                return Err(section.bad("auto", &why, suggestion(word, &words)));
            }
        };
    }
    let caps = section.open_section("minor_max")?;
    let mut minor_max = BTreeMap::new();
    for (code, _) in caps.entries() {
        if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(caps.bad(code, "is no currency code of three letters, such as usd", ""));
        }
        let minor = caps.integer(code, 0, i64::MAX)?.unwrap_or_default();
        if minor_max.insert(code.to_ascii_lowercase(), minor).is_some() {
            return Err(caps.bad(code, "is given twice", ""));
        }
    }
    let count_max = section.integer("count_max", 0, i64::MAX)?.unwrap_or(500);
    Ok(CorrectionSettings { auto, count_max: u64::try_from(count_max).unwrap_or_default(), minor_max })
}

fn kind_of(word: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
}

fn read_owners(root: &Section<'_>) -> Result<BTreeMap<Kind, String>, Unusable> {
    let words = Kind::ALL.map(Kind::as_str);
    let section = root.section("owners", &words)?;
    let mut owners = BTreeMap::new();
    for kind in Kind::ALL {
        if let Some(owner) = section.text(kind.as_str())? {
            owners.insert(kind, owner.to_owned());
        }
    }
    Ok(owners)
}

fn read_compare(root: &Section<'_>) -> Result<CompareSettings, Unusable> {
    const MEMORY_BYTES_MIN: usize = 16 << 20;
    let section = root.section("compare", &["memory", "threads"])?;
    let bytes = parse_size(section.text("memory")?.unwrap_or("256MiB"))
        .map_err(|why| section.bad("memory", &format!("cannot be read: {why}"), ""))?;
    if bytes < MEMORY_BYTES_MIN {
        return Err(section.bad("memory", "must be at least 16MiB", ""));
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = section.integer("threads", 1, 1_024)?.and_then(|count| usize::try_from(count).ok());
    Ok(CompareSettings { memory_bytes_max: bytes, threads: threads.unwrap_or(processors) })
}

fn read_limits(root: &Section<'_>) -> Result<LimitSettings, Unusable> {
    let section = root.section("limits", &["run_budget", "ask_count_max", "attempts_max"])?;
    let run_budget = duration(&section, "run_budget", "2h")?;
    if run_budget.is_zero() {
        return Err(section.bad("run_budget", "must be longer than nothing", ""));
    }
    let ask = section.integer("ask_count_max", 0, LOOKUPS_MAX)?.unwrap_or(2_000);
    let attempts = section.integer("attempts_max", 1, 50)?.unwrap_or(6);
    Ok(LimitSettings {
        run_budget,
        ask_count_max: usize::try_from(ask).unwrap_or_default(),
        attempts_max: u32::try_from(attempts).unwrap_or(1),
    })
}
