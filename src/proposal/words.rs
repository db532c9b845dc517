//! Words that tables commonly have for what happened to a payment.

/// Whether a status means that money came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Money {
    /// It did, whatever happened later.
    Paid,
    /// It did not, or not yet.
    Not,
}

/// Words that mean that money came in, whatever happened later, and our status for each.
pub(super) const PAID: [(&str, &str); 24] = [
    ("paid", "paid"),
    ("succeeded", "paid"),
    ("success", "paid"),
    ("successful", "paid"),
    ("completed", "paid"),
    ("complete", "paid"),
    ("captured", "paid"),
    ("settled", "paid"),
    ("approved", "paid"),
    ("confirmed", "paid"),
    ("fulfilled", "paid"),
    ("shipped", "paid"),
    ("delivered", "paid"),
    ("partially_refunded", "partially_refunded"),
    ("partial_refund", "partially_refunded"),
    ("refunded", "refunded"),
    ("fully_refunded", "refunded"),
    ("returned", "refunded"),
    ("disputed", "disputed"),
    ("in_dispute", "disputed"),
    ("chargeback", "disputed"),
    ("dispute_lost", "dispute_lost"),
    ("charged_back", "dispute_lost"),
    ("lost", "dispute_lost"),
];

/// Our status for a word, and whether it means money; `None` where it is not known.
pub(super) fn status(word: &str) -> Option<(&'static str, Money)> {
    let word = word.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    if let Some((_, status)) = PAID.iter().find(|(known, _)| *known == word) {
        return Some((status, Money::Paid));
    }
    Some(match word.as_str() {
        "pending"
        | "processing"
        | "created"
        | "new"
        | "open"
        | "unpaid"
        | "draft"
        | "authorized"
        | "authorised"
        | "requires_action"
        | "requires_payment_method"
        | "requires_confirmation"
        | "requires_capture"
        | "waiting"
        | "initiated"
        | "waiting_payment" => ("pending", Money::Not),
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
