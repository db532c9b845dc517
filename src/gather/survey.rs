//! One reading of the window's records, and what of it feeds the comparison, in bounded memory.
//!
//! The records are read once. What they teach (aliases, intents: an invoice may name its payment only in another record) is
//! kept in the store, their facts in a file, and what lies outside of the window is named. When all of it was read, the
//! facts are taken from the file again, and by then every root is known.

use super::provider::{BY_ID_MAX, Outside, ProviderSide, has_intent};
use super::window_facts::WindowFacts;
use crate::provider::stripe;
use crate::record::{Alias, Fact, InvoiceParts, Scope, Window};
use crate::store::{self, Store, StoredRecord};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Aliases and intents kept in one transaction.
const LEARNT_MAX: usize = 20_000;

/// Aliases whose last word is remembered: 33 bytes each in a table that has room for no more.
const HEARD_MAX: usize = 900_000;

/// All of time.
const ALWAYS: Window = Window { from_us: i64::MIN, until_us: i64::MAX };

/// What a run read of one scope, before it compares.
#[derive(Debug)]
pub struct Surveyed {
    /// Facts of the window's records.
    pub facts: WindowFacts,
    /// Ids of records that these point to and that do not lie in the window.
    pub outside: BTreeSet<String>,
    /// Ids that were asked for since, wherever they lie: what the facts say of them may be old.
    pub late: BTreeSet<String>,
}

/// The last word that this reading heard on each alias, as the first half of SHA-256 of the id and of what it leads to: an
/// object and its events say the same, and what was just kept is not looked for again.
#[derive(Debug, Default)]
struct Heard(HashMap<[u8; 16], [u8; 16]>);

impl Heard {
    /// Whether the last word on this alias was another one, or none. The word of another scope is never asked for.
    fn is_news(&mut self, alias: &Alias) -> bool {
        let half = |parts: [&[u8]; 2]| {
            let mut hash = Sha256::new();
            for part in parts {
                hash.update(part);
            }
            let mut half = [0; 16];
            half.copy_from_slice(&hash.finalize()[..16]);
            half
        };
        if self.0.len() >= HEARD_MAX {
            self.0.clear();
        }
        let word = half([alias.root_id.as_bytes(), &[u8::from(alias.is_part)]]);
        self.0.insert(half([alias.alias_id.as_bytes(), &[]]), word) != Some(word)
    }
}

/// What one pass learns of records.
#[derive(Debug, Default)]
struct Learnt {
    aliases: Vec<Alias>,
    /// Intent by charge.
    intents: BTreeMap<String, String>,
    invoices: Vec<InvoiceParts>,
}

impl Learnt {
    fn add(&mut self, scope: &Scope, records: &[StoredRecord], facts: Vec<Fact>) {
        let parts = |record: &StoredRecord| stripe::invoice_parts(scope, &record.stream, &record.body);
        self.invoices.extend(records.iter().filter_map(parts));
        for fact in facts {
            match fact {
                Fact::Alias(alias) => self.aliases.push(alias),
                Fact::ProviderEffect(effect) if has_intent(&effect) => {
                    self.intents.insert(effect.object_id, effect.intent);
                }
                _ => {}
            }
        }
    }

    fn is_full(&self) -> bool {
        self.aliases.len() >= LEARNT_MAX
            || self.intents.len() >= LEARNT_MAX
            || self.invoices.len() >= LEARNT_MAX
    }

    async fn keep(self, store: Store, scope: Scope) -> Result<()> {
        store::save_aliases(&store, &self.aliases).await?;
        store::save_invoices(&store, &self.invoices).await?;
        store::save_intents(&store, &scope, &self.intents).await?;
        store.know_sizes().await;
        Ok(())
    }
}

/// Keeps what was learnt while more is read: one part at a time, in its order.
#[derive(Debug)]
struct Keeper<'a> {
    side: ProviderSide<'a>,
    task: Option<JoinHandle<Result<()>>>,
}

impl Keeper<'_> {
    async fn keep(&mut self, learnt: Learnt) -> Result<()> {
        self.end().await?;
        let (store, scope) = (self.side.store.clone(), self.side.reading.scope.clone());
        self.task = Some(tokio::spawn(learnt.keep(store, scope)));
        Ok(())
    }

    async fn end(&mut self) -> Result<()> {
        match self.task.take() {
            Some(task) => task.await.context("keep what was learnt")?,
            None => Ok(()),
        }
    }
}

/// Pages of a stream: the next is read while one is worked on.
pub(super) struct Pages(mpsc::Receiver<Result<Vec<StoredRecord>>>);

