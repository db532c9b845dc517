//! The life of a finding: what runs saw of it and what persons decided, made into where it stands now. Pure.
//!
//! The one thing to get right: what a person decides holds for one *opening* of a finding and, where they accept it, for the
//! very amounts that they accepted. A finding that went and came back, or whose amounts moved, counts again whatever was
//! decided before; only who looks after it outlives that.

use super::{Finding, Standing};
use crate::record::Status;
use std::fmt;

/// What is kept of a finding's life in rows that are never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActKind {
    /// A run no longer found it.
    Cleared,
    /// A run found it again.
    Reopened,
    /// A person gave it to somebody.
    Assign,
    /// A person lives with it until a day.
    Accept,
    /// A person says that it is done.
    Close,
}

impl ActKind {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Cleared, Self::Reopened, Self::Assign, Self::Accept, Self::Close];

    /// The word in `finding_action`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cleared => "cleared",
            Self::Reopened => "reopened",
            Self::Assign => "assign",
            Self::Accept => "accept",
            Self::Close => "close",
        }
    }
}

/// One kept act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// Its place in the history; later acts have larger ones.
    pub sequence: i64,
    /// The finding.
    pub finding_id: String,
    /// What.
    pub kind: ActKind,
    /// The opening of the finding that it is about, from 1.
    pub opening: i64,
    /// Whom it was given to; empty but for [`ActKind::Assign`].
    pub owner: String,
    /// When the acceptance ends, Unix µs: from then on the finding counts.
    pub until_us: Option<i64>,
    /// What was accepted: [`amounts`] of then.
    pub amounts: String,
    /// The run that saw it, or that confirmed a closing; empty where nobody but the person says so.
    pub run_id: String,
    /// Why.
    pub reason: String,
    /// Who; empty for a run.
    pub actor: String,
    /// When, Unix µs.
    pub at_us: i64,
}

/// Where a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// First seen by the last run over it.
    New,
    /// Seen before and not cleared since.
    Open,
    /// Cleared or closed once, and back.
    Reopened,
    /// Known, lived with, and not counted until the acceptance ends.
    Accepted,
    /// The last run over it no longer found it.
    Cleared,
    /// A person has closed it.
    Closed,
}

impl Place {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Open, Self::Reopened, Self::Accepted, Self::Cleared, Self::Closed];

    /// The word in reports and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Reopened => "reopened",
            Self::Accepted => "accepted",
            Self::Cleared => "cleared",
            Self::Closed => "closed",
        }
    }

    /// Whether the disagreement is there and counts.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::New | Self::Open | Self::Reopened)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<Standing> for Place {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::New => Self::New,
            Standing::Open => Self::Open,
            Standing::Reopened => Self::Reopened,
            Standing::Accepted => Self::Accepted,
        }
    }
}

/// Whether an acceptance still counts, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It does.
    InForce,
    /// Its end has come.
    Ended,
    /// The finding says something else now than what was accepted.
    Changed,
}

/// The acceptance of the present opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// Who accepted it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When it ends, Unix µs.
    pub until_us: i64,
    /// Whether it still counts.
    pub validity: Validity,
}

/// What is known of one finding now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Where it stands.
    pub place: Place,
    /// Whom it was given to; `None`: whoever the configuration names for its kind.
    pub owner: Option<String>,
    /// The acceptance of this opening, also one that no longer holds.
    pub acceptance: Option<Acceptance>,
}

/// Where a finding stands that a run last saw as `seen` (new, open, reopened or cleared), in its `opening`-th opening and
/// with these `amounts`, after `acts` (its own, oldest first).
#[must_use]
pub fn life(seen: Place, opening: i64, amounts: &str, acts: &[Act], now_us: i64) -> Life {
    let owner = acts.iter().rev().find(|act| act.kind == ActKind::Assign).map(|act| act.owner.clone());
    let decisive = acts
        .iter()
        .rev()
        .find(|act| act.opening == opening && matches!(act.kind, ActKind::Accept | ActKind::Close));
    let is_gone = matches!(seen, Place::Cleared | Place::Closed);
    let Some(act) = decisive else { return Life { place: seen, owner, acceptance: None } };
    if act.kind == ActKind::Close {
        return Life { place: Place::Closed, owner, acceptance: None };
    }
    let until_us = act.until_us.unwrap_or(i64::MIN);
    let validity = if until_us <= now_us {
        Validity::Ended
    } else if act.amounts != amounts {
        Validity::Changed
    } else {
        Validity::InForce
    };
    let place = if validity == Validity::InForce && !is_gone { Place::Accepted } else { seen };
    let acceptance = Acceptance { by: act.actor.clone(), reason: act.reason.clone(), until_us, validity };
    Life { place, owner, acceptance: Some(acceptance) }
}

