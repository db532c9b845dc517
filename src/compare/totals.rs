//! What is added up on the way: the sums of the tie-out and the number of facts.

use crate::record::{EffectKind, Scope};
use std::collections::BTreeMap;

/// Sums inside the window, magnitudes in minor units: multiply by [`EffectKind::sign`] to get the
/// movement of the balance. 128 bits cannot overflow: there are fewer than 2⁶⁴ facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// What the provider's effects come to.
    pub provider_minor: i128,
    /// What the local rows come to; rows that undo others count negative.
    pub local_minor: i128,
}

/// How many facts of each relation were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that the provider lists.
    pub provider_events: u64,
    /// Inbox rows.
    pub inbox_events: u64,
    /// Effects that the provider proves.
    pub provider_effects: u64,
    /// Local rows.
    pub local_effects: u64,
    /// The provider's status words.
    pub provider_states: u64,
    /// Local status rows.
    pub local_states: u64,
    /// Aliases, which are not compared.
    pub aliases: u64,
    /// Notes.
    pub notes: u64,
}

impl Counts {
    /// Adds another part's counts.
    pub(super) fn add(&mut self, other: &Self) {
        self.provider_events += other.provider_events;
        self.inbox_events += other.inbox_events;
        self.provider_effects += other.provider_effects;
        self.local_effects += other.local_effects;
        self.provider_states += other.provider_states;
        self.local_states += other.local_states;
        self.aliases += other.aliases;
        self.notes += other.notes;
    }
}

/// Sums and counts of everything that was added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Per (scope, currency, kind); a key is there when either side has an effect in the window.
    pub sums: BTreeMap<(Scope, String, EffectKind), Sums>,
    /// Number of facts.
    pub counts: Counts,
}

/// Sums of one scope while facts come in: per currency, per kind in the order of `EffectKind::ALL`.
#[derive(Debug, Default)]
pub(super) struct ScopeSums {
    by_currency: Vec<(String, [Option<Sums>; EffectKind::ALL.len()])>,
}

impl ScopeSums {
    /// The sums of a currency and kind, made if missing.
    #[inline]
    pub(super) fn of(&mut self, currency: &str, kind: EffectKind) -> &mut Sums {
        let known = self.by_currency.iter().position(|(name, _)| name == currency);
        let place = known.unwrap_or_else(|| {
            self.by_currency.push((currency.to_owned(), Default::default()));
            self.by_currency.len() - 1
        });
        self.by_currency[place].1[kind as usize].get_or_insert_default()
    }

    /// Adds them to the whole.
    pub(super) fn add_to(self, totals: &mut Totals, scope: &Scope) {
        for (currency, by_kind) in self.by_currency {
            for (kind, part) in EffectKind::ALL.into_iter().zip(by_kind) {
                if let Some(part) = part {
                    let sums = totals.sums.entry((scope.clone(), currency.clone(), kind)).or_default();
                    sums.provider_minor += part.provider_minor;
                    sums.local_minor += part.local_minor;
                }
            }
        }
    }
}
