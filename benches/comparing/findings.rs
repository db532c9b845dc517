//! From suspicious payments to findings: the relations are read once more, what belongs to those payments
//! is kept, and the engine's rules judge it. A run loads these groups from its store instead.

use super::generate;
use super::relations::{Relation, Source, flag, minor, records, status_of, unknown};
use super::world::{Line, World, is_in_sql};
use anyhow::{Context as _, Result, anyhow};
use recon::findings::Context;
use recon::record::{
    EffectKind, InboxEvent, LocalEffect, LocalState, ProviderEffect, ProviderEvent, ProviderState, Scope,
    Tracks,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

/// Ids to keep, per scope.
#[derive(Default)]
pub(crate) struct Wanted(HashMap<Scope, HashSet<String>>);

impl Wanted {
    pub(crate) fn add(&mut self, scope: Scope, id: String) {
        self.0.entry(scope).or_default().insert(id);
    }

    /// The scope, if the id is wanted in it. There are few scopes and many records.
    fn scope(&self, provider: &str, account: &str, mode: &str, id: &str) -> Option<Scope> {
        let same = |scope: &Scope| {
            &*scope.provider == provider && &*scope.account == account && &*scope.mode == mode
        };
        let (scope, ids) = self.0.iter().find(|(scope, _)| same(scope))?;
        ids.contains(id).then(|| scope.clone())
    }
}

/// What the rules find about these payments and events, one line a finding, as the rules in SQL say it.
pub(crate) fn find(
    folder: &Path,
    roots: &Wanted,
    mut events: Wanted,
    threads: usize,
) -> Result<BTreeSet<String>> {
    const OF_ROOTS: [Relation; 5] = [
        Relation::ProviderEvent,
        Relation::ProviderEffect,
        Relation::LocalEffect,
        Relation::ProviderState,
        Relation::LocalState,
    ];
    let mut world = collect(folder, &OF_ROOTS, roots, threads)?;
    for event in &world.provider_events {
        events.add(event.scope.clone(), event.event_id.clone());
    }
    world.inbox_events = collect(folder, &[Relation::InboxEvent], &events, threads)?.inbox_events;
    // The relations have resolved ids: what a row names is no alias that still has to be looked up.
    for row in world.local_effects.iter().filter(|row| row.kind != EffectKind::Credit) {
        let parts = world.parts.entry((row.scope.clone(), row.root_id.clone())).or_default();
        parts.insert(row.object_id.clone());
    }
    let context = Context {
        unread: recon::findings::Unread::NONE,
        window: generate::window(),
        pending_since_us: i64::MAX,
        has_event_leg: true,
        provider_was_asked: true,
    };
    let (judged, findings) = world.judge(&context);
    let of_groups = judged.iter().flat_map(|(_, judgement)| &judgement.findings);
    let in_sql = of_groups.chain(&findings).filter(|finding| is_in_sql(finding.kind));
    Ok(in_sql.map(|finding| text(&Line::from(finding))).collect())
}

fn text(line: &Line) -> String {
    let number = |minor: Option<i64>| minor.map_or_else(String::new, |minor| minor.to_string());
    [
        line.kind.as_str(),
        &line.cause,
        &line.provider,
        &line.account,
        &line.mode,
        &line.object_id,
        &line.effect,
        &line.currency,
        &number(line.expected_minor),
        &number(line.found_minor),
        &line.expected_state,
        &line.found_state,
    ]
    .join("|")
}

fn collect(folder: &Path, relations: &[Relation], wanted: &Wanted, threads: usize) -> Result<World> {
    let source = Source::open(folder, relations)?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| read(&source, wanted))).collect();
        let mut world = World::default();
        for worker in workers {
            world.extend(worker.join().map_err(|_| anyhow!("a reader broke down"))??);
        }
        Ok(world)
    })
}

fn read(source: &Source, wanted: &Wanted) -> Result<World> {
    let mut kept = Kept { wanted, world: World::default() };
    let mut block = Vec::new();
    while let Some(relation) = source.next_block(&mut block)? {
        let text = std::str::from_utf8(&block)?;
        match relation {
            Relation::ProviderEvent => records(&mut kept, text, Kept::provider_event),
            Relation::InboxEvent => records(&mut kept, text, Kept::inbox_event),
            Relation::ProviderEffect => records(&mut kept, text, Kept::provider_effect),
            Relation::LocalEffect => records(&mut kept, text, Kept::local_effect),
            Relation::ProviderState => records(&mut kept, text, Kept::provider_state),
            Relation::LocalState => records(&mut kept, text, Kept::local_state),
        }
        .with_context(|| format!("read {relation:?}"))?;
    }
    Ok(kept.world)
}

