//! A provider's account made object by object, and the books beside it: payments whose parts lie where a test
//! wants them, booked on whichever id it names.

use crate::stage::{NOW_US, Stage};
use recon::demo::Record;
use recon::demo::emulator::{Change, Faults};
use recon::demo::faults::Mix;
use recon::demo::world::Stream;
use recon::record::sha256_hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// 2026-06-15T12:34:56Z.
pub const NOW_S: i64 = NOW_US / 1_000_000;
pub const DAY_S: i64 = 86_400;

/// One booked row.
struct Entry {
    kind: &'static str,
    object_id: String,
    amount_minor: i64,
    at_s: i64,
    event_id: String,
}

/// A payment's intent and its first charge.
#[derive(Clone, Debug)]
pub struct Paid {
    pub intent: String,
    pub charge: String,
    pub amount_minor: i64,
    pub at_s: i64,
    pub event: String,
}

#[derive(Default)]
pub struct Account {
    serial: u32,
    objects: BTreeMap<String, (Stream, Value)>,
    entries: Vec<Entry>,
    states: Vec<(String, &'static str, i64, i64)>,
    inbox: Vec<(String, i64)>,
}

impl Account {
    fn id(&mut self, prefix: &str) -> String {
        self.serial += 1;
        format!("{prefix}_{:08}", self.serial)
    }

    fn add(&mut self, stream: Stream, object: Value) -> String {
        let id = object["id"].as_str().unwrap().to_owned();
        self.objects.insert(id.clone(), (stream, object));
        id
    }

    fn object(&mut self, id: &str) -> &mut Value {
        &mut self.objects.get_mut(id).unwrap().1
    }

    /// An event of the object as it is now, received three seconds later.
    pub fn event(&mut self, kind: &str, object_id: &str, at_s: i64) -> String {
        let id = self.id("evt");
        let object = self.object(object_id).clone();
        let event = json!({
            "id": id, "object": "event", "api_version": "2026-08-26.dahlia", "created": at_s,
            "data": {"object": object}, "livemode": true, "pending_webhooks": 0,
            "request": {"id": null, "idempotency_key": null}, "type": kind,
        });
        self.inbox.push((event.to_string(), at_s + 3));
        self.add(Stream::Events, event)
    }

    pub fn intent(&mut self, amount_minor: i64, at_s: i64) -> String {
        let id = self.id("pi");
        let intent = json!({
            "id": id, "object": "payment_intent", "amount": amount_minor, "amount_received": amount_minor,
            "created": at_s, "currency": "usd", "customer": null, "last_payment_error": null,
            "latest_charge": null, "livemode": true, "metadata": {}, "status": "succeeded",
        });
        self.add(Stream::PaymentIntents, intent)
    }

    /// A charge of an intent, and the event that tells of it.
    pub fn charge(&mut self, intent: &str, amount_minor: i64, at_s: i64) -> Paid {
        let id = self.id("ch");
        let charge = json!({
            "id": id, "object": "charge", "amount": amount_minor, "amount_captured": amount_minor,
            "amount_refunded": 0, "balance_transaction": format!("txn_of_{id}"), "captured": true,
            "created": at_s, "currency": "usd", "customer": null, "disputed": false, "livemode": true,
            "metadata": {}, "paid": true, "payment_intent": intent, "refunded": false,
            "status": "succeeded", "failure_code": null,
        });
        self.add(Stream::Charges, charge);
        self.object(intent)["latest_charge"] = json!(id);
        let event = self.event("charge.succeeded", &id, at_s);
        Paid { intent: intent.to_owned(), charge: id, amount_minor, at_s, event }
    }

    pub fn pay(&mut self, amount_minor: i64, at_s: i64) -> Paid {
        let intent = self.intent(amount_minor, at_s);
        self.charge(&intent, amount_minor, at_s)
    }

    /// A payment that is booked on its charge ten seconds later.
    pub fn pay_booked(&mut self, amount_minor: i64, at_s: i64) -> Paid {
        let paid = self.pay(amount_minor, at_s);
        self.book("credit", &paid.charge.clone(), amount_minor, at_s + 10, &paid.event.clone());
        paid
    }

    /// A refund, and its event.
    pub fn refund(&mut self, paid: &Paid, amount_minor: i64, at_s: i64) -> (String, String) {
        let id = self.id("re");
        let charge = self.object(&paid.charge);
        let refunded = charge["amount_refunded"].as_i64().unwrap() + amount_minor;
        charge["amount_refunded"] = json!(refunded);
        charge["refunded"] = json!(refunded == paid.amount_minor);
        let refund = json!({
            "id": id, "object": "refund", "amount": amount_minor, "balance_transaction": format!("txn_of_{id}"),
            "charge": paid.charge, "created": at_s, "currency": "usd", "metadata": {},
            "payment_intent": paid.intent, "reason": null, "status": "succeeded",
        });
        self.add(Stream::Refunds, refund);
        let event = self.event("refund.created", &id, at_s);
        (id, event)
    }

    /// A dispute over the whole charge, lost, and its event.
    pub fn dispute(&mut self, paid: &Paid, at_s: i64) -> (String, String) {
        let id = self.id("du");
        self.object(&paid.charge)["disputed"] = json!(true);
        let moved = json!({
            "id": format!("txn_of_{id}"), "object": "balance_transaction", "amount": -paid.amount_minor,
            "available_on": at_s, "created": at_s, "currency": "usd", "fee": 0, "source": id,
            "type": "adjustment", "reporting_category": "dispute",
        });
        let dispute = json!({
            "id": id, "object": "dispute", "amount": paid.amount_minor, "balance_transactions": [moved],
            "charge": paid.charge, "created": at_s, "currency": "usd", "livemode": true, "metadata": {},
            "payment_intent": paid.intent, "reason": "fraudulent", "status": "lost",
        });
        self.add(Stream::Disputes, dispute);
        let event = self.event("charge.dispute.funds_withdrawn", &id, at_s);
        (id, event)
    }

