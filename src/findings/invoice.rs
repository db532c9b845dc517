//! Invoices that several payments paid, each a part of it.
//!
//! The one thing to get right: each payment stands for itself, and what is booked on one never counts for
//! another. Only what the books have on the *invoice* means several payments at once: of an effect kind with
//! such a row, the payments that have nothing of their own (or too little) are compared with the invoice as
//! one sum, under the invoice's id. Nobody can tell which payment such a row is wrong about, so nothing
//! of it is corrected without a person.

use super::{Action, Group, Judgement, Kind};
use crate::record::{
    EffectKind, InvoiceParts, LocalEffect, ProviderEvent, ProviderState, Scope, Status, Tracks,
};
use std::collections::{BTreeMap, BTreeSet};

/// Groups by root, one scope's.
type Groups = BTreeMap<String, Group>;

/// Gives the invoice's group what is judged under it, and its payments' groups what is theirs. The groups must
/// be whole and not normalised; a group that is not there is left out.
pub fn share_out(groups: &mut Groups, invoice: &InvoiceParts) {
    let id = &invoice.invoice_id;
    let Some(mut whole) = groups.remove(id) else { return };
    let mut parts: Groups = invoice.payment_ids.iter().filter_map(|root| groups.remove_entry(root)).collect();
    whole.needs_person = true;
    // They name an event of the invoice, and are no less their own payment's.
    whole.local_effects.retain(|row| !parts.contains_key(&row.root_id));
    for (root, part) in &mut parts {
        for event in part.provider_events.iter_mut().filter(|event| event.root_id == *id) {
            event.root_id.clone_from(root);
            event.object_id.clone_from(root);
        }
    }
    say_status(&mut whole, &parts, invoice);
    for kind in EffectKind::ALL {
        if let Some(pooled) = pooled(&whole, &parts, id, kind) {
            for (root, part) in &mut parts {
                if pooled.contains(root) {
                    pool(&mut whole, part, &pooled, (id, root), kind);
                } else {
                    let share = share(root, part, kind);
                    part.needs_person |= share.local > share.provider;
                }
            }
        } else {
            hand_down(&mut whole, &mut parts, id, kind);
        }
    }
    hand_down_states(&mut whole, &mut parts, id);
    groups.extend(parts);
    groups.insert(id.clone(), whole);
}

/// Leaves one charge of each purchase that was paid in parts: as long as the parts are no more than what was
/// due, they are one purchase, whatever else they share.
pub fn join_purchase(groups: &mut Groups, invoice: &InvoiceParts) {
    let mut currencies = BTreeSet::new();
    let mut kept_minor: i128 = 0;
    let mut last = None;
    for (root, group) in invoice.payment_ids.iter().filter_map(|root| groups.get_key_value(root)) {
        for effect in &group.provider_effects {
            let minor = i128::from(effect.amount_minor);
            kept_minor += match effect.kind {
                EffectKind::Credit | EffectKind::DisputeReinstated => minor,
                EffectKind::Refund | EffectKind::DisputeWithdrawn => -minor,
                EffectKind::Fee | EffectKind::Payout => continue,
            };
            currencies.insert(effect.currency.clone());
            if effect.kind == EffectKind::Credit {
                last = last.max(Some((effect.occurred_at_us, root.clone())));
            }
        }
    }
    let Some((_, last)) = last else { return };
    if currencies.len() > 1 || kept_minor > i128::from(invoice.due_minor) {
        return;
    }
    let others = invoice.payment_ids.iter().filter(|root| **root != last);
    for root in others {
        for effect in groups.get_mut(root).into_iter().flat_map(|group| &mut group.provider_effects) {
            effect.intent.clear();
        }
    }
}

/// Where one payment of the invoice has more booked than it should and a person must say why, what another
/// one lacks may be booked there: it is left to that person, too.
pub fn restrain(judgements: &mut BTreeMap<String, Judgement>, invoice: &InvoiceParts) {
    let mut over: BTreeMap<EffectKind, String> = BTreeMap::new();
    let of_invoice = || invoice.roots().filter_map(|root| judgements.get(root));
    for finding in of_invoice().flat_map(|judgement| &judgement.findings) {
        if let (Some(kind), Some(expected), Some(found)) =
            (finding.effect, finding.expected_minor, finding.found_minor)
            && finding.action == Action::Review
            && found.unsigned_abs() > expected.unsigned_abs()
        {
            over.entry(kind).or_insert_with(|| finding.object_id.clone());
        }
    }
    for root in invoice.roots() {
        let judgement = judgements.get_mut(root);
        for finding in judgement.into_iter().flat_map(|judgement| &mut judgement.findings) {
            let is_absent =
                matches!(finding.kind, Kind::MissedEvent | Kind::UnappliedEvent | Kind::MissingEffect);
            if let Some(object_id) = finding.effect.and_then(|kind| over.get(&kind))
                && is_absent
                && finding.action != Action::Review
            {
                finding.action = Action::Review;
                finding.note =
                    format!("{}; {object_id} of the same invoice has more than it should", finding.note);
            }
        }
    }
}

