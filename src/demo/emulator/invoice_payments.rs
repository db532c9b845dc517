//! The list of invoice payments, which the invoices themselves hold. Pure.
//!
//! Source: docs.stripe.com/api/invoice-payment/list (2026).

use super::list::{ApiError, Row, unknown_parameter};
use serde_json::{Value, json};

/// Answers the list for the parameters `invoice`, `payment[type]` and `payment[payment_intent]`, all of it on
/// one page.
///
/// # Errors
/// As the provider, for a parameter that the list does not have and for a payment without its type.
pub(super) fn list(invoices: &[Row], pairs: &[(String, String)]) -> Result<String, ApiError> {
    let (mut intent, mut invoice, mut has_type) = (None, None, false);
    for (name, value) in pairs {
        match &**name {
            "limit" => {}
            "invoice" => invoice = Some(value),
            "payment[type]" => has_type = value == "payment_intent",
            "payment[payment_intent]" => intent = Some(value),
            _ => return Err(unknown_parameter(name)),
        }
    }
    if intent.is_some() && !has_type {
        let message = "Missing required param: payment[type].".to_owned();
        return Err(ApiError::invalid("parameter_missing", "payment[type]", message));
    }
    let asked = invoices.iter().filter(|row| invoice.is_none_or(|id| row.record.id == *id));
    let names = |text: &str| intent.is_none_or(|id| text.contains(&**id));
    let asked = asked.filter(|row| {
        names(&row.record.body) || row.record.includable.as_ref().is_some_and(|(_, whole)| names(whole))
    });
    let data: Vec<Value> = asked
        .flat_map(payments_of)
        .filter(|payment| intent.is_none_or(|id| payment["payment"]["payment_intent"] == id.as_str()))
        .collect();
    let page = json!({"object": "list", "data": data, "has_more": false, "url": "/v1/invoice_payments"});
    Ok(page.to_string())
}

/// The payments of an invoice, as the list shows them.
fn payments_of(row: &Row) -> Vec<Value> {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let payments = match &row.record.includable {
        Some((name, whole)) if *name == "payments" => read(whole),
        _ => read(&row.record.body)["payments"].take(),
    };
    let mut payments = payments["data"].as_array().cloned().unwrap_or_default();
    for (number, payment) in payments.iter_mut().enumerate() {
        payment["invoice"] = json!(row.record.id);
        if payment["id"].is_null() {
            payment["id"] = json!(format!("inpay_{number}_of_{}", row.record.id));
        }
    }
    payments
}
