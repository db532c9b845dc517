//! Local books: the rows of the team's `effects.sql` and `states.sql` become facts.
//!
//! Rows are streamed in batches and handed on, so memory does not grow with the books. A row that the
//! contract does not allow stops the run (exit 78) and is named; it is never skipped or repaired.

use super::columns::{Columns, Contract, RowReader, Scopes};
use super::dialect::Dialect;
use super::reader::Reader;
use super::source::{BATCH_ROWS, FILTER_IDS, FactSink, Source, window_binds};
use super::statement::Statement;
use crate::config::{Settings, Unusable, shown, suggestion};
use crate::record::{EffectKind, Fact, LocalEffect, LocalState, Scope, Status, Window};
use crate::store::{AliasTarget, Store, known_as, resolve};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const BINDS: [&str; 2] = ["from_us", "until_us"];
pub(super) const EFFECTS: Contract = Contract {
    required: &[
        "effect_id",
        "provider",
        "account",
        "mode",
        "object_id",
        "kind",
        "currency",
        "applied_at_us",
        "event_id",
        "corrects_effect_id",
    ],
    one_of: &["amount_minor", "amount"],
    optional: &[],
    row_id: "effect_id",
};
pub(super) const STATES: Contract = Contract {
    required: &["provider", "account", "mode", "object_id", "status", "refunded_minor", "updated_at_us"],
    one_of: &[],
    optional: &["changed_by"],
    row_id: "object_id",
};

/// The columns by which rows are looked up.
const OBJECT: &str = "object_id";
const EVENT: &str = "event_id";

/// Words that an error lists.
const WORDS_MAX: usize = 50;

/// The local side, open and checked against its contract.
#[derive(Debug)]
pub struct LocalBooks {
    pub(super) source: Source,
    store: Store,
    effects: (Statement, Columns),
    states: (Statement, Columns),
    status_map: BTreeMap<String, Status>,
    dialect: Dialect,
    window: Window,
}

#[derive(Clone, Copy)]
enum Relation {
    Effects,
    States,
}

impl LocalBooks {
    /// Opens the local side and checks both statements; `None` where the team has none. `window` is the
    /// run's: it decides `in_window`.
    ///
    /// # Errors
    /// [`Unusable`] when a statement or its columns do not keep the contract.
    pub async fn open(
        settings: &Settings,
        store: &Store,
        dialect: Dialect,
        window: Window,
    ) -> Result<Option<Self>> {
        let Some(source) = Source::open(&settings.local.side, settings, "[local] url").await? else {
            return Ok(None);
        };
        Self::over(source, settings, store, dialect, window).await.map(Some)
    }

    /// The same books over a source that is open.
    pub(super) async fn over(
        source: Source,
        settings: &Settings,
        store: &Store,
        dialect: Dialect,
        window: Window,
    ) -> Result<Self> {
        let local = &settings.local;
        let queries = &local.queries;
        let effects = source.statement(queries, "effects.sql", &BINDS, &EFFECTS, &[OBJECT, EVENT]).await?;
        let states = source.statement(queries, "states.sql", &BINDS, &STATES, &[OBJECT]).await?;
        Ok(Self {
            source,
            store: store.clone(),
            effects,
            states,
            status_map: local.status_map.clone(),
            dialect,
            window,
        })
    }

    pub(super) async fn effects(
        &self,
        reader: &mut Reader,
        window: Window,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let sql = self.effects.0.sql().to_owned();
        self.read(reader, Relation::Effects, sql, window, None, sink).await
    }

    pub(super) async fn states(
        &self,
        reader: &mut Reader,
        window: Window,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let sql = self.states.0.sql().to_owned();
        self.read(reader, Relation::States, sql, window, None, sink).await
    }

    pub(super) async fn effects_of(
        &self,
        reader: &mut Reader,
        scope: &Scope,
        ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let ids = known_as(&self.store, scope, ids).await?;
        self.read_filtered(reader, Relation::Effects, OBJECT, scope, &ids, sink).await
    }

