//! Events: which payment and which effect an event speaks of.
//!
//! An event keeps the API version that it was made with, so its object is read by its shape, with
//! every place where a field has stood. Its amounts are never used: objects prove effects, events
//! only announce them.

use super::dispute::DisputeStatus;
use super::event_types::{Family, tracks_of_type};
use super::intent;
use super::invoice;
use super::issues::{Issues, word};
use super::output::Output;
use super::refund::{self, RefundStatus};
use super::session;
use super::wire::{self, Raw, Read, parse_object};
use super::{ReadError, is_in_mode, is_object};
use crate::record::{EffectKind, Fact, NoteKind, ProviderEvent, SECOND_US, Tracks};
use serde::Deserialize;
use std::borrow::Cow;

/// The provider goes on delivering for three days: <https://docs.stripe.com/webhooks#automatic-retries>.
const RETRY_US: i64 = 3 * 24 * 60 * 60 * SECOND_US;

/// What an event's object says.
struct Subject<'a> {
    root_id: Cow<'a, str>,
    object_id: Cow<'a, str>,
    tracks: Tracks,
    /// (alias, root, is part).
    aliases: Vec<(Cow<'a, str>, Cow<'a, str>, bool)>,
}

impl<'a> Subject<'a> {
    fn of(root_id: Cow<'a, str>, object_id: Cow<'a, str>, tracks: Tracks) -> Self {
        Self { root_id, object_id, tracks, aliases: Vec::new() }
    }

    fn alias(mut self, alias_id: Option<Cow<'a, str>>, is_part: bool) -> Self {
        let root_id = self.root_id.clone();
        self.aliases.extend(alias_id.map(|alias_id| (alias_id, root_id, is_part)));
        self
    }
}

/// What the readers of an event's object need.
struct Context<'a, 'i> {
    event_type: Cow<'a, str>,
    /// The most that the type announces.
    most: Tracks,
    previous: Raw<'a>,
    issues: &'i mut Issues,
}

/// Reads an event.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Event<'_>) -> Result<(), ReadError> {
    let reading = out.reading;
    let mut issues = Issues::new("event", reading.now_us);
    let Read::Value(event_id) = wire.id.id() else {
        return Err(ReadError::NoId { stream: "events".to_owned(), path: "id" });
    };
    let created_us = issues.created(wire.created);
    let is_ours = is_object(&mut issues, wire.object, "event")
        && is_in_mode(reading, &mut issues, wire.livemode)
        && is_in_account(out, &mut issues, wire.account);
    let event_type = issues.required_text("type", wire.kind);
    let (Some(event_type), Some(created_us), true) = (event_type, created_us, is_ours) else {
        out.notes(&issues, &event_id, &event_id, Some(&event_id), created_us);
        return Ok(());
    };
    let is_wanted =
        reading.wanted.as_ref().is_none_or(|wanted| wanted.contains(&*event_type) || wanted.contains("*"));
    let pending = issues.whole("pending_webhooks", wire.pending_webhooks).unwrap_or(0);
    issues.object("data.previous_attributes", wire.data.previous_attributes);
    let subject = subject(out, &mut issues, &event_id, &event_type, is_wanted, &wire.data);
    let tracks = booked(out, Family::of(&event_type), subject.tracks);
    out.facts.push(Fact::ProviderEvent(ProviderEvent {
        scope: reading.scope.clone(),
        root_id: subject.root_id.clone().into_owned(),
        object_id: subject.object_id.clone().into_owned(),
        event_id: event_id.clone().into_owned(),
        event_type: event_type.into_owned(),
        tracks,
        created_us,
        wanted: is_wanted,
        settled: is_settled(out, created_us, pending),
    }));
    for (alias_id, root_id, is_part) in &subject.aliases {
        out.alias(alias_id, root_id, *is_part);
    }
    out.notes(&issues, &subject.root_id, &subject.object_id, Some(&event_id), Some(created_us));
    Ok(())
}

fn is_in_account(out: &Output<'_>, issues: &mut Issues, account: Raw<'_>) -> bool {
    match issues.id("account", account) {
        Some(found) if *found != *out.reading.scope.account => {
            let text = format!("the event belongs to account `{}`", word(&found));
            issues.add(NoteKind::WrongScope, "other_account", text);
            false
        }
        _ => true,
    }
}

