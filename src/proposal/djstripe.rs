//! dj-stripe: a mirror of Stripe's objects, with every delivery.
//!
//! Sources: the tables that `manage.py migrate` of dj-stripe 2.11.0 (`PyPI`, 2026) makes, and its
//! `djstripe/models/webhooks.py`: a delivery is a row of `djstripe_webhookeventtrigger`, its event is stored in the
//! transaction that processes it, so one that failed has a delivery and no event.

use super::sql::Clock;
use super::{Flavour, Part, Schema};

/// What the statements read of `djstripe_charge`; `stripe_data` came with 2.10.
pub(super) const CHARGES: [&str; 7] =
    ["id", "livemode", "status", "currency", "stripe_data", "djstripe_created", "djstripe_updated"];

pub(super) fn inbox(schema: &Schema) -> Option<Part> {
    let flavour = schema.flavour;
    let events = schema
        .table_with("djstripe_event", &["id", "type", "livemode", "djstripe_created", "stripe_data"])?;
    let triggers = schema.table_with(
        "djstripe_webhookeventtrigger",
        &["id", "body", "valid", "processed", "created", "event_id"],
    )?;
    let (stored, _) = Clock::of(flavour, events, events.column("djstripe_created")?)?;
    let (tried, _) = Clock::of(flavour, triggers, triggers.column("created")?)?;
    // Only a genuine body is known to be JSON.
    let body = match flavour {
        Flavour::Postgres => "cast(case when t.valid then t.body end as json)",
        _ => "case when t.valid then t.body end",
    };
    let of_body = |field: &str| flavour.json_text(body, field);
    let mode_of_body =
        format!("case when {} then 'live' else 'test' end", flavour.json_is_true(body, "livemode"));
    let statement = format!(
        "select
    'stripe' as provider,
    coalesce({}, '') as account,
    case when not e.livemode then 'test' else 'live' end as mode,
    e.id as event_id,
    e.type as event_type,
    {} as received_at_us,
    'processed' as status
from djstripe_event e
where {}
union all
select
    'stripe',
    coalesce({}, ''),
    {mode_of_body},
    {},
    {},
    {} as received_at_us,
    'failed'
from djstripe_webhookeventtrigger t
where {}
    and t.valid
    and not t.processed
    and t.event_id is null",
        flavour.json_text("e.stripe_data", "account"),
        flavour.instant_us(stored, "e.djstripe_created"),
        flavour.window(stored, "e.djstripe_created", "received_at_us"),
        of_body("account"),
        of_body("id"),
        of_body("type"),
        flavour.instant_us(tried, "t.created"),
        flavour.window(tried, "t.created", "received_at_us"),
    );
    let bodies = format!(
        "select
    coalesce(t.event_id, {0}) as event_id,
    t.body as body
from djstripe_webhookeventtrigger t
where t.valid
    and (t.event_id = :event_id or (t.event_id is null and {0} = :event_id))
    and :provider = 'stripe'
order by t.id",
        of_body("id")
    );
    let mut part = Part::new("dj-stripe", &[events, triggers]);
    part.statements = vec![("inbox.sql", statement), ("inbox_body.sql", bodies)];
    part.assumed = vec![
        "a row of djstripe_event was received and processed; a genuine delivery without one failed. An event that \
         djstripe_sync_models fetched counts as received"
            .to_owned(),
        "the time of receipt is when dj-stripe stored the event, not when Stripe made it".to_owned(),
    ];
    Some(part)
}

/// What the statements over charges say in the same way.
struct Charges {
    flavour: Flavour,
    created: Clock,
    updated: Clock,
    captured: String,
    is_captured: String,
    refunded: String,
}

const MODE: &str = "case when not h.livemode then 'test' else 'live' end";

