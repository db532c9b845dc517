//! Invoices that several payments paid, at the provider and in the books.

use crate::stage::{NOW_US, Stage};
use recon::demo::emulator::{Change, Faults};
use recon::demo::faults::Mix;
use recon::demo::{PROVIDER, Record, Stream, World};
use recon::record::sha256_hex;
use serde_json::{Value, json};

const SECOND_US: i64 = 1_000_000;

/// 2026-06-05T12:34:56Z: ten days before the world's present.
pub const PAID_S: i64 = NOW_US / SECOND_US - 10 * 86_400;

/// The first second of the window.
pub fn window_from_s() -> i64 {
    World::new(SEED, EVENTS, NOW_US).from_us / SECOND_US
}

const SEED: u64 = 3;
const EVENTS: usize = 30;

/// One payment: an intent with one charge.
#[derive(Clone, Debug)]
pub struct Part {
    pub intent: String,
    pub charge: String,
    pub amount: i64,
    pub at_s: i64,
    pub refunded: i64,
    /// A dispute that was lost took the whole charge.
    pub is_lost: bool,
    order: String,
    invoice_field: Option<String>,
}

impl Part {
    /// Its own status, and what was refunded.
    pub fn status(&self) -> &'static str {
        match self.refunded {
            _ if self.is_lost => "dispute_lost",
            0 => "paid",
            refunded if refunded < self.amount => "partially_refunded",
            _ => "refunded",
        }
    }
}

