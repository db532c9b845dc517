//! Loads groups whole: everything of a payment on all sides and over all time, asking each side for
//! the very ids before anybody is accused.

use super::window_facts::WindowFacts;
use super::{Inbox, LocalBooks, Moment, ProviderSide};
use crate::findings::Group;
use crate::provider::stripe::Reading;
use crate::record::{Fact, InboxEvent, LocalEffect};
use crate::store;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// The three sides of one scope. A side that the team does not have is `None`.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// Stored records.
    pub provider: ProviderSide<'a>,
    /// Local books.
    pub local: Option<&'a LocalBooks>,
    /// The inbox.
    pub inbox: Option<&'a Inbox>,
    /// Where the events of the window are looked for.
    pub facts: &'a WindowFacts,
}

impl Sides<'_> {
    /// The groups of these roots, whole, by root.
    ///
    /// # Errors
    /// When a side cannot be read.
    pub async fn load(&self, roots: &BTreeSet<String>) -> Result<BTreeMap<String, Group>> {
        let mut groups: BTreeMap<String, Group> =
            roots.iter().map(|root| (root.clone(), Group::default())).collect();
        let (facts, aliases) = self.provider.whole_objects(roots).await?;
        let mut names: BTreeSet<String> = aliases.iter().map(|alias| alias.alias_id.clone()).collect();
        names.extend(roots.iter().cloned());
        for alias in aliases {
            if let Some(group) = groups.get_mut(&alias.root_id).filter(|_| alias.is_part) {
                group.parts.insert(alias.alias_id);
            }
        }
        for fact in facts {
            put_provider_fact(&mut groups, fact);
        }
        self.add_events(&names, &mut groups).await?;
        let mut moment = Moment::begin(self.local, self.inbox).await?;
        self.add_local(&mut moment, roots, &mut groups).await?;
        self.add_foreign_events(&mut groups).await?;
        self.add_inbox(&mut moment, &mut groups).await?;
        moment.end().await?;
        Ok(groups)
    }

    /// The window's events whose record names one of these: the ids of the groups.
    async fn add_events(&self, names: &BTreeSet<String>, groups: &mut BTreeMap<String, Group>) -> Result<()> {
        let is_named = |root: &[u8]| std::str::from_utf8(root).is_ok_and(|root| names.contains(root));
        for block in 0..self.facts.blocks() {
            let mut facts = self.facts.read(block, |head| head.is_event && is_named(head.root_id))?;
            self.provider.follow_roots(&mut facts).await?;
            for fact in facts {
                put_provider_fact(groups, fact);
            }
        }
        Ok(())
    }

    /// Local rows of the groups' ids over all time, and rows elsewhere that name one of their events.
    async fn add_local(
        &self,
        moment: &mut Moment<'_>,
        roots: &BTreeSet<String>,
        groups: &mut BTreeMap<String, Group>,
    ) -> Result<()> {
        let reading = self.provider.reading;
        let mut rows = Rows::default();
        moment.effects_of(&reading.scope, roots, &mut |fact| rows.keep(reading, fact)).await?;
        let mut roots_of_event: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (root, group) in groups.iter() {
            for event in &group.provider_events {
                roots_of_event.entry(event.event_id.clone()).or_default().insert(root.clone());
            }
        }
        let event_ids: BTreeSet<String> = roots_of_event.keys().cloned().collect();
        let mut by_event = Rows::default();
        let mut keep = |fact| by_event.keep(reading, fact);
        moment.effects_of_events(&reading.scope, &event_ids, &mut keep).await?;
        rows.add(by_event);
        // What undoes a row that is booked elsewhere stands there, too.
        let elsewhere: BTreeSet<String> =
            rows.0.keys().map(|row| row.root_id.clone()).filter(|root| !groups.contains_key(root)).collect();
        let mut undoing = Rows::default();
        moment.effects_of(&reading.scope, &elsewhere, &mut |fact| undoing.keep(reading, fact)).await?;
        rows.add(undoing);
        rows.share_out(&roots_of_event, groups);
        let mut keep_state = |fact: Fact| {
            if let Fact::LocalState(state) = fact
                && let Some(group) = groups.get_mut(&state.root_id)
                && !group.local_states.contains(&state)
            {
                group.local_states.push(state);
            }
            Ok(())
        };
        moment.states_of(&reading.scope, roots, &mut keep_state).await?;
        Ok(())
    }

    /// Events of other groups that a row of a group names: the row may be booked on the wrong object.
    async fn add_foreign_events(&self, groups: &mut BTreeMap<String, Group>) -> Result<()> {
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (root, group) in groups.iter() {
            let known: BTreeSet<&String> =
                group.provider_events.iter().map(|event| &event.event_id).collect();
            let own_rows =
                group.local_effects.iter().filter(|row| row.root_id == *root && !row.event_id.is_empty());
            for row in own_rows.filter(|row| !known.contains(&row.event_id)) {
                named.entry(row.event_id.clone()).or_default().push(root.clone());
            }
        }
        let ids: BTreeSet<String> = named.keys().cloned().collect();
        for event in self.provider.events_by_id(&ids).await? {
            for root in named.get(&event.event_id).into_iter().flatten() {
                if let Some(group) = groups.get_mut(root) {
                    group.provider_events.push(event.clone());
                }
            }
        }
        Ok(())
    }

    /// Inbox rows of every event that the groups hold.
    async fn add_inbox(&self, moment: &mut Moment<'_>, groups: &mut BTreeMap<String, Group>) -> Result<()> {
        let mut holders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (root, group) in groups.iter() {
            for event in &group.provider_events {
                holders.entry(event.event_id.clone()).or_default().push(root.clone());
            }
        }
        let ids: BTreeSet<String> = holders.keys().cloned().collect();
        let mut rows: Vec<InboxEvent> = Vec::new();
        moment
            .events_of(&self.provider.reading.scope, &ids, &mut |fact| {
                if let Fact::InboxEvent(row) = fact {
                    rows.push(row);
                }
                Ok(())
            })
            .await?;
        for row in rows {
            for root in holders.get(&row.event_id).into_iter().flatten() {
                if let Some(group) = groups.get_mut(root) {
                    group.inbox_events.push(row.clone());
                }
            }
        }
        Ok(())
    }
}

