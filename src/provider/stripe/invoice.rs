//! Invoices: they repeat a charge's money and give one more name for its payment. The link to the
//! payment moved in 2025 from the invoice itself into its list of payments; both are read.

use super::issues::Issues;
use super::output::Output;
use super::wire::{self, Raw, Read, parse_object};
use super::{Opening, ReadError};
use crate::record::{InvoiceParts, NoteKind, Scope};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The payment of an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payment<'a> {
    /// `payment_intents` or `charges`.
    pub(super) stream: &'static str,
    pub(super) id: Cow<'a, str>,
    /// Whether the invoice was paid with it, as far as its own status says.
    is_paid: bool,
    is_default: bool,
}

/// Reads an invoice of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Invoice<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("invoice", out.reading.now_us);
    let opening = Opening {
        stream: "invoices",
        object: "invoice",
        id: wire.id,
        word: wire.object,
        created: wire.created,
        livemode: wire.livemode,
        deleted: wire.deleted,
    };
    let head = opening.read(out.reading, &mut issues)?;
    if !head.is_ours {
        out.notes(&issues, &head.id, &head.id, None, head.created_us);
        return Ok(());
    }
    if let Some(status) = issues.text("status", wire.status)
        && !matches!(&*status, "draft" | "open" | "paid" | "void" | "uncollectible")
    {
        issues.unknown_value("status", &status);
    }
    let is_money_expected = expects_payment(&mut issues, wire);
    let payment = payment(&mut issues, wire);
    overpaid(&mut issues, wire);
    if is_paid_in_parts(wire) {
        // It leads to none of its payments, each of which stands for itself: see [`parts`].
        out.notes(&issues, &head.id, &head.id, None, head.created_us);
        return Ok(());
    }
    match &payment {
        Some(payment) => out.alias(&head.id, &payment.id, false),
        None if is_money_expected => issues.add(
            NoteKind::UnknownShape,
            "missing_reference",
            "the payment of a paid invoice stands neither at `invoice.payments.data[].payment` nor at \
             `invoice.payment_intent` nor at `invoice.charge`"
                .to_owned(),
        ),
        None => {}
    }
    let root_id = payment.map_or_else(|| head.id.clone(), |payment| payment.id);
    out.notes(&issues, &root_id, &head.id, None, head.created_us);
    Ok(())
}

/// Whether the provider took money for it: not where nothing was due, nor where it was paid
/// elsewhere. An invoice that does not say is expected to have a payment.
pub(super) fn expects_payment(issues: &mut Issues, wire: &wire::Invoice<'_>) -> bool {
    let paid = issues.whole("amount_paid", wire.amount_paid);
    let is_out_of_band = issues.flag("paid_out_of_band", wire.paid_out_of_band) == Some(true);
    let off_stripe = issues.whole("amount_paid_off_stripe", wire.amount_paid_off_stripe).unwrap_or(0);
    let here = paid.map(|paid| paid.saturating_sub(off_stripe.max(0)));
    !is_out_of_band && here.is_none_or(|here| here > 0)
}

/// The payment that an invoice names: of several the paid one, then the default one, then the first.
pub(super) fn payment<'a>(issues: &mut Issues, wire: &wire::Invoice<'a>) -> Option<Payment<'a>> {
    let listed = payments(issues, wire.payments);
    let intent = issues.reference_id("payment_intent", wire.payment_intent);
    let charge = issues.reference_id("charge", wire.charge);
    let best = listed
        .into_iter()
        .enumerate()
        .max_by_key(|(position, payment)| (payment.is_paid, payment.is_default, std::cmp::Reverse(*position)))
        .map(|(_, payment)| payment);
    let named = |stream, id| Payment { stream, id, is_paid: true, is_default: true };
    best.or_else(|| intent.map(|id| named("payment_intents", id)))
        .or_else(|| charge.map(|id| named("charges", id)))
}

fn payments<'a>(issues: &mut Issues, raw: Raw<'a>) -> Vec<Payment<'a>> {
    let mut found = Vec::new();
    for item in issues.items("payments", raw).unwrap_or_default() {
        let wire = issues
            .object("payments.data[]", item)
            .map_or(Some(wire::InvoicePayment::default()), parse_object::<wire::InvoicePayment>);
        let Some(wire) = wire else {
            issues.missing("payments.data[].payment");
            continue;
        };
        let status = issues.text("payments.data[].status", wire.status);
        let is_default = issues.flag("payments.data[].is_default", wire.is_default) == Some(true);
        if let Some(word) = &status
            && !matches!(&**word, "open" | "paid" | "canceled")
        {
            issues.unknown_value("payments.data[].status", word);
        }
        let is_paid = status.as_deref() == Some("paid");
        let associated = associated(issues, "payments.data[].payment", wire.payment);
        found.extend(associated.map(|(stream, id)| Payment { stream, id, is_paid, is_default }));
    }
    found
}