/// Whether an event is old enough to judge. Nothing from the future ever is.
fn is_settled(out: &Output<'_>, created_us: i64, pending_webhooks: i64) -> bool {
    let reading = out.reading;
    let age_us = reading.now_us.saturating_sub(created_us);
    if !reading.grace {
        return age_us >= 0;
    }
    let is_retrying = pending_webhooks > 0 && age_us < RETRY_US;
    age_us >= reading.settle_delay_us.max(0) && !is_retrying
}

/// What an event stands for with the local side in view. Money that is not booked still changes the
/// payment's status; money that concerns no payment then means nothing.
fn booked(out: &Output<'_>, family: Option<Family>, tracks: Tracks) -> Tracks {
    match tracks {
        Tracks::Effect(kind) if out.is_booked(kind) => tracks,
        Tracks::Effect(EffectKind::Credit) if out.is_booked(EffectKind::Fee) => {
            Tracks::Effect(EffectKind::Fee)
        }
        Tracks::Effect(EffectKind::Fee | EffectKind::Payout) => Tracks::Nothing,
        Tracks::Effect(_) => Tracks::State,
        // A payout has no status of its own; that it failed matters to whoever booked it.
        Tracks::State if family == Some(Family::Payout) && !out.is_booked(EffectKind::Payout) => {
            Tracks::Nothing
        }
        Tracks::State | Tracks::Nothing => tracks,
    }
}

fn subject<'a>(
    out: &Output<'_>,
    issues: &mut Issues,
    event_id: &Cow<'a, str>,
    event_type: &Cow<'a, str>,
    is_wanted: bool,
    data: &wire::EventData<'a>,
) -> Subject<'a> {
    let Some(family) = Family::of(event_type) else {
        return plain(event_id, data.object);
    };
    let known = tracks_of_type(event_type);
    if known.is_none() && is_wanted {
        let text = format!("events of type `{}` are not known", word(event_type));
        issues.add(NoteKind::UnknownShape, "unknown_type", text);
    }
    if !data.object.is_present() {
        issues.missing("data.object");
    }
    let Some(json) = issues.object("data.object", data.object) else {
        return plain(event_id, data.object);
    };
    // Paths of the object are named as the object's own, as in the object's stream.
    let mut inner = Issues::new(family.object(), out.reading.now_us);
    let mut context = Context {
        event_type: event_type.clone(),
        most: known.unwrap_or(Tracks::Nothing),
        previous: data.previous_attributes,
        issues: &mut inner,
    };
    let subject = match family {
        Family::Charge => context.read(json, charge),
        Family::Dispute => context.read(json, dispute),
        Family::Intent => context.read(json, payment_intent),
        Family::Invoice => context.read(json, invoice_subject),
        Family::InvoicePayment => context.read(json, invoice_payment),
        Family::Payout => context.read(json, payout),
        Family::Refund => context.read(json, refund_subject),
        Family::Session => context.read(json, session_subject),
    };
    issues.found.append(&mut inner.found);
    subject.unwrap_or_else(|| plain(event_id, data.object))
}

/// An event whose object says nothing about payments: it stands for itself.
fn plain<'a>(event_id: &Cow<'a, str>, object: Raw<'a>) -> Subject<'a> {
    let object_id = match object.reference() {
        Read::Value(object) if object.expanded.is_some() => object.id,
        _ => event_id.clone(),
    };
    Subject::of(object_id.clone(), object_id, Tracks::Nothing)
}

impl<'a> Context<'a, '_> {
    fn read<T: Deserialize<'a>>(
        &mut self,
        json: &'a str,
        subject: fn(&mut Self, &T) -> Option<Subject<'a>>,
    ) -> Option<Subject<'a>> {
        let Some(object) = parse_object::<T>(json) else {
            self.issues.missing("id");
            return None;
        };
        subject(self, &object)
    }

    /// The object's id, where it is the object that the type promises.
    fn id_of(&mut self, id: Raw<'a>, word: Raw<'a>, wanted: &'static str) -> Option<Cow<'a, str>> {
        if !is_object(self.issues, word, wanted) {
            return None;
        }
        let found = self.issues.id("id", id);
        // `invoice.upcoming` is about an invoice that does not exist yet.
        if !id.is_present() && self.event_type != "invoice.upcoming" {
            self.issues.missing("id");
        }
        found
    }

    /// Whether an update changed this field; an event that does not say may have.
    fn has_changed(&self, field: &str) -> bool {
        match self.previous.object() {
            Read::Value(json) => wire::field(json, field).is_some(),
            _ => true,
        }
    }
}

