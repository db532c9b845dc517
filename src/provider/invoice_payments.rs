//! Which invoices a payment paid, or paid a part of: since 2025 only the invoice and its payments say so, and
//! neither the payment intent nor the charge.

use super::Cancel;
use super::client::Client;
use super::fetch_error::FetchError;
use super::list_page::{encode, is_askable};
use crate::record::Scope;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;

/// Requests under way at once.
const REQUESTS_MAX: usize = 64;

/// What became of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvoicesOf {
    /// Ids of the invoices that any of the payments paid or is to pay.
    pub invoices: BTreeSet<String>,
    /// Intents that were not answered for, with a short cause: `no_such_list` (an API of before this list),
    /// `no_permission`, `locked`, `budget`, `interrupted`, `rate_limited`, `unaskable_id`.
    pub unanswered: BTreeMap<String, &'static str>,
}

/// Asks which invoices these payment intents belong to, one request each; nothing is stored.
///
/// Source: `payment[type]` and `payment[payment_intent]` of <https://docs.stripe.com/api/invoice-payment/list>.
///
/// # Errors
/// When the provider cannot be talked to at all, or answers in no known shape.
pub async fn fetch_invoices_of(
    client: &Client,
    scope: &Scope,
    intents: &BTreeSet<String>,
    cancel: &Cancel,
) -> Result<InvoicesOf> {
    let mut result = InvoicesOf::default();
    let mut asked = JoinSet::new();
    let mut intents = intents.iter();
    loop {
        while asked.len() < REQUESTS_MAX {
            let Some(id) = intents.next() else { break };
            if !is_askable(id) {
                result.unanswered.insert(id.clone(), "unaskable_id");
            } else if cancel.is_cancelled() {
                result.unanswered.insert(id.clone(), "interrupted");
            } else {
                asked.spawn(ask(client.clone(), scope.clone(), id.clone()));
            }
        }
        let Some(done) = asked.join_next().await else { break };
        let (id, answer) = done.context("a look-up's task ended early")?;
        let cause = match answer {
            Ok(invoices) => {
                result.invoices.extend(invoices);
                continue;
            }
            Err(FetchError::NotFound { .. } | FetchError::Refused { .. }) => "no_such_list",
            Err(FetchError::Forbidden { .. }) => "no_permission",
            Err(FetchError::Locked { .. }) => "locked",
            Err(FetchError::Budget { .. }) => "budget",
            Err(FetchError::RateLimited { .. }) => "rate_limited",
            Err(other) => return Err(other.into()),
        };
        result.unanswered.insert(id, cause);
    }
    Ok(result)
}

async fn ask(client: Client, scope: Scope, intent: String) -> (String, Result<BTreeSet<String>, FetchError>) {
    let found = invoices_of(&client, &scope, &intent).await;
    (intent, found)
}

/// The list to its end.
async fn invoices_of(client: &Client, scope: &Scope, intent: &str) -> Result<BTreeSet<String>, FetchError> {
    let mut invoices = BTreeSet::new();
    let mut after = String::new();
    loop {
        let path = path(intent, &after);
        let body = client.get("invoice_payments", &path, &scope.account).await?;
        let shape = |problem: serde_json::Error| FetchError::Shape {
            what: format!("list invoice_payments: GET {path}"),
            // Where it is, without what it holds.
            problem: format!("line {} column {}", problem.line(), problem.column()),
        };
        let page: Page = serde_json::from_slice(&body).map_err(shape)?;
        let last = page.data.last().map(|payment| payment.id.clone());
        invoices.extend(page.data.into_iter().map(|payment| match payment.invoice {
            Invoice::Id(id) | Invoice::Whole { id } => id,
        }));
        match last.filter(|_| page.has_more) {
            Some(last) if last == after => {
                return Err(FetchError::Shape {
                    what: format!("list invoice_payments: GET {path}"),
                    problem: "it says that there is more and shows the same again".to_owned(),
                });
            }
            Some(last) => after = last,
            None => return Ok(invoices),
        }
    }
}

fn path(intent: &str, after: &str) -> String {
    let mut path = format!(
        "/v1/invoice_payments?limit=100&payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D={}",
        encode(intent)
    );
    if !after.is_empty() {
        path.push_str("&starting_after=");
        path.push_str(&encode(after));
    }
    path
}

#[derive(Deserialize)]
struct Page {
    data: Vec<InvoicePayment>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
struct InvoicePayment {
    #[serde(default)]
    id: String,
    invoice: Invoice,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Invoice {
    Id(String),
    Whole { id: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invoice_is_an_id_or_the_whole_object() {
        let body = r#"{"data": [{"id": "inpay_1", "invoice": "in_1"},
            {"id": "inpay_2", "invoice": {"id": "in_2", "deleted": true}}], "has_more": false}"#;
        let page: Page = serde_json::from_str(body).unwrap();
        let named: Vec<String> = page
            .data
            .into_iter()
            .map(|payment| match payment.invoice {
                Invoice::Id(id) | Invoice::Whole { id } => id,
            })
            .collect();
        assert_eq!(named, ["in_1", "in_2"]);
        assert!(path("pi_1", "inpay_2").ends_with("5Bpayment_intent%5D=pi_1&starting_after=inpay_2"));
    }
}
