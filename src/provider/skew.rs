//! How far this machine's clock is from the provider's, by the `Date` of an answer (RFC 9110 §6.6.1). Pure.

use super::wait::http_date_us;
use crate::record::SECOND_US;

/// How far our clock is ahead at least, µs; behind it is negative. The date says a whole second that lay somewhere
/// between sending and hearing: what that explains is no difference. `None` for a date that is none.
pub(super) fn ahead_us(date: &str, sent_us: i64, heard_us: i64) -> Option<i64> {
    let from_us = http_date_us(date)?;
    let until_us = from_us.checked_add(SECOND_US)?;
    Some(if sent_us > until_us {
        sent_us - until_us
    } else if heard_us < from_us {
        heard_us - from_us
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_answer_explains_is_no_difference() {
        // 2026-01-01T00:00:00Z.
        const AT_US: i64 = 1_767_225_600 * SECOND_US;
        let ahead = |sent: i64, heard: i64| {
            ahead_us("Thu, 01 Jan 2026 00:00:00 GMT", AT_US + sent * SECOND_US, AT_US + heard * SECOND_US)
        };
        assert_eq!(ahead(0, 0), Some(0));
        assert_eq!(ahead(-20, 15), Some(0));
        assert_eq!(ahead(31, 35), Some(30 * SECOND_US));
        assert_eq!(ahead(-90, -31), Some(-31 * SECOND_US));
        assert_eq!(ahead_us("yesterday", 0, 0), None);
    }
}
