//! The finding: one disagreement, its money, and what would put it right.

use super::Unit;
use crate::record::{EffectKind, Scope, Status, id_of};
use std::fmt;

/// Every kind of finding; also the file name of its rule and the value in `findings.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each kind is documented at its rule, and docs/findings.md is generated from there"
)]
pub enum Kind {
    MissedEvent,
    UnappliedEvent,
    MissingEffect,
    DuplicateEffect,
    DuplicateCharge,
    MisattributedEffect,
    OrphanEffect,
    AmountMismatch,
    CurrencyMismatch,
    StaleState,
    ForbiddenTransition,
    UnknownEvent,
    ConflictingEvent,
    WrongScope,
    UnknownShape,
    IncompleteFields,
    TimingDifference,
    CoverageGap,
    NeedsReview,
}

impl Kind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 19] = [
        Self::MissedEvent,
        Self::UnappliedEvent,
        Self::MissingEffect,
        Self::DuplicateEffect,
        Self::DuplicateCharge,
        Self::MisattributedEffect,
        Self::OrphanEffect,
        Self::AmountMismatch,
        Self::CurrencyMismatch,
        Self::StaleState,
        Self::ForbiddenTransition,
        Self::UnknownEvent,
        Self::ConflictingEvent,
        Self::WrongScope,
        Self::UnknownShape,
        Self::IncompleteFields,
        Self::TimingDifference,
        Self::CoverageGap,
        Self::NeedsReview,
    ];

    /// The contract's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissedEvent => "missed_event",
            Self::UnappliedEvent => "unapplied_event",
            Self::MissingEffect => "missing_effect",
            Self::DuplicateEffect => "duplicate_effect",
            Self::DuplicateCharge => "duplicate_charge",
            Self::MisattributedEffect => "misattributed_effect",
            Self::OrphanEffect => "orphan_effect",
            Self::AmountMismatch => "amount_mismatch",
            Self::CurrencyMismatch => "currency_mismatch",
            Self::StaleState => "stale_state",
            Self::ForbiddenTransition => "forbidden_transition",
            Self::UnknownEvent => "unknown_event",
            Self::ConflictingEvent => "conflicting_event",
            Self::WrongScope => "wrong_scope",
            Self::UnknownShape => "unknown_shape",
            Self::IncompleteFields => "incomplete_fields",
            Self::TimingDifference => "timing_difference",
            Self::CoverageGap => "coverage_gap",
            Self::NeedsReview => "needs_review",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How bad it is. The order is the order of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Money is wrong in somebody's balance now.
    Critical,
    /// A status is wrong, or money will be.
    Major,
    /// Evidence is incomplete.
    Minor,
    /// Nothing to do.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Critical => "critical",
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Info => "info",
        })
    }
}

/// What would put a finding right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Bring the event through the inbox path again, with its own identity and time.
    ReplayEvent,
    /// Book the effect that no event brings any more.
    ApplyEffect,
    /// Add a compensating entry for each excess entry.
    ReverseEntry,
    /// Write the status that the provider has just now.
    SetState,
    /// A person decides.
    Review,
    /// Nothing to do.
    None,
}

impl Action {
    /// The contract's word for it; empty for none.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReplayEvent => "replay_event",
            Self::ApplyEffect => "apply_effect",
            Self::ReverseEntry => "reverse_entry",
            Self::SetState => "set_state",
            Self::Review => "review",
            Self::None => "",
        }
    }

    /// Whether `recon apply` can carry it out.
    #[must_use]
    pub const fn is_correctable(self) -> bool {
        matches!(self, Self::ReplayEvent | Self::ApplyEffect | Self::ReverseEntry | Self::SetState)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a finding stands among the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// First seen by this run.
    New,
    /// Seen before and not cleared since.
    Open,
    /// Cleared or closed once, and back.
    Reopened,
    /// A person lives with it for now: not counted.
    Accepted,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Reopened => "reopened",
            Self::Accepted => "accepted",
        })
    }
}

