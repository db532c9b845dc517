//! Whether a status may be written over the one that stands there. Pure.

use crate::gather::FreshState;
use crate::record::Status;
use crate::store::states::State;

/// A status as the provider has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Status.
    pub status: Status,
    /// Refunded so far in minor units, where the provider says.
    pub refunded_minor: Option<i64>,
    /// The provider's time of the status, Unix µs.
    pub provider_time_us: i64,
}

impl From<FreshState> for Fetched {
    fn from(fresh: FreshState) -> Self {
        Self { status: fresh.status, refunded_minor: fresh.refunded_minor, provider_time_us: fresh.at_us }
    }
}

/// Where the status to write comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Fetched just now: it may also take one of the named steps back.
    JustNow,
    /// As the run saw it: it only moves forward.
    AsOfRun,
}

/// What to do with a local status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write it.
    Write,
    /// It stands there already.
    Same,
    /// A person changed it later than the provider's word or the run; that is never undone.
    ManualOverride,
    /// The step is none that a payment's life has.
    Refused,
}

/// Who a status row names when a person changed it.
pub const OPERATOR: &str = "operator";

/// Judges one write. `run_started_us` is the start of the run that planned it.
#[must_use]
pub fn judge(
    current: Option<&State>,
    wanted: &Fetched,
    freshness: Freshness,
    run_started_us: i64,
) -> Verdict {
    let Some(current) = current else { return Verdict::Write };
    let refunded_differs = wanted.refunded_minor.is_some() && wanted.refunded_minor != current.refunded_minor;
    if current.status == wanted.status && !refunded_differs {
        return Verdict::Same;
    }
    let by_operator = current.changed_by == OPERATOR;
    if by_operator && current.updated_at_us > wanted.provider_time_us.min(run_started_us) {
        return Verdict::ManualOverride;
    }
    let is_less = wanted.status == current.status && wanted.refunded_minor < current.refunded_minor;
    if is_less && freshness == Freshness::AsOfRun {
        return Verdict::Refused;
    }
    let forward = current.status != Status::DisputeLost && wanted.status >= current.status;
    let back = freshness == Freshness::JustNow && is_step_back(current.status, wanted.status);
    if forward || back { Verdict::Write } else { Verdict::Refused }
}

/// The named steps back in a payment's life: another attempt after a failed one; a refund that failed
/// after it had succeeded (<https://docs.stripe.com/refunds#failed-refunds>); a dispute that was won or
/// withdrawn (<https://docs.stripe.com/disputes/how-disputes-work>). A lost dispute is the end.
const fn is_step_back(from: Status, to: Status) -> bool {
    matches!(
        (from, to),
        (Status::Failed, Status::Pending)
            | (Status::PartiallyRefunded, Status::Paid)
            | (Status::Refunded, Status::Paid | Status::PartiallyRefunded)
            | (Status::Disputed, Status::Paid | Status::PartiallyRefunded | Status::Refunded)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(status: Status, updated_at_us: i64, changed_by: &str) -> State {
        State {
            status,
            refunded_minor: None,
            provider_time_us: 10,
            updated_at_us,
            changed_by: changed_by.into(),
        }
    }

    fn fetched(status: Status) -> Fetched {
        Fetched { status, refunded_minor: None, provider_time_us: 30 }
    }

    #[test]
    fn c64_a_later_manual_change_is_never_undone() {
        let wanted = fetched(Status::Refunded);
        let verdict = |state: &State| judge(Some(state), &wanted, Freshness::JustNow, 100);
        assert_eq!(
            verdict(&local(Status::Paid, 101, OPERATOR)),
            Verdict::ManualOverride,
            "later than the run"
        );
        assert_eq!(
            verdict(&local(Status::Paid, 31, OPERATOR)),
            Verdict::ManualOverride,
            "later than the event"
        );
        assert_eq!(
            verdict(&local(Status::Paid, 30, OPERATOR)),
            Verdict::Write,
            "older than the provider's word"
        );
        assert_eq!(verdict(&local(Status::Paid, 101, "worker")), Verdict::Write, "not a person");
        assert_eq!(verdict(&local(Status::Refunded, 101, OPERATOR)), Verdict::Same);
    }

    #[test]
    fn only_named_steps_go_back_and_only_on_fresh_word() {
        let step = |from, to, freshness| judge(Some(&local(from, 20, "")), &fetched(to), freshness, 100);
        for from in Status::ALL {
            for to in Status::ALL {
                let stale = step(from, to, Freshness::AsOfRun);
                let expected = if from == to {
                    Verdict::Same
                } else if to > from && from != Status::DisputeLost {
                    Verdict::Write
                } else {
                    Verdict::Refused
                };
                assert_eq!(stale, expected, "{from} → {to}");
            }
        }
        assert_eq!(step(Status::Refunded, Status::Paid, Freshness::JustNow), Verdict::Write);
        assert_eq!(step(Status::Disputed, Status::Refunded, Freshness::JustNow), Verdict::Write);
        assert_eq!(step(Status::DisputeLost, Status::Paid, Freshness::JustNow), Verdict::Refused);
        assert_eq!(step(Status::Paid, Status::Failed, Freshness::JustNow), Verdict::Refused);
    }

    #[test]
    fn a_refunded_sum_that_moved_is_written() {
        let current = State { refunded_minor: Some(5), ..local(Status::PartiallyRefunded, 20, "") };
        let wanted = Fetched { refunded_minor: Some(7), ..fetched(Status::PartiallyRefunded) };
        assert_eq!(judge(Some(&current), &wanted, Freshness::JustNow, 100), Verdict::Write);
        assert_eq!(judge(None, &wanted, Freshness::JustNow, 100), Verdict::Write);
        let less = Fetched { refunded_minor: Some(3), ..wanted };
        assert_eq!(judge(Some(&current), &less, Freshness::AsOfRun, 100), Verdict::Refused);
        assert_eq!(judge(Some(&current), &less, Freshness::JustNow, 100), Verdict::Write);
    }
}
