//! Facts: the canonical, provider-neutral record of one thing seen on one side.
//!
//! Six relations are compared (`provider_event, inbox_event, provider_effect, local_effect,
//! provider_state, local_state`); `Alias` ties ids together and `Note` carries what could not be
//! read. The one thing to get right: `root_id` groups (a payment with its charges, refunds and
//! disputes), `object_id` is the anchor of one effect inside that group (charge, refund, dispute).

use super::Scope;
use std::fmt;
use std::str::FromStr;

/// What kind of change an effect is. The kind gives the direction; amounts in facts are magnitudes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EffectKind {
    /// Money received for a charge; anchor: the charge.
    Credit,
    /// Money given back; anchor: the refund.
    Refund,
    /// Money taken by a dispute; anchor: the dispute.
    DisputeWithdrawn,
    /// Money returned after a dispute; anchor: the dispute.
    DisputeReinstated,
    /// The provider's fee; anchor: the object that was charged the fee.
    Fee,
    /// Money sent to the bank; anchor: the payout.
    Payout,
}

impl EffectKind {
    /// Every kind, in report order.
    pub const ALL: [Self; 6] = [
        Self::Credit,
        Self::Refund,
        Self::DisputeWithdrawn,
        Self::DisputeReinstated,
        Self::Fee,
        Self::Payout,
    ];

    /// The contract's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Refund => "refund",
            Self::DisputeWithdrawn => "dispute_withdrawn",
            Self::DisputeReinstated => "dispute_reinstated",
            Self::Fee => "fee",
            Self::Payout => "payout",
        }
    }

    /// How it moves the balance: +1 or −1.
    #[must_use]
    pub const fn sign(self) -> i64 {
        match self {
            Self::Credit | Self::DisputeReinstated => 1,
            Self::Refund | Self::DisputeWithdrawn | Self::Fee | Self::Payout => -1,
        }
    }
}

impl fmt::Display for EffectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EffectKind {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(())
    }
}

/// Status of a payment. The order of the variants is the rank: a later one is newer in a payment's life.
///
/// Several records may each speak of one payment (a failed attempt, the charge, a dispute); the
/// payment's status is the highest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Not decided yet.
    Pending,
    /// The attempt failed; another attempt may follow.
    Failed,
    /// Given up.
    Canceled,
    /// Money received.
    Paid,
    /// Part of the money given back.
    PartiallyRefunded,
    /// All of the money given back.
    Refunded,
    /// Under dispute, money withdrawn.
    Disputed,
    /// Dispute lost: terminal.
    DisputeLost,
}

impl Status {
    /// Every status in rank order.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Failed,
        Self::Canceled,
        Self::Paid,
        Self::PartiallyRefunded,
        Self::Refunded,
        Self::Disputed,
        Self::DisputeLost,
    ];

    /// The contract's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Paid => "paid",
            Self::PartiallyRefunded => "partially_refunded",
            Self::Refunded => "refunded",
            Self::Disputed => "disputed",
            Self::DisputeLost => "dispute_lost",
        }
    }

    /// Position in a payment's life, 0 (pending) to 7 (dispute lost).
    #[must_use]
    pub const fn rank(self) -> i64 {
        self as i64
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(())
    }
}

/// What an event stands for, so that its absence can be judged by its consequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tracks {
    /// It announces an effect of this kind on its object.
    Effect(EffectKind),
    /// It announces a status of its payment and moves no money.
    State,
    /// Nothing that the local side books; its consequence cannot be looked up.
    Nothing,
}

impl Tracks {
    /// Text form in relations: the effect kind, `state`, or empty.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Effect(kind) => kind.as_str(),
            Self::State => "state",
            Self::Nothing => "",
        }
    }
}

/// An event that the provider lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderEvent {
    /// Scope.
    pub scope: Scope,
    /// Group.
    pub root_id: String,
    /// Anchor of the effect that it announces, or the object that it is about.
    pub object_id: String,
    /// The provider's event id.
    pub event_id: String,
    /// The provider's event type.
    pub event_type: String,
    /// What it stands for.
    pub tracks: Tracks,
    /// Creation at the provider, Unix µs.
    pub created_us: i64,
    /// Whether the local endpoint asked for this type.
    pub wanted: bool,
    /// Whether it is old enough to judge: past the settle delay and no longer being retried.
    pub settled: bool,
}

/// What the inbox says of an event's processing. It is evidence, never proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InboxStatus {
    /// Stored, not processed.
    Received,
    /// Marked as done.
    Applied,
    /// Stored, but newer state was already there.
    Superseded,
    /// Not for us.
    Ignored,
    /// Waits for another event.
    Parked,
    /// Not tried again without a person.
    Dead,
}

impl InboxStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Received, Self::Applied, Self::Superseded, Self::Ignored, Self::Parked, Self::Dead];

    /// The contract's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Applied => "applied",
            Self::Superseded => "superseded",
            Self::Ignored => "ignored",
            Self::Parked => "parked",
            Self::Dead => "dead",
        }
    }
}

impl FromStr for InboxStatus {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(())
    }
}