/// One disagreement between provider, inbox and local state.
///
/// Amounts are signed as they move the balance (see [`EffectKind::sign`]), minor units, and
/// `difference = provider − local`, so columns add up. `None` means that the finding has no money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind.
    pub kind: Kind,
    /// Short machine word, empty where the kind says it all.
    pub cause: String,
    /// Severity.
    pub severity: Severity,
    /// Scope.
    pub scope: Scope,
    /// The object that it is about: charge, refund, dispute, payout, or the event's object.
    pub object_id: String,
    /// The group (the payment); not a report column.
    pub root_id: String,
    /// The effect that it is about; `None` for findings on events, states and coverage. Findings
    /// with an effect explain the tie-out of that effect kind.
    pub effect: Option<EffectKind>,
    /// Events named, sorted.
    pub event_ids: Vec<String>,
    /// Local rows named; for a duplicate the kept row first, then the excess rows in booking order.
    pub effect_ids: Vec<String>,
    /// Lower-case ISO code of the provider's side, empty where there is no money.
    pub currency: String,
    /// Currency of `found_minor` where it is another one than `currency`; empty where they agree.
    pub found_currency: String,
    /// The provider's amount, signed minor units.
    pub expected_minor: Option<i64>,
    /// The local amount, signed minor units of `found_currency` where that is set.
    pub found_minor: Option<i64>,
    /// The provider's status.
    pub expected_state: Option<Status>,
    /// The local status.
    pub found_state: Option<Status>,
    /// The payment's status at the provider, where booking the effect must also move the local one;
    /// not a report column.
    pub target_state: Option<Status>,
    /// What it explains of the tie-out of its effect kind: the window's `provider − local` per
    /// currency, signed minor units. Differs from the difference where the window cuts it.
    pub explains: Vec<(String, i64)>,
    /// When it happened at the provider, else locally, Unix µs.
    pub occurred_at_us: i64,
    /// What of it lies in the window that was judged, Unix µs: only a run over that instant can clear it. A
    /// payment of January that was booked again in February is February's to clear.
    pub judged_at_us: i64,
    /// What would put it right.
    pub action: Action,
    /// One sentence for a person.
    pub note: String,
}

/// Kinds whose correction books the effect, so that the payment's status must follow.
const fn is_absent(kind: Kind) -> bool {
    matches!(kind, Kind::MissedEvent | Kind::UnappliedEvent | Kind::MissingEffect)
}

impl Finding {
    /// A finding on a unit, with both sides' amounts; the rule fills in the rest.
    pub(super) fn on_unit(kind: Kind, unit: &Unit) -> Self {
        Self {
            root_id: unit.root_id.clone(),
            effect: Some(unit.kind),
            event_ids: unit.announcements.iter().map(|said| said.event.event_id.clone()).collect(),
            effect_ids: unit.rows.iter().map(|row| row.effect_id.clone()).collect(),
            currency: unit.currency().to_owned(),
            expected_minor: Some(unit.expected_minor()),
            found_minor: Some(unit.found_minor()),
            target_state: unit.provider_status.filter(|_| is_absent(kind)),
            explains: unit.explains(),
            severity: Severity::Critical,
            judged_at_us: unit.judged_at_us.unwrap_or_else(|| unit.occurred_at_us()),
            ..Self::on_object(kind, &unit.scope, &unit.root_id, &unit.object_id, unit.occurred_at_us())
        }
    }

    /// A finding without money on an object; the rule fills in the rest.
    pub(super) fn on_object(kind: Kind, scope: &Scope, root_id: &str, object_id: &str, at_us: i64) -> Self {
        Self {
            kind,
            cause: String::new(),
            severity: Severity::Major,
            scope: scope.clone(),
            object_id: object_id.to_owned(),
            root_id: root_id.to_owned(),
            effect: None,
            event_ids: Vec::new(),
            effect_ids: Vec::new(),
            currency: String::new(),
            found_currency: String::new(),
            expected_minor: None,
            found_minor: None,
            expected_state: None,
            found_state: None,
            target_state: None,
            explains: Vec::new(),
            occurred_at_us: at_us,
            judged_at_us: at_us,
            action: Action::Review,
            note: String::new(),
        }
    }

    /// `provider − local` in `currency`, signed minor units; a missing side counts as nothing.
    ///
    /// Sums never cross currencies: where the local side booked another currency, it has nothing in
    /// this one, and the difference is the provider's whole amount. `None` for a finding without an effect:
    /// where a customer was charged twice both sides have both charges, so its amounts are no difference
    /// between them, and the column adds up to the tie-out.
    ///
    /// # Panics
    /// When the difference leaves 64 bits; amounts are checked long before.
    #[must_use]
    pub fn difference_minor(&self) -> Option<i64> {
        if self.effect.is_none() || (self.expected_minor.is_none() && self.found_minor.is_none()) {
            return None;
        }
        let found = if self.found_currency.is_empty() { self.found_minor.unwrap_or(0) } else { 0 };
        let difference = self.expected_minor.unwrap_or(0).checked_sub(found);
        assert!(difference.is_some(), "difference of {} leaves 64 bits", self.object_id);
        difference
    }

    /// The same break has the same id in every run: the first 16 bytes of SHA-256 over
    /// (kind, scope, object, effect kind, currency), in hex.
    #[must_use]
    pub fn id(&self) -> String {
        let effect = self.effect.map_or("", EffectKind::as_str);
        let parts = [
            self.kind.as_str(),
            &*self.scope.provider,
            &*self.scope.account,
            &*self.scope.mode,
            &*self.object_id,
            effect,
            &*self.currency,
        ];
        id_of(&parts)
    }

    /// The report order: (provider, account, object, kind, id).
    #[must_use]
    pub fn sort_key(&self) -> (String, String, String, &'static str, String) {
        (
            self.scope.provider.to_string(),
            self.scope.account.to_string(),
            self.object_id.clone(),
            self.kind.as_str(),
            self.id(),
        )
    }
}
