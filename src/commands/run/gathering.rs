//! Step one: page the provider, follow what its records point to, open the local sides.

use super::Job;
use crate::config::{Accounts, ProviderSettings, Side};
use crate::gather::{
    Coverage, CoverageStatus, Dialect, Endpoints, Inbox, LocalBooks, Moment, ProviderSide, Sides, Surveyed,
    WindowFacts, endpoints, fetch_endpoints,
};
use crate::provider::stripe::{self, Reading};
use crate::provider::{self, ById, Client, Failing, Lookup, Progress, RunContext, Stream};
use crate::record::{Fact, Note, SECOND_US, Scope, Window};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How far back the inbox is asked for the types and accounts that it receives.
const INBOX_MEMORY_US: i64 = 90 * 86_400 * SECOND_US;

/// Rounds of records that point to records.
const REFERENCE_ROUNDS: usize = 3;

/// What the run knows of all sides after this step.
pub(super) struct Gathered {
    /// One reading a scope.
    pub(super) readings: Vec<Reading>,
    /// The proof of what was seen.
    pub(super) coverage: Vec<Coverage>,
    /// What paging itself noticed.
    pub(super) notes: Vec<Note>,
    pub(super) local: Option<LocalBooks>,
    pub(super) inbox: Option<Inbox>,
    /// API clients by provider name; empty offline.
    pub(super) clients: BTreeMap<String, Client>,
    /// What was read of each scope.
    pub(super) surveyed: BTreeMap<Scope, Surveyed>,
}

impl Gathered {
    /// The sides of one scope.
    pub(super) fn sides<'a>(&'a self, job: &'a Job<'_>, reading: &'a Reading) -> Result<Sides<'a>> {
        Ok(Sides {
            provider: ProviderSide { store: job.store, reading },
            local: self.local.as_ref(),
            inbox: self.inbox.as_ref(),
            facts: &self.surveyed(&reading.scope)?.facts,
        })
    }

    /// What was read of a scope.
    pub(super) fn surveyed(&self, scope: &Scope) -> Result<&Surveyed> {
        self.surveyed.get(scope).with_context(|| format!("the records of {scope} were not read"))
    }

    /// Whether the key may not read this stream of a scope, or any where none is named. That is a gap
    /// already, and nothing more is to be had of it by id.
    pub(super) fn lacks_permission(&self, scope: &Scope, stream: Option<&str>) -> bool {
        self.coverage.iter().any(|row| {
            row.scope == *scope
                && row.cause == "no_permission"
                && stream.is_none_or(|stream| row.stream == stream)
        })
    }

    /// Ranges for which a scope's events were listed.
    pub(super) fn event_ranges(&self, scope: &Scope) -> Vec<Window> {
        self.coverage
            .iter()
            .filter(|row| {
                row.scope == *scope && row.stream == "events" && row.status == CoverageStatus::Covered
            })
            .map(|row| Window { from_us: row.from_us, until_us: row.until_us })
            .collect()
    }
}