    pub(super) async fn effects_of_events(
        &self,
        reader: &mut Reader,
        scope: &Scope,
        event_ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        self.read_filtered(reader, Relation::Effects, EVENT, scope, event_ids, sink).await
    }

    pub(super) async fn states_of(
        &self,
        reader: &mut Reader,
        scope: &Scope,
        ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let ids = known_as(&self.store, scope, ids).await?;
        self.read_filtered(reader, Relation::States, OBJECT, scope, &ids, sink).await
    }

    fn of(&self, relation: Relation) -> &(Statement, Columns) {
        match relation {
            Relation::Effects => &self.effects,
            Relation::States => &self.states,
        }
    }

    async fn read_filtered(
        &self,
        reader: &mut Reader,
        relation: Relation,
        column: &str,
        scope: &Scope,
        ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let ids = ids.iter().map(String::as_str).filter(|id| self.source.can_hold(id));
        let ids: Vec<&str> = ids.collect();
        let mut count = 0;
        // The filter knows no scope, and an id may be used in more than one.
        let mut in_scope = |fact: Fact| {
            let is_same = match &fact {
                Fact::LocalEffect(effect) => effect.scope == *scope,
                Fact::LocalState(state) => state.scope == *scope,
                _ => false,
            };
            if is_same {
                count += 1;
                sink(fact)?;
            }
            Ok(())
        };
        for batch in ids.chunks(FILTER_IDS) {
            let sql = self.of(relation).0.filtered(column, batch.len());
            let all_time = self.source.all_time();
            self.read(reader, relation, sql, all_time, Some((column, batch)), &mut in_scope).await?;
        }
        Ok(count)
    }

    async fn read(
        &self,
        reader: &mut Reader,
        relation: Relation,
        sql: String,
        window: Window,
        only: Option<(&str, &[&str])>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let (statement, columns) = self.of(relation);
        let ids = only.map_or(&[][..], |(_, ids)| ids);
        let mut rows = reader.rows(&statement.file, sql, window_binds(statement, window, ids)).await?;
        let mut unmapped = BTreeSet::new();
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        let mut scopes = Scopes::default();
        let mut number = 0;
        while let Some(row) = rows.next().await? {
            number += 1;
            let row = columns.row(&row, number);
            if !row.is_wanted(only)? {
                continue;
            }
            match relation {
                Relation::Effects => {
                    batch.push(Fact::LocalEffect(effect(&row, self.dialect, self.window, &mut scopes)?));
                }
                Relation::States => match state(&row, &self.status_map, &mut scopes)? {
                    Ok(state) => batch.push(Fact::LocalState(state)),
                    // Read on, so that one error names all words.
                    Err(word) => {
                        unmapped.insert(word);
                    }
                },
            }
            if batch.len() == BATCH_ROWS {
                self.emit(&mut batch, sink).await?;
            }
        }
        self.emit(&mut batch, sink).await?;
        refuse_unmapped(&statement.file, &unmapped)?;
        Ok(number)
    }

    /// Resolves the ids of a batch and hands it on.
    async fn emit(&self, batch: &mut Vec<Fact>, sink: FactSink<'_>) -> Result<()> {
        let mut ids: BTreeMap<Scope, BTreeSet<String>> = BTreeMap::new();
        for fact in batch.iter() {
            if let Some((scope, id)) = named(fact).filter(|(_, id)| !(self.dialect.is_final)(id)) {
                match ids.get_mut(scope) {
                    Some(ids) => drop(ids.insert(id.to_owned())),
                    None => drop(ids.insert(scope.clone(), BTreeSet::from([id.to_owned()]))),
                }
            }
        }
        let mut known = BTreeMap::new();
        for (scope, ids) in ids {
            let found = resolve(&self.store, &scope, &ids, self.dialect.is_final).await?;
            known.insert(scope, found);
        }
        for mut fact in batch.drain(..) {
            match &mut fact {
                Fact::LocalEffect(effect) => {
                    let found = known.get(&effect.scope).and_then(|ids| ids.get(&effect.object_id));
                    if let Some(AliasTarget { root_id: root, is_part }) = found {
                        effect.root_id.clone_from(root);
                        let is_anchor = *is_part || (self.dialect.is_anchor)(effect.kind, &effect.object_id);
                        if !is_anchor {
                            // It names the payment as a whole, by whichever of its ids.
                            effect.object_id.clone_from(root);
                        }
                    }
                }
                Fact::LocalState(state) => {
                    let found = known.get(&state.scope).and_then(|ids| ids.get(&state.object_id));
                    if let Some(target) = found {
                        state.root_id.clone_from(&target.root_id);
                    }
                }
                _ => {}
            }
            sink(fact)?;
        }
        Ok(())
    }
}