/// An event that the inbox holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxEvent {
    /// Scope.
    pub scope: Scope,
    /// The provider's event id.
    pub event_id: String,
    /// The provider's event type as stored.
    pub event_type: String,
    /// First receipt, Unix µs.
    pub received_at_us: i64,
    /// Processing status.
    pub status: InboxStatus,
    /// Hash of the raw body where the inbox has one, else empty. Two rows of one id with two
    /// different non-empty hashes conflict.
    pub body_sha256: String,
}

/// An effect that the provider's objects prove.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderEffect {
    /// Scope.
    pub scope: Scope,
    /// Group.
    pub root_id: String,
    /// Anchor: the charge, refund, dispute or payout.
    pub object_id: String,
    /// Kind; gives the direction.
    pub kind: EffectKind,
    /// Magnitude in minor units, ≥ 0.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// When the money moved at the provider (by the configured basis), Unix µs.
    pub occurred_at_us: i64,
    /// What the customer meant to pay for (invoice, payment intent, or the configured `intent`
    /// path), empty where unknown. Two credits of one intent are a duplicate charge.
    pub intent: String,
    /// Whether `occurred_at_us` lies in the run's window.
    pub in_window: bool,
}

/// An effect that the local books hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalEffect {
    /// Scope.
    pub scope: Scope,
    /// Group, after aliases are resolved; the row's own object id where no alias is known.
    pub root_id: String,
    /// Anchor, after aliases are resolved.
    pub object_id: String,
    /// The local row's id.
    pub effect_id: String,
    /// Kind; gives the direction.
    pub kind: EffectKind,
    /// Magnitude in minor units; negative only for the undoing of an earlier row.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// When it was booked, Unix µs.
    pub applied_at_us: i64,
    /// The event that the row names, empty where it names none.
    pub event_id: String,
    /// The row that this one undoes, empty where it undoes none.
    pub corrects_effect_id: String,
    /// Whether `applied_at_us` lies in the run's window.
    pub in_window: bool,
}

/// One record's word on the status of a payment; the payment's status is the highest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderState {
    /// Scope.
    pub scope: Scope,
    /// The payment.
    pub root_id: String,
    /// The record that says so (charge, payment intent, dispute).
    pub object_id: String,
    /// Its word.
    pub status: Status,
    /// Refunded so far in minor units, where the record says.
    pub refunded_minor: Option<i64>,
    /// Authorised amount in minor units, where the record says: captures may not exceed it.
    pub authorized_minor: Option<i64>,
    /// Provider time of the word, Unix µs.
    pub at_us: i64,
}

/// A local status row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalState {
    /// Scope.
    pub scope: Scope,
    /// The payment, after aliases are resolved.
    pub root_id: String,
    /// The id as the local row has it.
    pub object_id: String,
    /// Status, after `[local.status_map]`.
    pub status: Status,
    /// Refunded so far in minor units, where the local row says.
    pub refunded_minor: Option<i64>,
    /// Last change, Unix µs.
    pub updated_at_us: i64,
    /// Who changed it last where the local side says (`operator` marks a manual change), else empty.
    pub changed_by: String,
}

/// Ties an id to its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    /// Scope.
    pub scope: Scope,
    /// The id.
    pub alias_id: String,
    /// The id that it leads to; itself possibly an alias (session → invoice → payment intent).
    pub root_id: String,
    /// True for an id that anchors its own effects besides the payment's (refund, dispute);
    /// false for one that names the payment as a whole (charge, payment intent, invoice, session).
    pub is_part: bool,
}

/// Why a record could not become a plain fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoteKind {
    /// A type, enum value or field that is not understood.
    UnknownShape,
    /// A field that came late is not there yet.
    IncompleteFields,
    /// The record contradicts itself; both readings are in the text.
    NeedsReview,
    /// Other account, mode or endpoint than configured.
    WrongScope,
}

/// Something about a record that a person should know. Carries paths and ids only, never bodies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// Scope.
    pub scope: Scope,
    /// Group.
    pub root_id: String,
    /// The record.
    pub object_id: String,
    /// Event ids concerned.
    pub event_ids: Vec<String>,
    /// Why.
    pub kind: NoteKind,
    /// A short machine word, for example `unknown_type`, `future_timestamp`, `won_without_reinstatement`.
    pub cause: String,
    /// One sentence without personal data: path and enum value, or both readings.
    pub text: String,
    /// When it happened at the provider, Unix µs.
    pub at_us: i64,
}

/// One thing seen on one side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// See [`ProviderEvent`].
    ProviderEvent(ProviderEvent),
    /// See [`InboxEvent`].
    InboxEvent(InboxEvent),
    /// See [`ProviderEffect`].
    ProviderEffect(ProviderEffect),
    /// See [`LocalEffect`].
    LocalEffect(LocalEffect),
    /// See [`ProviderState`].
    ProviderState(ProviderState),
    /// See [`LocalState`].
    LocalState(LocalState),
    /// See [`Alias`].
    Alias(Alias),
    /// See [`Note`].
    Note(Note),
}
