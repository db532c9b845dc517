//! Lists as Stripe pages them: newest first, by cursor, with `created` bounds. Pure.
//!
//! Sources: docs.stripe.com/api/pagination, /api/events/list, /api/errors (2026).

use crate::demo::world::{Record, Stream};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// An error as the API answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// `error.type`.
    pub kind: &'static str,
    /// `error.code`.
    pub code: &'static str,
    /// `error.message`.
    pub message: String,
    /// `error.param`.
    pub param: String,
}

impl ApiError {
    pub(super) fn invalid(code: &'static str, param: &str, message: String) -> Self {
        Self { status: 400, kind: "invalid_request_error", code, message, param: param.to_owned() }
    }

    /// The body.
    pub(super) fn body(&self) -> String {
        let error = serde_json::json!({ "error": {
            "code": self.code, "doc_url": format!("https://stripe.com/docs/error-codes/{}", self.code.replace('_', "-")),
            "message": self.message, "param": self.param, "type": self.kind,
        } });
        error.to_string()
    }
}

/// A row of a list. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the list shows.
    pub record: Record,
    /// Event type; empty for objects.
    pub kind: &'static str,
    /// Whether an endpoint has not acknowledged the event.
    pub is_pending: bool,
}

/// The rows of a list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    places: HashMap<String, (i64, u64)>,
}

type Place = std::cmp::Reverse<(i64, u64)>;

fn place(row: &Row) -> Place {
    std::cmp::Reverse((row.record.created_s, row.record.sequence))
}

impl Table {
    /// A list from rows in any order.
    pub fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_by_key(place);
        let places = rows
            .iter()
            .map(|row| (row.record.id.clone(), (row.record.created_s, row.record.sequence)))
            .collect();
        Self { rows, places }
    }

    /// Adds a row where it belongs.
    pub fn insert(&mut self, row: Row) {
        let at = self.rows.partition_point(|other| place(other) < place(&row));
        self.places.insert(row.record.id.clone(), (row.record.created_s, row.record.sequence));
        self.rows.insert(at, row);
    }

    /// Takes a row away.
    pub fn remove(&mut self, id: &str) -> Option<Row> {
        let at = self.position(id)?;
        self.places.remove(id);
        Some(self.rows.remove(at))
    }

    /// All rows, newest first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// A row by id.
    pub fn get(&self, id: &str) -> Option<&Row> {
        self.position(id).map(|at| &self.rows[at])
    }

    fn position(&self, id: &str) -> Option<usize> {
        let key = std::cmp::Reverse(*self.places.get(id)?);
        Some(self.rows.partition_point(|row| place(row) < key))
    }

    /// A page, and whether more rows follow in its direction.
    pub fn page(&self, query: &Query) -> Result<(Vec<&Row>, bool), ApiError> {
        // Newest first: the upper bound of `created` is the start of the slice.
        let start = self.rows.partition_point(|row| row.record.created_s >= query.created_below_s);
        let end = self.rows.partition_point(|row| row.record.created_s >= query.created_from_s);
        let cursor = |id: &str, param| {
            let missing = || ApiError::invalid("resource_missing", param, format!("No such object: '{id}'"));
            self.position(id).ok_or_else(missing)
        };
        let wanted = |row: &&Row| query.keeps(row);
        if let Some(id) = &query.ending_before {
            let end = end.min(cursor(id, "ending_before")?);
            let rows = self.rows.get(start..end).unwrap_or(&[]);
            let mut found: Vec<&Row> = rows.iter().rev().filter(wanted).take(query.limit + 1).collect();
            let has_more = found.len() > query.limit;
            found.truncate(query.limit);
            found.reverse();
            return Ok((found, has_more));
        }
        let start = match &query.starting_after {
            Some(id) => start.max(cursor(id, "starting_after")? + 1),
            None => start,
        };
        let rows = self.rows.get(start..end).unwrap_or(&[]);
        let mut found: Vec<&Row> = rows.iter().filter(wanted).take(query.limit + 1).collect();
        let has_more = found.len() > query.limit;
        found.truncate(query.limit);
        Ok((found, has_more))
    }
}

/// A list request, understood.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Rows on a page, 1 to 100.
    pub limit: usize,
    /// Cursor downwards.
    pub starting_after: Option<String>,
    /// Cursor upwards.
    pub ending_before: Option<String>,
    /// First second.
    pub created_from_s: i64,
    /// First second after.
    pub created_below_s: i64,
    /// Fields to show whole.
    pub expand: Vec<String>,
    types: Vec<String>,
    delivery_success: Option<bool>,
    fields: BTreeMap<String, String>,
}

/// Filters of a list besides the common ones.
const fn filters(stream: Stream) -> &'static [&'static str] {
    match stream {
        Stream::Events => &[],
        Stream::Charges => &["customer", "payment_intent", "transfer_group"],
        Stream::Refunds | Stream::Disputes => &["charge", "payment_intent"],
        Stream::BalanceTransactions => &["currency", "payout", "source", "type"],
        Stream::Payouts => &["destination", "status"],
        Stream::Invoices => &["collection_method", "customer", "status", "subscription"],
        Stream::CheckoutSessions => &["customer", "payment_intent", "status", "subscription"],
        Stream::PaymentIntents => &["customer"],
    }
}