/// Reads the provider into the store and opens the local sides.
pub(super) async fn gather(job: &Job<'_>) -> Result<Gathered> {
    // The local contract is checked before the provider is asked for anything.
    let dialect = Dialect::stripe(stripe::exponent);
    let local = LocalBooks::open(job.settings, job.store, dialect, job.window).await?;
    let inbox = Inbox::open(job.settings).await?;
    let received = Received::by(inbox.as_ref(), job.window).await?;
    let mut gathered = Gathered {
        readings: Vec::new(),
        coverage: Vec::new(),
        notes: Vec::new(),
        local,
        inbox,
        clients: BTreeMap::new(),
        surveyed: BTreeMap::new(),
    };
    for provider in chosen(job) {
        let accounts = received.accounts(provider);
        let is_online = !job.request.offline;
        let client = is_online.then(|| Client::new(provider, &job.settings.limits)).transpose()?;
        let client = client.map(|client| client.sharing(job.store, provider));
        let told = told(job, provider, client.as_ref(), &accounts).await?;
        for account in &accounts {
            let told = told.get(&provider.scope(account));
            gathered.readings.push(reading(job, provider, account, &received, told));
        }
        match client {
            None => gathered.coverage.extend(stored_coverage(job, provider, &accounts).await?),
            Some(client) => {
                page(job, provider, &client, accounts, &mut gathered).await?;
                gathered.clients.insert(provider.name.clone(), client);
            }
        }
        for (scope, _) in told.iter().filter(|(_, told)| told.is_disabled) {
            let row = disabled_since(job, scope, &gathered, &received).await?;
            gathered.coverage.extend(row);
        }
    }
    for index in 0..gathered.readings.len() {
        let reading = gathered.readings[index].clone();
        let side = ProviderSide { store: job.store, reading: &reading };
        let mut facts = WindowFacts::new(&reading.scope, &std::env::temp_dir())?;
        let outside = side.survey(job.request.now_us, &mut facts).await?;
        let mut late = match gathered.clients.get(&*reading.scope.provider) {
            Some(client) => follow_references(job, &gathered, side, client, outside.stale).await?,
            None => BTreeSet::new(),
        };
        side.learn(&outside.ids.union(&late).cloned().collect()).await?;
        late.extend(super::unknown_ids::ask_for_unknown_ids(job, &gathered, &reading).await?);
        let surveyed = Surveyed { facts, outside: outside.ids, late };
        gathered.surveyed.insert(reading.scope.clone(), surveyed);
    }
    Ok(gathered)
}

fn chosen<'a>(job: &'a Job<'_>) -> impl Iterator<Item = &'a ProviderSettings> {
    job.settings.providers.iter().filter(|provider| job.request.providers.contains(&provider.name))
}

/// What the endpoints of each account say of its deliveries.
async fn told(
    job: &Job<'_>,
    provider: &ProviderSettings,
    client: Option<&Client>,
    accounts: &[String],
) -> Result<BTreeMap<Scope, Endpoints>> {
    if let Some(client) = client {
        // A connected account's events may come through the platform's endpoints.
        let all: BTreeSet<&str> = accounts.iter().map(String::as_str).chain([""]).collect();
        for account in all {
            fetch_endpoints(job.store, client, &provider.scope(account))
                .await
                .with_context(|| format!("read {} from {}", provider.name, provider.base_url))?;
        }
    }
    let mut found = BTreeMap::new();
    for account in accounts {
        let scope = provider.scope(account);
        if let Some(told) = endpoints(job.store, &scope).await? {
            found.insert(scope, told);
        }
    }
    Ok(found)
}

fn reading(
    job: &Job<'_>,
    provider: &ProviderSettings,
    account: &str,
    received: &Received,
    told: Option<&Endpoints>,
) -> Reading {
    let scope = provider.scope(account);
    let received = received.types(&scope);
    let told = told.and_then(|told| told.types.clone());
    let mut wanted = provider.event_types.clone().or(told).or_else(|| received.clone());
    if let Some(wanted) = &mut wanted {
        // What arrives and is not understood must be said, whatever the settings list.
        let unknown = |name: &&String| stripe::tracks_of_type(name).is_none();
        wanted.extend(received.iter().flatten().filter(unknown).cloned());
    }
    let basis = job.settings.report.basis;
    let reading = Reading::of(provider, scope, job.window, basis, job.request.now_us);
    // Without books nothing that they lack is missing.
    let effects = match job.settings.local.side {
        Side::Absent => BTreeSet::new(),
        _ => reading.effects.clone(),
    };
    Reading { wanted, effects, grace: !job.request.no_grace, ..reading }
}