/// Whether a person had closed the finding before a run saw it at `seen_at_us`: then it is back.
#[must_use]
pub fn is_closed_before(opening: i64, acts: &[Act], seen_at_us: i64) -> bool {
    let decisive = acts
        .iter()
        .rev()
        .find(|act| act.opening == opening && matches!(act.kind, ActKind::Accept | ActKind::Close));
    // A run that began before the closing says nothing against it.
    decisive.is_some_and(|act| act.kind == ActKind::Close && act.at_us <= seen_at_us)
}

/// What an acceptance holds on to: cause, both amounts with their currencies, both statuses, as a JSON list.
#[must_use]
pub fn amounts(finding: &Finding) -> String {
    let word = |status: Option<Status>| status.map_or("", Status::as_str);
    serde_json::json!([
        finding.cause,
        finding.currency,
        finding.expected_minor,
        finding.found_currency,
        finding.found_minor,
        word(finding.expected_state),
        word(finding.found_state),
    ])
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(kind: ActKind, opening: i64, at_us: i64) -> Act {
        Act {
            sequence: at_us,
            finding_id: "f".to_owned(),
            kind,
            opening,
            owner: String::new(),
            until_us: (kind == ActKind::Accept).then_some(100),
            amounts: "[1]".to_owned(),
            run_id: String::new(),
            reason: "why".to_owned(),
            actor: "ana".to_owned(),
            at_us,
        }
    }

    #[track_caller]
    fn stands(place: Place, seen: Place, opening: i64, amounts: &str, acts: &[Act], now_us: i64) {
        assert_eq!(life(seen, opening, amounts, acts, now_us).place, place);
    }

    #[test]
    fn an_acceptance_holds_until_its_end_for_its_amounts_and_its_opening() {
        let accepted = [act(ActKind::Accept, 1, 5)];
        stands(Place::Accepted, Place::Open, 1, "[1]", &accepted, 99);
        stands(Place::Open, Place::Open, 1, "[1]", &accepted, 100);
        stands(Place::Open, Place::Open, 1, "[2]", &accepted, 99);
        stands(Place::Reopened, Place::Reopened, 2, "[1]", &accepted, 99);
        stands(Place::Cleared, Place::Cleared, 1, "[1]", &accepted, 99);
    }

    #[test]
    fn the_last_decision_of_an_opening_counts() {
        let closed = [act(ActKind::Accept, 1, 5), act(ActKind::Close, 1, 6)];
        stands(Place::Closed, Place::Open, 1, "[1]", &closed, 10);
        stands(Place::Closed, Place::Cleared, 1, "[1]", &closed, 10);
        stands(Place::Reopened, Place::Reopened, 2, "[1]", &closed, 10);
        let accepted = [act(ActKind::Close, 1, 5), act(ActKind::Accept, 1, 6)];
        stands(Place::Accepted, Place::Open, 1, "[1]", &accepted, 10);
    }

    #[test]
    fn a_run_that_began_before_a_closing_does_not_undo_it() {
        let closed = [act(ActKind::Close, 1, 5)];
        assert!(is_closed_before(1, &closed, 5) && is_closed_before(1, &closed, 6));
        assert!(!is_closed_before(1, &closed, 4) && !is_closed_before(2, &closed, 9));
        let accepted = [act(ActKind::Close, 1, 5), act(ActKind::Accept, 1, 6)];
        assert!(!is_closed_before(1, &accepted, 9), "taken back");
    }

    #[test]
    fn an_owner_outlives_openings() {
        let given =
            [Act { owner: "bo".to_owned(), ..act(ActKind::Assign, 1, 5) }, act(ActKind::Cleared, 1, 6)];
        assert_eq!(life(Place::Reopened, 2, "", &given, 10).owner.as_deref(), Some("bo"));
    }
}
