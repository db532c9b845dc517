//! Sums of money by currency, for the summary and the aging of findings.
//!
//! The one thing to get right: sums never cross currencies, and what should be added and what should be taken away stand
//! apart, because they would hide each other.

use crate::findings::Finding;
use crate::record::decimal_from_minor;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// Differences of one currency, both directions apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoneySum {
    /// Lower-case ISO code.
    pub currency: String,
    /// Sum of the positive ones, minor units.
    pub plus_minor: i64,
    /// Sum of the negative ones, minor units.
    pub minus_minor: i64,
    /// Both together, minor units.
    pub net_minor: i64,
    /// The positive ones as decimal text.
    pub plus: String,
    /// The negative ones as decimal text.
    pub minus: String,
    /// Both together as decimal text, with its sign.
    pub net: String,
}

/// Sums by (currency, decimals), positive and negative amounts apart.
#[derive(Default)]
pub(super) struct Sums(BTreeMap<(String, u32), (i128, i128)>);

impl Sums {
    pub(super) fn add(&mut self, currency: &str, exponent: u32, minor: i64) {
        let (plus, minus) = self.0.entry((currency.to_owned(), exponent)).or_default();
        if minor >= 0 { *plus += i128::from(minor) } else { *minus += i128::from(minor) }
    }

    pub(super) fn finish(self, what: &str) -> Result<Vec<MoneySum>> {
        let entries = self.0.into_iter().filter(|(_, sums)| *sums != (0, 0));
        let money = entries.map(|((currency, exponent), (plus, minus))| {
            let minor = |sum: i128| {
                i64::try_from(sum)
                    .with_context(|| format!("add up {what} in {currency}: {sum} leaves 64 bits"))
            };
            let (plus_minor, minus_minor, net_minor) = (minor(plus)?, minor(minus)?, minor(plus + minus)?);
            let plus = format!("+{}", decimal_from_minor(plus_minor, exponent));
            let minus = decimal_from_minor(minus_minor, exponent);
            let net = signed(net_minor, exponent);
            Ok(MoneySum { currency, plus_minor, minus_minor, net_minor, plus, minus, net })
        });
        money.collect()
    }
}

/// Decimal text that always has its sign.
#[must_use]
pub fn signed(minor: i64, exponent: u32) -> String {
    let text = decimal_from_minor(minor, exponent);
    if minor > 0 { format!("+{text}") } else { text }
}

/// What a finding adds to a sum: its difference, and what was booked in another currency, signed minor units.
pub(super) fn shares(finding: &Finding) -> impl Iterator<Item = (&str, i64)> {
    let booked = finding.found_minor.filter(|_| !finding.found_currency.is_empty()).map(|minor| -minor);
    let shares = [(&*finding.currency, finding.difference_minor()), (&*finding.found_currency, booked)];
    shares.into_iter().filter_map(|(currency, minor)| Some((currency, minor?)))
}
