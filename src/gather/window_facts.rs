//! The facts of one reading of the window's records, kept in a file without a name: what the comparison is fed from, and
//! where the events of a payment are looked for.
//!
//! The one thing to get right: each fact has the root that its record names. Where that leads is asked when it is read,
//! since records that were read meanwhile may have taught it.

use crate::compact::{Cursor, damaged, put_signed, put_text, put_varint};
use crate::record::{
    EffectKind, Fact, Note, NoteKind, ProviderEffect, ProviderEvent, ProviderState, Scope, Status, Tracks,
};
use crate::spill::{Block, Spill};
use anyhow::Result;
use std::path::Path;

const EVENT: u8 = 0;
const EFFECT: u8 = 1;
const STATE: u8 = 2;
const NOTE: u8 = 3;

/// Bytes that are written, and read back, at once.
const BLOCK_BYTES: usize = 256 * 1024;
const NOTE_KINDS: [NoteKind; 4] =
    [NoteKind::UnknownShape, NoteKind::IncompleteFields, NoteKind::NeedsReview, NoteKind::WrongScope];

/// Facts of one scope.
#[derive(Debug)]
pub struct WindowFacts {
    scope: Scope,
    spill: Spill,
    blocks: Vec<Block>,
    buffer: Vec<u8>,
    entry: Vec<u8>,
}

/// What is known of a fact before it is read whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    /// Whether its record is an event.
    pub(super) is_event: bool,
    /// The record that it was read from.
    pub(super) record_id: &'a [u8],
    /// As the record names it.
    pub(super) root_id: &'a [u8],
}

impl WindowFacts {
    /// None yet, to be kept in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn new(scope: &Scope, folder: &Path) -> Result<Self> {
        let spill = Spill::create(folder)?;
        let (buffer, entry) = (Vec::with_capacity(BLOCK_BYTES), Vec::new());
        Ok(Self { scope: scope.clone(), spill, blocks: Vec::new(), buffer, entry })
    }

    /// Keeps a fact of a record. An alias is kept elsewhere, and a local row does not come from a record.
    pub(super) fn keep(&mut self, is_event: bool, record_id: &str, fact: &Fact) -> Result<()> {
        self.entry.clear();
        if !put_fact(&mut self.entry, is_event, record_id, fact) {
            return Ok(());
        }
        put_text(&mut self.buffer, &self.entry);
        if self.buffer.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends the keeping: everything can be read from now on.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.blocks.push(self.spill.append(&self.buffer)?);
            self.buffer.clear();
        }
        Ok(())
    }

    /// How many blocks there are.
    pub(super) const fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The facts of a block that are wanted, in the order in which they were kept.
    pub(super) fn read(&self, block: usize, is_wanted: impl Fn(Head<'_>) -> bool) -> Result<Vec<Fact>> {
        let block = self.blocks.get(block).ok_or_else(damaged)?;
        let mut bytes = vec![0; block.len];
        self.spill.read(&mut bytes, block.offset)?;
        let mut cursor = Cursor::new(&bytes);
        let mut facts = Vec::new();
        while !cursor.is_empty() {
            let mut entry = Cursor::new(cursor.text()?);
            let is_event = entry.byte()? != 0;
            let head = Head { is_event, record_id: entry.text()?, root_id: entry.text()? };
            if is_wanted(head) {
                facts.push(fact(&self.scope, head.root_id, &mut entry)?);
            }
        }
        Ok(facts)
    }
}

/// Whether it is a fact that is kept.
fn put_fact(out: &mut Vec<u8>, is_event: bool, record_id: &str, fact: &Fact) -> bool {
    let mut open = |tag: u8, root_id: &str, object_id: &str| {
        out.push(u8::from(is_event));
        put_text(out, record_id.as_bytes());
        put_text(out, root_id.as_bytes());
        out.push(tag);
        put_text(out, object_id.as_bytes());
    };
    match fact {
        Fact::ProviderEvent(event) => {
            open(EVENT, &event.root_id, &event.object_id);
            put_text(out, event.event_id.as_bytes());
            put_text(out, event.event_type.as_bytes());
            out.push(match event.tracks {
                Tracks::Nothing => 0,
                Tracks::State => 1,
                Tracks::Effect(kind) => 2 + kind as u8,
            });
            put_signed(out, event.created_us);
            out.extend([u8::from(event.wanted), u8::from(event.settled)]);
        }
        Fact::ProviderEffect(effect) => {
            open(EFFECT, &effect.root_id, &effect.object_id);
            out.push(effect.kind as u8);
            put_signed(out, effect.amount_minor);
            put_text(out, effect.currency.as_bytes());
            put_signed(out, effect.occurred_at_us);
            put_text(out, effect.intent.as_bytes());
            out.push(u8::from(effect.in_window));
        }
        Fact::ProviderState(state) => {
            open(STATE, &state.root_id, &state.object_id);
            out.push(state.status as u8);
            put_maybe(out, state.refunded_minor);
            put_maybe(out, state.authorized_minor);
            put_signed(out, state.at_us);
        }
        Fact::Note(note) => {
            open(NOTE, &note.root_id, &note.object_id);
            put_varint(out, note.event_ids.len() as u64);
            for event_id in &note.event_ids {
                put_text(out, event_id.as_bytes());
            }
            out.push(note.kind as u8);
            put_text(out, note.cause.as_bytes());
            put_text(out, note.text.as_bytes());
            put_signed(out, note.at_us);
        }
        Fact::Alias(_) | Fact::InboxEvent(_) | Fact::LocalEffect(_) | Fact::LocalState(_) => return false,
    }
    true
}

