//! Stripe: wire JSON to facts. Pure; wire types stay in this folder.
//!
//! The one thing to get right: a payment is seen through many records and events, so every fact
//! carries the payment (`root_id`) *and* the anchor of its own effect (`object_id`: charge, refund,
//! dispute, payout). `root_id` is the nearest that one record knows (a dispute may name only its
//! charge); aliases lead on from there.

mod balance;
mod charge;
mod dispute;
mod event;
mod event_types;
mod intent;
mod invoice;
mod issues;
mod money;
mod output;
mod payout;
mod refund;
mod session;
mod streams;
mod wire;
#[cfg(test)]
mod tests;

pub use balance::{charge_of_intent, references, refunded_minor, stream_of_id};
pub use event_types::{event_type_effects, tracks_of_type};
pub use invoice::subscription_of_invoice;
pub use money::exponent;
pub use streams::{API_VERSION, SIDE_LISTS, STREAMS, is_final_root, permission_of, stream_named};

use crate::config::{Basis, ProviderSettings};
use crate::record::{EffectKind, Fact, InvoiceParts, NoteKind, Scope, Window};
use issues::Issues;
use output::Output;
use serde::Deserialize;
use std::collections::BTreeSet;
use thiserror::Error;
use wire::{Raw, Read};

/// What a reader of records must know besides the records.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Where the records were listed.
    pub scope: Scope,
    /// The run's window.
    pub window: Window,
    /// Which date puts money into a period.
    pub basis: Basis,
    /// Event types that the endpoint listens to (`*` for all); `None` takes every type as wanted.
    pub wanted: Option<BTreeSet<String>>,
    /// Effect kinds that the local side books. No effect of another kind is given.
    pub effects: BTreeSet<EffectKind>,
    /// Dotted path in a charge that names the customer's intent, such as `metadata.order_id`.
    pub intent: Option<String>,
    /// The run's time, Unix µs.
    pub now_us: i64,
    /// Age under which a record may still be invisible, µs.
    pub settle_delay_us: i64,
    /// Whether youth and retries in progress excuse an event. Off in an incident.
    pub grace: bool,
}

impl Reading {
    /// A reading of everything that an account's settings say, with grace and every type wanted.
    #[must_use]
    pub fn of(provider: &ProviderSettings, scope: Scope, window: Window, basis: Basis, now_us: i64) -> Self {
        Self {
            scope,
            window,
            basis,
            wanted: provider.event_types.clone(),
            effects: provider.effects.clone(),
            intent: provider.intent.clone(),
            now_us,
            settle_delay_us: i64::try_from(provider.settle_delay.as_micros()).unwrap_or(i64::MAX),
            grace: true,
        }
    }
}

/// Why a record gives no facts at all. Names stream and place, never content.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Not JSON, cut off, nested too deeply, or a known field stands there twice.
    #[error("a record of {stream} is not readable JSON (line {line}, column {column})")]
    NotJson {
        /// Stream.
        stream: String,
        /// Line, from 1; 0 where the bytes are not UTF-8.
        line: usize,
        /// Column, from 1; for bytes that are not UTF-8 the offset of the first such byte.
        column: usize,
    },
    /// JSON, but no object.
    #[error("a record of {stream} is JSON, but not an object")]
    NotAnObject {
        /// Stream.
        stream: String,
    },
    /// Nothing can be said of a record without an id.
    #[error("a record of {stream} has no readable `{path}`")]
    NoId {
        /// Stream.
        stream: String,
        /// Path of the id.
        path: &'static str,
    },
    /// No such stream.
    #[error("there is no stream `{stream}`")]
    UnknownStream {
        /// Stream.
        stream: String,
    },
}

/// The facts that one record of a stream gives, always in the same order.
///
/// A field that is not understood gives a note, and what hangs on it is left out.
///
/// # Errors
/// When the body is no JSON object with an id, or the stream is unknown.
pub fn facts(reading: &Reading, stream: &str, body: &[u8]) -> Result<Vec<Fact>, ReadError> {
    let mut out = Output::new(reading);
    match stream {
        "events" => event::facts(&mut out, &parse(stream, body)?)?,
        "charges" => charge::facts(&mut out, &parse(stream, body)?, body)?,
        "refunds" => refund::facts(&mut out, &parse(stream, body)?)?,
        "disputes" => dispute::facts(&mut out, &parse(stream, body)?)?,
        "balance_transactions" => balance::facts(&mut out, &parse(stream, body)?)?,
        "payouts" => payout::facts(&mut out, &parse(stream, body)?)?,
        "invoices" => invoice::facts(&mut out, &parse(stream, body)?)?,
        "checkout_sessions" => session::facts(&mut out, &parse(stream, body)?)?,
        "payment_intents" => intent::facts(&mut out, &parse(stream, body)?)?,
        _ => return Err(ReadError::UnknownStream { stream: stream.to_owned() }),
    }
    Ok(out.facts)
}

