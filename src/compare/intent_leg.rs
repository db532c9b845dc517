//! The intent leg: did the customer pay once for one intent?

use super::leg::{Key, Leg, Sink};
use anyhow::Result;

/// One intent; a record's rest is the root of one provider credit.
#[derive(Debug, Default)]
pub(super) struct IntentLeg {
    credits: u64,
    root: Vec<u8>,
}

impl Leg for IntentLeg {
    type Sink = Sink;

    fn row(&mut self, key: Key<'_>, rest: &[u8], sink: &mut Sink) -> Result<()> {
        self.credits += 1;
        if self.credits == 1 {
            self.root.extend_from_slice(rest);
            return Ok(());
        }
        sink.root(key.scope, rest)
    }

    fn end(&mut self, key: Key<'_>, sink: &mut Sink) -> Result<()> {
        if self.credits > 1 {
            sink.root(key.scope, &self.root)?;
        }
        self.credits = 0;
        self.root.clear();
        Ok(())
    }
}
