//! The provider's side: stored records become facts.
//!
//! `survey.rs` goes over what was paged and feeds the comparison. The groups that it hands back are loaded whole, over all
//! time, by what stands here.

use super::survey::Pages;
use crate::provider::stripe::{self, Reading};
use crate::record::{Alias, EffectKind, Fact, InvoiceParts, Note, NoteKind, ProviderEffect, ProviderEvent};
use crate::store::{self, Store, StoredRecord};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Records that are read by id at once.
pub(super) const BY_ID_MAX: usize = 5_000;

/// One scope of one provider, as stored.
#[derive(Clone, Copy, Debug)]
pub struct ProviderSide<'a> {
    /// The store.
    pub store: &'a Store,
    /// How its records are read.
    pub reading: &'a Reading,
}

/// What the window's records point to and that does not lie in it.
#[derive(Debug, Default)]
pub struct Outside {
    /// All of it.
    pub ids: BTreeSet<String>,
    /// What is not stored, or was last read too long ago, by stream.
    pub stale: BTreeMap<&'static str, BTreeSet<String>>,
}

impl ProviderSide<'_> {
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
        let mut pages = Pages::of(self.store, &self.reading.scope, "events", self.reading.window);
        while let Some(page) = pages.next().await? {
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

    /// The stored records of these groups over all time, and of these ids.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn whole_records(
        &self,
        roots: &BTreeSet<String>,
        ids: &BTreeSet<String>,
    ) -> Result<Vec<StoredRecord>> {
        let aliases = store::aliases_of_roots(self.store, &self.reading.scope, roots).await?;
        let mut wanted: BTreeSet<String> = roots.union(ids).cloned().collect();
        wanted.extend(aliases.into_iter().map(|alias| alias.alias_id));
        store::records_by_id(self.store, &self.reading.scope, &wanted, None).await
    }

    /// The facts of the stored records with these ids.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn facts_of_records(&self, ids: &BTreeSet<String>) -> Result<Vec<Fact>> {
        self.resolved(&store::records_by_id(self.store, &self.reading.scope, ids, None).await?).await
    }

    /// What these records point to outside of the window: for the next round.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn outside_of(&self, ids: &BTreeSet<String>, since_us: i64) -> Result<Outside> {
        let mut outside = Outside::default();
        let ids: Vec<&String> = ids.iter().collect();
        for chunk in ids.chunks(BY_ID_MAX) {
            let chunk = chunk.iter().map(|id| (*id).clone()).collect();
            let records = store::records_by_id(self.store, &self.reading.scope, &chunk, None).await?;
            let facts: Vec<Fact> = records.iter().flat_map(|record| self.facts(record)).collect();
            let (mut points_to, _) = self.points_to(&records, &facts).await?;
            let charge_of = |record: &StoredRecord| stripe::charge_of_intent(&record.stream, &record.body);
            points_to.extend(records.iter().filter_map(charge_of).map(|id| (id, "charges")));
            self.sort_out(points_to, since_us, &mut outside).await?;
        }
        Ok(outside)
    }

    /// The invoices that several payments paid and that these roots name, by invoice id: what the books have
    /// on such an invoice is judged together with all of its payments.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn invoices_of(&self, roots: &BTreeSet<String>) -> Result<Vec<InvoiceParts>> {
        store::invoices_of(self.store, &self.reading.scope, roots).await
    }

    /// Of the ids that lead to these roots and of `invoices`, what no record is stored of: invoices that only
    /// a charge or an event names, and payments that only their invoice names.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn not_stored(
        &self,
        roots: &BTreeSet<String>,
        invoices: &[InvoiceParts],
    ) -> Result<BTreeSet<String>> {
        let scope = &self.reading.scope;
        let aliases = store::aliases_of_roots(self.store, scope, roots).await?.into_iter();
        let is_invoice = |id: &String| stripe::stream_of_id(id) == Some("invoices");
        let mut ids: BTreeSet<String> = aliases.map(|alias| alias.alias_id).filter(is_invoice).collect();
        ids.extend(invoices.iter().flat_map(InvoiceParts::roots).cloned());
        for (id, _, _) in store::record_ages(self.store, scope, &ids).await? {
            ids.remove(&id);
        }
        Ok(ids)
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

    /// Leaves out what lies in the window, and tells what is stale of the rest.
    pub(super) async fn sort_out(
        &self,
        mut points_to: BTreeMap<String, &'static str>,
        since_us: i64,
        outside: &mut Outside,
    ) -> Result<()> {
        points_to.retain(|id, _| !outside.ids.contains(id));
        let ids: BTreeSet<String> = points_to.keys().cloned().collect();
        let mut fresh = BTreeSet::new();
        for (id, created_us, fetched_at_us) in
            store::record_ages(self.store, &self.reading.scope, &ids).await?
        {
            if self.reading.window.contains(created_us) {
                points_to.remove(&id);
            } else if fetched_at_us >= since_us {
                fresh.insert(id);
            }
        }
        for (id, stream) in points_to {
            if !fresh.contains(&id) {
                outside.stale.entry(stream).or_default().insert(id.clone());
            }
            outside.ids.insert(id);
        }
        Ok(())
    }

    /// Facts of one record; what cannot be read at all becomes a note, so that the run goes on and
    /// the record is not forgotten.
    pub(super) fn facts(&self, record: &StoredRecord) -> Vec<Fact> {
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
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resolved(&self, records: &[StoredRecord]) -> Result<Vec<Fact>> {
        let mut facts: Vec<Fact> = records.iter().flat_map(|record| self.facts(record)).collect();
        self.follow_roots(&mut facts).await?;
        Ok(facts)
    }

    /// Follows every root to the end of its aliases.
    pub(super) async fn follow_roots(&self, facts: &mut [Fact]) -> Result<()> {
        let open: BTreeSet<String> = facts
            .iter_mut()
            .filter_map(root_mut)
            .filter(|root| !stripe::is_final_root(root))
            .map(|root| root.clone())
            .collect();
        let targets = store::resolve(self.store, &self.reading.scope, &open, stripe::is_final_root).await?;
        for root in facts.iter_mut().filter_map(root_mut) {
            if let Some(target) = targets.get(root) {
                root.clone_from(&target.root_id);
            }
        }
        Ok(())
    }
}

pub(super) fn has_intent(effect: &ProviderEffect) -> bool {
    effect.kind == EffectKind::Credit && !effect.intent.is_empty()
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
