//! What must be so after a kill and after the start that follows it. Pure.
//!
//! The one thing to get right: every check looks at all that is there, not only at the payment at hand, so that
//! what is lost or doubled shows wherever it is.

use super::Point;
use super::snapshot::{CallRow, InboxRow, LedgerRow, OutboxRow, Snapshot};
use std::collections::BTreeSet;

/// A sentence, and whether it is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The sentence.
    pub text: String,
    /// Whether it is true.
    pub is_right: bool,
}

impl Check {
    /// A sentence and whether it is true.
    pub fn new(is_right: bool, text: impl Into<String>) -> Self {
        Self { text: text.into(), is_right }
    }
}

/// An event that the provider sends, and what it stands for by the provider's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Event id.
    pub event_id: String,
    /// Event type.
    pub event_type: String,
    /// The charge that was paid.
    pub charge_id: String,
    /// Minor units.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// Where its worker is killed.
    pub point: Point,
}

impl Sent {
    /// Its effect's key.
    #[must_use]
    pub fn effect_key(&self) -> String {
        format!("credit:{}", self.charge_id)
    }

    /// Its message's key: the effect's with its scope.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}//live/{}", crate::demo::PROVIDER, self.effect_key())
    }

    fn event<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s InboxRow> {
        snapshot.inbox.iter().find(|row| row.event_id == self.event_id)
    }

    fn entries<'s>(&self, snapshot: &'s Snapshot) -> Vec<&'s LedgerRow> {
        snapshot.ledger.iter().filter(|row| row.object_id == self.charge_id).collect()
    }

    fn message<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s OutboxRow> {
        snapshot.outbox.iter().find(|row| row.key == self.idempotency_key())
    }

    fn calls<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s CallRow> {
        snapshot.calls.iter().find(|row| row.key == self.idempotency_key())
    }

    /// Whether it is booked once, as the provider says.
    fn is_booked_once(&self, snapshot: &Snapshot) -> bool {
        let is_it = |row: &LedgerRow| {
            row.effect_key == self.effect_key()
                && row.amount_minor == self.amount_minor
                && row.currency == self.currency
        };
        matches!(&*self.entries(snapshot), [row] if is_it(row))
    }
}

/// Whether an event has come to its end, with its message.
#[must_use]
pub fn has_ended(sent: &Sent, snapshot: &Snapshot) -> bool {
    sent.event(snapshot).is_some_and(|row| row.status == "applied")
        && sent.message(snapshot).is_some_and(|row| row.is_sent)
}

/// What a kill at `point` may leave of the event that was under way. `earlier` are those before it.
#[must_use]
pub fn left(point: Point, sent: &Sent, earlier: &[Sent], left: &Snapshot) -> Vec<Check> {
    let event = sent.event(left);
    let status = event.map(|row| &*row.status);
    let entries = sent.entries(left).len();
    let (message, calls) = (sent.message(left), sent.calls(left));
    let is_unbooked = entries == 0 && message.is_none() && calls.is_none();
    let mut checks = match point {
        Point::Receipt => vec![
            Check::new(status.is_none(), "the inbox has nothing of it: it was never committed"),
            Check::new(is_unbooked, "ledger and outbox have nothing of it"),
        ],
        Point::Accepted | Point::Change => vec![
            Check::new(status == Some("received"), "the inbox has the event, which waits"),
            Check::new(event.is_some_and(|row| row.attempts == 1), "the worker had claimed it"),
            Check::new(is_unbooked, "ledger and outbox have nothing of it"),
        ],
        Point::Result => vec![
            Check::new(status == Some("applied"), "the event is applied"),
            Check::new(sent.is_booked_once(left), "its effect is booked once"),
            Check::new(message.is_some_and(|row| !row.is_sent), "its message counts as not sent"),
            Check::new(calls.is_some_and(|row| row.calls == 1), "the team has heard it once"),
        ],
    };
    let ours = left.ledger.len() - entries;
    let is_whole = earlier.iter().all(|one| has_ended(one, left) && one.is_booked_once(left));
    if !earlier.is_empty() {
        let text = "what was there before is untouched";
        checks.push(Check::new(is_whole && ours == earlier.len(), text));
    }
    checks
}

