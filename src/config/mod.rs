//! Settings: `recon.toml` read, checked and typed. Nothing downstream sees raw configuration.

mod context;
mod document;
mod load;
mod night;
mod provider;
mod receive;
mod target;
mod unusable;
mod values;
mod file_tables;
mod check;

pub use check::{CheckSettings, NamedKey};
pub use file_tables::{FileTable, FileTables};
pub use load::{Environment, FILE_NAME, Needs, load, load_for, load_to_apply, load_without_keys, parse};
pub use night::{MailSettings, MailTls, NightSettings};
pub use target::{HttpTarget, SqlTarget, Target, TargetSettings};
pub use unusable::{Unusable, nearest, suggestion};
pub use values::{check_called_url, parse_base_url, parse_duration, parse_size, shown};

use crate::findings::Kind;
use crate::record::{EffectKind, Scope, Status};
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
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
    /// The `[[provider]]` tables whose lists a run reads.
    pub providers: Vec<ProviderSettings>,
    /// Every `[[provider]]` table, as an endpoint of the receiver; at least one.
    pub endpoints: Vec<EndpointSettings>,
    /// `[receive]`.
    pub receive: ReceiveSettings,
    /// `[work]`.
    pub work: WorkSettings,
    /// `[outbox]`.
    pub outbox: OutboxSettings,
    /// `[notify]`.
    pub notify: NotifySettings,
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
    /// `[local.files]` and `[inbox.files]`.
    pub file_tables: FileTables,
    /// Who is told of a run.
    pub night: NightSettings,
    /// Where corrections go.
    pub targets: TargetSettings,
    /// `[check]`.
    pub check: CheckSettings,
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
    /// Dotted path in a charge that names the customer's intent, such as `metadata.order_id`: one purchase, no
    /// customer or subscription.
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
    /// How long one statement may take that reads a side.
    pub statement_timeout: Duration,
}

/// Whose deliveries an endpoint takes: it decides how they are signed and what identifies an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointKind {
    /// Stripe.
    Stripe,
    /// GitHub.
    GitHub,
    /// Shopify.
    Shopify,
    /// Twilio.
    Twilio,
    /// Slack.
    Slack,
    /// Discord.
    Discord,
    /// Mercado Pago.
    MercadoPago,
    /// Asaas.
    Asaas,
    /// `PagBank`.
    PagBank,
    /// Adyen.
    Adyen,
    /// Paddle.
    Paddle,
    /// Square.
    Square,
    /// `PayPal`.
    PayPal,
    /// Whoever follows the Standard Webhooks specification.
    StandardWebhooks,
    /// Anyone else who signs with an HMAC, as `[provider.signature]` describes.
    Hmac,
}

impl EndpointKind {
    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::Stripe,
        Self::GitHub,
        Self::Shopify,
        Self::Twilio,
        Self::Slack,
        Self::Discord,
        Self::MercadoPago,
        Self::Asaas,
        Self::PagBank,
        Self::Adyen,
        Self::Paddle,
        Self::Square,
        Self::PayPal,
        Self::StandardWebhooks,
        Self::Hmac,
    ];

    /// The word in `recon.toml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::GitHub => "github",
            Self::Shopify => "shopify",
            Self::Twilio => "twilio",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::MercadoPago => "mercado_pago",
            Self::Asaas => "asaas",
            Self::PagBank => "pagbank",
            Self::Adyen => "adyen",
            Self::Paddle => "paddle",
            Self::Square => "square",
            Self::PayPal => "paypal",
            Self::StandardWebhooks => "standard_webhooks",
            Self::Hmac => "hmac",
        }
    }
}

/// One `[[provider]]` as an endpoint of the receiver.
#[derive(Clone, Debug)]
pub struct EndpointSettings {
    /// The value of the `provider` column, and the last part of the endpoint's path.
    pub name: String,
    /// How its deliveries are signed.
    pub kind: EndpointKind,
    /// `live` or `test`: events of the other mode are kept and never applied.
    pub mode: String,
    /// Secrets that may have signed, the current one first. Empty: deliveries cannot be taken.
    pub secrets: Vec<Secret>,
    /// The URL under which the provider calls, where its scheme signs that.
    pub public_url: Option<String>,
    /// How far a signed time may lie from the receipt, to both sides.
    pub tolerance: Duration,
    /// `[provider.signature]` as written, for the kind `hmac`.
    pub signature: BTreeMap<String, String>,
}

/// `[receive]`.
#[derive(Clone, Debug)]
pub struct ReceiveSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The largest body that is taken, bytes.
    pub body_bytes_max: usize,
    /// Deliveries that may wait for their commit; more are answered 503.
    pub waiting_max: usize,
    /// How long one request may take, from its first byte to the answer.
    pub timeout: Duration,
    /// Where deliveries are kept while the store cannot be reached; none: they are answered 503.
    pub spill_dir: Option<PathBuf>,
    /// How long raw bodies are kept. Keys are kept for ever.
    pub retention: Duration,
}

/// `[work]`.
#[derive(Clone, Debug)]
pub struct WorkSettings {
    /// Attempts before an event is a dead letter, 1 to 5.
    pub attempts_max: i64,
    /// Wait after the first failed attempt; it grows fourfold with each.
    pub retry_delay: Duration,
    /// Events claimed at a time.
    pub batch: i64,
    /// How long an event may stay parked before it is a dead letter.
    pub park_max: Duration,
    /// Event types whose object is fetched before it is applied; `None`: all that announce money.
    pub fetch: Option<BTreeSet<String>>,
}

/// `[outbox]`.
#[derive(Clone, Debug)]
pub struct OutboxSettings {
    /// Where a message for each applied effect is posted; none: no message is written.
    pub url: Option<Secret>,
    /// Attempts before a message is a dead letter.
    pub attempts_max: i64,
    /// Wait after the first failed attempt; it doubles with each.
    pub retry_delay: Duration,
    /// How long one call may take.
    pub timeout: Duration,
}

/// `[notify]`.
#[derive(Clone, Debug)]
pub struct NotifySettings {
    /// A webhook that takes `{"text": …}`, as Slack's do.
    pub url: Option<Secret>,
    /// Age above which a waiting event is told.
    pub waiting_age: Duration,
    /// Duplicates in an hour above which they are told, as an alarm about latency.
    pub duplicates_per_hour: u64,
}