/// Local rows, and how often each was given: bookings of one second whose statement gives them one id
/// may differ in no column, and are still two.
#[derive(Debug, Default)]
struct Rows(BTreeMap<LocalEffect, usize>);

impl Rows {
    #[expect(clippy::unnecessary_wraps, reason = "the shape of a sink")]
    fn keep(&mut self, reading: &Reading, fact: Fact) -> Result<()> {
        if let Fact::LocalEffect(row) = fact
            && reading.effects.contains(&row.kind)
        {
            *self.0.entry(row).or_default() += 1;
        }
        Ok(())
    }

    /// Adds another search. Each search gives every row that it finds once, so a row that several found
    /// is there as often as in the one that gave it most often.
    fn add(&mut self, other: Self) {
        for (row, count) in other.0 {
            let times = self.0.entry(row).or_default();
            *times = count.max(*times);
        }
    }

    /// Gives every row to its own group, and to each group one of whose events it names, together with
    /// the rows that share its id or undo it.
    fn share_out(
        &self,
        roots_of_event: &BTreeMap<String, BTreeSet<String>>,
        groups: &mut BTreeMap<String, Group>,
    ) {
        let mut named_by: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
        for row in self.0.keys() {
            for root in roots_of_event.get(&row.event_id).into_iter().flatten() {
                named_by.entry(&row.effect_id).or_default().insert(root);
            }
        }
        for (row, count) in &self.0 {
            let mut homes = BTreeSet::from([&row.root_id]);
            homes.extend(named_by.get(row.effect_id.as_str()).into_iter().flatten());
            homes.extend(named_by.get(row.corrects_effect_id.as_str()).into_iter().flatten());
            for home in homes {
                if let Some(group) = groups.get_mut(home) {
                    group.local_effects.extend(std::iter::repeat_n(row.clone(), *count));
                }
            }
        }
    }
}

fn put_provider_fact(groups: &mut BTreeMap<String, Group>, fact: Fact) {
    match fact {
        Fact::ProviderEvent(event) => {
            if let Some(group) = groups.get_mut(&event.root_id) {
                group.provider_events.push(event);
            }
        }
        Fact::ProviderEffect(effect) => {
            if let Some(group) = groups.get_mut(&effect.root_id) {
                group.provider_effects.push(effect);
            }
        }
        Fact::ProviderState(state) => {
            if let Some(group) = groups.get_mut(&state.root_id) {
                group.provider_states.push(state);
            }
        }
        Fact::Note(note) => {
            if let Some(group) = groups.get_mut(&note.root_id) {
                group.notes.push(note);
            }
        }
        Fact::InboxEvent(_) | Fact::LocalEffect(_) | Fact::LocalState(_) | Fact::Alias(_) => {}
    }
}

/// Ids that a group's local rows carry and that no record of the provider stands behind.
///
/// # Errors
/// When the store cannot be read.
pub async fn ids_without_record(
    sides: &Sides<'_>,
    groups: &BTreeMap<String, Group>,
) -> Result<BTreeSet<String>> {
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for (root, group) in groups {
        let has = |row: &LocalEffect| group.provider_effects.iter().any(|effect| effect.kind == row.kind);
        let lonely = group.local_effects.iter().filter(|row| row.root_id == *root && !has(row));
        ids.extend(lonely.map(|row| row.object_id.clone()));
        if group.provider_states.is_empty() {
            ids.extend(group.local_states.iter().map(|state| state.object_id.clone()));
        }
    }
    let scope = &sides.provider.reading.scope;
    let targets = store::aliases_of_roots(sides.provider.store, scope, &ids).await?;
    ids.extend(targets.into_iter().map(|alias| alias.alias_id));
    Ok(ids)
}
