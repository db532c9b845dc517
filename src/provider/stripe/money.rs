//! Stripe's minor units. They are not ISO 4217's: a few currencies are sent with decimals that they do
//! not have, and one zero-decimal currency of Stripe has decimals at ISO.
//!
//! Source: <https://docs.stripe.com/currencies>.

/// Decimals that Stripe counts a currency with (lower-case code): 58.00 USD is `5800`, 5800 JPY is
/// `5800`, 18.600 KWD is `18600`.
///
/// ISK and UGX have no decimals, yet are sent as if they had two.
#[must_use]
pub fn exponent(currency: &str) -> u32 {
    match currency {
        "bif" | "clp" | "djf" | "gnf" | "jpy" | "kmf" | "krw" | "mga" | "pyg" | "rwf" | "vnd" | "vuv"
        | "xaf" | "xof" | "xpf" => 0,
        "bhd" | "jod" | "kwd" | "omr" | "tnd" => 3,
        _ => 2,
    }
}

/// The multiple that every amount of a currency must be; an amount that is not one was scaled by
/// somebody. `is_payout`: HUF and TWD are charged with two decimals and paid out without.
#[must_use]
pub(super) fn granularity(currency: &str, is_payout: bool) -> i64 {
    match currency {
        "isk" | "ugx" => 100,
        "huf" | "twd" if is_payout => 100,
        "bhd" | "jod" | "kwd" | "omr" | "tnd" => 10,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c39_c41_exponents_are_stripes_own() {
        for (currency, decimals) in [
            ("usd", 2),
            ("brl", 2),
            ("jpy", 0),
            ("mga", 0),
            ("kwd", 3),
            ("bhd", 3),
            ("isk", 2),
            ("ugx", 2),
            ("huf", 2),
            ("twd", 2),
        ] {
            assert_eq!(exponent(currency), decimals, "{currency}");
        }
        assert_eq!(granularity("huf", false), 1);
        assert_eq!(granularity("huf", true), 100);
        assert_eq!(granularity("ugx", false), 100);
        assert_eq!(granularity("kwd", false), 10);
    }
}