pub(super) fn books(schema: &Schema) -> Option<Part> {
    let flavour = schema.flavour;
    let charges = schema.table_with("djstripe_charge", &CHARGES)?;
    let disputes = schema.table_with("djstripe_dispute", &["id", "charge_id", "stripe_data"])?;
    let (created, _) = Clock::of(flavour, charges, charges.column("djstripe_created")?)?;
    let (updated, _) = Clock::of(flavour, charges, charges.column("djstripe_updated")?)?;
    let number = |field: &str| flavour.json_integer("h.stripe_data", field);
    let (amount, captured, shown) = (number("amount"), number("amount_captured"), number("amount_refunded"));
    // The part of an authorisation that was not captured stands in `amount_refunded`, too.
    let refunded = format!(
        "case when {shown} >= {amount} - {captured} then {shown} - ({amount} - {captured})\n        else {shown} end"
    );
    let is_captured = flavour.json_is_true("h.stripe_data", "captured");
    let said = Charges { flavour, created, updated, captured, is_captured, refunded };
    let mut part = Part::new("dj-stripe", &[charges, disputes]);
    part.statements = vec![
        ("effects.sql", said.effects()),
        ("states.sql", said.states()),
        ("unbooked.sql", said.unbooked()),
    ];
    part.effects = vec!["credit", "refund"];
    part.assumed = ASSUMED.map(str::to_owned).to_vec();
    part.missing = MISSING.map(str::to_owned).to_vec();
    Some(part)
}

const ASSUMED: [&str; 4] = [
    "amounts are read from stripe_data, where they are whole minor units: djstripe_charge.amount is in major units",
    "all objects are the platform's own: dj-stripe names an account on each, and does not say which is the platform. With \
     connected accounts, write djstripe_owner_account_id as account for those",
    "refunds are compared as one sum for each charge (its amount_refunded): dj-stripe fills djstripe_refund only where the \
     API shows refunds inside of a charge",
    "the time of a credit is when dj-stripe stored the charge, that of a refund the row's last change",
];
const MISSING: [&str; 2] = [
    "dj-stripe mirrors Stripe under Stripe's ids, so a credit cannot stand in it twice; what your own code did on its \
     signals (orders, balances) is not in it. Where that is in tables of your own, let effects.sql read those",
    "the money of disputes is not compared, only their status",
];

impl Charges {
    fn effects(&self) -> String {
        let Self { flavour, captured, is_captured, refunded, .. } = self;
        format!(
            "select
    'charge:' || h.id as effect_id,
    'stripe' as provider,
    '' as account,
    {MODE} as mode,
    h.id as object_id,
    'credit' as kind,
    {captured} as amount_minor,
    h.currency as currency,
    {} as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from djstripe_charge h
where {}
    and h.status = 'succeeded'
    and {is_captured}
union all
select
    'refund:' || h.id,
    'stripe',
    '',
    {MODE},
    h.id,
    'refund',
    {refunded},
    h.currency,
    {} as applied_at_us,
    null,
    null
from djstripe_charge h
where {}
    and h.status = 'succeeded'
    and {is_captured}
    and {refunded} > 0",
            flavour.instant_us(self.created, "h.djstripe_created"),
            flavour.window(self.created, "h.djstripe_created", "applied_at_us"),
            flavour.instant_us(self.updated, "h.djstripe_updated"),
            flavour.window(self.updated, "h.djstripe_updated", "applied_at_us"),
        )
    }

    /// Charges that are there and moved no money, so far.
    fn unbooked(&self) -> String {
        let Self { is_captured, .. } = self;
        format!(
            "select
    'charge:' || h.id as effect_id,
    'stripe' as provider,
    '' as account,
    {MODE} as mode,
    h.id as object_id,
    'credit' as kind,
    case when h.status = 'failed' then 'failed' else 'pending' end as status
from djstripe_charge h
where h.status <> 'succeeded' or not coalesce({is_captured}, false)"
        )
    }

    fn states(&self) -> String {
        let Self { flavour, captured, is_captured, refunded, .. } = self;
        let status = flavour.json_text("d.stripe_data", "status");
        let has_dispute = |words: &str| {
            format!(
                "exists (\n            select 1 from djstripe_dispute d where d.charge_id = h.id and {status} in ({words}))"
            )
        };
        format!(
            "select
    'stripe' as provider,
    '' as account,
    {MODE} as mode,
    h.id as object_id,
    case
        when {} then 'dispute_lost'
        when {} then 'disputed'
        when h.status = 'pending' or not ({is_captured}) then 'pending'
        when {refunded} >= {captured} then 'refunded'
        when {refunded} > 0 then 'partially_refunded'
        else 'paid'
    end as status,
    case when {is_captured} then {refunded} end as refunded_minor,
    {} as updated_at_us
from djstripe_charge h
where {}
    and h.status <> 'failed'",
            has_dispute("'lost'"),
            has_dispute("'needs_response', 'under_review'"),
            flavour.instant_us(self.updated, "h.djstripe_updated"),
            flavour.window(self.updated, "h.djstripe_updated", "updated_at_us"),
        )
    }
}
