//! From the text of `recon.toml` to [`Settings`]. Every setting has a default except a provider's
//! name and key; a setting that is not known, or a secret written out, stops here.

use super::check::read_check;
use super::context::{Context, Url};
use super::document::{Document, Section};
use super::file_tables::{self, FileTables};
use super::night::read_night;
use super::provider::read_providers;
use super::receive::{read_notify, read_outbox, read_receive, read_work};
use super::target::read_targets;
use super::unusable::{Unusable, suggestion};
use super::values::{beside, parse_duration, parse_size, shown};
use super::{
    Basis, CompareSettings, CorrectionSettings, LimitSettings, LocalSettings, Locale, ReportSettings,
    Settings, StoreUrl,
};
use crate::findings::Kind;
use crate::record::{Status, parse_zone};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeTable;

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
/// Databases count milliseconds in 32 bits.
const STATEMENT_TIMEOUT_MAX: Duration = Duration::from_hours(7 * 24);
const ROOT: [&str; 16] = [
    "store",
    "report",
    "provider",
    "inbox",
    "local",
    "corrections",
    "target",
    "owners",
    "compare",
    "limits",
    "receive",
    "work",
    "outbox",
    "notify",
    "metrics",
    "check",
];

/// Where secrets named by `{ env = … }` are looked up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the settings from `path`, or from `recon.toml` in the working directory.
///
/// # Errors
/// When the file is missing, unreadable, or does not hold usable settings.
pub fn load(path: Option<&Path>) -> Result<Settings, Unusable> {
    load_for(path, Needs { api_keys: true, ..Needs::default() })
}

/// As [`load`], for what carries corrections out: with what the targets are reached by.
///
/// # Errors
/// As [`load`].
pub fn load_to_apply(path: Option<&Path>) -> Result<Settings, Unusable> {
    load_for(path, Needs { api_keys: true, target: true, ..Needs::default() })
}

/// As [`load`], for what asks no provider: keys are not read, so that whoever only looks at stored runs need
/// not hold one. They are empty in the answer.
///
/// # Errors
/// As [`load`], except for keys that cannot be read.
pub fn load_without_keys(path: Option<&Path>) -> Result<Settings, Unusable> {
    load_for(path, Needs::default())
}

/// Reads the settings with the secrets that a command needs; the others are empty in the answer.
///
/// # Errors
/// As [`load`].
pub fn load_for(path: Option<&Path>, needs: Needs) -> Result<Settings, Unusable> {
    let is_named = path.is_some();
    let path = path.unwrap_or_else(|| Path::new(FILE_NAME));
    let here = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Unusable::new(
            format!("there is no configuration at {} (working directory {here})", path.display()),
            if is_named {
                "check the path after --config; `recon init` writes a configuration to begin with"
            } else {
                "write one with `recon init`, or name it with --config FILE; `recon demo` needs none"
            },
        ),
        _ => Unusable::new(format!("cannot read {}: {error}", path.display()), ""),
    })?;
    parse_with(&text, path, &|name| std::env::var(name).ok(), needs)
}

/// Reads the settings from a text that stands at `path`; relative paths in it are beside `path`.
///
/// # Errors
/// When the text does not hold usable settings.
pub fn parse(text: &str, path: &Path, environment: Environment<'_>) -> Result<Settings, Unusable> {
    parse_with(text, path, environment, Needs { api_keys: true, ..Needs::default() })
}

/// Which secrets are read; of the others only the form is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Keys for the provider's API.
    pub api_keys: bool,
    /// Secrets that sign deliveries.
    pub webhook_secrets: bool,
    /// What corrections are carried out with: the target's URL, the handler's secret.
    pub target: bool,
}

fn parse_with(
    text: &str,
    path: &Path,
    environment: Environment<'_>,
    needs: Needs,
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
    let context = Context { folder: folder_of(path), environment, needs };
    let store_url = read_store(&root, &context)?;
    let report = read_report(&root, &context)?;
    let (providers, endpoints) = read_providers(&root, &context)?;
    let inbox_section = root.section("inbox", &["url", "files"])?;
    let inbox = context.side(&inbox_section, "url")?;
    let local = read_local(&root, &context)?;
    let local_section = root.open_section("local")?;
    let file_tables = FileTables {
        local: file_tables::read(&local_section, &local.side, &context.folder)?,
        inbox: file_tables::read(&inbox_section, &inbox, &context.folder)?,
    };
    let notify = read_notify(&root, &context)?;
    Ok(Settings {
        night: read_night(&root, &context, &notify)?,
        targets: read_targets(&root, &context, &local.side, &CORRECTABLE)?,
        store_url,
        report,
        providers,
        endpoints,
        receive: read_receive(&root, &context)?,
        work: read_work(&root)?,
        outbox: read_outbox(&root, &context)?,
        notify,
        inbox,
        local,
        corrections: read_corrections(&root)?,
        owners: read_owners(&root)?,
        compare: read_compare(&root)?,
        limits: read_limits(&root)?,
        file_tables,
        check: read_check(&root)?,
    })
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
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
    let section = root.section("local", &["url", "queries", "status_map", "files"])?;
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
    let section = root.section("corrections", &["auto", "count_max", "minor_max", "target", "http"])?;
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
    let section =
        root.section("limits", &["run_budget", "ask_count_max", "attempts_max", "statement_timeout"])?;
    let run_budget = duration(&section, "run_budget", "2h")?;
    if run_budget.is_zero() {
        return Err(section.bad("run_budget", "must be longer than nothing", ""));
    }
    let statement_timeout = duration(&section, "statement_timeout", "10m")?;
    if statement_timeout.is_zero() || statement_timeout > STATEMENT_TIMEOUT_MAX {
        return Err(section.bad("statement_timeout", "must be between 1s and 7d", ""));
    }
    let ask = section.integer("ask_count_max", 0, LOOKUPS_MAX)?.unwrap_or(2_000);
    let attempts = section.integer("attempts_max", 1, 50)?.unwrap_or(6);
    Ok(LimitSettings {
        run_budget,
        ask_count_max: usize::try_from(ask).unwrap_or_default(),
        attempts_max: u32::try_from(attempts).unwrap_or(1),
        statement_timeout,
    })
}
