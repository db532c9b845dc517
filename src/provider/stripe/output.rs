//! Facts of one record, in the order in which they are pushed: events, effects, states, aliases, notes.

use super::Reading;
use super::issues::Issues;
use crate::record::{Alias, EffectKind, Fact, Note, NoteKind, ProviderEffect, ProviderState, Status};

/// Collects the facts of one record.
#[derive(Debug)]
pub(super) struct Output<'r> {
    pub(super) reading: &'r Reading,
    pub(super) facts: Vec<Fact>,
}

/// An effect before its scope and window are filled in.
#[derive(Debug)]
pub(super) struct Moved<'a> {
    pub(super) root_id: &'a str,
    pub(super) object_id: &'a str,
    pub(super) kind: EffectKind,
    pub(super) amount_minor: i64,
    pub(super) currency: &'a str,
    pub(super) occurred_at_us: i64,
    pub(super) intent: &'a str,
}

/// One record's word on a payment before its scope is filled in.
#[derive(Debug)]
pub(super) struct Word<'a> {
    pub(super) root_id: &'a str,
    pub(super) object_id: &'a str,
    pub(super) status: Status,
    pub(super) refunded_minor: Option<i64>,
    pub(super) authorized_minor: Option<i64>,
    pub(super) at_us: i64,
}

impl<'r> Output<'r> {
    pub(super) const fn new(reading: &'r Reading) -> Self {
        Self { reading, facts: Vec::new() }
    }

    pub(super) fn is_booked(&self, kind: EffectKind) -> bool {
        self.reading.effects.contains(&kind)
    }

    /// An effect, unless it is empty or of a kind that the local side does not book.
    pub(super) fn effect(&mut self, moved: &Moved<'_>) {
        if moved.amount_minor == 0 || !self.is_booked(moved.kind) {
            return;
        }
        self.facts.push(Fact::ProviderEffect(ProviderEffect {
            scope: self.reading.scope.clone(),
            root_id: moved.root_id.to_owned(),
            object_id: moved.object_id.to_owned(),
            kind: moved.kind,
            amount_minor: moved.amount_minor,
            currency: moved.currency.to_owned(),
            occurred_at_us: moved.occurred_at_us,
            intent: moved.intent.to_owned(),
            in_window: self.reading.window.contains(moved.occurred_at_us),
        }));
    }

    pub(super) fn state(&mut self, word: &Word<'_>) {
        self.facts.push(Fact::ProviderState(ProviderState {
            scope: self.reading.scope.clone(),
            root_id: word.root_id.to_owned(),
            object_id: word.object_id.to_owned(),
            status: word.status,
            refunded_minor: word.refunded_minor,
            authorized_minor: word.authorized_minor,
            at_us: word.at_us,
        }));
    }

    /// Ties an id to its group; an id that is its own group needs no tie.
    pub(super) fn alias(&mut self, alias_id: &str, root_id: &str, is_part: bool) {
        if alias_id == root_id {
            return;
        }
        self.facts.push(Fact::Alias(Alias {
            scope: self.reading.scope.clone(),
            alias_id: alias_id.to_owned(),
            root_id: root_id.to_owned(),
            is_part,
        }));
    }

    /// One note per kind, so that one record gives at most one finding of a kind: the first cause
    /// names it, the texts are joined. `None` for the time means that the record has none, and the
    /// note stands at the start of the window.
    pub(super) fn notes(
        &mut self,
        issues: &Issues,
        root_id: &str,
        object_id: &str,
        event_id: Option<&str>,
        at_us: Option<i64>,
    ) {
        for kind in
            [NoteKind::UnknownShape, NoteKind::IncompleteFields, NoteKind::NeedsReview, NoteKind::WrongScope]
        {
            let mut of_kind = issues.found.iter().filter(|issue| issue.kind == kind);
            let Some(first) = of_kind.next() else { continue };
            let mut text = first.text.clone();
            for issue in of_kind {
                text.push_str("; ");
                text.push_str(&issue.text);
            }
            self.facts.push(Fact::Note(Note {
                scope: self.reading.scope.clone(),
                root_id: root_id.to_owned(),
                object_id: object_id.to_owned(),
                event_ids: event_id.map(str::to_owned).into_iter().collect(),
                kind,
                cause: first.cause.to_owned(),
                text,
                at_us: at_us.unwrap_or(self.reading.window.from_us),
            }));
        }
    }
}
