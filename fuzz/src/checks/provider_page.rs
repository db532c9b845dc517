//! A page of one of the provider's lists.

use super::{Outcome, is_our_own};
use recon::provider::read_page;

const WORDS: &str = "no list line column data id and created in whole seconds is empty or";

pub fn check(data: &[u8]) -> Outcome {
    let page = read_page(data);
    assert_eq!(page, read_page(data), "read twice");
    match page {
        Ok((records, _)) => {
            let mut rest = data;
            for record in records {
                assert!(!record.id.is_empty() && record.created >= 0);
                let at = super::request::position(rest, &record.body).expect("a body as it was received");
                rest = &rest[at + record.body.len()..];
            }
            Outcome::Accepted
        }
        Err(error) => {
            is_our_own(&error, WORDS);
            Outcome::Refused
        }
    }
}