/// What must be there once everything `accepted` has come to its end.
#[must_use]
pub fn after(accepted: &[Sent], after: &Snapshot) -> Vec<Check> {
    let count = accepted.len();
    let there = accepted.iter().filter(|sent| sent.event(after).is_some()).count();
    let booked = accepted.iter().filter(|sent| sent.is_booked_once(after)).count();
    let entries = after.ledger.len();
    let sent = accepted.iter().filter(|sent| sent.message(after).is_some_and(|row| row.is_sent)).count();
    let keys: BTreeSet<String> = accepted.iter().map(Sent::idempotency_key).collect();
    let heard: BTreeSet<String> = after.calls.iter().map(|row| row.key.clone()).collect();
    let is_as_often = |one: &Sent| {
        // An answer that was lost is the only reason to call twice.
        let expected = if one.point == Point::Result { 2 } else { 1 };
        one.calls(after).is_some_and(|row| row.calls == expected && row.bodies == 1)
    };
    let is_repeated = accepted.iter().all(is_as_often);
    vec![
        Check::new(
            there == count,
            format!("nothing lost: {there} of {count} accepted events are in the inbox"),
        ),
        Check::new(
            booked == count && entries == count,
            format!("one effect each: {entries} {} for {count} paid", word(entries, "entry", "entries")),
        ),
        Check::new(
            sent == count && after.outbox.len() == count,
            format!("one message each: {sent} of {count} sent"),
        ),
        Check::new(
            heard == keys,
            format!("the team has {} {}", heard.len(), word(heard.len(), "effect by key", "effects by key")),
        ),
        Check::new(is_repeated, "a call came twice only where its answer was lost, with the same bytes"),
    ]
}

/// Whether every event that was sent is there, once: also those that nobody needed before.
#[must_use]
pub fn all_there(event_ids: &[String], end: &Snapshot) -> Check {
    let is_there = |id: &&String| end.inbox.iter().filter(|row| row.event_id == **id).count() == 1;
    let (there, count) = (event_ids.iter().filter(is_there).count(), event_ids.len());
    let is_right = there == count && end.inbox.len() == count;
    Check::new(is_right, format!("the inbox has {there} of {count} events that were sent, each once"))
}

/// Whether every event has come to an end.
#[must_use]
pub fn nothing_open(end: &Snapshot) -> Check {
    let is_open = |row: &&InboxRow| !matches!(&*row.status, "applied" | "superseded" | "ignored");
    let open = end.inbox.iter().filter(is_open).count();
    Check::new(open == 0, format!("no event waits or is dead: {open} of {}", end.inbox.len()))
}

