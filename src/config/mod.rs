//! Settings: `recon.toml` read, checked and typed. Nothing downstream sees raw configuration.

mod document;
mod load;
mod provider;
mod unusable;
mod values;

pub use load::{Environment, FILE_NAME, load, load_without_keys, parse};
pub use unusable::{Unusable, nearest, suggestion};
pub use values::{parse_duration, parse_size, shown};

use crate::findings::Kind;
use crate::record::{EffectKind, Scope, Status};
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

/// A secret. Its `Debug` and `Display` never show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the one place that must send it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The URL of recon's own store. It may hold a password, so its `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

/// For the calls that open the store.
impl Deref for StoreUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[store url]")
    }
}

/// Every setting, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The store's URL, `sqlite:PATH` or `postgres://…`; relative paths are beside the configuration file.
    pub store_url: StoreUrl,
    /// `[report]`.
    pub report: ReportSettings,
    /// `[[provider]]`, at least one.
    pub providers: Vec<ProviderSettings>,
    /// `[inbox] url`.
    pub inbox: Side,
    /// `[local]`.
    pub local: LocalSettings,
    /// `[corrections]`.
    pub corrections: CorrectionSettings,
    /// `[owners]`.
    pub owners: BTreeMap<Kind, String>,
    /// `[compare]`.
    pub compare: CompareSettings,
    /// `[limits]`.
    pub limits: LimitSettings,
}

impl Settings {
    /// The longest settle delay among the named providers: the window of a run ends that long ago.
    #[must_use]
    pub fn settle_delay(&self, providers: &[String]) -> Duration {
        let chosen = self.providers.iter().filter(|provider| providers.contains(&provider.name));
        chosen.map(|provider| provider.settle_delay).max().unwrap_or_default()
    }
}

/// Where one side of the comparison is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// recon's own tables.
    Store,
    /// A database of the team, read only.
    Database(Secret),
    /// The team has no such side.
    Absent,
}

/// Spelling of numbers and separators in spreadsheet files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locale {
    /// `,` between cells, `1234.56`, no byte order mark.
    En,
    /// `;` between cells, `1234,56`, byte order mark, CRLF.
    PtBr,
}

impl Locale {
    /// Reads `en` or `pt-BR`, in any case and with `_` for `-`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "en" => Some(Self::En),
            "pt-br" => Some(Self::PtBr),
            _ => None,
        }
    }
}

/// Which date puts money into a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// When the balance moved.
    Created,
    /// When the money became available.
    Available,
}

impl Basis {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Available => "available",
        }
    }
}

/// `[report]`.
#[derive(Clone, Debug)]
pub struct ReportSettings {
    /// Folder of run folders.
    pub dir: PathBuf,
    /// Finance time zone.
    pub time_zone: Tz,
    /// Spelling, where `spreadsheet` is on.
    pub locale: Locale,
    /// Formula guard, ids as text, decimal amounts; off gives machine files.
    pub spreadsheet: bool,
    /// Which date counts.
    pub basis: Basis,
}

/// Which accounts of a provider are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounts {
    /// These; `""` is the platform account.
    Named(Vec<String>),
    /// `"*"`: the platform account and all that the inbox names.
    All,
}

/// `[[provider]]`.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The value of the `provider` column everywhere.
    pub name: String,
    /// API root without trailing slash.
    pub base_url: String,
    /// API key.
    pub api_key: Secret,
    /// Accounts read.
    pub accounts: Accounts,
    /// `live` or `test`.
    pub mode: String,
    /// Requests per second for each endpoint.
    pub requests_per_second: u32,
    /// Requests per second for the whole account.
    pub account_requests_per_second: u32,
    /// Age under which a provider's record may still be invisible.
    pub settle_delay: Duration,
    /// Effect kinds that the local side books.
    pub effects: BTreeSet<EffectKind>,
    /// Event types that the endpoint listens to, where configured.
    pub event_types: Option<BTreeSet<String>>,
    /// Dotted path in a charge that names the customer's intent, such as `metadata.order_id`.
    pub intent: Option<String>,
}

impl ProviderSettings {
    /// The scope of one of its accounts.
    #[must_use]
    pub fn scope(&self, account: &str) -> Scope {
        Scope::new(&self.name, account, &self.mode)
    }
}

/// `[local]`.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// Where local business state is read.
    pub side: Side,
    /// Folder with `effects.sql`, `states.sql`, `inbox.sql`, `inbox_body.sql`.
    pub queries: PathBuf,
    /// Local words → statuses.
    pub status_map: BTreeMap<String, Status>,
}

/// `[corrections]`.
#[derive(Clone, Debug)]
pub struct CorrectionSettings {
    /// Kinds that `--apply` corrects without a reviewed plan.
    pub auto: BTreeSet<Kind>,
    /// Rows that a plan may have.
    pub count_max: u64,
    /// Money that a plan may move, minor units per lower-case currency code.
    pub minor_max: BTreeMap<String, i64>,
}

/// `[compare]`.
#[derive(Clone, Debug)]
pub struct CompareSettings {
    /// Memory that comparing may use, bytes.
    pub memory_bytes_max: usize,
    /// Worker threads.
    pub threads: usize,
}

/// `[limits]`.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Time that a run may take before it stops as incomplete.
    pub run_budget: Duration,
    /// Objects that are asked for again by id before a finding accuses somebody.
    pub ask_count_max: usize,
    /// Attempts for one request.
    pub attempts_max: u32,
}
