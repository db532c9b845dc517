//! Payouts: money sent to the bank, an effect while the bank has it. A paid payout can still fail
//! within five business days; then it is none.

use super::balance;
use super::issues::Issues;
use super::output::{Moved, Output};
use super::wire;
use super::{Opening, ReadError};
use crate::config::Basis;
use crate::record::EffectKind;

/// Reads a payout of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Payout<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("payout", out.reading.now_us);
    let opening = Opening {
        stream: "payouts",
        object: "payout",
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
    let amount = issues.amount("amount", wire.amount);
    let currency = issues.currency("currency", wire.currency);
    let arrival_us = issues.instant("arrival_date", wire.arrival_date);
    let balance = issues.reference("balance_transaction", wire.balance_transaction);
    let movement = balance
        .and_then(|reference| reference.expanded)
        .and_then(|json| balance::movement(&mut issues, "balance_transaction", json));
    let status = issues.required_text("status", wire.status);
    let is_paid = match status.as_deref() {
        Some("paid") => true,
        Some("pending" | "in_transit" | "failed" | "canceled") | None => false,
        Some(other) => {
            issues.unknown_value("status", other);
            false
        }
    };
    let moved_us = movement.as_ref().and_then(|movement| movement.occurred_us(out.reading.basis));
    let occurred_us = moved_us.or(match out.reading.basis {
        Basis::Created => head.created_us,
        Basis::Available => arrival_us,
    });
    if let (Some(amount_minor), Some(currency), Some(occurred_at_us), true) =
        (amount, currency.as_deref(), occurred_us, is_paid)
    {
        issues.check_granularity(currency, amount_minor, true);
        out.effect(&Moved {
            root_id: &head.id,
            object_id: &head.id,
            kind: EffectKind::Payout,
            amount_minor,
            currency,
            occurred_at_us,
            intent: "",
        });
    }
    out.notes(&issues, &head.id, &head.id, None, head.created_us);
    Ok(())
}
