//! The four points at which a process is killed.

/// Where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The receiver has the delivery and writes it; it is not committed.
    Receipt,
    /// The delivery was answered 2xx; the worker has claimed it and asks the provider.
    Accepted,
    /// The effect's rows are written in a transaction that is still open.
    Change,
    /// The team's side took the call; that it did is not saved.
    Result,
}

impl Point {
    /// In the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Receipt, Self::Accepted, Self::Change, Self::Result];

    /// A few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Receipt => "after receipt, before the commit",
            Self::Accepted => "after durable acceptance, before it is applied",
            Self::Change => "in the middle of the business change",
            Self::Result => "after an outbox call was accepted, before its result is saved",
        }
    }

    /// What is done there, one sentence a line.
    #[must_use]
    pub const fn story(self) -> [&'static str; 2] {
        match self {
            Self::Receipt => [
                "The receiver has read and verified the delivery and written its row.",
                "It is killed before the commit, so the provider has no 2xx and sends again.",
            ],
            Self::Accepted => [
                "The provider has its 2xx. The worker has claimed the event and asks for the",
                "charge; the provider does not answer, and the worker is killed.",
            ],
            Self::Change => [
                "The worker has written ledger entry and message in one open transaction.",
                "It is killed before status and end of the event are written and committed.",
            ],
            Self::Result => [
                "The effect is committed, the team's side has taken the call and said 200.",
                "The worker is killed while it writes that down.",
            ],
        }
    }

    /// What is killed.
    #[must_use]
    pub const fn process(self) -> &'static str {
        match self {
            Self::Receipt => "recon serve",
            _ => "recon work",
        }
    }
}
