//! Owned facts into a feed: each takes the borrowed form's way.

use super::feed::{EffectRow, Feed};
use crate::record::Fact;
use anyhow::Result;

impl Feed {
    /// Takes a fact.
    ///
    /// # Errors
    /// When a spill file cannot be written.
    pub fn add(&mut self, fact: &Fact) -> Result<()> {
        match fact {
            Fact::ProviderEvent(event) => {
                let scope = self.scope(&event.scope);
                self.provider_event(scope, &event.event_id, &event.root_id, event.wanted)
            }
            Fact::InboxEvent(event) => {
                let scope = self.scope(&event.scope);
                self.inbox_event(scope, &event.event_id, event.status, event.received_at_us)
            }
            Fact::ProviderEffect(effect) => {
                let scope = self.scope(&effect.scope);
                let row = EffectRow {
                    root_id: &effect.root_id,
                    object_id: &effect.object_id,
                    kind: effect.kind,
                    amount_minor: effect.amount_minor,
                    currency: &effect.currency,
                    at_us: effect.occurred_at_us,
                    in_window: effect.in_window,
                };
                self.provider_effect(scope, &row, &effect.intent)
            }
            Fact::LocalEffect(effect) => {
                let scope = self.scope(&effect.scope);
                let row = EffectRow {
                    root_id: &effect.root_id,
                    object_id: &effect.object_id,
                    kind: effect.kind,
                    amount_minor: effect.amount_minor,
                    currency: &effect.currency,
                    at_us: effect.applied_at_us,
                    in_window: effect.in_window,
                };
                self.local_effect(scope, &row, &effect.event_id, !effect.corrects_effect_id.is_empty())
            }
            Fact::ProviderState(state) => {
                let scope = self.scope(&state.scope);
                let (refunded, authorized) = (state.refunded_minor, state.authorized_minor);
                self.provider_state(scope, &state.root_id, state.status, refunded, authorized)
            }
            Fact::LocalState(state) => {
                let scope = self.scope(&state.scope);
                self.local_state(scope, &state.root_id, state.status, state.refunded_minor)
            }
            Fact::Alias(_) => {
                self.counts.aliases += 1;
                Ok(())
            }
            Fact::Note(note) => {
                let scope = self.scope(&note.scope);
                self.note(scope, &note.root_id)
            }
        }
    }
}