/// The invoice's status, from its payments': the one that all have, or that some of the money was given back.
/// Where they differ otherwise the highest is only the likeliest.
fn say_status(whole: &mut Group, parts: &Groups, invoice: &InvoiceParts) {
    let mut words: BTreeSet<Status> = BTreeSet::new();
    let (mut refunded_minor, mut at_us, mut scope): (Option<i64>, i64, Option<&Scope>) =
        (None, i64::MIN, None);
    let mut known = 0;
    for part in parts.values() {
        let Some((status, said_us)) = part.provider_status() else { continue };
        known += 1;
        words.insert(status);
        at_us = at_us.max(said_us);
        scope = scope.or_else(|| part.provider_states.first().map(|said| &said.scope));
        if let Some(minor) = part.provider_states.iter().filter_map(|said| said.refunded_minor).max() {
            refunded_minor = Some(refunded_minor.unwrap_or(0).saturating_add(minor));
        }
    }
    let (Some(highest), Some(scope)) = (words.last().copied(), scope) else { return };
    let is_money_only =
        words.iter().all(|word| matches!(word, Status::Paid | Status::PartiallyRefunded | Status::Refunded));
    let is_one = words.len() == 1;
    whole.is_mixed = known < invoice.payment_ids.len() || !(is_one || is_money_only);
    whole.provider_states.push(ProviderState {
        scope: scope.clone(),
        root_id: invoice.invoice_id.clone(),
        object_id: invoice.invoice_id.clone(),
        status: if is_one || whole.is_mixed { highest } else { Status::PartiallyRefunded },
        refunded_minor,
        authorized_minor: None,
        at_us,
    });
}

/// What one payment has of a kind on both sides, magnitudes in minor units.
struct Share<'a> {
    root: &'a String,
    provider: i128,
    local: i128,
}

/// The payments that a row on the invoice may mean: those that lack money, where the row is just what they
/// lack; else all, so that the whole stands beside the whole, but for those that have too much of their own.
/// `None` where nothing is left on the invoice.
fn pooled(whole: &Group, parts: &Groups, id: &str, kind: EffectKind) -> Option<BTreeSet<String>> {
    let shares: Vec<Share<'_>> = parts.iter().map(|(root, part)| share(root, part, kind)).collect();
    let roots = |of: &dyn Fn(&Share<'_>) -> bool| -> BTreeSet<String> {
        shares.iter().filter(|share| of(share)).map(|share| share.root.clone()).collect()
    };
    let is_open = |share: &Share<'_>| share.local < share.provider;
    let is_over = |share: &Share<'_>| share.local > share.provider;
    let (all, open) = (roots(&|_| true), roots(&is_open));
    let mut totals: BTreeMap<&str, i128> = BTreeMap::new();
    for row in whole.local_effects.iter().filter(|row| row.kind == kind && row.root_id == *id) {
        if !names_closed_part(whole, row, &all, &open) {
            *totals.entry(&row.currency).or_default() += i128::from(row.amount_minor);
        }
    }
    totals.retain(|_, minor| *minor != 0);
    let booked_minor: i128 = totals.values().sum();
    let currency = totals.keys().next()?;
    if !is_in_one_currency(&totals, parts, kind, currency) {
        return Some(all);
    }
    let lacking: i128 =
        shares.iter().filter(|share| is_open(share)).map(|share| share.provider - share.local).sum();
    let rest = roots(&|share| !is_over(share));
    Some(if !open.is_empty() && lacking == booked_minor {
        open
    } else if rest.len() == all.len() || rest.is_empty() {
        all
    } else if open.is_empty() {
        rest
    } else {
        open
    })
}

fn share<'a>(root: &'a String, part: &Group, kind: EffectKind) -> Share<'a> {
    let effects = part.provider_effects.iter().filter(|effect| effect.kind == kind);
    let rows = part.local_effects.iter().filter(|row| row.kind == kind && row.root_id == *root);
    Share {
        root,
        provider: effects.map(|effect| i128::from(effect.amount_minor)).sum(),
        local: rows.map(|row| i128::from(row.amount_minor)).sum(),
    }
}

