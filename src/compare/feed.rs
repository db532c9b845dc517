//! A feed takes facts, puts them into compact form and scatters them over partitions.
//!
//! Each thread that gathers has a feed of its own. A feed must be closed: one that was dropped has
//! lost facts, and the comparison then refuses to end.

use super::leg::LegKind;
use super::scatter::{Scatter, Stored};
use super::totals::{Counts, ScopeSums};
use super::{Shared, event_leg, root_leg};
use crate::compact::{put_signed, put_text, put_varint};
use crate::record::{EffectKind, InboxStatus, Scope, Status, Window};
use anyhow::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a scope, good for every feed of one comparer that has been told of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeId(u32);

/// The fields of an effect of either side that are compared; units as in the facts.
#[derive(Clone, Copy, Debug)]
pub struct EffectRow<'a> {
    /// Group.
    pub root_id: &'a str,
    /// Anchor.
    pub object_id: &'a str,
    /// Kind.
    pub kind: EffectKind,
    /// Minor units.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: &'a str,
    /// When it occurred or was applied, Unix µs.
    pub at_us: i64,
    /// Whether that lies in the window.
    pub in_window: bool,
}

/// What a closed feed leaves behind.
#[derive(Debug)]
pub(super) struct Part {
    /// By leg and partition.
    pub(super) stored: Stored,
    pub(super) sums: Vec<(u32, ScopeSums)>,
    pub(super) counts: Counts,
}

/// One scope as a feed knows it.
#[derive(Debug)]
struct KnownScope {
    /// Ranges in which the provider lists events; `None` where nothing was said: then all of them.
    covered: Option<Vec<Window>>,
    sums: ScopeSums,
}

/// Takes facts. Get one from [`super::Comparer::feed`].
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
    scattered: Scatter,
    scopes: Vec<Option<KnownScope>>,
    ids: BTreeMap<Scope, ScopeId>,
    last_scope: Option<(Scope, ScopeId)>,
    pub(super) counts: Counts,
    record: Vec<u8>,
    /// Bytes of scope and key at the start of `record`.
    key_len: usize,
}

impl Feed {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self> {
        let scattered = Scatter::new(&shared.folder, shared.plan, shared.hash, LegKind::ALL.len())?;
        Ok(Self {
            shared,
            scattered,
            scopes: Vec::new(),
            ids: BTreeMap::new(),
            last_scope: None,
            counts: Counts::default(),
            record: Vec::new(),
            key_len: 0,
        })
    }

    /// Tells the feed of a scope.
    pub fn scope(&mut self, scope: &Scope) -> ScopeId {
        if let Some((_, id)) = self.last_scope.as_ref().filter(|(last, _)| last == scope) {
            return *id;
        }
        if let Some(id) = self.ids.get(scope) {
            self.last_scope = Some((scope.clone(), *id));
            return *id;
        }
        let number = self.shared.number_of(scope);
        let place = number as usize;
        if self.scopes.len() <= place {
            self.scopes.resize_with(place + 1, || None);
        }
        self.scopes[place].get_or_insert_with(|| KnownScope {
            covered: self.shared.covered.get(scope).cloned(),
            sums: ScopeSums::default(),
        });
        self.ids.insert(scope.clone(), ScopeId(number));
        ScopeId(number)
    }

