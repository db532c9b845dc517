//! How old open findings are: count and money of five ages.
//!
//! The one thing to get right: an age is of whole days since a run first saw the finding, as `age_days` in `findings.csv`.

use super::sums::{MoneySum, Sums};
use anyhow::Result;
use serde::Serialize;

/// Names of the ages, and the last day of each.
const AGES: [(&str, u64); 5] =
    [("0-1 days", 1), ("2-7 days", 7), ("8-30 days", 30), ("31-90 days", 90), ("> 90 days", u64::MAX)];

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aged<'a> {
    /// Whole days since it was first seen.
    pub age_days: u64,
    /// Its money: currency, decimals, signed minor units.
    pub money: Vec<(&'a str, u32, i64)>,
}

/// One age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Its name.
    pub age: &'static str,
    /// Findings.
    pub count: usize,
    /// Provider minus local, both directions apart, by currency.
    pub money: Vec<MoneySum>,
}

/// Every age, youngest first, also where nothing is so old.
///
/// # Errors
/// When a sum leaves 64 bits.
pub fn aging(rows: &[Aged<'_>]) -> Result<Vec<Bucket>> {
    let mut from = 0;
    let mut buckets = Vec::with_capacity(AGES.len());
    for (age, until) in AGES {
        let inside = rows.iter().filter(|row| (from..=until).contains(&row.age_days));
        let (mut count, mut sums) = (0, Sums::default());
        for row in inside {
            count += 1;
            for (currency, exponent, minor) in &row.money {
                sums.add(currency, *exponent, *minor);
            }
        }
        buckets.push(Bucket { age, count, money: sums.finish(age)? });
        from = until.saturating_add(1);
    }
    Ok(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_lies_in_one_age() {
        let days = [0, 1, 2, 7, 8, 30, 31, 90, 91, u64::MAX];
        let rows: Vec<Aged<'_>> = days
            .iter()
            .map(|day| Aged { age_days: *day, money: vec![("brl", 2, -1), ("jpy", 0, 3)] })
            .collect();
        let buckets = aging(&rows).unwrap();
        assert_eq!(buckets.iter().map(|bucket| bucket.count).collect::<Vec<_>>(), [2; 5]);
        for bucket in &buckets {
            let money: Vec<_> = bucket.money.iter().map(|sum| (&*sum.currency, &*sum.net)).collect();
            assert_eq!(money, [("brl", "-0.02"), ("jpy", "+6")], "{}", bucket.age);
        }
        assert!(aging(&[]).unwrap().iter().all(|bucket| bucket.count == 0 && bucket.money.is_empty()));
    }
}
