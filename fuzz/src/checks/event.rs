//! Records of Stripe, and a claimed event: what it stands for.

use super::{Outcome, T, is_our_own};
use recon::config::Basis;
use recon::provider::stripe::{Reading, facts};
use recon::record::{Alias, EffectKind, EventKey, Fact, ProviderEffect, Scope, Window};
use recon::store::work::Claimed;
use recon::work::{Meaning, Subject, read};
use std::collections::BTreeSet;

/// Every word of an error that names a place: our own, and the names of fields that are looked for.
const WORDS: &str = "its raw body is no longer kept it names no event id not the that was received under a record of \
    readable JSON line column but an object has at there stream missing_field missing_reference other_object \
    unknown_value wrong_type \
    events charges refunds disputes balance_transactions payouts invoices checkout_sessions payment_intents \
    charge checkout dispute event invoice invoice_payment payment payment_intent payment_record payout refund session \
    account amount amount_captured amount_overpaid amount_paid amount_paid_off_stripe amount_refunded amount_total \
    arrival_date available_on balance_transaction captured created currency data fee has_more is_default \
    last_payment_error latest_charge livemode metadata mode net paid_out_of_band parent payment_status payments \
    pending_webhooks previous_attributes reason refunded reporting_category source status subscription \
    subscription_details type";

fn reading() -> Reading {
    Reading {
        scope: Scope::new("stripe", "", "live"),
        window: Window { from_us: 0, until_us: i64::MAX },
        basis: Basis::Created,
        wanted: None,
        effects: EffectKind::ALL.into_iter().collect(),
        intent: Some("metadata.order_id".to_owned()),
        now_us: T * 1_000_000,
        settle_delay_us: 300_000_000,
        grace: true,
    }
}

/// The name of a stream on the first line, and one of its records.
pub fn record(data: &[u8]) -> Outcome {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let stream = String::from_utf8_lossy(&data[..end]);
    let body = data.get(end + 1..).unwrap_or_default();
    let reading = reading();
    let found = facts(&reading, &stream, body);
    assert_eq!(found, facts(&reading, &stream, body), "read twice");
    match found {
        Ok(found) => {
            for fact in &found {
                usable(fact, body);
            }
            Outcome::Accepted
        }
        Err(error) => {
            let text = error.to_string();
            if text != format!("there is no stream `{stream}`") {
                is_our_own(&text, WORDS);
            }
            Outcome::Refused
        }
    }
}

/// The body of an event that was received.
pub fn event(data: &[u8]) -> Outcome {
    let reading = reading();
    let event_id = match serde_json::from_slice::<serde_json::Value>(data).as_ref().map(|whole| &whole["id"])
    {
        Ok(serde_json::Value::String(id)) => id.clone(),
        _ => "evt_1".to_owned(),
    };
    let claimed = |event_id: &str| Claimed {
        key: EventKey { scope: reading.scope.clone(), event_id: event_id.to_owned() },
        event_type: String::new(),
        body: data.to_vec(),
        received_at_us: T * 1_000_000,
        waits_since_us: T * 1_000_000,
        attempts: 1,
        is_parked: false,
        replayed_for: String::new(),
    };
    let nothing = BTreeSet::new();
    let meaning = read(&reading, None, &claimed(&event_id));
    assert_eq!(meaning, read(&reading, None, &claimed(&event_id)), "read twice");
    let other = read(&reading, None, &claimed("evt_of_another"));
    let is_refused = !matches!(other, Meaning::Concerns(_)) || event_id == "evt_of_another";
    assert!(is_refused, "an event was applied under another's id");
    if let (Meaning::Concerns(asked), Meaning::Concerns(own)) =
        (&meaning, read(&reading, Some(&nothing), &claimed(&event_id)))
    {
        concerns(asked, data);
        concerns(&own, data);
        assert!(asked.kind.is_none() || asked.is_fetched, "money that is not asked for by default");
        let is_it =
            |effect: &ProviderEffect| Some(effect.kind) == own.kind && effect.object_id == own.object_id;
        let is_proved = own.own.effects.iter().any(is_it) && !own.own.is_partial;
        assert!(own.is_fetched || own.kind.is_none() || is_proved, "neither proved nor asked for");
    }
    match meaning {
        Meaning::Concerns(_) => Outcome::Accepted,
        Meaning::Ignored(why) => {
            assert!(["nothing_to_apply", "wrong_scope", "unknown_type"].contains(&why), "{why}");
            Outcome::Accepted
        }
        Meaning::Dead(why) => {
            is_our_own(&why, WORDS);
            Outcome::Refused
        }
    }
}

fn concerns(subject: &Subject, body: &[u8]) {
    is_id(&subject.root_id);
    is_id(&subject.object_id);
    assert!(subject.created_us >= 0);
    subject.aliases.iter().for_each(is_alias);
    for effect in &subject.own.effects {
        is_effect(effect, body);
    }
}

fn usable(fact: &Fact, body: &[u8]) {
    match fact {
        Fact::ProviderEvent(event) => {
            for id in [&event.event_id, &event.root_id, &event.object_id] {
                is_id(id);
            }
            assert!(event.created_us >= 0);
        }
        Fact::ProviderEffect(effect) => is_effect(effect, body),
        Fact::ProviderState(state) => {
            is_id(&state.root_id);
            is_id(&state.object_id);
            assert!(state.refunded_minor.is_none_or(|minor| minor >= 0), "less than nothing was refunded");
        }
        Fact::Alias(alias) => is_alias(alias),
        Fact::Note(note) => {
            assert!(!note.text.is_empty() && !note.cause.is_empty());
            assert!(!note.text.chars().any(char::is_control), "a note that is no line: {:?}", note.text);
        }
        _ => {}
    }
}

fn is_alias(alias: &Alias) {
    is_id(&alias.alias_id);
    is_id(&alias.root_id);
}

/// A magnitude that stands in the record, in a currency.
fn is_effect(effect: &ProviderEffect, body: &[u8]) {
    is_id(&effect.root_id);
    is_id(&effect.object_id);
    let is_currency =
        effect.currency.len() == 3 && effect.currency.bytes().all(|byte| byte.is_ascii_lowercase());
    assert!(is_currency && effect.amount_minor > 0, "{} {}", effect.amount_minor, effect.currency);
    let digits = effect.amount_minor.to_string();
    assert!(super::request::position(body, digits.as_bytes()).is_some(), "an amount from nowhere: {digits}");
    assert!(!effect.intent.contains('\0'), "an intent that no column holds");
}

/// An id that every store holds.
fn is_id(id: &str) {
    assert!(!id.is_empty() && !id.contains('\0'), "an id that no column holds: {id:?}");
}
