//! What the inbox says of a payment's events: received, tried, applied, and what persons did about them.
//!
//! The one thing to get right: an event that the endpoint asked for and that is not here is marked, because nothing else in
//! the story would show it.

use super::Tale;
use crate::config::Side;
use crate::gather::{Inbox, Moment};
use crate::record::{Fact, ProviderEvent, Scope, format_instant};
use crate::report::timeline::{Ended, Step, Teller, overtaken};
use crate::store::{self, operating, others};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

impl Tale<'_> {
    /// Tells what became of these events; `events` are those that the provider has.
    pub(super) async fn inbox(
        &mut self,
        scope: &Scope,
        ids: &BTreeSet<String>,
        events: &BTreeMap<String, ProviderEvent>,
    ) -> Result<()> {
        let received = match &self.settings.inbox {
            Side::Absent => return Ok(()),
            Side::Store => self.own_inbox(scope, ids, events).await?,
            Side::Database(_) => self.team_inbox(scope, ids).await?,
        };
        for event in events.values().filter(|event| event.wanted && !received.contains(&event.event_id)) {
            let told = format!("event {} ", event.event_id);
            let own = self.steps.iter_mut().filter(|step| step.teller == Teller::Provider);
            for step in own.filter(|step| step.text.starts_with(&told)) {
                step.marks.push("never received".to_owned());
            }
        }
        Ok(())
    }

    async fn team_inbox(&mut self, scope: &Scope, ids: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let mut received = BTreeSet::new();
        let Some(inbox) = Inbox::open(self.settings).await? else { return Ok(received) };
        let mut rows = Vec::new();
        let mut keep = |fact: Fact| {
            if let Fact::InboxEvent(row) = fact {
                rows.push(row);
            }
            Ok(())
        };
        let mut moment = Moment::begin(None, Some(&inbox)).await?;
        moment.events_of(scope, ids, &mut keep).await?;
        moment.end().await?;
        for row in rows {
            let text =
                format!("{} {} received, marked {}", row.event_id, row.event_type, row.status.as_str());
            self.step(row.received_at_us, Teller::Inbox, text);
            received.insert(row.event_id);
        }
        Ok(received)
    }

    async fn own_inbox(
        &mut self,
        scope: &Scope,
        ids: &BTreeSet<String>,
        events: &BTreeMap<String, ProviderEvent>,
    ) -> Result<BTreeSet<String>> {
        let mut received = BTreeSet::new();
        let mut ended = Vec::new();
        for id in ids.iter().filter(|id| store::batch::is_storable(id)) {
            let filed = operating::by_id(self.store, id).await?;
            for event in filed.into_iter().filter(|event| event.key.scope == *scope) {
                received.insert(id.clone());
                if let (Some(at_us), "applied", Some(said)) =
                    (event.completed_at_us, &*event.status, events.get(id))
                {
                    ended.push(Ended {
                        event_id: id.clone(),
                        event_type: event.event_type.clone(),
                        created_us: said.created_us,
                        applied_at_us: at_us,
                    });
                }
                self.filed(&event);
                self.done_to(&event).await?;
            }
        }
        let marks = overtaken(&ended);
        for step in self.steps.iter_mut().filter(|step| step.teller == Teller::Inbox) {
            let (id, end) = step.text.split_once(' ').unwrap_or_default();
            if let (Some(mark), true) = (marks.get(id), end.starts_with("applied")) {
                step.marks.push(mark.clone());
            }
        }
        Ok(received)
    }

    fn filed(&mut self, event: &operating::Filed) {
        let zone = self.settings.report.time_zone;
        let id = &event.key.event_id;
        let again = match event.deliveries {
            ..=1 => String::new(),
            count => {
                let last = format_instant(event.last_delivery_at_us, zone);
                format!(", {count} deliveries, the last {last}")
            }
        };
        let attempts = match event.attempts {
            0 => String::new(),
            1 => " after 1 attempt".to_owned(),
            count => format!(" after {count} attempts"),
        };
        let why = match (&*event.last_error, &*event.parked_for) {
            ("", "") => String::new(),
            ("", parked_for) => format!(", waits for {parked_for}"),
            (error, _) => format!(": {error}"),
        };
        let now = format!("{}{attempts}{why}", event.status);
        let received = format!("{id} {} received{again}", event.event_type);
        match event.completed_at_us {
            None => self.step(event.received_at_us, Teller::Inbox, format!("{received}, now {now}")),
            Some(at_us) => {
                self.step(event.received_at_us, Teller::Inbox, received);
                self.step(at_us, Teller::Inbox, format!("{id} {now}"));
            }
        }
    }

    async fn done_to(&mut self, event: &operating::Filed) -> Result<()> {
        let id = &event.key.event_id;
        let (_, bodies) = others::conflicts(self.store, &event.key, 1).await?;
        if bodies > 0 {
            let mut step =
                Step::new(event.received_at_us, Teller::Inbox, format!("{id} came with other bytes"));
            step.marks.push(format!("{bodies} other bodies under this id"));
            self.steps.push(step);
        }
        for act in operating::actions(self.store, &event.key).await? {
            let text = format!("{} of {id} by {}: {}", act.action, act.actor, act.reason);
            self.step(act.at_us, Teller::Person, text);
        }
        Ok(())
    }
}
