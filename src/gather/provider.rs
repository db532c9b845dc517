//! The provider's side: stored records become facts.
//!
//! Three passes over what was paged, each in bounded memory: aliases are learnt first (an invoice
//! may name its payment only in another record), then the window's facts stream to the comparison,
//! and the groups that it hands back are loaded whole, over all time.

use crate::provider::stripe::{self, Reading};
use crate::record::{Alias, Fact, Note, NoteKind, ProviderEvent};
use crate::store::{self, Store, StoredRecord};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Aliases kept in one transaction.
const ALIASES_MAX: usize = 20_000;

/// Streams whose records point to others.
const REFERRING: [&str; 4] = ["refunds", "disputes", "balance_transactions", "invoices"];

/// Rounds of records that point to records (balance transaction → refund → charge).
const REFERENCE_ROUNDS: usize = 3;

/// One scope of one provider, as stored.
#[derive(Clone, Copy, Debug)]
pub struct ProviderSide<'a> {
    /// The store.
    pub store: &'a Store,
    /// How its records are read.
    pub reading: &'a Reading,
}

impl ProviderSide<'_> {
    /// Keeps the aliases of every record of the window and of what it points to.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn learn_aliases(&self) -> Result<()> {
        let mut aliases: Vec<Alias> = Vec::new();
        for stream in stripe::STREAMS {
            let mut last = None;
            while let Some(page) = self.page(stream.name, &mut last).await? {
                aliases.extend(page.iter().flat_map(|record| self.facts(record)).filter_map(alias));
                if aliases.len() >= ALIASES_MAX {
                    store::save_aliases(self.store, &std::mem::take(&mut aliases)).await?;
                }
            }
        }
        for record in self.referenced_outside().await? {
            aliases.extend(self.facts(&record).into_iter().filter_map(alias));
        }
        store::save_aliases(self.store, &aliases).await
    }

    /// Keeps the aliases of these records, wherever in time they lie.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn learn_aliases_of(&self, ids: &BTreeSet<String>) -> Result<()> {
        let records = store::records_by_id(self.store, &self.reading.scope, ids, None).await?;
        let aliases: Vec<Alias> =
            records.iter().flat_map(|record| self.facts(record)).filter_map(alias).collect();
        store::save_aliases(self.store, &aliases).await
    }

    /// Hands the window's facts to `sink`: every record created inside, and every record outside
    /// that one of them points to (a late capture moves money long after its charge was made).
    ///
    /// # Errors
    /// When the store or the sink fails.
    pub async fn scan(&self, sink: &mut dyn FnMut(Fact) -> Result<()>) -> Result<()> {
        for stream in stripe::STREAMS {
            let mut last = None;
            while let Some(page) = self.page(stream.name, &mut last).await? {
                for fact in self.resolved(&page).await? {
                    sink(fact)?;
                }
            }
        }
        let outside = self.referenced_outside().await?;
        for fact in self.resolved(&outside).await? {
            sink(fact)?;
        }
        Ok(())
    }

    /// Every object fact of these groups over all time, and their aliases.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn whole_objects(&self, roots: &BTreeSet<String>) -> Result<(Vec<Fact>, Vec<Alias>)> {
        let aliases = store::aliases_of_roots(self.store, &self.reading.scope, roots).await?;
        let mut ids = roots.clone();
        ids.extend(aliases.iter().map(|alias| alias.alias_id.clone()));
        let records = store::records_by_id(self.store, &self.reading.scope, &ids, None).await?;
        Ok((self.resolved(&records).await?, aliases))
    }

    /// Hands the window's event facts to `sink`.
    ///
    /// # Errors
    /// When the store or the sink fails.
    pub async fn scan_events(&self, sink: &mut dyn FnMut(Fact) -> Result<()>) -> Result<()> {
        let mut last = None;
        while let Some(page) = self.page("events", &mut last).await? {
            for fact in self.resolved(&page).await? {
                sink(fact)?;
            }
        }
        Ok(())
    }

    /// Stored events with these ids, wherever in time they lie.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn events_by_id(&self, ids: &BTreeSet<String>) -> Result<Vec<ProviderEvent>> {
        let records = store::events_by_id(self.store, &self.reading.scope, ids).await?;
        let facts = self.resolved(&records).await?;
        Ok(facts
            .into_iter()
            .filter_map(|fact| if let Fact::ProviderEvent(event) = fact { Some(event) } else { None })
            .collect())
    }

    /// The facts of the stored records with these ids.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn facts_of_records(&self, ids: &BTreeSet<String>) -> Result<Vec<Fact>> {
        self.resolved(&store::records_by_id(self.store, &self.reading.scope, ids, None).await?).await
    }

    /// Ids of records that the window's records point to and that are not stored, or were read
    /// before `since_us` and lie outside of the window, by stream.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn stale_references(&self, since_us: i64) -> Result<BTreeMap<&'static str, BTreeSet<String>>> {
        let mut wanted: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        let mut points_to: BTreeMap<String, &'static str> = BTreeMap::new();
        for stream in REFERRING {
            let mut last = None;
            while let Some(page) = self.page(stream, &mut last).await? {
                let found = page.iter().flat_map(|record| stripe::references(&record.stream, &record.body));
                points_to.extend(found.map(|(stream, id)| (id, stream)));
                self.drop_fresh(&mut points_to, since_us).await?;
                for (id, stream) in std::mem::take(&mut points_to) {
                    wanted.entry(stream).or_default().insert(id);
                }
            }
        }
        Ok(wanted)
    }

    /// Of these records, what they point to and is not stored or stale: for the next round.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn stale_references_of(
        &self,
        ids: &BTreeSet<String>,
        since_us: i64,
    ) -> Result<BTreeMap<&'static str, BTreeSet<String>>> {
        let records = store::records_by_id(self.store, &self.reading.scope, ids, None).await?;
        let found = records.iter().flat_map(|record| stripe::references(&record.stream, &record.body));
        let mut points_to: BTreeMap<String, &'static str> = found.map(|(stream, id)| (id, stream)).collect();
        self.drop_fresh(&mut points_to, since_us).await?;
        let mut wanted: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        for (id, stream) in points_to {
            wanted.entry(stream).or_default().insert(id);
        }
        Ok(wanted)
    }

    /// Of these ids, those that a record is stored under or that aliases lead to.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn known_ids(&self, ids: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let scope = &self.reading.scope;
        let stored = store::record_ages(self.store, scope, ids).await?;
        let mut known: BTreeSet<String> = stored.into_iter().map(|(id, _, _)| id).collect();
        known.extend(
            store::aliases_of_roots(self.store, scope, ids).await?.into_iter().map(|alias| alias.root_id),
        );
        Ok(known)
    }

    /// Of these ids, those that are not stored or were last read before `since_us`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn not_read_since(&self, ids: &BTreeSet<String>, since_us: i64) -> Result<BTreeSet<String>> {
        let mut stale = ids.clone();
        for (id, _, fetched_at_us) in store::record_ages(self.store, &self.reading.scope, ids).await? {
            if fetched_at_us >= since_us {
                stale.remove(&id);
            }
        }
        Ok(stale)
    }

    async fn drop_fresh(&self, points_to: &mut BTreeMap<String, &'static str>, since_us: i64) -> Result<()> {
        let ids: BTreeSet<String> = points_to.keys().cloned().collect();
        for (id, created_us, fetched_at_us) in
            store::record_ages(self.store, &self.reading.scope, &ids).await?
        {
            if fetched_at_us >= since_us || self.reading.window.contains(created_us) {
                points_to.remove(&id);
            }
        }
        Ok(())
    }

    /// Records outside of the window that the window's records point to, each once.
    async fn referenced_outside(&self) -> Result<Vec<StoredRecord>> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut found: Vec<StoredRecord> = Vec::new();
        for stream in REFERRING {
            let mut last = None;
            while let Some(page) = self.page(stream, &mut last).await? {
                let fresh = self.outside(&page, &mut seen).await?;
                found.extend(fresh);
            }
        }
        let mut start = 0;
        for _ in 1..REFERENCE_ROUNDS {
            let next = self.outside(&found[start..], &mut seen).await?;
            start = found.len();
            if next.is_empty() {
                break;
            }
            found.extend(next);
        }
        Ok(found)
    }

    async fn outside(
        &self,
        records: &[StoredRecord],
        seen: &mut BTreeSet<String>,
    ) -> Result<Vec<StoredRecord>> {
        let ids: BTreeSet<String> = records
            .iter()
            .flat_map(|record| stripe::references(&record.stream, &record.body))
            .map(|(_, id)| id)
            .filter(|id| !seen.contains(id))
            .collect();
        let found =
            store::records_by_id(self.store, &self.reading.scope, &ids, Some(self.reading.window)).await?;
        seen.extend(found.iter().map(|record| record.record_id.clone()));
        Ok(found)
    }

    async fn page(&self, stream: &str, last: &mut Option<StoredRecord>) -> Result<Option<Vec<StoredRecord>>> {
        let scope = &self.reading.scope;
        let page = store::records_page(self.store, scope, stream, self.reading.window, last.as_ref()).await?;
        // The cursor keeps no body.
        *last = page.last().map(|record| StoredRecord {
            stream: record.stream.clone(),
            record_id: record.record_id.clone(),
            body: Vec::new(),
            ..*record
        });
        Ok(if page.is_empty() { None } else { Some(page) })
    }

    /// Facts of one record; what cannot be read at all becomes a note, so that the run goes on and
    /// the record is not forgotten.
    fn facts(&self, record: &StoredRecord) -> Vec<Fact> {
        stripe::facts(self.reading, &record.stream, &record.body).unwrap_or_else(|error| {
            vec![Fact::Note(Note {
                scope: self.reading.scope.clone(),
                root_id: record.record_id.clone(),
                object_id: record.record_id.clone(),
                event_ids: Vec::new(),
                kind: NoteKind::UnknownShape,
                cause: "unreadable_record".to_owned(),
                text: error.to_string(),
                at_us: record.created_us,
            })]
        })
    }

    /// Facts of records with every root followed to the end of its aliases.
    async fn resolved(&self, records: &[StoredRecord]) -> Result<Vec<Fact>> {
        let mut facts: Vec<Fact> = records.iter().flat_map(|record| self.facts(record)).collect();
        let are_intents_joined = store::has_joined_intents(self.store, &self.reading.scope).await?;
        let open: BTreeSet<String> = facts
            .iter_mut()
            .filter_map(root_mut)
            .filter(|root| are_intents_joined || !stripe::is_final_root(root))
            .map(|root| root.clone())
            .collect();
        let targets = store::resolve(self.store, &self.reading.scope, &open).await?;
        for root in facts.iter_mut().filter_map(root_mut) {
            if let Some(target) = targets.get(root) {
                root.clone_from(&target.root_id);
            }
        }
        Ok(facts)
    }
}

fn root_mut(fact: &mut Fact) -> Option<&mut String> {
    match fact {
        Fact::ProviderEvent(event) => Some(&mut event.root_id),
        Fact::ProviderEffect(effect) => Some(&mut effect.root_id),
        Fact::ProviderState(state) => Some(&mut state.root_id),
        Fact::Note(note) => Some(&mut note.root_id),
        Fact::InboxEvent(_) | Fact::LocalEffect(_) | Fact::LocalState(_) | Fact::Alias(_) => None,
    }
}

fn alias(fact: Fact) -> Option<Alias> {
    match fact {
        Fact::Alias(alias) => Some(alias),
        _ => None,
    }
}