/// The facts of wanted ids.
struct Kept<'a> {
    wanted: &'a Wanted,
    world: World,
}

impl Kept<'_> {
    fn provider_event(&mut self, fields: [&str; 11]) -> Result<()> {
        let [provider, account, mode, root, object, event, event_type, tracks, created, wanted, settled] =
            fields;
        let Some(scope) = self.wanted.scope(provider, account, mode, root) else { return Ok(()) };
        self.world.provider_events.push(ProviderEvent {
            scope,
            root_id: root.to_owned(),
            object_id: object.to_owned(),
            event_id: event.to_owned(),
            event_type: event_type.to_owned(),
            tracks: match tracks {
                "" => Tracks::Nothing,
                "state" => Tracks::State,
                kind => Tracks::Effect(effect_kind(kind)?),
            },
            created_us: created.parse()?,
            wanted: flag(wanted)?,
            settled: flag(settled)?,
        });
        Ok(())
    }

    fn inbox_event(&mut self, fields: [&str; 8]) -> Result<()> {
        let [provider, account, mode, event, event_type, received, status, body] = fields;
        let Some(scope) = self.wanted.scope(provider, account, mode, event) else { return Ok(()) };
        self.world.inbox_events.push(InboxEvent {
            scope,
            event_id: event.to_owned(),
            event_type: event_type.to_owned(),
            received_at_us: received.parse()?,
            status: status.parse().map_err(|()| unknown(status))?,
            body_sha256: body.to_owned(),
        });
        Ok(())
    }

    fn provider_effect(&mut self, fields: [&str; 11]) -> Result<()> {
        let [provider, account, mode, root, object, kind, amount, currency, at, intent, in_window] = fields;
        let Some(scope) = self.wanted.scope(provider, account, mode, root) else { return Ok(()) };
        self.world.provider_effects.push(ProviderEffect {
            scope,
            root_id: root.to_owned(),
            object_id: object.to_owned(),
            kind: effect_kind(kind)?,
            amount_minor: amount.parse()?,
            currency: currency.to_owned(),
            occurred_at_us: at.parse()?,
            intent: intent.to_owned(),
            in_window: flag(in_window)?,
        });
        Ok(())
    }

    fn local_effect(&mut self, fields: [&str; 13]) -> Result<()> {
        let [provider, account, mode, root, object, id, kind, amount, currency, at, event, corrects, inside] =
            fields;
        let Some(scope) = self.wanted.scope(provider, account, mode, root) else { return Ok(()) };
        self.world.local_effects.push(LocalEffect {
            scope,
            root_id: root.to_owned(),
            object_id: object.to_owned(),
            effect_id: id.to_owned(),
            kind: effect_kind(kind)?,
            amount_minor: amount.parse()?,
            currency: currency.to_owned(),
            applied_at_us: at.parse()?,
            event_id: event.to_owned(),
            corrects_effect_id: corrects.to_owned(),
            in_window: flag(inside)?,
        });
        Ok(())
    }

    fn provider_state(&mut self, fields: [&str; 9]) -> Result<()> {
        let [provider, account, mode, root, object, status, refunded, authorized, at] = fields;
        let Some(scope) = self.wanted.scope(provider, account, mode, root) else { return Ok(()) };
        self.world.provider_states.push(ProviderState {
            scope,
            root_id: root.to_owned(),
            object_id: object.to_owned(),
            status: status_of(status)?,
            refunded_minor: minor(refunded)?,
            authorized_minor: minor(authorized)?,
            at_us: at.parse()?,
        });
        Ok(())
    }

    fn local_state(&mut self, fields: [&str; 9]) -> Result<()> {
        let [provider, account, mode, root, object, status, refunded, updated, changed_by] = fields;
        let Some(scope) = self.wanted.scope(provider, account, mode, root) else { return Ok(()) };
        self.world.local_states.push(LocalState {
            scope,
            root_id: root.to_owned(),
            object_id: object.to_owned(),
            status: status_of(status)?,
            refunded_minor: minor(refunded)?,
            updated_at_us: updated.parse()?,
            changed_by: changed_by.to_owned(),
        });
        Ok(())
    }
}

fn effect_kind(text: &str) -> Result<EffectKind> {
    text.parse().map_err(|()| unknown(text))
}
