//! The `pay` gem for Rails: charges, and no events.
//!
//! Sources, of <https://github.com/pay-rails/pay> at version 11.1 (2025), read 2026-11-30: `db/migrate/1_create_pay_tables.rb`
//! (commit 0376051), `20250415151129_add_object_to_pay_models.rb` (2dc334e), `app/models/pay/stripe/charge.rb` (029b5e9), and
//! `app/models/pay/webhook.rb` (05bce21), by which a row of `pay_webhooks` is destroyed once it is processed.

use super::sql::Clock;
use super::{Part, Schema, Table};

/// What the statements read of `pay_charges`.
pub(super) const CHARGES: [&str; 8] = [
    "id",
    "customer_id",
    "processor_id",
    "amount",
    "currency",
    "amount_refunded",
    "created_at",
    "updated_at",
];

fn tables(schema: &Schema) -> Option<(&Table, &Table)> {
    let charges = schema.table_with("pay_charges", &CHARGES)?;
    Some((charges, schema.table_with("pay_customers", &["id", "processor"])?))
}

pub(super) fn books(schema: &Schema) -> Option<Part> {
    let (charges, customers) = tables(schema)?;
    let flavour = schema.flavour;
    let (created, updated) = (charges.column("created_at")?, charges.column("updated_at")?);
    let (created_clock, _) = Clock::of(flavour, charges, created)?;
    let (updated_clock, _) = Clock::of(flavour, charges, updated)?;
    let has_object = charges.has(&["object"]);
    let effects = effects(schema, customers, has_object, (created_clock, updated_clock));
    let mut part = Part::new("the pay gem", &[charges, customers]);
    part.statements = vec![("effects.sql", effects), ("states.sql", no_states(updated_clock, schema))];
    if has_object {
        part.statements.push(("unbooked.sql", unbooked(schema, customers)));
    }
    part.effects = vec!["credit", "refund"];
    part.assumed = vec![
        "rows of pay_charges whose customer has processor 'stripe' are Stripe charges, and the amounts are whole minor \
         units"
            .to_owned(),
        "all of it is live: pay keeps no mode. Write 'test' in effects.sql where the database is that of a test account"
            .to_owned(),
        "pay keeps one total of refunds for each charge, so refunds of one charge are compared as one sum".to_owned(),
        "the time of a refund is that of the row's last change".to_owned(),
    ];
    if !has_object {
        part.assumed.push(
            "every charge was captured whole: there is no pay_charges.object, which would say what was captured"
                .to_owned(),
        );
    }
    part.missing = vec![
        "pay keeps no status of a payment: states.sql gives no rows, and disputes are not compared".to_owned(),
        "pay stores only charges of customers that it knows: a payment of anybody else is reported as not booked"
            .to_owned(),
    ];
    Some(part)
}

fn effects(schema: &Schema, customers: &Table, has_object: bool, clocks: (Clock, Clock)) -> String {
    let flavour = schema.flavour;
    let (created_clock, updated_clock) = clocks;
    let account = if customers.has(&["stripe_account"]) { "coalesce(c.stripe_account, '')" } else { "''" };
    let object = |field: &str| flavour.json_integer("h.object", field);
    let status = flavour.json_text("h.object", "status");
    // The part of an authorisation that was not captured is neither paid nor refunded.
    let (captured, released, is_paid) = if has_object {
        (
            format!("coalesce({}, h.amount)", object("amount_captured")),
            format!("h.amount - coalesce({}, h.amount)", object("amount_captured")),
            format!("\n    and coalesce({status}, 'succeeded') = 'succeeded'"),
        )
    } else {
        ("h.amount".to_owned(), String::new(), String::new())
    };
    let refunded = if released.is_empty() {
        "h.amount_refunded".to_owned()
    } else {
        format!(
            "case when h.amount_refunded >= {released} then h.amount_refunded - ({released})\n        else h.amount_refunded end"
        )
    };
    let paid_only = if has_object { format!("\n    and {captured} > 0") } else { String::new() };
    let id = flavour.text("h.id");
    let joined =
        "from pay_charges h\njoin pay_customers c on c.id = h.customer_id and c.processor = 'stripe'";
    format!(
        "select
    'charge:' || {id} as effect_id,
    'stripe' as provider,
    {account} as account,
    'live' as mode,
    h.processor_id as object_id,
    'credit' as kind,
    {captured} as amount_minor,
    h.currency as currency,
    {} as applied_at_us,
    null as event_id,
    null as corrects_effect_id
{joined}
where {}{is_paid}{paid_only}
union all
select
    'refund:' || {id},
    'stripe',
    {account},
    'live',
    h.processor_id,
    'refund',
    {refunded},
    h.currency,
    {} as applied_at_us,
    null,
    null
{joined}
where {}
    and h.amount_refunded > 0
    and {refunded} > 0",
        flavour.instant_us(created_clock, "h.created_at"),
        flavour.window(created_clock, "h.created_at", "applied_at_us"),
        flavour.instant_us(updated_clock, "h.updated_at"),
        flavour.window(updated_clock, "h.updated_at", "applied_at_us"),
    )
}

/// Charges that are there and moved no money, so far.
fn unbooked(schema: &Schema, customers: &Table) -> String {
    let flavour = schema.flavour;
    let account = if customers.has(&["stripe_account"]) { "coalesce(c.stripe_account, '')" } else { "''" };
    let status = flavour.json_text("h.object", "status");
    let captured = flavour.json_integer("h.object", "amount_captured");
    format!(
        "select
    'charge:' || {} as effect_id,
    'stripe' as provider,
    {account} as account,
    'live' as mode,
    h.processor_id as object_id,
    'credit' as kind,
    case when {status} = 'failed' then 'failed' else 'pending' end as status
from pay_charges h
join pay_customers c on c.id = h.customer_id and c.processor = 'stripe'
where coalesce({status}, 'succeeded') <> 'succeeded' or coalesce({captured}, h.amount) <= 0",
        flavour.text("h.id"),
    )
}

/// A statement that keeps the contract and gives nothing.
fn no_states(clock: Clock, schema: &Schema) -> String {
    let flavour = schema.flavour;
    format!(
        "select
    'stripe' as provider,
    '' as account,
    'live' as mode,
    h.processor_id as object_id,
    'paid' as status,
    null as refunded_minor,
    {} as updated_at_us
from pay_charges h
where {}
    and 1 = 0",
        flavour.instant_us(clock, "h.updated_at"),
        flavour.window(clock, "h.updated_at", "updated_at_us"),
    )
}

pub(super) fn note(schema: &Schema) -> Option<String> {
    tables(schema)?;
    let webhooks = schema.table("pay_webhooks")?;
    Some(format!(
        "{} is no inbox: pay deletes an event from it once it is processed, and what is left there are events that \
         failed or wait. So events cannot be compared with it, only charges and refunds",
        webhooks.shown()
    ))
}