/// What the provider and the books have.
#[derive(Default)]
pub struct Play {
    pub parts: Vec<Part>,
    records: Vec<(Stream, Record)>,
    inbox: Vec<(String, &'static str, i64)>,
    rows: Vec<(String, &'static str, i64, i64, String)>,
    states: Vec<(String, &'static str, i64, i64)>,
    count: usize,
}

impl Play {
    fn id(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}_play{:05}", self.count)
    }

    fn record(&mut self, stream: Stream, created_s: i64, body: &Value) {
        let id = body["id"].as_str().unwrap().to_owned();
        let body = body.to_string().into();
        self.records.push((stream, Record { id, created_s, sequence: 0, body, includable: None }));
    }

    /// A payment; its index.
    pub fn pay(&mut self, amount: i64, at_s: i64, order: &str, invoice_field: Option<&str>) -> usize {
        let (intent, charge) = (self.id("pi"), self.id("ch"));
        let invoice_field = invoice_field.map(str::to_owned);
        let order = order.to_owned();
        let part = Part { intent, charge, amount, at_s, refunded: 0, is_lost: false, order, invoice_field };
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// The invoice that these payments paid; its id.
    pub fn invoice(&mut self, id: &str, parts: &[usize], created_s: i64, overpaid: i64) -> String {
        let paid: i64 = parts.iter().map(|part| self.parts[*part].amount).sum();
        let payments: Vec<Value> = parts
            .iter()
            .map(|part| {
                json!({"object": "invoice_payment", "status": "paid", "is_default": false,
                    "payment": {"type": "payment_intent", "payment_intent": self.parts[*part].intent}})
            })
            .collect();
        let body = json!({
            "id": id, "object": "invoice", "amount_due": paid - overpaid, "amount_paid": paid,
            "amount_overpaid": overpaid, "created": created_s, "currency": "usd", "livemode": true,
            "status": "paid", "payments": {"object": "list", "has_more": false, "data": payments},
        });
        self.record(Stream::Invoices, created_s, &body);
        id.to_owned()
    }

    /// An event of the provider, received or not; its id.
    pub fn event(&mut self, kind: &'static str, object: &Value, at_s: i64, is_received: bool) -> String {
        let id = self.id("evt");
        let body = json!({
            "id": id, "object": "event", "api_version": "2026-08-26.dahlia", "created": at_s,
            "data": {"object": object}, "livemode": true, "pending_webhooks": 0, "type": kind,
        });
        self.record(Stream::Events, at_s, &body);
        if is_received {
            self.inbox.push((id.clone(), kind, at_s + 5));
        }
        id
    }

    /// The event that announces a payment's charge.
    pub fn charged(&mut self, part: usize, is_received: bool) -> String {
        let body = Self::charge_of(&self.parts[part]);
        self.event("charge.succeeded", &body, self.parts[part].at_s, is_received)
    }

    pub fn invoice_paid(&mut self, invoice: &str, at_s: i64, is_received: bool) -> String {
        let body = json!({"id": invoice, "object": "invoice", "livemode": true, "created": at_s,
            "status": "paid", "amount_paid": 1, "currency": "usd"});
        self.event("invoice.paid", &body, at_s, is_received)
    }

    /// Gives some of a payment back an hour later; the refund and its event.
    pub fn refund(&mut self, part: usize, amount: i64) -> (String, String) {
        let id = self.id("re");
        let at_s = self.parts[part].at_s + 3_600;
        self.parts[part].refunded += amount;
        let Part { intent, charge, .. } = self.parts[part].clone();
        let body = json!({
            "id": id, "object": "refund", "amount": amount, "charge": charge, "payment_intent": intent,
            "created": at_s, "currency": "usd", "metadata": {}, "status": "succeeded",
            "balance_transaction": moved(&format!("txn_{id}"), "refund", &id, -amount, at_s),
        });
        self.record(Stream::Refunds, at_s, &body);
        let event = self.event("refund.created", &body, at_s, true);
        (id, event)
    }

    /// Loses a dispute about a payment two hours later; the dispute and the event of its money.
    pub fn lose(&mut self, part: usize) -> (String, String) {
        let id = self.id("dp");
        self.parts[part].is_lost = true;
        let Part { intent, charge, amount, at_s, .. } = self.parts[part].clone();
        let at_s = at_s + 7_200;
        let body = json!({
            "id": id, "object": "dispute", "amount": amount, "charge": charge, "payment_intent": intent,
            "created": at_s, "currency": "usd", "livemode": true, "metadata": {}, "status": "lost",
            "reason": "fraudulent",
            "balance_transactions": [moved(&format!("txn_{id}"), "dispute", &id, -amount, at_s)],
        });
        self.record(Stream::Disputes, at_s, &body);
        let event = self.event("charge.dispute.funds_withdrawn", &body, at_s, true);
        (id, event)
    }

    pub fn book(&mut self, kind: &'static str, object: &str, amount: i64, at_s: i64, event: &str) {
        self.rows.push((object.to_owned(), kind, amount, at_s, event.to_owned()));
    }

    pub fn state(&mut self, object: &str, status: &'static str, refunded: i64, at_s: i64) {
        self.states.push((object.to_owned(), status, refunded, at_s));
    }

    fn charge_of(part: &Part) -> Value {
        let mut body = json!({
            "id": part.charge, "object": "charge", "amount": part.amount, "amount_captured": part.amount,
            "amount_refunded": part.refunded, "captured": true, "paid": true, "status": "succeeded",
            "created": part.at_s, "currency": "usd", "livemode": true, "disputed": part.is_lost,
            "metadata": {"order_id": part.order}, "payment_intent": part.intent,
            "refunded": part.refunded == part.amount,
            "balance_transaction":
                moved(&format!("txn_{}", part.charge), "charge", &part.charge, part.amount, part.at_s),
        });
        if let Some(invoice) = &part.invoice_field {
            body["invoice"] = json!(invoice);
        }
        body
    }

    /// Puts all of it onto a stage.
    pub async fn stage(mut self) -> Stage {
        for part in self.parts.clone() {
            let charge = Self::charge_of(&part);
            self.record(Stream::Charges, part.at_s, &charge);
            let intent = json!({
                "id": part.intent, "object": "payment_intent", "amount": part.amount,
                "amount_received": part.amount, "created": part.at_s, "currency": "usd",
                "latest_charge": part.charge, "livemode": true, "status": "succeeded",
            });
            self.record(Stream::PaymentIntents, part.at_s, &intent);
        }
        let changes =
            self.records.drain(..).map(|(stream, record)| (stream, 0, Change::Insert(record))).collect();
        let faults = Faults { changes, ..Faults::default() };
        let stage = Stage::new(SEED, EVENTS, &Mix(Vec::new()), faults).await;
        self.keep(&stage).await;
        stage
    }

    async fn keep(&self, stage: &Stage) {
        let store = stage.store().await;
        for (id, kind, at_s) in &self.inbox {
            let sql =
                "insert into inbox_event (provider, account, mode, event_id, event_type, body, body_sha256,
                           received_at_us, last_delivery_at_us, status)
                       values ($1, '', 'live', $2, $3, $4, $5, $6, $6, 'applied')";
            let query = sqlx::query(sql).bind(PROVIDER).bind(id).bind(*kind).bind(id.as_bytes().to_vec());
            let query = query.bind(sha256_hex(id.as_bytes())).bind(at_s * SECOND_US);
            query.execute(store.pool()).await.unwrap();
        }
        for (number, (object, kind, amount, at_s, event)) in self.rows.iter().enumerate() {
            let sql =
                "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind,
                           amount_minor, currency, occurred_at_us, applied_at_us, event_id, corrects_entry_id)
                       values ($1, $2, '', 'live', $1, $3, $4, $5, 'usd', $6, $6, $7, '')";
            let query = sqlx::query(sql).bind(format!("le_{number:05}")).bind(PROVIDER).bind(object);
            let query = query.bind(*kind).bind(*amount).bind(at_s * SECOND_US).bind(event);
            query.execute(store.pool()).await.unwrap();
        }
        for (object, status, refunded, at_s) in &self.states {
            let sql = "insert into object_state (provider, account, mode, object_id, status, refunded_minor,
                           provider_time_us, updated_at_us, changed_by)
                       values ($1, '', 'live', $2, $3, $4, $5, $5, 'handler')";
            let query = sqlx::query(sql).bind(PROVIDER).bind(object).bind(*status).bind(*refunded);
            query.bind(at_s * SECOND_US).execute(store.pool()).await.unwrap();
        }
        store.close().await;
    }
}

fn moved(id: &str, category: &str, source: &str, amount: i64, at_s: i64) -> Value {
    let kind = if category == "dispute" { "adjustment" } else { category };
    json!({
        "id": id, "object": "balance_transaction", "amount": amount, "available_on": at_s + 172_800,
        "created": at_s, "currency": "usd", "fee": 0, "net": amount, "source": source, "type": kind,
        "reporting_category": category, "status": "available",
    })
}
