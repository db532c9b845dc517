//! Invoices that several payments paid.

use super::Scope;
use std::collections::BTreeSet;

/// The payments that each paid a part of one invoice; always more than one.
///
/// Each payment is a group of its own. The invoice is a group beside them, with what the books have on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvoiceParts {
    /// Scope.
    pub scope: Scope,
    /// The invoice.
    pub invoice_id: String,
    /// Roots of its payments.
    pub payment_ids: BTreeSet<String>,
    /// What came in for it without what was paid too much, minor units: payments above that are no parts
    /// of one purchase. 0 where the invoice does not say.
    pub due_minor: i64,
}

impl InvoiceParts {
    /// Ids of its groups: the invoice's and its payments'.
    pub fn roots(&self) -> impl Iterator<Item = &String> {
        self.payment_ids.iter().chain([&self.invoice_id])
    }
}