async fn page(
    job: &Job<'_>,
    provider: &ProviderSettings,
    client: &Client,
    accounts: Vec<String>,
    gathered: &mut Gathered,
) -> Result<()> {
    let context = RunContext {
        run_id: job.run_id.clone(),
        resume_of: job.resume_of.clone(),
        accounts,
        now_us: job.request.now_us,
        cancel: job.request.cancel.clone(),
        progress: Arc::new(Progress::stderr()),
    };
    let paged = provider::page(job.store, client, provider, stripe::STREAMS, job.window, &context)
        .await
        .with_context(|| format!("read {} from {}", provider.name, provider.base_url))?;
    job.stop_if_asked()?;
    gathered.coverage.extend(paged.coverage);
    gathered.notes.extend(paged.notes);
    Ok(())
}

/// Every endpoint of an account is switched off: a gap from the first event after the last received one.
async fn disabled_since(
    job: &Job<'_>,
    scope: &Scope,
    gathered: &Gathered,
    received: &Received,
) -> Result<Option<Coverage>> {
    let Some(reading) = gathered.readings.iter().find(|reading| reading.scope == *scope) else {
        return Ok(None);
    };
    let last_us = received.last_us(scope).unwrap_or(i64::MIN);
    let mut first_missed_us = None;
    let mut note = |fact: Fact| {
        if let Fact::ProviderEvent(event) = fact
            && event.wanted
            && event.created_us > last_us
        {
            first_missed_us = Some(first_missed_us.unwrap_or(i64::MAX).min(event.created_us));
        }
        Ok(())
    };
    ProviderSide { store: job.store, reading }.scan_events(&mut note).await?;
    Ok(Some(Coverage {
        scope: scope.clone(),
        stream: "webhook_endpoints".to_owned(),
        from_us: first_missed_us.unwrap_or(last_us).clamp(job.window.from_us, job.window.until_us - 1),
        until_us: job.window.until_us,
        status: CoverageStatus::Gap,
        cause: "endpoint_disabled".to_owned(),
        slices: 0,
        pages: 0,
        records: 0,
    }))
}

/// Reads single objects that the window's records point to and that lie outside of it, and what those
/// point to. Answers what the provider has of them.
async fn follow_references(
    job: &Job<'_>,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    client: &Client,
    mut wanted: BTreeMap<&'static str, BTreeSet<String>>,
) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for _ in 0..REFERENCE_ROUNDS {
        let mut fetched = BTreeSet::new();
        for (name, ids) in &wanted {
            let Some(stream) = stripe::stream_named(name) else { continue };
            fetched.extend(fetch(job, gathered, side, client, stream, ids).await?);
        }
        if fetched.is_empty() {
            break;
        }
        wanted = side.outside_of(&fetched, job.request.now_us).await?.stale;
        all.extend(fetched);
    }
    Ok(all)
}

/// Fetches objects by id; an object that could not be asked for ends the run as incomplete, because
/// nothing may be concluded about it.
async fn fetch(
    job: &Job<'_>,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    client: &Client,
    stream: &Stream,
    ids: &BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let (scope, cancel) = (&side.reading.scope, &job.request.cancel);
    let lookup = Lookup { store: job.store, client, scope, stream, cancel };
    let answered = lookup.by_id(ids, Failing::Together).await?;
    found_of(job, answered, gathered, side, stream)
}

/// What was given back of these charges, refunds and disputes of any time: an earlier run need not have read
/// the windows that they lie in. Answers those that the provider has.
pub(super) async fn fetch_given_back(
    job: &Job<'_>,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    client: &Client,
    charges: &BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for stream in ["refunds", "disputes"].into_iter().filter_map(stripe::stream_named) {
        let (scope, cancel) = (&side.reading.scope, &job.request.cancel);
        let lookup = Lookup { store: job.store, client, scope, stream, cancel };
        let answered = lookup.that_name("charge", charges, Failing::Together).await?;
        found.extend(found_of(job, answered, gathered, side, stream)?);
    }
    Ok(found)
}