/// The payment intent or charge that an invoice payment stands for; none for money that was taken
/// elsewhere (`payment_record`).
pub(super) fn associated<'a>(
    issues: &mut Issues,
    field: &str,
    raw: Raw<'a>,
) -> Option<(&'static str, Cow<'a, str>)> {
    let Some(payment) = parse_object::<wire::AssociatedPayment>(issues.object(field, raw)?) else {
        issues.missing(field);
        return None;
    };
    let kind = issues.text(&format!("{field}.type"), payment.kind);
    if let Some(kind) = &kind
        && !matches!(&**kind, "payment_intent" | "charge" | "payment_record")
    {
        issues.unknown_value(&format!("{field}.type"), kind);
    }
    let intent = issues.reference_id(&format!("{field}.payment_intent"), payment.payment_intent);
    let charge = issues.reference_id(&format!("{field}.charge"), payment.charge);
    intent.map(|id| ("payment_intents", id)).or_else(|| charge.map(|id| ("charges", id)))
}

/// The payment intents that each paid a part of the invoice, where there are several; empty otherwise.
fn paid_intents(wire: &wire::Invoice<'_>) -> BTreeSet<String> {
    // What is not understood is noted where the payment is read.
    let mut quiet = Issues::new("invoice", i64::MAX);
    let paid = payments(&mut quiet, wire.payments).into_iter().filter(|payment| payment.is_paid);
    let intents: BTreeSet<String> = paid
        .filter(|payment| payment.stream == "payment_intents")
        .map(|payment| payment.id.into_owned())
        .collect();
    if intents.len() > 1 { intents } else { BTreeSet::new() }
}

/// Whether several payment intents paid the invoice.
pub(super) fn is_paid_in_parts(wire: &wire::Invoice<'_>) -> bool {
    !paid_intents(wire).is_empty()
}

/// The payments of an invoice that several paid; `None` for every other record.
pub(super) fn parts(scope: &Scope, wire: &wire::Invoice<'_>) -> Option<InvoiceParts> {
    let payment_ids = paid_intents(wire);
    let Read::Value(id) = wire.id.id() else { return None };
    let mut quiet = Issues::new("invoice", i64::MAX);
    let paid = quiet.whole("amount_paid", wire.amount_paid).unwrap_or(0);
    let excess = quiet.whole("amount_overpaid", wire.amount_overpaid).unwrap_or(0);
    (!payment_ids.is_empty()).then(|| InvoiceParts {
        scope: scope.clone(),
        invoice_id: id.into_owned(),
        payment_ids,
        due_minor: paid.saturating_sub(excess.max(0)).max(0),
    })
}

/// What an invoice points to: the payments that each paid a part of it, else its payment.
pub(super) fn references(wire: &wire::Invoice<'_>) -> Vec<(&'static str, String)> {
    let parts = paid_intents(wire);
    if !parts.is_empty() {
        return parts.into_iter().map(|id| ("payment_intents", id)).collect();
    }
    let mut quiet = Issues::new("invoice", i64::MAX);
    let payment = payment(&mut quiet, wire);
    payment.map(|payment| (payment.stream, payment.id.into_owned())).into_iter().collect()
}

/// The subscription that an invoice bills: `parent.subscription_details.subscription` since 2025, `subscription`
/// before; `None` where it bills none.
#[must_use]
pub fn subscription_of_invoice(body: &[u8]) -> Option<String> {
    const PLACES: [&str; 4] = [
        "parent.subscription_details.subscription",
        "parent.subscription_details.subscription.id",
        "subscription",
        "subscription.id",
    ];
    let json = str::from_utf8(body).ok()?;
    PLACES.into_iter().find_map(|path| wire::at_path(json, path))
}

/// Two payments that each paid the same invoice, and more money than was due: the customer may
/// have paid twice.
fn overpaid(issues: &mut Issues, wire: &wire::Invoice<'_>) {
    let excess = issues.whole("amount_overpaid", wire.amount_overpaid).unwrap_or(0);
    if excess <= 0 {
        return;
    }
    let mut quiet = Issues::new("invoice", i64::MAX);
    let paid: Vec<String> = payments(&mut quiet, wire.payments)
        .into_iter()
        .filter(|payment| payment.is_paid)
        .map(|payment| payment.id.into_owned())
        .collect();
    if paid.len() > 1 {
        let text = format!(
            "{excess} minor units more than was due came in with {}: paid twice, or paid in parts",
            paid.join(" and ")
        );
        issues.add(NoteKind::NeedsReview, "invoice_overpaid", text);
    }
}