fn charge<'a>(context: &mut Context<'a, '_>, wire: &wire::EventCharge<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "charge")?;
    let payment_intent = context.issues.reference_id("payment_intent", wire.payment_intent);
    let invoice = context.issues.reference_id("invoice", wire.invoice);
    let is_captured = context.issues.flag("captured", wire.captured);
    if let Some(status) = context.issues.text("status", wire.status)
        && !matches!(&*status, "failed" | "pending" | "succeeded")
    {
        context.issues.unknown_value("status", &status);
    }
    let refunds = refund_ids(context.issues, wire.refunds);
    let root_id = payment_intent.unwrap_or_else(|| id.clone());
    let (object_id, tracks) = match &*context.event_type {
        "charge.succeeded" | "charge.refunded" if is_captured == Some(false) => (id.clone(), Tracks::State),
        "charge.refunded" => {
            (announced_refund(context, &refunds).unwrap_or_else(|| root_id.clone()), context.most)
        }
        "charge.updated" => {
            let is_late_fee = context.previous.is_present() && context.has_changed("balance_transaction");
            (id.clone(), if is_late_fee { context.most } else { Tracks::Nothing })
        }
        _ => (id.clone(), context.most),
    };
    Some(Subject::of(root_id, object_id, tracks).alias(Some(id), false).alias(invoice, false))
}

/// The refunds that older versions embed in a charge.
fn refund_ids<'a>(issues: &mut Issues, refunds: Raw<'a>) -> Vec<Cow<'a, str>> {
    let items = issues.items("refunds", refunds).unwrap_or_default();
    items.into_iter().filter_map(|item| issues.reference_id("refunds.data[]", item)).collect()
}

/// The refund that `charge.refunded` announces, where exactly one can be meant: the one that the
/// charge did not have before.
fn announced_refund<'a>(context: &mut Context<'a, '_>, refunds: &[Cow<'a, str>]) -> Option<Cow<'a, str>> {
    let before = match context.previous.object() {
        Read::Value(json) => {
            wire::field(json, "refunds").map(|before| refund_ids(context.issues, before)).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let mut new = refunds.iter().filter(|id| !before.contains(id));
    let first = new.next()?;
    new.next().is_none().then(|| first.clone())
}

fn payment_intent<'a>(context: &mut Context<'a, '_>, wire: &wire::PaymentIntent<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "payment_intent")?;
    let charge = intent::charge_of(context.issues, wire.latest_charge, wire.charges);
    let invoice = context.issues.reference_id("invoice", wire.invoice);
    if let Some(status) = context.issues.text("status", wire.status)
        && intent::status_of(&status, false).is_none()
        // The words of versions before 2019-02-11.
        && !matches!(&*status, "requires_source" | "requires_source_action")
    {
        context.issues.unknown_value("status", &status);
    }
    let object_id = charge.clone().unwrap_or_else(|| id.clone());
    Some(Subject::of(id, object_id, context.most).alias(charge, false).alias(invoice, false))
}

fn invoice_subject<'a>(context: &mut Context<'a, '_>, wire: &wire::Invoice<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "invoice")?;
    let is_money_expected = invoice::expects_payment(context.issues, wire);
    let payment = invoice::payment(context.issues, wire);
    let charge = context.issues.reference_id("charge", wire.charge);
    let is_in_parts = invoice::is_paid_in_parts(wire);
    let charge = charge.filter(|_| !is_in_parts);
    let root_id = payment.filter(|_| !is_in_parts).map_or_else(|| id.clone(), |payment| payment.id);
    let object_id = charge.clone().unwrap_or_else(|| root_id.clone());
    // Nothing was due, or it was paid elsewhere: no money came in here.
    let is_empty = matches!(context.most, Tracks::Effect(_)) && !is_money_expected;
    let tracks = if is_empty { Tracks::Nothing } else { context.most };
    Some(Subject::of(root_id, object_id, tracks).alias(Some(id), false).alias(charge, false))
}

