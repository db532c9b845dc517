//! Money as text and as integers. No floats: decimal text is read digit by digit, and what does not
//! fit the currency's minor unit is an error, never a rounded value.

use thiserror::Error;

/// Why a decimal text is not an amount of minor units.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// Not a plain decimal number.
    #[error("{0} is not a decimal amount")]
    NotADecimal(String),
    /// More decimals than the currency has, and they are not zeros.
    #[error("`{text}` has more than {exponent} decimals, and rounding would invent money")]
    TooPrecise {
        /// The text.
        text: String,
        /// Decimals of the currency.
        exponent: u32,
    },
    /// Does not fit 64 bits of minor units.
    #[error("`{0}` is larger than an amount can be")]
    TooLarge(String),
}

/// Decimals of a currency by ISO 4217 (lower-case code). Providers have exceptions; theirs stand in
/// the provider's file.
#[must_use]
pub fn iso_exponent(currency: &str) -> u32 {
    match currency {
        "bif" | "clp" | "djf" | "gnf" | "isk" | "jpy" | "kmf" | "krw" | "pyg" | "rwf" | "ugx" | "vnd"
        | "vuv" | "xaf" | "xof" | "xpf" | "uyi" => 0,
        "bhd" | "iqd" | "jod" | "kwd" | "lyd" | "omr" | "tnd" => 3,
        "clf" | "uyw" => 4,
        _ => 2,
    }
}

/// Reads decimal text (`19.99`, `-5`, `+0.50`, `10.5000`) into minor units with `exponent` decimals.
///
/// # Errors
/// When the text is no decimal, is more precise than the currency, or overflows.
pub fn minor_from_decimal(text: &str, exponent: u32) -> Result<i64, MoneyError> {
    let bad = || MoneyError::NotADecimal(shown(text));
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let only_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !only_digits(whole) || !only_digits(fraction) || digits.ends_with('.') {
        return Err(bad());
    }
    let kept = fraction.trim_end_matches('0');
    let decimals = usize::try_from(exponent).unwrap_or(usize::MAX);
    if kept.len() > decimals {
        return Err(MoneyError::TooPrecise { text: trimmed.chars().take(40).collect(), exponent });
    }
    let too_large = || MoneyError::TooLarge(trimmed.chars().take(40).collect());
    let mut minor: i64 = 0;
    let padding = std::iter::repeat_n(b'0', decimals - kept.len());
    for digit in whole.bytes().chain(kept.bytes()).chain(padding) {
        let step = i64::from(digit - b'0');
        minor = minor
            .checked_mul(10)
            .and_then(|value| if negative { value.checked_sub(step) } else { value.checked_add(step) })
            .ok_or_else(too_large)?;
    }
    Ok(minor)
}

/// A text that should have been an amount: quoted where it is made of digits and marks, else only its
/// length, because what stands in the wrong column may be personal.
fn shown(text: &str) -> String {
    if text.chars().any(|letter| letter.is_alphabetic() || letter == '@') {
        return format!("a text of {} characters", text.chars().count());
    }
    let short: String = text.chars().take(40).collect();
    format!("`{short}`")
}

/// Writes minor units as decimal text with `exponent` decimals and a dot: `-1234` → `-12.34`.
#[must_use]
pub fn decimal_from_minor(minor: i64, exponent: u32) -> String {
    let sign = if minor < 0 { "-" } else { "" };
    let magnitude = minor.unsigned_abs();
    if exponent == 0 {
        return format!("{sign}{magnitude}");
    }
    let scale = 10_u64.pow(exponent.min(18));
    let width = usize::try_from(exponent).unwrap_or(18);
    format!("{sign}{}.{:0width$}", magnitude / scale, magnitude % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c42_decimal_text_is_read_exactly() {
        for (text, minor) in [
            ("19.99", 1999),
            ("8.20", 820),
            ("0.56", 56),
            ("-0.01", -1),
            ("+7", 700),
            ("10.5000", 1050),
            ("92233720368547758.07", i64::MAX),
            ("-92233720368547758.08", i64::MIN),
        ] {
            assert_eq!(minor_from_decimal(text, 2), Ok(minor), "{text}");
        }
        assert!(matches!(minor_from_decimal("2.675", 2), Err(MoneyError::TooPrecise { .. })));
        assert!(matches!(minor_from_decimal("92233720368547758.08", 2), Err(MoneyError::TooLarge(_))));
        for text in ["", "-", ".5", "5.", "1e3", "1,000.00", "0x10", "1.2.3", "١٢", "NaN", "--1"] {
            assert!(matches!(minor_from_decimal(text, 2), Err(MoneyError::NotADecimal(_))), "{text}");
        }
    }

    #[test]
    fn c39_c41_exponents() {
        assert_eq!(minor_from_decimal("58", iso_exponent("jpy")), Ok(58));
        assert_eq!(minor_from_decimal("58.00", iso_exponent("jpy")), Ok(58));
        assert_eq!(minor_from_decimal("1.860", iso_exponent("kwd")), Ok(1860));
        assert_eq!(decimal_from_minor(18600, 3), "18.600");
        assert_eq!(decimal_from_minor(5800, 0), "5800");
        assert_eq!(decimal_from_minor(-5, 2), "-0.05");
        assert_eq!(decimal_from_minor(i64::MIN, 2), "-92233720368547758.08");
    }
}
