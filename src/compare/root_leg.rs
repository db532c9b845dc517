//! The root leg: do the books of one payment say what the provider says, in money, order and status?
//!
//! Tags are numbered so that a note ends the matter at once, effects come by kind and object with the
//! provider's row before the local one, and provider statuses come before local ones.

use super::leg::{Key, Leg, Sink};
use crate::compact::{Cursor, damaged};
use anyhow::Result;

/// Tag of a note: nothing more.
pub(super) const NOTE: u8 = 0;
/// Tag of an effect: kind, object, currency, side, flags, amount, time.
pub(super) const EFFECT: u8 = 1;
/// Tag of a provider status: status, flags, refunded, authorised.
pub(super) const PROVIDER_STATE: u8 = 2;
/// Tag of a local status: status, flags, refunded.
pub(super) const LOCAL_STATE: u8 = 3;

/// Sides of an effect.
pub(super) const SIDE_PROVIDER: u8 = 0;
pub(super) const SIDE_LOCAL: u8 = 1;
/// Kind of a credit: its position in `EffectKind::ALL`.
pub(super) const CREDIT: u8 = 0;
/// Kind of a refund.
pub(super) const REFUND: u8 = 1;

/// Flag of an effect: its time lies in the window.
pub(super) const IS_IN_WINDOW: u8 = 1;
/// Flag of a local row: it undoes another.
pub(super) const IS_CORRECTION: u8 = 2;
/// Flags of a status: the field follows.
pub(super) const HAS_REFUNDED: u8 = 1;
pub(super) const HAS_AUTHORIZED: u8 = 2;

/// Effects of one root whose order is still checked; a root with more is suspicious for its size.
pub(super) const PAIRS_MAX: usize = 1 << 20;

/// One root.
#[derive(Debug, Default)]
pub(super) struct RootLeg {
    is_suspicious: bool,
    effects: OfKind,
    /// Effects that both sides have: (kind, provider time, local time).
    pairs: Vec<(u8, i64, i64)>,
    /// The provider's charge, as in the records; local rows of other kinds may name it.
    charge: Vec<u8>,
    local_credit_minor: i128,
    refunds: u64,
    refund_minor: i128,
    status: Option<u8>,
    local_states: u64,
    refunded: Refunded,
    authorized_minor: Option<i64>,
}

/// What the provider's records say was refunded so far.
#[derive(Debug, Default)]
struct Refunded {
    words: u64,
    largest: i64,
    total: i128,
}

/// Effects of one kind of the root.
#[derive(Debug, Default)]
struct OfKind {
    kind: u8,
    provider_rows: u64,
    local_rows: u64,
    /// The provider's row that waits for its local one.
    waiting: Option<Row>,
    waiting_unit: Vec<u8>,
    /// Rows without the other side; only the first of each side is kept.
    loose_provider: Loose,
    loose_local: Loose,
}

/// Rows that found no row of the very same unit on the other side.
#[derive(Debug, Default)]
struct Loose {
    rows: u64,
    row: Row,
    object: Vec<u8>,
    currency: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    amount_minor: i64,
    at_us: i64,
}

impl Loose {
    fn take(&mut self, unit: &[u8], row: Row) -> Result<()> {
        self.rows += 1;
        if self.rows == 1 {
            let mut cursor = Cursor::new(unit);
            self.row = row;
            self.object.clear();
            self.object.extend_from_slice(cursor.text()?);
            self.currency.clear();
            self.currency.extend_from_slice(cursor.text()?);
        }
        Ok(())
    }
}

impl Leg for RootLeg {
    type Sink = Sink;

    fn row(&mut self, key: Key<'_>, rest: &[u8], _sink: &mut Sink) -> Result<()> {
        if self.is_suspicious {
            return Ok(());
        }
        let mut cursor = Cursor::new(rest);
        match cursor.byte()? {
            NOTE => self.is_suspicious = true,
            EFFECT => self.effect(cursor, key.text)?,
            PROVIDER_STATE => self.provider_state(cursor)?,
            LOCAL_STATE => self.local_state(cursor)?,
            _ => return Err(damaged()),
        }
        Ok(())
    }

