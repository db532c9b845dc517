//! Counting what a worker did: events, not attempts.

use super::book::{End, Item};
use crate::record::{EventKey, InboxStatus};
use std::collections::BTreeMap;

/// Events by the status that they ended with. Those that still waited when a drain ended are in it too: `received` are
/// due again, `parked` wait for another.
pub type Tally = BTreeMap<&'static str, u64>;

/// Counts events as they end. An event that waits is counted once, at the end, and only if it has not ended by then.
#[derive(Debug, Default)]
pub(super) struct Counting {
    ended: Tally,
    /// Of a drain alone: a worker without an end would collect what others end.
    waiting: Option<BTreeMap<EventKey, &'static str>>,
}

impl Counting {
    /// Counts for a drain, or for a worker without an end.
    pub(super) fn new(drain: bool) -> Self {
        Self { ended: Tally::new(), waiting: drain.then(BTreeMap::new) }
    }

    /// Counts a batch. `None`: somebody else had ended the event.
    pub(super) fn count(&mut self, items: &[Item], ends: &[Option<End>]) {
        for (item, end) in items.iter().zip(ends) {
            self.count_one(&item.claimed.key, end.as_ref().map(|end| end.status));
        }
    }

    fn count_one(&mut self, key: &EventKey, status: Option<&'static str>) {
        let waits = |status: &&str| matches!(status.parse(), Ok(InboxStatus::Received | InboxStatus::Parked));
        match (status.filter(waits), &mut self.waiting) {
            (Some(status), Some(waiting)) => {
                waiting.insert(key.clone(), status);
            }
            (Some(_), None) => {}
            (None, waiting) => {
                if let Some(waiting) = waiting {
                    waiting.remove(key);
                }
                if let Some(status) = status {
                    *self.ended.entry(status).or_default() += 1;
                }
            }
        }
    }

    /// What became of the events.
    pub(super) fn tally(self) -> Tally {
        let mut tally = self.ended;
        for status in self.waiting.into_iter().flatten().map(|(_, status)| status) {
            *tally.entry(status).or_default() += 1;
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Scope;

    fn tally_of(drain: bool, turns: &[(&str, Option<&'static str>)]) -> Vec<(&'static str, u64)> {
        let mut counting = Counting::new(drain);
        for (event_id, status) in turns {
            let key = EventKey { scope: Scope::new("stripe", "", "live"), event_id: (*event_id).to_owned() };
            counting.count_one(&key, *status);
        }
        counting.tally().into_iter().collect()
    }

    #[test]
    fn an_event_that_fails_three_times_is_one_event() {
        let failed = [("a", Some("received")); 3];
        assert_eq!(tally_of(true, &failed), [("received", 1)]);
        let other = [("b", Some("received")), ("c", Some("parked"))];
        assert_eq!(tally_of(true, &[&failed[..], &other].concat()), [("parked", 1), ("received", 2)]);
    }

    #[test]
    fn what_ends_after_it_waited_is_counted_as_ended() {
        let turns = [
            ("a", Some("received")),
            ("b", Some("parked")),
            ("c", Some("received")),
            ("a", Some("applied")),
            ("b", Some("dead")),
            ("c", None),
        ];
        assert_eq!(tally_of(true, &turns), [("applied", 1), ("dead", 1)]);
    }

    #[test]
    fn a_worker_without_an_end_keeps_no_list_of_what_waits() {
        let turns = [("a", Some("received")), ("a", Some("received")), ("b", Some("applied"))];
        assert_eq!(tally_of(false, &turns), [("applied", 1)]);
    }
}