fn word<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: usize, point: Point) -> Sent {
        Sent {
            event_id: format!("evt_{number}"),
            event_type: "charge.succeeded".to_owned(),
            charge_id: format!("ch_{number}"),
            amount_minor: 500,
            currency: "usd".to_owned(),
            point,
        }
    }

    fn all() -> Vec<Sent> {
        (1..).zip(Point::ALL).map(|(number, point)| sent(number, point)).collect()
    }

    /// As it must be when all four have ended.
    fn whole() -> Snapshot {
        let mut snapshot = Snapshot::default();
        for sent in all() {
            let tries = if sent.point == Point::Receipt { 1 } else { 2 };
            let calls = if sent.point == Point::Result { 2 } else { 1 };
            let (key, effect_key) = (sent.idempotency_key(), sent.effect_key());
            snapshot.inbox.push(InboxRow {
                event_id: sent.event_id.clone(),
                event_type: sent.event_type,
                status: "applied".to_owned(),
                deliveries: 1,
                attempts: tries,
            });
            snapshot.ledger.push(LedgerRow {
                effect_key,
                object_id: sent.charge_id,
                amount_minor: sent.amount_minor,
                currency: sent.currency,
                event_id: sent.event_id,
            });
            snapshot.outbox.push(OutboxRow { key: key.clone(), attempts: tries, is_sent: true });
            snapshot.calls.push(CallRow { key, calls, bodies: 1 });
        }
        snapshot
    }

    fn failed(checks: &[Check]) -> Vec<&str> {
        let wrong = checks.iter().filter(|check| !check.is_right);
        wrong.map(|check| check.text.split(':').next().unwrap()).collect()
    }

    #[test]
    fn what_is_whole_passes_and_nothing_that_is_not() {
        type Harm = fn(&mut Snapshot);
        const TWICE: &str = "a call came twice only where its answer was lost, with the same bytes";
        let harms: [(&str, Harm); 11] = [
            ("nothing lost", |it| drop(it.inbox.remove(1))),
            ("one effect each", |it| drop(it.ledger.remove(2))),
            ("one effect each", |it| it.ledger.push(it.ledger[0].clone())),
            ("one effect each", |it| it.ledger[3].amount_minor += 1),
            ("one effect each", |it| it.ledger[3].currency = "eur".to_owned()),
            ("one message each", |it| it.outbox[0].is_sent = false),
            ("one message each", |it| {
                it.outbox.push(OutboxRow { key: "x".to_owned(), ..it.outbox[0].clone() });
            }),
            (TWICE, |it| it.calls[3].bodies = 2),
            (TWICE, |it| it.calls[3].calls = 3),
            (TWICE, |it| it.calls[0].calls = 2),
            ("the team has 5 effects by key", |it| {
                it.calls.push(CallRow { key: "x".to_owned(), ..it.calls[0].clone() });
            }),
        ];
        assert_eq!(failed(&after(&all(), &whole())), Vec::<&str>::new());
        for (expected, harm) in harms {
            let mut harmed = whole();
            harm(&mut harmed);
            assert_eq!(failed(&after(&all(), &harmed)), [expected]);
        }
    }

    #[test]
    fn what_a_kill_leaves_is_told_from_what_it_must_not() {
        let (all, whole) = (all(), whole());
        let (earlier, last) = (&all[..3], &all[3]);
        let mut now = whole.clone();
        now.outbox[3].is_sent = false;
        now.calls[3].calls = 1;
        assert_eq!(failed(&left(Point::Result, last, earlier, &now)), Vec::<&str>::new());
        assert_eq!(
            failed(&left(Point::Result, last, earlier, &whole)),
            ["its message counts as not sent", "the team has heard it once"]
        );
        // Half of the change is there: what a transaction must not leave.
        let mut half = whole.clone();
        half.inbox[3].status = "received".to_owned();
        half.inbox[3].attempts = 1;
        assert_eq!(
            failed(&left(Point::Change, last, earlier, &half)),
            ["ledger and outbox have nothing of it"]
        );
        let mut rolled_back = half.clone();
        rolled_back.ledger.pop();
        rolled_back.outbox.pop();
        rolled_back.calls.pop();
        assert_eq!(failed(&left(Point::Change, last, earlier, &rolled_back)), Vec::<&str>::new());
        // What was there before is lost, or doubled.
        let harms: [fn(&mut Snapshot); 2] =
            [|it| drop(it.inbox.remove(0)), |it| it.ledger.push(it.ledger[0].clone())];
        for harm in harms {
            let mut harmed = rolled_back.clone();
            harm(&mut harmed);
            assert_eq!(
                failed(&left(Point::Change, last, earlier, &harmed)),
                ["what was there before is untouched"]
            );
        }
    }

    #[test]
    fn an_event_that_was_sent_and_is_not_there_is_missed() {
        let mut ids: Vec<String> = all().into_iter().map(|sent| sent.event_id).collect();
        assert!(all_there(&ids, &whole()).is_right);
        assert!(!all_there(&ids[1..], &whole()).is_right, "one that nobody sent");
        ids.push("evt_5".to_owned());
        assert!(!all_there(&ids, &whole()).is_right);
    }

    #[test]
    fn an_event_that_waits_or_is_dead_is_open() {
        let mut snapshot = whole();
        assert!(nothing_open(&snapshot).is_right);
        for status in ["received", "parked", "dead"] {
            snapshot.inbox[2].status = status.to_owned();
            assert!(!nothing_open(&snapshot).is_right, "{status}");
        }
    }
}
