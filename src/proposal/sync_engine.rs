//! stripe-sync-engine: Stripe's objects as tables of a schema `stripe` in PostgreSQL.
//!
//! Sources: the migrations inside of `@supabase/stripe-sync-engine` 0.48.5 (npm, 2026). Its `events` table is made and
//! never filled.

use super::sql::Clock;
use super::{Part, Schema, Table};

const SCHEMA: &str = "stripe";

/// What the statements read of `stripe.charges`.
pub(super) const CHARGES: [&str; 9] = [
    "id",
    "amount",
    "amount_refunded",
    "captured",
    "currency",
    "status",
    "created",
    "livemode",
    "updated_at",
];

fn charges(schema: &Schema) -> Option<&Table> {
    schema.table_in(SCHEMA, "charges").filter(|table| table.has(&CHARGES))
}

pub(super) fn note(schema: &Schema) -> Option<String> {
    charges(schema)?;
    schema.table_in(SCHEMA, "events")?;
    Some(
        "stripe.events is no inbox: the sync engine makes that table and never writes to it. So events cannot be compared, \
         only charges, refunds and statuses"
            .to_owned(),
    )
}

/// Charges and refunds that are there and moved no money, so far.
fn unbooked(mode: &str) -> String {
    format!(
        "select
    'charge:' || h.id as effect_id,
    'stripe' as provider,
    '' as account,
    {mode} as mode,
    h.id as object_id,
    'credit' as kind,
    case when h.status = 'failed' then 'failed' else 'pending' end as status
from stripe.charges h
where h.status <> 'succeeded' or not coalesce(h.captured, false)
union all
select
    'refund:' || r.id,
    'stripe',
    '',
    {mode},
    r.id,
    'refund',
    case when r.status in ('failed', 'canceled') then r.status else 'pending' end
from stripe.refunds r
join stripe.charges h on h.id = r.charge
where r.status <> 'succeeded' or r.balance_transaction is null"
    )
}

pub(super) fn books(schema: &Schema) -> Option<Part> {
    let flavour = schema.flavour;
    let charges = charges(schema)?;
    let refunds = schema.table_in(SCHEMA, "refunds")?;
    let disputes = schema.table_in(SCHEMA, "disputes")?;
    let is_whole =
        refunds.has(&["id", "amount", "charge", "currency", "status", "created", "balance_transaction"])
            && disputes.has(&["charge", "status"]);
    if !is_whole {
        return None;
    }
    let (updated, _) = Clock::of(flavour, charges, charges.column("updated_at")?)?;
    let seconds = Clock::Count(1);
    let mode = "case when not h.livemode then 'test' else 'live' end";
    let effects = format!(
        "select
    'charge:' || h.id as effect_id,
    'stripe' as provider,
    '' as account,
    {mode} as mode,
    h.id as object_id,
    'credit' as kind,
    h.amount as amount_minor,
    h.currency as currency,
    {} as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from stripe.charges h
where {}
    and h.status = 'succeeded'
    and h.captured
union all
select
    'refund:' || r.id,
    'stripe',
    '',
    {mode},
    r.id,
    'refund',
    r.amount,
    r.currency,
    {},
    null,
    null
from stripe.refunds r
join stripe.charges h on h.id = r.charge
where {}
    and r.status = 'succeeded'
    and r.balance_transaction is not null",
        flavour.instant_us(seconds, "h.created"),
        flavour.window(seconds, "h.created", "applied_at_us"),
        flavour.instant_us(seconds, "r.created"),
        flavour.window(seconds, "r.created", "applied_at_us"),
    );
    let states = format!(
        "select
    'stripe' as provider,
    '' as account,
    {mode} as mode,
    h.id as object_id,
    case
        when exists (select 1 from stripe.disputes d where d.charge = h.id and d.status = 'lost') then 'dispute_lost'
        when exists (select 1 from stripe.disputes d where d.charge = h.id and d.status in ('needs_response', 'under_review'))
            then 'disputed'
        when h.status = 'pending' or not h.captured then 'pending'
        when h.amount_refunded >= h.amount then 'refunded'
        when h.amount_refunded > 0 then 'partially_refunded'
        else 'paid'
    end as status,
    case when h.captured then h.amount_refunded end as refunded_minor,
    {} as updated_at_us
from stripe.charges h
where {}
    and h.status <> 'failed'",
        flavour.instant_us(updated, "h.updated_at"),
        flavour.window(updated, "h.updated_at", "updated_at_us"),
    );
    let mut part = Part::new("stripe-sync-engine", &[charges, refunds, disputes]);
    part.statements =
        vec![("effects.sql", effects), ("states.sql", states), ("unbooked.sql", unbooked(mode))];
    part.effects = vec!["credit", "refund"];
    part.assumed = vec![
        "a charge was captured whole: the tables have no amount_captured. A partial capture shows as amount_mismatch"
            .to_owned(),
        "the time of a credit or refund is Stripe's: the tables do not say when a row was first written".to_owned(),
        "all objects are the platform's own: the tables have no account".to_owned(),
    ];
    part.missing = vec![
        "the engine mirrors Stripe under Stripe's ids, so a credit cannot stand in it twice; what your own code does with \
         the mirror is not in it. Where that is in tables of your own, let effects.sql read those"
            .to_owned(),
        "the money of disputes is not compared, only their status".to_owned(),
    ];
    Some(part)
}
