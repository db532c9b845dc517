//! The provider, as far as carrying out asks it: for statuses to write, and whether what a plan books is
//! still there.

use super::carry_out::RowOutcome;
use crate::apply::state::Fetched;
use crate::config::Settings;
use crate::correction::Correction;
use crate::findings::Action;
use crate::gather::{ExpectedEffect, ProviderSide, Standing, fetch_standings, fetch_state};
use crate::provider::stripe::{self, Reading};
use crate::provider::{Cancel, Client, Failing, Lookup};
use crate::record::{EffectKind, Scope, Window, decimal_from_minor};
use crate::store::{Access, Store};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::OnceCell;

/// Whoever speaks for the provider just now.
pub trait AskProvider {
    /// The status of a payment; `None` when there is no answer.
    ///
    /// # Errors
    /// When the provider cannot be talked to; the row is left for another time.
    fn status(&self, scope: &Scope, root_id: &str) -> impl Future<Output = Result<Option<Fetched>>>;

    /// How each of these effects stands, in their order.
    ///
    /// # Errors
    /// When the provider cannot be talked to; nothing of the batch is carried out.
    fn standings(
        &self,
        scope: &Scope,
        expected: &[ExpectedEffect],
    ) -> impl Future<Output = Result<Vec<Standing>>>;

    /// Reads events by id into the store, so that their bytes can be delivered or filed. What the provider does not
    /// give stays absent.
    ///
    /// # Errors
    /// When the provider cannot be talked to.
    fn fetch_events(&self, _scope: &Scope, _ids: &BTreeSet<String>) -> impl Future<Output = Result<()>> {
        std::future::ready(Ok(()))
    }
}

/// Reads events by id into the store.
///
/// # Errors
/// When the provider cannot be talked to, or the store fails.
pub async fn fetch_events_with(
    store: &Store,
    client: &Client,
    scope: &Scope,
    ids: &BTreeSet<String>,
    cancel: &Cancel,
) -> Result<()> {
    let Some(stream) = stripe::stream_named("events") else { return Ok(()) };
    Lookup { store, client, scope, stream, cancel }.by_id(ids, Failing::Together).await.map(drop)
}

/// The providers of the configuration, opened when the first row needs them.
pub(super) struct Configured<'a> {
    pub(super) settings: &'a Settings,
    pub(super) now_us: i64,
    pub(super) open: OnceCell<(Store, BTreeMap<String, Client>)>,
}

impl Configured<'_> {
    async fn connect(&self) -> Result<(Store, BTreeMap<String, Client>)> {
        let store = Store::open(&self.settings.store_url, Access::Existing).await?;
        let mut clients = BTreeMap::new();
        for provider in &self.settings.providers {
            let client = Client::new(provider, &self.settings.limits)?.sharing(&store, provider);
            clients.insert(provider.name.clone(), client);
        }
        Ok((store, clients))
    }

    /// `None` for a provider that the configuration no longer has.
    async fn reach(&self, scope: &Scope) -> Result<Option<(&Store, &Client, Reading)>> {
        let (store, clients) = self.open.get_or_try_init(|| self.connect()).await?;
        let provider = self.settings.providers.iter().find(|provider| provider.name == *scope.provider);
        let (Some(provider), Some(client)) = (provider, clients.get(&*scope.provider)) else {
            return Ok(None);
        };
        let window = Window { from_us: 0, until_us: i64::MAX };
        let basis = self.settings.report.basis;
        Ok(Some((store, client, Reading::of(provider, scope.clone(), window, basis, self.now_us))))
    }
}

