//! The message that an applied effect sends to the team's own URL. Pure.
//!
//! The one thing to get right: its key is the effect's key with its scope, so that the same effect never has two
//! messages, whoever applies it.

use super::Request;
use crate::record::{EffectKey, format_instant};
use crate::store::outbox::NewMessage;
use chrono_tz::Tz;
use serde::Serialize;

/// What every message is called.
pub const TOPIC: &str = "effect.applied";

/// A message that is not written yet.
pub type Message = NewMessage;

/// Its body. Amounts are magnitudes in minor units; the kind gives the direction.
#[derive(Serialize)]
struct Body<'a> {
    topic: &'a str,
    idempotency_key: &'a str,
    provider: &'a str,
    account: &'a str,
    mode: &'a str,
    effect: &'a str,
    kind: &'a str,
    object_id: &'a str,
    amount_minor: i64,
    currency: &'a str,
    occurred_at: String,
    event_ids: Vec<&'a str>,
}

/// The idempotency key of an effect's message.
#[must_use]
pub fn idempotency_key(key: &EffectKey) -> String {
    super::entry_id(key)
}

impl NewMessage {
    /// The message of an effect. One with a reason is kept and never sent.
    #[must_use]
    pub fn of(request: &Request, suppressed_reason: &str) -> Self {
        let idempotency_key = idempotency_key(&request.key);
        let scope = &request.key.scope;
        let body = Body {
            topic: TOPIC,
            idempotency_key: &idempotency_key,
            provider: &scope.provider,
            account: &scope.account,
            mode: &scope.mode,
            effect: &request.key.key,
            kind: request.effect.kind.as_str(),
            object_id: &request.effect.object_id,
            amount_minor: request.effect.amount_minor,
            currency: &request.effect.currency,
            occurred_at: format_instant(request.effect.occurred_at_us, Tz::UTC),
            event_ids: request.events.iter().map(|event| &*event.event_id).collect(),
        };
        // Texts and numbers only: there is nothing that could not be written.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        Self {
            idempotency_key,
            key: request.key.clone(),
            object_id: request.effect.object_id.clone(),
            topic: TOPIC.to_owned(),
            body,
            suppressed_reason: suppressed_reason.to_owned(),
        }
    }
}