    pub fn invoice(&mut self, paid: &Paid, at_s: i64) -> String {
        self.invoice_of(std::slice::from_ref(paid), at_s)
    }

    /// An invoice that these payments paid.
    pub fn invoice_of(&mut self, parts: &[Paid], at_s: i64) -> String {
        let id = self.id("in");
        let total_minor: i64 = parts.iter().map(|paid| paid.amount_minor).sum();
        let payment = |paid: &Paid| {
            json!({
                "id": format!("inpay_of_{}_{id}", paid.intent), "object": "invoice_payment", "amount_paid": paid.amount_minor,
                "status": "paid", "is_default": paid.intent == parts[0].intent,
                "payment": {"type": "payment_intent", "payment_intent": paid.intent},
            })
        };
        let payments: Vec<Value> = parts.iter().map(payment).collect();
        let invoice = json!({
            "id": id, "object": "invoice", "amount_due": total_minor, "amount_paid": total_minor,
            "amount_overpaid": 0, "created": at_s, "currency": "usd", "customer": null, "livemode": true,
            "parent": {"type": "subscription_details", "subscription_details": {"subscription": format!("sub_of_{id}")}},
            "status": "paid", "payments": {"object": "list", "has_more": false, "data": payments},
        });
        self.add(Stream::Invoices, invoice)
    }

    /// A checkout session of the payment itself, or of its invoice.
    pub fn session(&mut self, paid: &Paid, invoice: Option<&str>, at_s: i64) -> String {
        let id = self.id("cs");
        let intent = if invoice.is_none() { json!(paid.intent) } else { Value::Null };
        let session = json!({
            "id": id, "object": "checkout.session", "amount_total": paid.amount_minor, "currency": "usd",
            "created": at_s, "payment_intent": intent, "invoice": invoice, "payment_status": "paid",
            "status": "complete", "mode": if invoice.is_some() { "subscription" } else { "payment" },
            "subscription": invoice.map(|invoice| format!("sub_of_{invoice}")), "livemode": true, "customer": null,
        });
        self.add(Stream::CheckoutSessions, session)
    }

    pub fn book(
        &mut self,
        kind: &'static str,
        object_id: &str,
        amount_minor: i64,
        at_s: i64,
        event_id: &str,
    ) {
        self.entries.push(Entry {
            kind,
            object_id: object_id.to_owned(),
            amount_minor,
            at_s,
            event_id: event_id.to_owned(),
        });
    }

    pub fn state(&mut self, object_id: &str, status: &'static str, refunded_minor: i64, at_s: i64) {
        self.states.push((object_id.to_owned(), status, refunded_minor, at_s));
    }

    /// A stage with a small healthy month, this account's objects and its books.
    pub async fn stage(&self, seed: u64) -> Stage {
        self.stage_with(seed, Faults::default()).await
    }

    /// The same, and what goes wrong at the provider.
    pub async fn stage_with(&self, seed: u64, faults: Faults) -> Stage {
        let changes = self.objects.iter().map(|(id, (stream, object))| {
            let created_s = object["created"].as_i64().unwrap();
            let body = object.to_string().into();
            let record = Record { id: id.clone(), created_s, sequence: 0, body, includable: None };
            (*stream, 0, Change::Insert(record))
        });
        let faults = Faults { changes: changes.collect(), ..faults };
        let stage = Stage::new(seed, 20, &Mix(Vec::new()), faults).await;
        let store = stage.store().await;
        for (number, entry) in self.entries.iter().enumerate() {
            let sql =
                "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind,
                    amount_minor, currency, occurred_at_us, applied_at_us, event_id)
                values ($1, 'stripe', '', 'live', $2, $3, $4, $5, 'usd', $6, $7, $8)";
            let query = sqlx::query(sql).bind(format!("row_{number:04}")).bind(format!("handler:{number}"));
            let query = query.bind(entry.object_id.clone()).bind(entry.kind).bind(entry.amount_minor);
            let query = query.bind(entry.at_s * 1_000_000).bind(entry.at_s * 1_000_000);
            query.bind(entry.event_id.clone()).execute(store.pool()).await.unwrap();
        }
        for (object_id, status, refunded_minor, at_s) in &self.states {
            let sql = "insert into object_state (provider, account, mode, object_id, status, refunded_minor,
                    provider_time_us, updated_at_us, changed_by)
                values ('stripe', '', 'live', $1, $2, $3, $4, $5, 'handler')";
            let query = sqlx::query(sql).bind(object_id.clone()).bind(*status).bind(*refunded_minor);
            query.bind(at_s * 1_000_000).bind(at_s * 1_000_000).execute(store.pool()).await.unwrap();
        }
        for (body, at_s) in &self.inbox {
            let event: Value = serde_json::from_str(body).unwrap();
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            let sql =
                "insert into inbox_event (provider, account, mode, event_id, event_type, body, body_sha256,
                    received_at_us, last_delivery_at_us, status)
                values ('stripe', '', 'live', $1, $2, $3, $4, $5, $6, 'applied')";
            let query = sqlx::query(sql).bind(text("id")).bind(text("type")).bind(body.as_bytes().to_vec());
            let query = query.bind(sha256_hex(body.as_bytes())).bind(at_s * 1_000_000).bind(at_s * 1_000_000);
            query.execute(store.pool()).await.unwrap();
        }
        store.close().await;
        stage
    }
}