impl AskProvider for Configured<'_> {
    async fn status(&self, scope: &Scope, root_id: &str) -> Result<Option<Fetched>> {
        let Some((store, client, reading)) = self.reach(scope).await? else { return Ok(None) };
        let fresh = fetch_state(store, client, &reading, root_id, &Cancel::never()).await?;
        Ok(fresh.map(Fetched::from))
    }

    async fn standings(&self, scope: &Scope, expected: &[ExpectedEffect]) -> Result<Vec<Standing>> {
        let Some((store, client, reading)) = self.reach(scope).await? else {
            return Ok(vec![Standing::NotAnswered("not_configured"); expected.len()]);
        };
        let side = ProviderSide { store, reading: &reading };
        fetch_standings(side, client, expected, &Cancel::never()).await
    }

    async fn fetch_events(&self, scope: &Scope, ids: &BTreeSet<String>) -> Result<()> {
        let Some((store, client, _)) = self.reach(scope).await? else { return Ok(()) };
        fetch_events_with(store, client, scope, ids, &Cancel::never()).await
    }
}

/// Why a row is not carried out, by correction id.
pub(super) type Withheld<'a> = BTreeMap<&'a str, Why>;

/// What the provider says against a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its effect is gone or another one; in words.
    Moved(String),
    /// It did not say.
    NotAnswered,
}

impl Why {
    pub(super) const fn outcome(&self) -> RowOutcome {
        match self {
            Self::Moved(_) => RowOutcome::StateMoved,
            Self::NotAnswered => RowOutcome::NotFetched,
        }
    }
}

/// Asks whether the effects that these rows book are still there as planned. A reversal books no effect of
/// the provider's, and is not asked for.
pub(super) async fn withheld<'a>(
    provider: &impl AskProvider,
    rows: impl Iterator<Item = &'a Correction>,
) -> Result<Withheld<'a>> {
    let mut by_scope: BTreeMap<&Scope, (Vec<&Correction>, Vec<ExpectedEffect>)> = BTreeMap::new();
    for row in rows {
        if let Some(expected) = expected(row)? {
            let (rows, effects) = by_scope.entry(&row.scope).or_default();
            rows.push(row);
            effects.push(expected);
        }
    }
    let mut withheld = Withheld::new();
    for (scope, (rows, expected)) in by_scope {
        let standings = provider.standings(scope, &expected).await;
        let standings = standings.with_context(|| {
            format!("ask {} whether {} planned effects still stand", scope.provider, expected.len())
        })?;
        for ((row, expected), standing) in rows.into_iter().zip(&expected).zip(standings) {
            match standing {
                Standing::AsExpected => {}
                Standing::Moved(totals) => {
                    withheld.insert(&row.correction_id, Why::Moved(moved_text(row, expected, &totals)));
                }
                Standing::NotAnswered(cause) => {
                    let (key, id) = (&row.effect_key, &row.correction_id);
                    tracing::warn!(%scope, effect_key = %key, correction_id = %id, "no answer for {key} ({scope}): {cause}");
                    withheld.insert(&row.correction_id, Why::NotAnswered);
                }
            }
        }
    }
    Ok(withheld)
}

fn expected(row: &Correction) -> Result<Option<ExpectedEffect>> {
    let (Action::ReplayEvent | Action::ApplyEffect, Some(kind)) = (row.action, row.effect) else {
        return Ok(None);
    };
    Ok(Some(ExpectedEffect {
        kind,
        object_id: row.object_id.clone(),
        root_id: row.root_id.clone(),
        amount_minor: magnitude(row, kind)?,
        currency: row.currency.clone(),
    }))
}

/// What a row books: planned amounts are signed as they move the balance, the ledger has magnitudes.
pub(super) fn magnitude(row: &Correction, kind: EffectKind) -> Result<i64> {
    row.amount_minor.checked_mul(kind.sign()).context("an amount leaves 64 bits")
}

fn moved_text(row: &Correction, expected: &ExpectedEffect, totals: &BTreeMap<String, i64>) -> String {
    let money = |currency: &str, minor: i64| {
        format!("{} {currency}", decimal_from_minor(minor, stripe::exponent(currency)))
    };
    let planned = money(&expected.currency, expected.amount_minor);
    let found: Vec<String> = totals.iter().map(|(currency, minor)| money(currency, *minor)).collect();
    let found = if found.is_empty() { "nothing of it".to_owned() } else { found.join(" and ") };
    format!("{}/{}: planned {planned}, the provider has {found} now", row.scope, row.effect_key)
}
