//! The event leg: does every wanted event stand in the inbox once, and does every local row name an
//! event of its own payment?
//!
//! Tags are numbered so that inbox rows come first: by the time a payment has to be named, all that
//! can be said of the event itself is known.

use super::leg::{Key, Leg, Sink};
use crate::compact::{Cursor, damaged};
use anyhow::Result;

/// Tag of an inbox row: flags.
pub(super) const INBOX: u8 = 1;
/// Tag of a provider event: flags, root.
pub(super) const PROVIDER: u8 = 2;
/// Tag of a local row that names the event: flags, root.
pub(super) const LOCAL: u8 = 3;

/// Flag of an inbox row: it was dealt with (applied, ignored or superseded).
pub(super) const IS_DONE: u8 = 1;
/// Flag of an inbox row or local row: the provider lists events of that time.
pub(super) const IS_COVERED: u8 = 2;
/// Flag of a provider event: the endpoint asked for its type.
pub(super) const IS_WANTED: u8 = 4;

/// One event id.
#[derive(Debug, Default)]
pub(super) struct EventLeg {
    inbox_rows: u64,
    is_open: bool,
    is_covered: bool,
    provider_rows: u64,
    is_suspicious: bool,
    root: Vec<u8>,
}

impl Leg for EventLeg {
    type Sink = Sink;

    fn row(&mut self, key: Key<'_>, rest: &[u8], sink: &mut Sink) -> Result<()> {
        let mut cursor = Cursor::new(rest);
        let (tag, flags) = (cursor.byte()?, cursor.byte()?);
        let root = cursor.rest();
        match tag {
            INBOX => {
                self.inbox_rows += 1;
                self.is_open |= flags & IS_DONE == 0;
                self.is_covered |= flags & IS_COVERED != 0;
                Ok(())
            }
            PROVIDER => self.provider_row(key, flags, root, sink),
            LOCAL => self.local_row(key, flags, root, sink),
            _ => Err(damaged()),
        }
    }

    fn end(&mut self, key: Key<'_>, sink: &mut Sink) -> Result<()> {
        if self.provider_rows > 0 {
            if self.is_suspicious {
                sink.root(key.scope, &self.root)?;
            }
        } else if self.is_covered || self.inbox_rows > 1 {
            sink.inbox_only(key.scope, key.text)?;
        }
        let mut root = std::mem::take(&mut self.root);
        root.clear();
        *self = Self { root, ..Self::default() };
        Ok(())
    }
}

impl EventLeg {
    fn provider_row(&mut self, key: Key<'_>, flags: u8, root: &[u8], sink: &mut Sink) -> Result<()> {
        let is_wanted = flags & IS_WANTED != 0;
        self.provider_rows += 1;
        // Two inbox rows of one event may hold two bodies, whoever asked for it.
        self.is_suspicious |= self.inbox_rows > 1 || is_wanted && (self.inbox_rows == 0 || self.is_open);
        if self.provider_rows == 1 {
            self.root.extend_from_slice(root);
            return Ok(());
        }
        self.is_suspicious = true;
        sink.root(key.scope, root)
    }

    fn local_row(&mut self, key: Key<'_>, flags: u8, root: &[u8], sink: &mut Sink) -> Result<()> {
        if self.provider_rows == 0 {
            // An event from before what the provider still lists proves nothing.
            let is_unknown = flags & IS_COVERED != 0 || self.is_covered || self.inbox_rows > 1;
            return if is_unknown { sink.root(key.scope, root) } else { Ok(()) };
        }
        if root != self.root {
            self.is_suspicious = true;
            sink.root(key.scope, root)?;
        }
        Ok(())
    }
}