    /// Takes an event that the provider lists.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn provider_event(
        &mut self,
        scope: ScopeId,
        event_id: &str,
        root_id: &str,
        wanted: bool,
    ) -> Result<()> {
        self.counts.provider_events += 1;
        self.open_record(scope, event_id);
        self.record.push(event_leg::PROVIDER);
        self.record.push(if wanted { event_leg::IS_WANTED } else { 0 });
        self.record.extend_from_slice(root_id.as_bytes());
        self.scatter(LegKind::Event)
    }

    /// Takes an inbox row.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn inbox_event(
        &mut self,
        scope: ScopeId,
        event_id: &str,
        status: InboxStatus,
        received_at_us: i64,
    ) -> Result<()> {
        self.counts.inbox_events += 1;
        let is_done = matches!(status, InboxStatus::Applied | InboxStatus::Superseded | InboxStatus::Ignored);
        let is_covered = match &self.known(scope).covered {
            Some(ranges) => ranges.iter().any(|range| range.contains(received_at_us)),
            None => true,
        };
        self.open_record(scope, event_id);
        self.record.push(event_leg::INBOX);
        let done = if is_done { event_leg::IS_DONE } else { 0 };
        self.record.push(done | if is_covered { event_leg::IS_COVERED } else { 0 });
        self.scatter(LegKind::Event)
    }

    /// Takes an effect that the provider proves.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn provider_effect(&mut self, scope: ScopeId, row: &EffectRow<'_>, intent: &str) -> Result<()> {
        self.counts.provider_effects += 1;
        if row.in_window {
            let sums = self.known(scope).sums.of(row.currency, row.kind);
            sums.provider_minor += i128::from(row.amount_minor);
        }
        if row.kind == EffectKind::Credit && !intent.is_empty() {
            self.open_record(scope, intent);
            self.record.extend_from_slice(row.root_id.as_bytes());
            self.scatter(LegKind::Intent)?;
        }
        let flags = if row.in_window { root_leg::IS_IN_WINDOW } else { 0 };
        self.effect(scope, row, root_leg::SIDE_PROVIDER, flags)
    }

    /// Takes a local row. `is_correction`: it undoes another row. `event_id` is empty where it names
    /// none.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn local_effect(
        &mut self,
        scope: ScopeId,
        row: &EffectRow<'_>,
        event_id: &str,
        is_correction: bool,
    ) -> Result<()> {
        self.counts.local_effects += 1;
        if row.in_window {
            let sums = self.known(scope).sums.of(row.currency, row.kind);
            sums.local_minor += i128::from(row.amount_minor);
        }
        if !event_id.is_empty() {
            // A row booked late may name an event of long ago; one booked early cannot name a later one.
            let is_covered = match &self.known(scope).covered {
                Some(ranges) => ranges.iter().any(|range| range.from_us <= row.at_us),
                None => true,
            };
            self.open_record(scope, event_id);
            self.record.push(event_leg::LOCAL);
            self.record.push(if is_covered { event_leg::IS_COVERED } else { 0 });
            self.record.extend_from_slice(row.root_id.as_bytes());
            self.scatter(LegKind::Event)?;
        }
        let in_window = if row.in_window { root_leg::IS_IN_WINDOW } else { 0 };
        let correction = if is_correction { root_leg::IS_CORRECTION } else { 0 };
        self.effect(scope, row, root_leg::SIDE_LOCAL, in_window | correction)
    }

    /// Takes a record's word on the status of a payment.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn provider_state(
        &mut self,
        scope: ScopeId,
        root_id: &str,
        status: Status,
        refunded_minor: Option<i64>,
        authorized_minor: Option<i64>,
    ) -> Result<()> {
        self.counts.provider_states += 1;
        self.open_record(scope, root_id);
        self.state(root_leg::PROVIDER_STATE, status, refunded_minor, authorized_minor)
    }

    /// Takes a local status row.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn local_state(
        &mut self,
        scope: ScopeId,
        root_id: &str,
        status: Status,
        refunded_minor: Option<i64>,
    ) -> Result<()> {
        self.counts.local_states += 1;
        self.open_record(scope, root_id);
        self.state(root_leg::LOCAL_STATE, status, refunded_minor, None)
    }

    /// Takes a note: its root is suspicious whatever else is known.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn note(&mut self, scope: ScopeId, root_id: &str) -> Result<()> {
        self.counts.notes += 1;
        self.open_record(scope, root_id);
        self.record.push(root_leg::NOTE);
        self.scatter(LegKind::Root)
    }

    /// Hands everything to the comparer.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn close(self) -> Result<()> {
        let sums = (0..).zip(self.scopes).filter_map(|(number, known)| Some((number, known?.sums))).collect();
        self.shared.take(Part { stored: self.scattered.close()?, sums, counts: self.counts });
        Ok(())
    }

    fn known(&mut self, scope: ScopeId) -> &mut KnownScope {
        let known = self.scopes.get_mut(scope.0 as usize).and_then(Option::as_mut);
        let Some(known) = known else { panic!("scope number {} was not made by this feed", scope.0) };
        known
    }

    #[inline]
    fn open_record(&mut self, scope: ScopeId, key: &str) {
        self.record.clear();
        put_varint(&mut self.record, u64::from(scope.0));
        put_text(&mut self.record, key.as_bytes());
        self.key_len = self.record.len();
    }

    fn effect(&mut self, scope: ScopeId, row: &EffectRow<'_>, side: u8, flags: u8) -> Result<()> {
        self.open_record(scope, row.root_id);
        let record = &mut self.record;
        record.push(root_leg::EFFECT);
        record.push(row.kind as u8);
        put_text(record, row.object_id.as_bytes());
        put_text(record, row.currency.as_bytes());
        record.push(side);
        record.push(flags);
        put_signed(record, row.amount_minor);
        put_signed(record, row.at_us);
        self.scatter(LegKind::Root)
    }

    fn state(
        &mut self,
        tag: u8,
        status: Status,
        refunded: Option<i64>,
        authorized: Option<i64>,
    ) -> Result<()> {
        let record = &mut self.record;
        record.push(tag);
        record.push(status as u8);
        let has_refunded = if refunded.is_some() { root_leg::HAS_REFUNDED } else { 0 };
        record.push(has_refunded | if authorized.is_some() { root_leg::HAS_AUTHORIZED } else { 0 });
        for minor in [refunded, authorized].into_iter().flatten() {
            put_signed(record, minor);
        }
        self.scatter(LegKind::Root)
    }

    /// Appends the record to the partition that its key's hash names.
    #[inline]
    fn scatter(&mut self, leg: LegKind) -> Result<()> {
        self.scattered.append(leg as usize, &self.record, self.key_len)
    }
}