/// Fields that can be shown whole.
pub const fn expandable(stream: Stream) -> &'static [&'static str] {
    match stream {
        Stream::Events | Stream::BalanceTransactions => &["source"],
        Stream::Charges => &["balance_transaction", "customer", "payment_intent"],
        Stream::Refunds => &["balance_transaction", "charge", "payment_intent"],
        Stream::Disputes => &["charge", "payment_intent"],
        Stream::Payouts => &["balance_transaction", "destination"],
        Stream::Invoices => &["customer", "payments"],
        Stream::CheckoutSessions => &["customer", "invoice", "payment_intent"],
        Stream::PaymentIntents => &["customer", "latest_charge"],
    }
}

impl Query {
    /// Reads the parameters of a list.
    ///
    /// # Errors
    /// As the provider: an unknown parameter, a limit outside of 1–100, two cursors, more than twenty types.
    pub fn read(stream: Stream, pairs: &[(String, String)]) -> Result<Self, ApiError> {
        let mut query =
            Self { limit: 10, created_from_s: i64::MIN, created_below_s: i64::MAX, ..Self::default() };
        for (name, value) in pairs {
            query.read_one(stream, name, value)?;
        }
        if query.starting_after.is_some() && query.ending_before.is_some() {
            let message = "You can only provide one of `starting_after` and `ending_before`.".to_owned();
            return Err(ApiError::invalid("parameter_invalid", "ending_before", message));
        }
        if query.types.len() > 20 {
            let message = "You may pass up to 20 event types.".to_owned();
            return Err(ApiError::invalid("parameter_invalid", "types", message));
        }
        Ok(query)
    }

    fn read_one(&mut self, stream: Stream, name: &str, value: &str) -> Result<(), ApiError> {
        let integer = || {
            let message = format!("Invalid integer: {value}");
            value.parse::<i64>().map_err(|_| ApiError::invalid("parameter_invalid_integer", name, message))
        };
        let is_events = stream == Stream::Events;
        match name {
            "limit" => {
                let limit = integer()?;
                self.limit =
                    usize::try_from(limit).ok().filter(|n| (1..=100).contains(n)).ok_or_else(|| {
                        let message = format!("This value must be between 1 and 100: {limit}");
                        ApiError::invalid("parameter_invalid_integer", name, message)
                    })?;
            }
            "starting_after" => self.starting_after = Some(value.to_owned()),
            "ending_before" => self.ending_before = Some(value.to_owned()),
            "created" => {
                self.from(integer()?);
                self.below(integer()?.saturating_add(1));
            }
            "created[gte]" => self.from(integer()?),
            "created[gt]" => self.from(integer()?.saturating_add(1)),
            "created[lt]" => self.below(integer()?),
            "created[lte]" => self.below(integer()?.saturating_add(1)),
            "type" if is_events => self.types.push(value.to_owned()),
            "delivery_success" if is_events => self.delivery_success = Some(value == "true"),
            _ if is_events && is_item_of("types", name) => self.types.push(value.to_owned()),
            _ if is_item_of("expand", name) => self.expand.push(value.to_owned()),
            _ if filters(stream).contains(&name) => {
                self.fields.insert(name.to_owned(), value.to_owned());
            }
            _ => return Err(unknown_parameter(name)),
        }
        Ok(())
    }

    fn from(&mut self, second: i64) {
        self.created_from_s = self.created_from_s.max(second);
    }

    fn below(&mut self, second: i64) {
        self.created_below_s = self.created_below_s.min(second);
    }

    fn keeps(&self, row: &Row) -> bool {
        let is_type = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => row.kind.starts_with(start),
            None => row.kind == pattern,
        };
        (self.types.is_empty() || self.types.iter().any(is_type))
            && self.delivery_success.is_none_or(|success| success != row.is_pending)
            && (self.fields.is_empty() || self.fields_match(&row.record.body))
    }

    fn fields_match(&self, body: &str) -> bool {
        let Ok(object) = serde_json::from_str::<HashMap<&str, &RawValue>>(body) else { return false };
        self.fields.iter().all(|(name, value)| {
            object.get(name.as_str()).is_some_and(|raw| raw.get().trim_matches('"') == value)
        })
    }
}

/// The answer to a parameter that the API does not have.
pub fn unknown_parameter(name: &str) -> ApiError {
    ApiError::invalid("parameter_unknown", name, format!("Received unknown parameter: {name}"))
}

/// `types[]`, `types[0]`, …
pub fn is_item_of(list: &str, name: &str) -> bool {
    let index = name.strip_prefix(list).and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']'));
    index.is_some_and(|index| index.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A body with one field shown whole; unchanged where it holds nothing that can be.
pub fn expand(record: &Record, body: String, field: &str, find: impl Fn(&str) -> Option<Arc<str>>) -> String {
    if let Some((name, whole)) = &record.includable
        && *name == field
    {
        return format!("{},\"{field}\":{whole}}}", &body[..body.len() - 1]);
    }
    let mark = format!("\"{field}\":\"");
    let Some(start) = body.find(&mark).map(|at| at + mark.len()) else { return body };
    let Some(length) = body[start..].find('"') else { return body };
    match find(&body[start..start + length]) {
        Some(whole) => format!("{}{whole}{}", &body[..start - 1], &body[start + length + 1..]),
        None => body,
    }
}
