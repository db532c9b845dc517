//! Where corrections go: `[corrections.target]`, `[corrections.http]` and `[target]`.
//!
//! The one thing to get right: the ledger corrects recon's own books only. Where the books are a team's, nothing is
//! written until the team says how, kind by kind.

use super::context::Context;
use super::document::Section;
use super::load::duration;
use super::unusable::{Unusable, suggestion};
use super::values::{beside, shown};
use super::{Secret, Settings, Side};
use crate::findings::Kind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Kinds that a delivery can put right: something was announced, and was not heard or not applied.
const DELIVERABLE: [Kind; 2] = [Kind::MissedEvent, Kind::UnappliedEvent];
const TIMEOUT_MAX: Duration = Duration::from_mins(5);
const VERIFY_MAX: Duration = Duration::from_mins(10);

/// How a correction reaches the system that it corrects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Recon's own ledger.
    Ledger,
    /// The team's statements, in one transaction of the team's database.
    Sql,
    /// The event once more, to the team's own handler.
    Http,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 3] = [Self::Ledger, Self::Sql, Self::Http];

    /// The word in `recon.toml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Sql => "sql",
            Self::Http => "http",
        }
    }
}

/// `[target]`: the team's database, as whoever corrects may write it.
#[derive(Clone, Debug)]
pub struct SqlTarget {
    /// Its URL; empty where the command applies nothing.
    pub url: Secret,
    /// Folder of the team's statements.
    pub queries: PathBuf,
}

/// `[corrections.http]`: the team's handler.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    /// Its URL; empty where the command applies nothing.
    pub url: Secret,
    /// What deliveries are signed with; empty where the command applies nothing.
    pub secret: Secret,
    /// Payments whose events are delivered at a time.
    pub concurrency: usize,
    /// Deliveries begun in a second.
    pub requests_per_second: u32,
    /// How long one delivery may take.
    pub timeout: Duration,
    /// How long the local state may take to show what a delivery did.
    pub verify_within: Duration,
}

/// Where corrections go.
#[derive(Clone, Debug, Default)]
pub struct TargetSettings {
    /// As `[corrections.target]` has it.
    pub chosen: BTreeMap<Kind, Target>,
    /// `[target]`, where it is there.
    pub sql: Option<SqlTarget>,
    /// `[corrections.http]`, where it is there.
    pub http: Option<HttpTarget>,
}

impl TargetSettings {
    /// Whether any kind is corrected in the team's own tables.
    #[must_use]
    pub fn reaches_their_tables(&self) -> bool {
        self.chosen.values().any(|target| *target != Target::Ledger)
    }
}

impl Settings {
    /// Where corrections of a kind go. `None`: nowhere, because the books are not recon's own and nobody chose.
    #[must_use]
    pub fn target_of(&self, kind: Kind) -> Option<Target> {
        let default = (self.local.side == Side::Store).then_some(Target::Ledger);
        self.targets.chosen.get(&kind).copied().or(default)
    }
}

/// Reads the three tables. `correctable` are the kinds that a plan corrects.
pub(super) fn read_targets(
    root: &Section<'_>,
    context: &Context<'_>,
    local: &Side,
    correctable: &[Kind],
) -> Result<TargetSettings, Unusable> {
    let corrections = root.open_section("corrections")?;
    let sql = read_sql(root, context, local)?;
    let http = read_http(&corrections, context)?;
    let names = Names { local, has_sql: sql.is_some(), has_http: http.is_some() };
    let section = corrections.open_section("target")?;
    let words: Vec<&str> = correctable.iter().map(|kind| kind.as_str()).collect();
    let mut chosen = BTreeMap::new();
    for (word, _) in section.entries() {
        let Some(kind) = correctable.iter().copied().find(|kind| kind.as_str() == word) else {
            let why = "is no kind of finding that a plan corrects";
            return Err(section.bad(word, why, suggestion(word, &words)));
        };
        let name = section.text(word)?.unwrap_or_default();
        let Some(target) = Target::ALL.into_iter().find(|target| target.as_str() == name) else {
            let why = format!("is {}, which is none of ledger, sql and http", shown(name));
            return Err(section.bad(word, &why, suggestion(name, &Target::ALL.map(Target::as_str))));
        };
        if let Err((why, hint)) = names.allow(kind, target) {
            return Err(section.bad(word, why, hint));
        }
        chosen.insert(kind, target);
    }
    Ok(TargetSettings { chosen, sql, http })
}

/// What a choice is held against.
struct Names<'a> {
    local: &'a Side,
    has_sql: bool,
    has_http: bool,
}