/// The payments that each paid a part of an invoice, where this record is an invoice that several paid.
#[must_use]
pub fn invoice_parts(scope: &Scope, stream: &str, body: &[u8]) -> Option<InvoiceParts> {
    if stream != "invoices" {
        return None;
    }
    parse(stream, body).ok().and_then(|wire| invoice::parts(scope, &wire))
}

/// Whether a record is a refund or a payout that failed or was called off, which is its end
/// (<https://docs.stripe.com/refunds#failed-refunds>, the field `status` of
/// <https://docs.stripe.com/api/payouts/object>).
#[must_use]
pub fn is_over(stream: &str, body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Movement<'a> {
        #[serde(borrow, default)]
        status: Option<std::borrow::Cow<'a, str>>,
    }
    matches!(stream, "refunds" | "payouts")
        && parse::<Movement<'_>>(stream, body)
            .is_ok_and(|wire| matches!(wire.status.as_deref(), Some("failed" | "canceled")))
}

fn parse<'a, T: Deserialize<'a>>(stream: &str, body: &'a [u8]) -> Result<T, ReadError> {
    let text = std::str::from_utf8(body).map_err(|error| ReadError::NotJson {
        stream: stream.to_owned(),
        line: 0,
        column: error.valid_up_to() + 1,
    })?;
    let is_object = text.trim_start_matches([' ', '\n', '\r', '\t']).starts_with('{');
    let not_json = |error: &serde_json::Error| ReadError::NotJson {
        stream: stream.to_owned(),
        line: error.line(),
        column: error.column(),
    };
    if !is_object {
        let other: Result<serde::de::IgnoredAny, _> = serde_json::from_str(text);
        other.map_err(|error| not_json(&error))?;
        return Err(ReadError::NotAnObject { stream: stream.to_owned() });
    }
    serde_json::from_str(text).map_err(|error| not_json(&error))
}

/// What every record opens with.
struct Head<'a> {
    id: std::borrow::Cow<'a, str>,
    created_us: Option<i64>,
    /// Whether the rest of the record may be read: right object, right mode, not deleted.
    is_ours: bool,
}

/// The fields that every record opens with, as they stand on the wire.
struct Opening<'a> {
    stream: &'static str,
    object: &'static str,
    id: Raw<'a>,
    word: Raw<'a>,
    created: Raw<'a>,
    livemode: Raw<'a>,
    deleted: Raw<'a>,
}

impl<'a> Opening<'a> {
    fn read(&self, reading: &Reading, issues: &mut Issues) -> Result<Head<'a>, ReadError> {
        let Read::Value(id) = self.id.id() else {
            return Err(ReadError::NoId { stream: self.stream.to_owned(), path: "id" });
        };
        let mut is_ours =
            is_object(issues, self.word, self.object) && is_in_mode(reading, issues, self.livemode);
        if issues.flag("deleted", self.deleted) == Some(true) {
            is_ours = false;
            return Ok(Head { id, created_us: None, is_ours });
        }
        let created_us = issues.created(self.created);
        Ok(Head { id, created_us, is_ours })
    }
}

/// Whether `object` says what it should; a record without that word is taken at its stream's.
fn is_object(issues: &mut Issues, word: Raw<'_>, wanted: &'static str) -> bool {
    match word.text() {
        Read::Missing => true,
        Read::Value(found) if found == wanted => true,
        Read::Value(found) => {
            let text = format!("`object` is `{}` where a {wanted} was expected", issues::word(&found));
            issues.add(NoteKind::UnknownShape, "other_object", text);
            false
        }
        Read::Null | Read::Wrong => {
            issues.add(NoteKind::UnknownShape, "wrong_type", "`object` is not text".to_owned());
            false
        }
    }
}

/// Whether a record's mode is the scope's; some records do not say.
fn is_in_mode(reading: &Reading, issues: &mut Issues, livemode: Raw<'_>) -> bool {
    let is_live = &*reading.scope.mode == "live";
    match issues.flag("livemode", livemode) {
        Some(found) if found != is_live => {
            let text = format!("`livemode` is {found} in the mode `{}`", reading.scope.mode);
            issues.add(NoteKind::WrongScope, "other_mode", text);
            false
        }
        _ => true,
    }
}