fn found_of(
    job: &Job<'_>,
    answered: ById,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    stream: &Stream,
) -> Result<BTreeSet<String>> {
    let scope = &side.reading.scope;
    let is_gap =
        |cause: &str| cause == "no_permission" && gathered.lacks_permission(scope, Some(stream.name));
    let mut left =
        answered.unanswered.iter().filter(|(_, cause)| **cause != "unaskable_id" && !is_gap(cause));
    if let Some((id, cause)) = left.next() {
        job.stop_if_asked()?;
        bail!("fetch {} {id}: {cause}, and {} more were not answered", stream.name, left.count());
    }
    Ok(answered.found)
}

/// Fetches objects of any stream by id, and what they point to. Answers what the provider has.
pub(super) async fn fetch_ids(
    job: &Job<'_>,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    client: &Client,
    ids: BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let mut by_stream: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for id in ids {
        if let Some(stream) = stripe::stream_of_id(&id) {
            by_stream.entry(stream).or_default().insert(id);
        }
    }
    follow_references(job, gathered, side, client, by_stream).await
}

/// Asks the provider for events by id. Answers those that it has.
pub(super) async fn fetch_events(
    job: &Job<'_>,
    gathered: &Gathered,
    side: ProviderSide<'_>,
    client: &Client,
    ids: &BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let Some(stream) = stripe::stream_named("events") else { return Ok(BTreeSet::new()) };
    fetch(job, gathered, side, client, stream, ids).await
}

/// Offline, the stored slices are the proof.
async fn stored_coverage(
    job: &Job<'_>,
    provider: &ProviderSettings,
    accounts: &[String],
) -> Result<Vec<Coverage>> {
    super::offline::stored_coverage(
        job.store,
        provider,
        accounts,
        stripe::STREAMS,
        job.window,
        job.request.now_us,
    )
    .await
}

/// What the inbox receives.
struct Received {
    by_scope: BTreeMap<Scope, BTreeSet<String>>,
    last_us: BTreeMap<Scope, i64>,
}

impl Received {
    async fn by(inbox: Option<&Inbox>, window: Window) -> Result<Self> {
        let mut by_scope: BTreeMap<Scope, BTreeSet<String>> = BTreeMap::new();
        let mut last_us: BTreeMap<Scope, i64> = BTreeMap::new();
        if let Some(inbox) = inbox {
            let memory = Window { from_us: window.from_us.saturating_sub(INBOX_MEMORY_US).max(0), ..window };
            let mut note = |scope: Scope, event_type: &str, received_at_us: i64| {
                let last_us = last_us.entry(scope.clone()).or_insert(received_at_us);
                *last_us = received_at_us.max(*last_us);
                let types = by_scope.entry(scope).or_default();
                if !event_type.is_empty() && !types.contains(event_type) {
                    types.insert(event_type.to_owned());
                }
            };
            let mut moment = Moment::begin(None, Some(inbox)).await?;
            moment.received(memory, &mut note).await?;
            moment.end().await?;
        }
        Ok(Self { by_scope, last_us })
    }

    /// Types that a scope's inbox has received; `None` where it has none, so that every type is wanted.
    fn types(&self, scope: &Scope) -> Option<BTreeSet<String>> {
        self.by_scope.get(scope).cloned()
    }

    /// When a scope's inbox last received anything, Unix µs.
    fn last_us(&self, scope: &Scope) -> Option<i64> {
        self.last_us.get(scope).copied()
    }

    fn accounts(&self, provider: &ProviderSettings) -> Vec<String> {
        match &provider.accounts {
            Accounts::Named(accounts) => accounts.clone(),
            Accounts::All => {
                let named = self
                    .by_scope
                    .keys()
                    .filter(|scope| *scope.provider == *provider.name && *scope.mode == *provider.mode);
                let mut accounts: BTreeSet<String> = named.map(|scope| scope.account.to_string()).collect();
                accounts.insert(String::new());
                accounts.into_iter().collect()
            }
        }
    }
}
