//! The faults by name.

/// A way to go wrong, or to look wrong and be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each name says it; what is expected of it stands where it is planted")]
pub enum Fault {
    MissedPayment,
    MissedRefund,
    MissedDispute,
    NotSubscribed,
    DeadLetter,
    Parked,
    MarkedProcessed,
    PendingTooLong,
    OlderThanEvents,
    RefundWithoutEvents,
    DuplicateDelivery,
    DuplicateTypes,
    DuplicateTriple,
    DuplicateRefund,
    ChargedTwiceForOrder,
    ChargedTwiceForInvoice,
    Misattributed,
    OrphanUnknown,
    OrphanFailedRefund,
    AmountFactor100,
    AmountFactor10,
    AmountRounding,
    AmountAuthorised,
    AmountOther,
    RefundCumulative,
    OtherCurrency,
    StalePending,
    StalePaid,
    StaleDispute,
    PaidAfterRefunded,
    UnknownEvent,
    TestEvent,
    UnknownType,
    BookedAfterWindow,
    BookedInWindow,
    HarmlessDuplicates,
    HarmlessOrder,
    HarmlessSibling,
    HarmlessReversal,
    HarmlessEdge,
    InFlightYoung,
    InFlightRetried,
}

impl Fault {
    /// Every fault that must be found.
    pub const LOUD: [Self; 35] = [
        Self::MissedPayment,
        Self::MissedRefund,
        Self::MissedDispute,
        Self::NotSubscribed,
        Self::DeadLetter,
        Self::Parked,
        Self::MarkedProcessed,
        Self::PendingTooLong,
        Self::OlderThanEvents,
        Self::RefundWithoutEvents,
        Self::DuplicateDelivery,
        Self::DuplicateTypes,
        Self::DuplicateTriple,
        Self::DuplicateRefund,
        Self::ChargedTwiceForOrder,
        Self::ChargedTwiceForInvoice,
        Self::Misattributed,
        Self::OrphanUnknown,
        Self::OrphanFailedRefund,
        Self::AmountFactor100,
        Self::AmountFactor10,
        Self::AmountRounding,
        Self::AmountAuthorised,
        Self::AmountOther,
        Self::RefundCumulative,
        Self::OtherCurrency,
        Self::StalePending,
        Self::StalePaid,
        Self::StaleDispute,
        Self::PaidAfterRefunded,
        Self::UnknownEvent,
        Self::TestEvent,
        Self::UnknownType,
        Self::BookedAfterWindow,
        Self::BookedInWindow,
    ];

    /// Every scene that looks wrong and must not be found.
    pub const QUIET: [Self; 7] = [
        Self::HarmlessDuplicates,
        Self::HarmlessOrder,
        Self::HarmlessSibling,
        Self::HarmlessReversal,
        Self::HarmlessEdge,
        Self::InFlightYoung,
        Self::InFlightRetried,
    ];

    /// Every fault that a plan puts right without a person's decision.
    pub const CORRECTABLE: [Self; 18] = [
        Self::MissedPayment,
        Self::MissedRefund,
        Self::MissedDispute,
        Self::NotSubscribed,
        Self::DeadLetter,
        Self::Parked,
        Self::MarkedProcessed,
        Self::PendingTooLong,
        Self::OlderThanEvents,
        Self::RefundWithoutEvents,
        Self::DuplicateDelivery,
        Self::DuplicateTypes,
        Self::DuplicateTriple,
        Self::DuplicateRefund,
        Self::StalePending,
        Self::StalePaid,
        Self::StaleDispute,
        Self::PaidAfterRefunded,
    ];

    /// Whether it looks different as time goes on: what is in flight today is missing tomorrow.
    #[must_use]
    pub const fn ages(self) -> bool {
        matches!(self, Self::InFlightYoung | Self::InFlightRetried)
    }
}