    fn end(&mut self, key: Key<'_>, sink: &mut Sink) -> Result<()> {
        if !self.is_suspicious {
            self.close_kind(key.text)?;
            let authorized = self.authorized_minor.map_or(i128::MAX, i128::from);
            self.is_suspicious |= self.local_credit_minor > authorized || is_out_of_order(&mut self.pairs);
        }
        // A local status that was not seen may have last changed outside of the window, and be stale.
        if self.is_suspicious || self.status.is_some() && self.local_states == 0 {
            sink.root(key.scope, key.text)?;
        }
        self.clear();
        Ok(())
    }
}

impl RootLeg {
    fn clear(&mut self) {
        self.is_suspicious = false;
        self.effects.open(CREDIT);
        self.pairs.clear();
        self.charge.clear();
        self.local_credit_minor = 0;
        self.refunds = 0;
        self.refund_minor = 0;
        self.status = None;
        self.local_states = 0;
        self.refunded = Refunded::default();
        self.authorized_minor = None;
    }

    fn effect(&mut self, mut cursor: Cursor<'_>, root: &[u8]) -> Result<()> {
        let kind = cursor.byte()?;
        if kind != self.effects.kind {
            self.close_kind(root)?;
            self.effects.open(kind);
        }
        let from_unit = cursor.rest();
        let object = cursor.text()?;
        cursor.text()?;
        let unit = &from_unit[..from_unit.len() - cursor.rest().len()];
        let (side, flags) = (cursor.byte()?, cursor.byte()?);
        let row = Row { amount_minor: cursor.signed()?, at_us: cursor.signed()? };
        // A row without money is as good as none to some rules, so a person looks.
        self.is_suspicious |=
            flags & IS_IN_WINDOW == 0 || flags & IS_CORRECTION != 0 || row.amount_minor <= 0;
        if side == SIDE_PROVIDER {
            if kind == CREDIT && self.charge.is_empty() {
                self.charge.extend_from_slice(object);
            }
            if kind == REFUND {
                self.refunds += 1;
                self.refund_minor += i128::from(row.amount_minor);
            }
            return self.effects.provider_row(unit, row);
        }
        if kind == CREDIT {
            self.local_credit_minor += i128::from(row.amount_minor);
        }
        if let Some(provider) = self.effects.local_row(unit, row)? {
            self.pair(provider, row);
        }
        Ok(())
    }

    /// Both sides have the effect: the amounts must agree, and the order is checked at the end.
    fn pair(&mut self, provider: Row, local: Row) {
        self.is_suspicious |= provider.amount_minor != local.amount_minor || self.pairs.len() >= PAIRS_MAX;
        if !self.is_suspicious {
            self.pairs.push((self.effects.kind, provider.at_us, local.at_us));
        }
    }

    /// Every unit of the kind has one row on each side; or there is one effect and one row, and the
    /// row names the payment instead of the part.
    fn close_kind(&mut self, root: &[u8]) -> Result<()> {
        self.effects.give_up_waiting()?;
        let kind = &self.effects;
        let is_many = kind.kind == CREDIT && (kind.provider_rows > 1 || kind.local_rows > 1);
        self.is_suspicious |= is_many;
        let (provider, local) = (&kind.loose_provider, &kind.loose_local);
        if provider.rows == 0 && local.rows == 0 {
            return Ok(());
        }
        let names_payment = local.object == root || kind.kind != CREDIT && local.object == self.charge;
        let is_only = kind.provider_rows == 1 && kind.local_rows == 1;
        if is_only && names_payment && provider.currency == local.currency {
            let (provider, local) = (provider.row, local.row);
            self.pair(provider, local);
            return Ok(());
        }
        self.is_suspicious = true;
        Ok(())
    }

