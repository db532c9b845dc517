//! Words that tables commonly have for what happened to a payment.

/// Whether a status means that money came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Money {
    /// It did, whatever happened later.
    Paid,
    /// It did not, or not yet.
    Not,
}

/// Words that count as paid where none was seen.
pub(super) const PAID: [&str; 8] =
    ["paid", "succeeded", "completed", "captured", "partially_refunded", "refunded", "disputed", "dispute_lost"];

/// Our status for a word, and whether it means money; `None` where it is not known.
pub(super) fn status(word: &str) -> Option<(&'static str, Money)> {
    let word = word.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    Some(match word.as_str() {
        "paid" | "succeeded" | "success" | "successful" | "completed" | "complete" | "captured" | "settled" | "done"
        | "approved" | "confirmed" | "fulfilled" | "shipped" | "delivered" => ("paid", Money::Paid),
        "refunded" | "fully_refunded" | "returned" => ("refunded", Money::Paid),
        "partially_refunded" | "partial_refund" | "partly_refunded" => ("partially_refunded", Money::Paid),
        "disputed" | "chargeback" | "in_dispute" => ("disputed", Money::Paid),
        "dispute_lost" | "charged_back" | "lost" => ("dispute_lost", Money::Paid),
        "pending" | "processing" | "created" | "new" | "open" | "unpaid" | "draft" | "authorized" | "authorised"
        | "requires_action" | "requires_payment_method" | "requires_confirmation" | "requires_capture" | "waiting"
        | "initiated" | "waiting_payment" => ("pending", Money::Not),
        "failed" | "declined" | "error" | "rejected" => ("failed", Money::Not),
        "canceled" | "cancelled" | "voided" | "void" | "expired" | "abandoned" => ("canceled", Money::Not),
        _ => return None,
    })
}

/// Our kind of effect for a word; `None` where it is not known.
pub(super) fn effect(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    Some(match word.as_str() {
        "credit" | "payment" | "charge" | "capture" | "sale" | "purchase" | "payment_received" => "credit",
        "refund" | "refunded" | "partial_refund" => "refund",
        "dispute_withdrawn" | "dispute" | "chargeback" => "dispute_withdrawn",
        "dispute_reinstated" | "dispute_won" | "chargeback_reversed" => "dispute_reinstated",
        "fee" | "processing_fee" | "stripe_fee" => "fee",
        "payout" => "payout",
        _ => return None,
    })
}