impl Pages {
    /// Begins to read.
    pub(super) fn of(store: &Store, scope: &Scope, stream: &'static str, window: Window) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        let (store, scope) = (store.clone(), scope.clone());
        tokio::spawn(async move {
            let mut last: Option<StoredRecord> = None;
            loop {
                let page = store::records_page(&store, &scope, stream, window, last.as_ref()).await;
                let cursor = page.as_ref().ok().and_then(|page| page.last()).map(StoredRecord::without_body);
                let is_last = cursor.is_none();
                last = cursor;
                if sender.send(page).await.is_err() || is_last {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// The next page, `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<StoredRecord>>> {
        let page = self.0.recv().await.context("the reading of stored records broke down")??;
        Ok(if page.is_empty() { None } else { Some(page) })
    }
}

impl ProviderSide<'_> {
    /// Reads every record of the window once: keeps its facts, its aliases and what its charges were made for, and
    /// says what it points to outside of the window. Stale is what was read before `since_us`.
    ///
    /// # Errors
    /// When the store fails, or `facts` cannot be written.
    pub async fn survey(&self, since_us: i64, kept: &mut WindowFacts) -> Result<Outside> {
        self.store.know_sizes().await;
        self.keep_all_intents().await?;
        let mut keeper = Keeper { side: *self, task: None };
        let mut learnt = Learnt::default();
        let mut outside = Outside::default();
        let mut heard = Heard::default();
        for stream in stripe::STREAMS {
            let mut pages = Pages::of(self.store, &self.reading.scope, stream.name, self.reading.window);
            while let Some(page) = pages.next().await? {
                let mut facts = Vec::with_capacity(4 * page.len());
                for record in &page {
                    let of_record = self.facts(record);
                    for fact in &of_record {
                        kept.keep(stream.name == "events", &record.record_id, fact)?;
                    }
                    facts.extend(of_record);
                }
                let (points_to, known) = self.points_to(&page, &facts).await?;
                self.sort_out(points_to, since_us, &mut outside).await?;
                let mut is_new = |fact: &Fact| match fact {
                    Fact::Alias(alias) => heard.is_news(alias),
                    Fact::ProviderEffect(effect) => known.get(&effect.object_id) != Some(&effect.intent),
                    _ => true,
                };
                facts.retain(&mut is_new);
                learnt.add(&self.reading.scope, &page, facts);
                if learnt.is_full() {
                    keeper.keep(std::mem::take(&mut learnt)).await?;
                }
            }
        }
        keeper.keep(learnt).await?;
        keeper.end().await?;
        kept.flush()?;
        Ok(outside)
    }

    /// Keeps the aliases and intents of these records, wherever in time they lie.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn learn(&self, ids: &BTreeSet<String>) -> Result<()> {
        let ids: Vec<&String> = ids.iter().collect();
        for chunk in ids.chunks(BY_ID_MAX) {
            let chunk = chunk.iter().map(|id| (*id).clone()).collect();
            let records = store::records_by_id(self.store, &self.reading.scope, &chunk, None).await?;
            let mut learnt = Learnt::default();
            let facts = records.iter().flat_map(|record| self.facts(record)).collect();
            learnt.add(&self.reading.scope, &records, facts);
            learnt.keep(self.store.clone(), self.reading.scope.clone()).await?;
        }
        Ok(())
    }

    /// Hands the window's facts to `sink`: every record created inside, and every record outside that
    /// one of them points to (a late capture moves money long after its charge was made), or that is a
    /// charge for the same intent as one of them.
    ///
    /// # Errors
    /// When the store, the file of facts or the sink fails.
    pub async fn scan(&self, surveyed: &Surveyed, sink: &mut dyn FnMut(Fact) -> Result<()>) -> Result<()> {
        let late = self.late(surveyed).await?;
        let is_current = |record_id: &[u8]| {
            late.inside.is_empty()
                || std::str::from_utf8(record_id).is_ok_and(|record_id| !late.inside.contains(record_id))
        };
        for block in 0..surveyed.facts.blocks() {
            let is_wanted = |head: super::window_facts::Head<'_>| head.is_event || is_current(head.record_id);
            let mut facts = surveyed.facts.read(block, is_wanted)?;
            self.follow_roots(&mut facts).await?;
            for fact in facts {
                sink(fact)?;
            }
        }
        let mut wanted = late.outside;
        wanted.extend(surveyed.outside.iter().cloned());
        let mut asked = BTreeSet::new();
        self.hand_on(&late.inside, None, &mut wanted, sink).await?;
        while !wanted.is_empty() {
            let mut next = BTreeSet::new();
            self.hand_on(&wanted, Some(self.reading.window), &mut next, sink).await?;
            asked.append(&mut wanted);
            next.retain(|id| !asked.contains(id));
            wanted = next;
        }
        Ok(())
    }

    /// Hands on the facts of stored records with these ids, and adds what they point to.
    async fn hand_on(
        &self,
        ids: &BTreeSet<String>,
        outside: Option<Window>,
        point_to: &mut BTreeSet<String>,
        sink: &mut dyn FnMut(Fact) -> Result<()>,
    ) -> Result<()> {
        let ids: Vec<&String> = ids.iter().collect();
        for chunk in ids.chunks(BY_ID_MAX) {
            let chunk = chunk.iter().map(|id| (*id).clone()).collect();
            let records = store::records_by_id(self.store, &self.reading.scope, &chunk, outside).await?;
            let facts = self.resolved(&records).await?;
            point_to.extend(self.points_to(&records, &facts).await?.0.into_keys());
            for fact in facts {
                sink(fact)?;
            }
        }
        Ok(())
    }

    /// What of the records that were read since belongs to the window.
    async fn late(&self, surveyed: &Surveyed) -> Result<Late> {
        let mut late = Late::default();
        let ids: Vec<&String> = surveyed.late.iter().collect();
        for chunk in ids.chunks(BY_ID_MAX) {
            let chunk = chunk.iter().map(|id| (*id).clone()).collect();
            let records = store::records_by_id(self.store, &self.reading.scope, &chunk, None).await?;
            let (inside, outside): (Vec<_>, Vec<_>) =
                records.into_iter().partition(|record| self.reading.window.contains(record.created_us));
            late.inside.extend(inside.into_iter().map(|record| record.record_id));
            late.outside.extend(self.beside(&outside).await?);
        }
        Ok(late)
    }

    /// Charges among these for whose intent a charge lies in the window.
    async fn beside(&self, records: &[StoredRecord]) -> Result<BTreeSet<String>> {
        let mut intents: BTreeMap<String, String> = BTreeMap::new();
        for fact in records.iter().flat_map(|record| self.facts(record)) {
            if let Fact::ProviderEffect(effect) = fact
                && has_intent(&effect)
            {
                intents.insert(effect.object_id, effect.intent);
            }
        }
        let scope = &self.reading.scope;
        let charges =
            store::charges_of_intents(self.store, scope, &intents.values().cloned().collect()).await?;
        let ages = store::record_ages(self.store, scope, &charges.keys().cloned().collect()).await?;
        let inside = ages.iter().filter(|(_, created_us, _)| self.reading.window.contains(*created_us));
        let inside: BTreeSet<&String> = inside.filter_map(|(id, _, _)| charges.get(id)).collect();
        Ok(intents.iter().filter(|(_, intent)| inside.contains(intent)).map(|(id, _)| id.clone()).collect())
    }

    /// Keeps what every stored charge was made for, where the setting says something else than the rows.
    async fn keep_all_intents(&self) -> Result<()> {
        let scope = &self.reading.scope;
        let path = self.reading.intent.as_deref().unwrap_or_default();
        if store::intents_kept_under(self.store, scope).await?.as_deref() == Some(path) {
            return Ok(());
        }
        let mut keeper = Keeper { side: *self, task: None };
        let mut learnt = Learnt::default();
        let mut pages = Pages::of(self.store, scope, "charges", ALWAYS);
        while let Some(page) = pages.next().await? {
            learnt.add(scope, &page, page.iter().flat_map(|record| self.facts(record)).collect());
            learnt.aliases.clear();
            if learnt.is_full() {
                keeper.keep(std::mem::take(&mut learnt)).await?;
            }
        }
        keeper.keep(learnt).await?;
        keeper.end().await?;
        store::set_intents_kept_under(self.store, scope, path).await
    }

    /// What records name, with its stream, and the other charges for the intents of their charges; and the charges that
    /// are kept for these intents.
    pub(super) async fn points_to(
        &self,
        records: &[StoredRecord],
        facts: &[Fact],
    ) -> Result<(BTreeMap<String, &'static str>, BTreeMap<String, String>)> {
        let named = records.iter().flat_map(|record| stripe::references(&record.stream, &record.body));
        let mut found: BTreeMap<String, &'static str> = named.map(|(stream, id)| (id, stream)).collect();
        let mut intents = BTreeSet::new();
        let mut own = BTreeSet::new();
        for fact in facts {
            if let Fact::ProviderEffect(effect) = fact
                && has_intent(effect)
            {
                intents.insert(effect.intent.clone());
                own.insert(effect.object_id.as_str());
            }
        }
        let charges = store::charges_of_intents(self.store, &self.reading.scope, &intents).await?;
        let others = charges.keys().filter(|id| !own.contains(id.as_str()));
        found.extend(others.map(|id| (id.clone(), "charges")));
        Ok((found, charges))
    }
}

/// Records that were read after the window was.
#[derive(Debug, Default)]
struct Late {
    /// Those that lie in the window.
    inside: BTreeSet<String>,
    /// Charges outside of it that belong to a purchase in it.
    outside: BTreeSet<String>,
}