impl Names<'_> {
    fn allow(&self, kind: Kind, target: Target) -> Result<(), (&'static str, String)> {
        const FILES: &str = super::file_tables::URL;
        let is_files = matches!(self.local, Side::Database(url) if url.reveal() == FILES);
        match target {
            Target::Ledger if *self.local != Side::Store => Err((
                "cannot be \"ledger\": recon's own ledger is not what `[local]` reads",
                "write \"sql\" or \"http\"; docs/targets.md has an example of each".to_owned(),
            )),
            Target::Sql if *self.local == Side::Store => Err((
                "cannot be \"sql\": `[local]` reads recon's own ledger, and would never see what was written elsewhere",
                "leave it out (\"ledger\"), or let `[local] url` name the database that `[target]` writes"
                    .to_owned(),
            )),
            Target::Sql | Target::Http if is_files || *self.local == Side::Absent => Err((
                "has nothing to read again: `[local]` is no database",
                "let `[local] url` name the database that holds the books".to_owned(),
            )),
            Target::Sql if !self.has_sql => Err((
                "is \"sql\", and there is no [target] url",
                "write [target] url = { env = \"RECON_TARGET_URL\" }, of a role that may write".to_owned(),
            )),
            Target::Http if !self.has_http => Err((
                "is \"http\", and there is no [corrections.http] url",
                "write [corrections.http] with url and secret: docs/targets.md".to_owned(),
            )),
            Target::Http if !DELIVERABLE.contains(&kind) => Err((
                "cannot be \"http\": no event that could be delivered again would put it right",
                format!("\"http\" is for {}", DELIVERABLE.map(Kind::as_str).join(" and ")),
            )),
            _ => Ok(()),
        }
    }
}

fn read_sql(root: &Section<'_>, context: &Context<'_>, local: &Side) -> Result<Option<SqlTarget>, Unusable> {
    let section = root.section("target", &["url", "queries"])?;
    let url = context.target_url(&section, "url")?;
    if let (Side::Database(read), Some(written)) = (local, &url)
        && let (Some(read), Some(written)) = (database(read.reveal()), database(written.reveal()))
        && read != written
    {
        let why = format!("names {}, and [local] url reads {}", written.shown(), read.shown());
        let hint = "both must name the same database: what is written must be seen by the next run; only host, user and password may differ";
        return Err(section.bad("url", &why, hint));
    }
    let queries = beside(context.folder(), section.text("queries")?.unwrap_or("queries/target"));
    Ok(url.map(|url| SqlTarget { url, queries }))
}

/// A database as far as two URLs must agree on it; a replica has another host.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    scheme: &'static str,
    name: String,
}

impl Named {
    fn shown(&self) -> String {
        format!("the {} database {}", self.scheme, shown(&self.name))
    }
}

/// `None` where the URL is not read, or does not name its database for certain.
fn database(url: &str) -> Option<Named> {
    let (scheme, rest) = url.split_once(':')?;
    let scheme = match scheme {
        "sqlite" => return Some(Named { scheme: "SQLite", name: rest.to_owned() }),
        "postgres" => "PostgreSQL",
        "mysql" => "MySQL",
        _ => return None,
    };
    let path = rest.strip_prefix("//")?.split(['?', '#']).next()?.split_once('/')?.1;
    let is_certain = !path.is_empty() && !path.contains(['@', '/', '%']);
    is_certain.then(|| Named { scheme, name: path.to_owned() })
}

fn read_http(corrections: &Section<'_>, context: &Context<'_>) -> Result<Option<HttpTarget>, Unusable> {
    let known = ["url", "secret", "concurrency", "requests_per_second", "timeout", "verify_within"];
    let section = corrections.section("http", &known)?;
    let concurrency = section.integer("concurrency", 1, 64)?.unwrap_or(4);
    let rate = section.integer("requests_per_second", 1, 1_000)?.unwrap_or(10);
    let timeout = duration(&section, "timeout", "10s")?;
    let verify_within = duration(&section, "verify_within", "10s")?;
    if timeout.is_zero() || timeout > TIMEOUT_MAX {
        return Err(section.bad("timeout", "must be between 1s and 5m", ""));
    }
    if verify_within > VERIFY_MAX {
        return Err(section.bad("verify_within", "must be at most 10m", ""));
    }
    let Some(url) = context.handler_url(&section, "url")? else { return Ok(None) };
    let Some(secret) = context.handler_secret(&section, "secret")? else {
        return Err(section.bad(
            "secret",
            "is missing: the handler would refuse what is not signed",
            "name the secret that the handler checks deliveries with: secret = { env = \"WEBHOOK_SECRET\" }",
        ));
    };
    Ok(Some(HttpTarget {
        url,
        secret,
        concurrency: usize::try_from(concurrency).unwrap_or(1),
        requests_per_second: u32::try_from(rate).unwrap_or(1),
        timeout,
        verify_within,
    }))
}