fn is_in_one_currency(
    totals: &BTreeMap<&str, i128>,
    parts: &Groups,
    kind: EffectKind,
    currency: &str,
) -> bool {
    totals.len() == 1
        && parts.iter().all(|(root, part)| {
            let mut effects = part.provider_effects.iter().filter(|effect| effect.kind == kind);
            let mut rows = part.local_effects.iter().filter(|row| row.kind == kind && row.root_id == *root);
            effects.all(|effect| effect.currency == currency) && rows.all(|row| row.currency == currency)
        })
}

/// Whether a row on the invoice names the event of a payment that has its money on its own rows already:
/// it is that payment's money twice, and not another's.
fn names_closed_part(
    whole: &Group,
    row: &LocalEffect,
    all: &BTreeSet<String>,
    open: &BTreeSet<String>,
) -> bool {
    let names = |row: &LocalEffect| {
        let is_closed = |root: &String| all.contains(root) && !open.contains(root);
        let named = whole.provider_events.iter().filter(|event| event.event_id == row.event_id);
        !row.event_id.is_empty()
            && named
                .filter(|event| event.tracks == Tracks::Effect(row.kind))
                .any(|event| is_closed(&event.root_id))
    };
    if row.corrects_effect_id.is_empty() {
        return names(row);
    }
    let is_undone =
        |other: &&LocalEffect| other.effect_id == row.corrects_effect_id && other.root_id == row.root_id;
    whole.local_effects.iter().filter(is_undone).any(names)
}

/// Moves everything of a kind from a payment to its invoice; `pooled` are all payments of which that is done.
fn pool(
    whole: &mut Group,
    part: &mut Group,
    pooled: &BTreeSet<String>,
    (id, root): (&String, &String),
    kind: EffectKind,
) {
    let is_of_kind = |event: &ProviderEvent| event.tracks == Tracks::Effect(kind);
    for event in whole.provider_events.iter_mut().filter(|event| is_of_kind(event)) {
        if event.root_id == *root {
            event.root_id.clone_from(id);
        }
    }
    for mut effect in part.provider_effects.extract_if(.., |effect| effect.kind == kind) {
        effect.root_id.clone_from(id);
        whole.provider_effects.push(effect);
    }
    for mut row in part.local_effects.extract_if(.., |row| row.kind == kind) {
        // A row on the invoice is there already, and one of another of these payments comes with that.
        if row.root_id == *root {
            row.root_id.clone_from(id);
        } else if row.root_id == *id || pooled.contains(&row.root_id) {
            continue;
        }
        whole.local_effects.push(row);
    }
    let events: Vec<ProviderEvent> = part.provider_events.extract_if(.., |event| is_of_kind(event)).collect();
    for mut event in events {
        hand_inbox(part, whole, &event.event_id);
        if event.root_id == *root {
            event.root_id.clone_from(id);
        }
        whole.provider_events.push(event);
    }
    whole.parts.extend(part.parts.iter().cloned());
}

/// The invoice's events of a kind that no row on the invoice books: they announce the money of those payments
/// that have none of it booked.
fn hand_down(whole: &mut Group, parts: &mut Groups, id: &String, kind: EffectKind) {
    let is_own = |event: &ProviderEvent| event.root_id == *id && event.tracks == Tracks::Effect(kind);
    let lacking = |root: &String, part: &Group| {
        let share = share(root, part, kind);
        share.provider != 0 && share.local == 0
    };
    if !parts.iter().any(|(root, part)| lacking(root, part)) {
        return;
    }
    for event in whole.provider_events.extract_if(.., |event| is_own(event)).collect::<Vec<_>>() {
        for (root, part) in parts.iter_mut().filter(|(root, part)| lacking(root, part)) {
            hand_inbox(whole, part, &event.event_id);
            let object_id = root.clone();
            part.provider_events.push(ProviderEvent { root_id: root.clone(), object_id, ..event.clone() });
        }
    }
}

/// The invoice's events that tell a status, where the books keep it with a payment.
fn hand_down_states(whole: &mut Group, parts: &mut Groups, id: &String) {
    if !whole.local_states.is_empty() {
        return;
    }
    let Some((root, part)) = parts.iter_mut().find(|(_, part)| !part.local_states.is_empty()) else { return };
    let is_own = |event: &ProviderEvent| event.root_id == *id && event.tracks == Tracks::State;
    for mut event in whole.provider_events.extract_if(.., |event| is_own(event)).collect::<Vec<_>>() {
        hand_inbox(whole, part, &event.event_id);
        event.root_id.clone_from(root);
        part.provider_events.push(event);
    }
}

fn hand_inbox(from: &Group, to: &mut Group, event_id: &str) {
    to.inbox_events.extend(from.inbox_events.iter().filter(|row| row.event_id == event_id).cloned());
}
