//! Scope and the two unique keys. A scope is part of every key and every query; it is never null.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Where a record belongs: (provider, account, mode). The platform account is the empty text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The provider's configured name: the value of the `provider` column everywhere.
    pub provider: Arc<str>,
    /// The provider's account id; `""` for the platform account.
    pub account: Arc<str>,
    /// `live` or `test`.
    pub mode: Arc<str>,
}

impl Scope {
    /// A scope from its three parts.
    #[must_use]
    pub fn new(provider: &str, account: &str, mode: &str) -> Self {
        Self { provider: provider.into(), account: account.into(), mode: mode.into() }
    }
}

impl Ord for Scope {
    fn cmp(&self, other: &Self) -> Ordering {
        // Nearly all comparisons are within one scope, whose texts most keys share.
        let part = |a: &Arc<str>, b: &Arc<str>| if Arc::ptr_eq(a, b) { Ordering::Equal } else { a.cmp(b) };
        part(&self.provider, &other.provider)
            .then_with(|| part(&self.account, &other.account))
            .then_with(|| part(&self.mode, &other.mode))
    }
}

impl PartialOrd for Scope {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.provider, self.account, self.mode)
    }
}

/// The unique key under which an event is processed once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKey {
    /// Scope of the event.
    pub scope: Scope,
    /// The provider's event id.
    pub event_id: String,
}

/// The unique key under which one business effect exists once, whatever event brought it.
///
/// Its text form is `kind:object` and stands beside the scope columns in every table, for example
/// `credit:ch_1`, `refund:re_1`, `dispute_withdrawn:dp_1`; a compensating entry has
/// `reverse:<entry id>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EffectKey {
    /// Scope of the effect.
    pub scope: Scope,
    /// `kind:object`.
    pub key: String,
}

impl EffectKey {
    /// The key of the effect of `kind` that belongs to `object_id`.
    #[must_use]
    pub fn of(scope: &Scope, kind: super::EffectKind, object_id: &str) -> Self {
        Self { scope: scope.clone(), key: format!("{kind}:{object_id}") }
    }

    /// The key of the entry that compensates `entry_id`.
    #[must_use]
    pub fn reverse(scope: &Scope, entry_id: &str) -> Self {
        Self { scope: scope.clone(), key: format!("reverse:{entry_id}") }
    }
}