fn put_maybe(out: &mut Vec<u8>, number: Option<i64>) {
    out.push(u8::from(number.is_some()));
    put_signed(out, number.unwrap_or_default());
}

fn fact(scope: &Scope, root_id: &[u8], entry: &mut Cursor<'_>) -> Result<Fact> {
    let (scope, root_id) = (scope.clone(), text(root_id)?);
    let (tag, object_id) = (entry.byte()?, text(entry.text()?)?);
    Ok(match tag {
        EVENT => Fact::ProviderEvent(ProviderEvent {
            scope,
            root_id,
            object_id,
            event_id: text(entry.text()?)?,
            event_type: text(entry.text()?)?,
            tracks: match entry.byte()? {
                0 => Tracks::Nothing,
                1 => Tracks::State,
                kind => Tracks::Effect(one_of(&EffectKind::ALL, kind - 2)?),
            },
            created_us: entry.signed()?,
            wanted: entry.byte()? != 0,
            settled: entry.byte()? != 0,
        }),
        EFFECT => Fact::ProviderEffect(ProviderEffect {
            scope,
            root_id,
            object_id,
            kind: one_of(&EffectKind::ALL, entry.byte()?)?,
            amount_minor: entry.signed()?,
            currency: text(entry.text()?)?,
            occurred_at_us: entry.signed()?,
            intent: text(entry.text()?)?,
            in_window: entry.byte()? != 0,
        }),
        STATE => Fact::ProviderState(ProviderState {
            scope,
            root_id,
            object_id,
            status: one_of(&Status::ALL, entry.byte()?)?,
            refunded_minor: maybe(entry)?,
            authorized_minor: maybe(entry)?,
            at_us: entry.signed()?,
        }),
        NOTE => {
            let count = entry.varint()?;
            let event_ids = (0..count).map(|_| text(entry.text()?)).collect::<Result<_>>()?;
            let kind = one_of(&NOTE_KINDS, entry.byte()?)?;
            let (cause, said) = (text(entry.text()?)?, text(entry.text()?)?);
            let at_us = entry.signed()?;
            Fact::Note(Note { scope, root_id, object_id, event_ids, kind, cause, text: said, at_us })
        }
        _ => return Err(damaged()),
    })
}

fn maybe(entry: &mut Cursor<'_>) -> Result<Option<i64>> {
    let is_there = entry.byte()? != 0;
    let number = entry.signed()?;
    Ok(is_there.then_some(number))
}

fn one_of<T: Copy>(all: &[T], place: u8) -> Result<T> {
    all.get(usize::from(place)).copied().ok_or_else(damaged)
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(scope: &Scope) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (index, kind) in EffectKind::ALL.into_iter().enumerate() {
            facts.push(Fact::ProviderEffect(ProviderEffect {
                scope: scope.clone(),
                root_id: format!("pi_{index}"),
                object_id: "ch_ä".to_owned(),
                kind,
                amount_minor: -i64::MAX + 1,
                currency: "usd".to_owned(),
                occurred_at_us: i64::MIN,
                intent: String::new(),
                in_window: index % 2 == 0,
            }));
            for (tracks, wanted) in
                [(Tracks::Effect(kind), true), (Tracks::State, false), (Tracks::Nothing, true)]
            {
                facts.push(Fact::ProviderEvent(ProviderEvent {
                    scope: scope.clone(),
                    root_id: "pi_1".to_owned(),
                    object_id: String::new(),
                    event_id: format!("evt_{index}"),
                    event_type: "charge.succeeded".to_owned(),
                    tracks,
                    created_us: 7,
                    wanted,
                    settled: !wanted,
                }));
            }
        }
        for status in Status::ALL {
            facts.push(Fact::ProviderState(ProviderState {
                scope: scope.clone(),
                root_id: "pi_1".to_owned(),
                object_id: "ch_1".to_owned(),
                status,
                refunded_minor: Some(0),
                authorized_minor: None,
                at_us: 3,
            }));
        }
        for kind in NOTE_KINDS {
            facts.push(Fact::Note(Note {
                scope: scope.clone(),
                root_id: "in_1".to_owned(),
                object_id: "in_1".to_owned(),
                event_ids: vec!["evt_1".to_owned(), String::new()],
                kind,
                cause: "other_mode".to_owned(),
                text: "a\nb".to_owned(),
                at_us: -1,
            }));
        }
        facts
    }

    #[test]
    fn what_is_kept_comes_back_in_its_order_over_many_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let scope = Scope::new("stripe", "acct_1", "test");
        let mut kept = WindowFacts::new(&scope, folder.path()).unwrap();
        let mut expected = Vec::new();
        while kept.blocks() < 3 {
            for fact in facts(&scope) {
                kept.keep(matches!(fact, Fact::ProviderEvent(_)), "rec_1", &fact).unwrap();
                expected.push(fact);
            }
        }
        kept.flush().unwrap();
        let all = |is_wanted: fn(Head<'_>) -> bool| -> Vec<Fact> {
            (0..kept.blocks()).flat_map(|block| kept.read(block, is_wanted).unwrap()).collect()
        };
        assert_eq!(all(|head| head.record_id == b"rec_1"), expected);
        expected.retain(|fact| matches!(fact, Fact::ProviderEvent(_)));
        assert_eq!(all(|head| head.is_event), expected);
        expected.retain(|fact| matches!(fact, Fact::ProviderEvent(event) if event.root_id == "pi_2"));
        assert_eq!(all(|head| head.is_event && head.root_id == b"pi_2"), expected);
        assert_eq!(kept.read(kept.blocks(), |_| true).unwrap_err().to_string(), damaged().to_string());
    }
}
