//! What a fault must be found as, and what the local side does to bring it about.

use crate::record::{EffectKind, InboxStatus, Status};

/// What a run must find.
///
/// Amounts are minor units, signed as they move the balance; an empty cell and 0 say the same. For
/// `currency_mismatch` the found amount is money of another currency and the difference is the whole
/// expected amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Kind, the contract's word.
    pub kind: &'static str,
    /// Cause; `None` where the contract names none for the kind, so that any word may stand there.
    pub cause: Option<&'static str>,
    /// The object that it is about.
    pub object_id: String,
    /// The effect kind, for findings about money.
    pub effect: Option<EffectKind>,
    /// Lower-case ISO code; empty where there is no money.
    pub currency: String,
    /// The provider's amount.
    pub expected_minor: Option<i64>,
    /// The local amount.
    pub found_minor: Option<i64>,
    /// Provider minus local.
    pub difference_minor: Option<i64>,
    /// The provider's status, for findings about states.
    pub expected_state: Option<Status>,
    /// The local status, for findings about states.
    pub found_state: Option<Status>,
}

impl Expected {
    /// A finding about money: signed amounts of both sides.
    #[must_use]
    pub fn money(
        kind: &'static str,
        effect: EffectKind,
        object: &str,
        currency: &str,
        sides: (i64, i64),
    ) -> Self {
        Self {
            kind,
            cause: None,
            object_id: object.to_owned(),
            effect: Some(effect),
            currency: currency.to_owned(),
            expected_minor: Some(sides.0),
            found_minor: Some(sides.1),
            difference_minor: Some(sides.0 - sides.1),
            expected_state: None,
            found_state: None,
        }
    }

    /// A finding about a status.
    #[must_use]
    pub fn state(kind: &'static str, object: &str, provider: Status, local: Status) -> Self {
        Self { expected_state: Some(provider), found_state: Some(local), ..Self::plain(kind, object) }
    }

    /// A finding without money.
    #[must_use]
    pub fn plain(kind: &'static str, object: &str) -> Self {
        Self {
            kind,
            cause: None,
            object_id: object.to_owned(),
            effect: None,
            currency: String::new(),
            expected_minor: None,
            found_minor: None,
            difference_minor: None,
            expected_state: None,
            found_state: None,
        }
    }

    /// What is left of it once the plan is applied: a correctable status nothing; correctable money a
    /// timing difference of the same amount, because the correction is booked after the cut-off.
    #[must_use]
    pub fn after_apply(&self) -> Option<Self> {
        if !self.is_correctable() {
            return Some(self.clone());
        }
        self.effect?;
        Some(Self { kind: "timing_difference", cause: Some("cut_off"), ..self.clone() })
    }

    /// The same with a cause.
    #[must_use]
    pub fn because(mut self, cause: &'static str) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Whether `recon apply` puts it right without a person's decision, by the contract's table of default corrections.
    #[must_use]
    pub fn is_correctable(&self) -> bool {
        matches!(
            self.kind,
            "missed_event"
                | "unapplied_event"
                | "missing_effect"
                | "duplicate_effect"
                | "stale_state"
                | "forbidden_transition"
        )
    }
}

/// A row that stands in the books without any handler's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraRow {
    /// Kind.
    pub kind: EffectKind,
    /// The object that it names.
    pub object_id: String,
    /// Magnitude; negative with `undoes_first`.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: &'static str,
    /// The event that it names, or empty.
    pub event_id: String,
    /// When it was booked, Unix s.
    pub at_s: i64,
    /// Whether it undoes the second row that the payment's handler booked.
    pub undoes_second: bool,
}

/// An event in the inbox that the provider did not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraEvent {
    /// Event id.
    pub event_id: String,
    /// Event type.
    pub kind: &'static str,
    /// `live` or `test`.
    pub mode: &'static str,
    /// Body.
    pub body: String,
    /// When it came, Unix s.
    pub at_s: i64,
}

/// What the local side does otherwise than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// These events never arrive.
    Drop(Vec<String>),
    /// These events arrive and end in this status, without effect and without a change of status.
    LeftAs(InboxStatus, Vec<String>),
    /// Everything is delivered so many times, and the naive handler takes it.
    NaiveTimes(u32),
    /// The naive handler books these types besides those that it should.
    NaiveAlsoBooks(&'static str),
    /// Deliveries come in the reverse order.
    Reversed,
    /// Everything is delivered several times, to the honest handler.
    HonestTimes(u32),
    /// An effect is booked with another amount, currency or object.
    BooksAs {
        /// Whose effect: charge, refund or dispute.
        object_id: String,
        /// Magnitude.
        amount_minor: i64,
        /// Lower-case ISO code.
        currency: &'static str,
        /// The object that the row names.
        as_object_id: String,
    },
    /// The nightly import leaves out the reinstated money.
    NotImported,
    /// Everything arrives at this second.
    ArrivesAt(i64),
    /// A row in the books.
    Row(ExtraRow),
    /// An event in the inbox.
    Inbox(ExtraEvent),
    /// The status ends as this, last changed so many seconds after the payment's last event.
    StateEndsAs(Status, i64),
    /// Failures of refunds are received and not acted upon.
    IgnoresRefundFailure,
}