/// An effect as the row has it; whose payment it is of is not known yet.
pub(super) fn effect(
    row: &RowReader<'_>,
    dialect: Dialect,
    window: Window,
    scopes: &mut Scopes,
) -> Result<LocalEffect, Unusable> {
    let effect_id = row.key("effect_id")?;
    let object_id = row.key("object_id")?;
    let word = row.word("kind")?;
    let kind = word.parse::<EffectKind>().map_err(|()| {
        let known = EffectKind::ALL.map(EffectKind::as_str);
        row.bad(
            "kind",
            &format!("is {}, which is no kind of effect", shown(&word)),
            suggestion(&word, &known),
        )
    })?;
    let currency = row.currency()?;
    let amount_minor = row.amount((dialect.exponent)(&currency))?;
    let corrects_effect_id = row.text("corrects_effect_id")?;
    if amount_minor < 0 && corrects_effect_id.is_empty() {
        return Err(row.bad(
            "amount",
            "is negative, and the row undoes no other",
            "amounts are magnitudes and the kind gives the direction; name the undone row in corrects_effect_id",
        ));
    }
    let applied_at_us = row.instant("applied_at_us")?;
    Ok(LocalEffect {
        scope: row.scope(scopes)?,
        root_id: object_id.clone(),
        object_id,
        effect_id,
        kind,
        amount_minor,
        currency,
        applied_at_us,
        event_id: row.text("event_id")?,
        corrects_effect_id,
        in_window: window.contains(applied_at_us),
    })
}

/// A status row, or the word that nothing maps.
pub(super) fn state(
    row: &RowReader<'_>,
    status_map: &BTreeMap<String, Status>,
    scopes: &mut Scopes,
) -> Result<Result<LocalState, String>, Unusable> {
    let object_id = row.key("object_id")?;
    let word = row.word("status")?;
    // The team's map first, then our own words.
    let known = status_map.get(&*word).copied().or_else(|| word.parse().ok());
    let Some(status) = known else { return Ok(Err(word.into_owned())) };
    let refunded_minor = row.integer("refunded_minor")?;
    if refunded_minor.is_some_and(|minor| minor < 0) {
        return Err(row.bad("refunded_minor", "is negative", "give the refunded amount as a magnitude"));
    }
    refunded_minor.map(|minor| row.within_bound("refunded_minor", minor)).transpose()?;
    Ok(Ok(LocalState {
        scope: row.scope(scopes)?,
        root_id: object_id.clone(),
        object_id,
        status,
        refunded_minor,
        updated_at_us: row.instant("updated_at_us")?,
        changed_by: row.text("changed_by")?,
    }))
}

fn named(fact: &Fact) -> Option<(&Scope, &str)> {
    match fact {
        Fact::LocalEffect(effect) => Some((&effect.scope, &effect.object_id)),
        Fact::LocalState(state) => Some((&state.scope, &state.object_id)),
        _ => None,
    }
}

pub(super) fn refuse_unmapped(file: &str, words: &BTreeSet<String>) -> Result<(), Unusable> {
    if words.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> = words.iter().take(WORDS_MAX).map(|word| shown(word)).collect();
    let more = words.len().saturating_sub(WORDS_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let known = Status::ALL.map(Status::as_str).join(", ");
    Err(Unusable::new(
        format!("{file}: no status is known for {}{more}", listed.join(", ")),
        format!(
            "map each in [local.status_map] to one of {known}; where effects.sql lists words itself, one that means money belongs there, too"
        ),
    ))
}