fn invoice_payment<'a>(
    context: &mut Context<'a, '_>,
    wire: &wire::InvoicePayment<'a>,
) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "invoice_payment")?;
    let invoice = context.issues.reference_id("invoice", wire.invoice);
    let payment = invoice::associated(context.issues, "payment", wire.payment);
    let tracks = if payment.is_some() { context.most } else { Tracks::Nothing };
    let root_id =
        payment.map(|(_, payment)| payment).or_else(|| invoice.clone()).unwrap_or_else(|| id.clone());
    Some(Subject::of(root_id.clone(), root_id, tracks).alias(Some(id), false).alias(invoice, false))
}

fn session_subject<'a>(context: &mut Context<'a, '_>, wire: &wire::Session<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "checkout.session")?;
    let payment_intent = context.issues.reference_id("payment_intent", wire.payment_intent);
    let invoice = context.issues.reference_id("invoice", wire.invoice);
    let payment_status = context.issues.text("payment_status", wire.payment_status);
    let tracks = match payment_status.as_deref() {
        _ if !matches!(context.most, Tracks::Effect(_)) => context.most,
        Some("unpaid") => Tracks::State,
        Some("no_payment_required") => Tracks::Nothing,
        Some(word) if !session::is_payment_status(word) => {
            context.issues.unknown_value("payment_status", word);
            Tracks::Nothing
        }
        _ if payment_intent.is_none() && invoice.is_none() => Tracks::Nothing,
        _ => context.most,
    };
    let root_id = payment_intent.or(invoice).unwrap_or_else(|| id.clone());
    Some(Subject::of(root_id.clone(), root_id, tracks).alias(Some(id), false))
}

fn refund_subject<'a>(context: &mut Context<'a, '_>, wire: &wire::Refund<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "refund")?;
    let charge = context.issues.reference_id("charge", wire.charge);
    let payment_intent = context.issues.reference_id("payment_intent", wire.payment_intent);
    context.issues.reference("balance_transaction", wire.balance_transaction);
    let word = context.issues.required_text("status", wire.status);
    let status = word.as_deref().and_then(RefundStatus::of);
    if let (Some(word), None) = (&word, status) {
        context.issues.unknown_value("status", word);
    }
    let tracks = match status {
        _ if !matches!(context.most, Tracks::Effect(_)) => context.most,
        None => Tracks::Nothing,
        Some(RefundStatus::Open | RefundStatus::Over) => Tracks::State,
        Some(status) if !refund::moves_money(status, wire.balance_transaction) => Tracks::Nothing,
        Some(_) if context.event_type != "refund.created" && !context.has_changed("status") => {
            Tracks::Nothing
        }
        Some(_) => context.most,
    };
    let root_id = payment_intent.or_else(|| charge.clone()).unwrap_or_else(|| id.clone());
    Some(Subject::of(root_id, id.clone(), tracks).alias(Some(id), true).alias(charge, false))
}

fn dispute<'a>(context: &mut Context<'a, '_>, wire: &wire::Dispute<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "dispute")?;
    let charge = context.issues.reference_id("charge", wire.charge);
    let payment_intent = context.issues.reference_id("payment_intent", wire.payment_intent);
    if let Some(word) = context.issues.text("status", wire.status)
        && DisputeStatus::of(&word).is_none()
        // The word of versions before 2014 for a dispute that was paid back.
        && word != "charge_refunded"
    {
        context.issues.unknown_value("status", &word);
    }
    let root_id = payment_intent.or_else(|| charge.clone()).unwrap_or_else(|| id.clone());
    Some(Subject::of(root_id, id.clone(), context.most).alias(Some(id), true).alias(charge, false))
}

fn payout<'a>(context: &mut Context<'a, '_>, wire: &wire::Payout<'a>) -> Option<Subject<'a>> {
    let id = context.id_of(wire.id, wire.object, "payout")?;
    Some(Subject::of(id.clone(), id, context.most))
}