    fn provider_state(&mut self, mut cursor: Cursor<'_>) -> Result<()> {
        let (status, flags) = (cursor.byte()?, cursor.byte()?);
        self.status = self.status.max(Some(status));
        if flags & HAS_REFUNDED != 0 {
            let minor = cursor.signed()?;
            self.refunded.words += 1;
            self.refunded.largest = self.refunded.largest.max(minor);
            self.refunded.total += i128::from(minor);
        }
        if flags & HAS_AUTHORIZED != 0 {
            let minor = cursor.signed()?;
            self.authorized_minor = Some(self.authorized_minor.map_or(minor, |least| least.min(minor)));
        }
        Ok(())
    }

    /// A local word on the refunded total must fit whichever of the provider's words a rule may take:
    /// the largest, the sum, or the sum of the refunds themselves.
    fn local_state(&mut self, mut cursor: Cursor<'_>) -> Result<()> {
        let (status, flags) = (cursor.byte()?, cursor.byte()?);
        self.local_states += 1;
        self.is_suspicious |= self.status != Some(status);
        if flags & HAS_REFUNDED != 0 {
            let minor = cursor.signed()?;
            let has_words = self.refunded.words > 0;
            let fits_words = self.refunded.largest == minor && self.refunded.total == i128::from(minor);
            let fits_refunds = self.refund_minor == i128::from(minor);
            self.is_suspicious |=
                has_words && !fits_words || (!has_words || self.refunds > 0) && !fits_refunds;
        }
        Ok(())
    }
}

impl OfKind {
    fn open(&mut self, kind: u8) {
        self.kind = kind;
        self.provider_rows = 0;
        self.local_rows = 0;
        self.waiting = None;
        self.loose_provider.rows = 0;
        self.loose_local.rows = 0;
    }

    fn provider_row(&mut self, unit: &[u8], row: Row) -> Result<()> {
        self.give_up_waiting()?;
        self.provider_rows += 1;
        self.waiting = Some(row);
        self.waiting_unit.clear();
        self.waiting_unit.extend_from_slice(unit);
        Ok(())
    }

    /// The provider's row of the same unit, where it waits.
    fn local_row(&mut self, unit: &[u8], row: Row) -> Result<Option<Row>> {
        self.local_rows += 1;
        if self.waiting.is_some() && self.waiting_unit == unit {
            return Ok(self.waiting.take());
        }
        self.loose_local.take(unit, row)?;
        Ok(None)
    }

    fn give_up_waiting(&mut self) -> Result<()> {
        match self.waiting.take() {
            Some(row) => self.loose_provider.take(&self.waiting_unit, row),
            None => Ok(()),
        }
    }
}

/// Whether some effect was booked before another that it follows: by the provider's times, or by kind.
/// Equal times say nothing.
fn is_out_of_order(pairs: &mut [(u8, i64, i64)]) -> bool {
    if pairs.len() < 2 {
        return false;
    }
    let by_kind = |pairs: &mut [(u8, i64, i64)]| {
        pairs.sort_unstable();
        steps_back(pairs, |pair| i64::from(pair.0))
    };
    let by_time = |pairs: &mut [(u8, i64, i64)]| {
        pairs.sort_unstable_by_key(|pair| (pair.1, pair.2));
        steps_back(pairs, |pair| pair.1)
    };
    by_kind(pairs) || by_time(pairs)
}

/// Whether an entry of a later step has an earlier local time than one of an earlier step.
fn steps_back(sorted: &[(u8, i64, i64)], step: impl Fn(&(u8, i64, i64)) -> i64) -> bool {
    let mut latest_before = i64::MIN;
    for same in sorted.chunk_by(|one, other| step(one) == step(other)) {
        if same.iter().any(|pair| pair.2 < latest_before) {
            return true;
        }
        latest_before = same.iter().map(|pair| pair.2).fold(latest_before, i64::max);
    }
    false
}
