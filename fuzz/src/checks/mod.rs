//! What is asserted of every input, for the fuzzer and for the ordinary tests alike.
//!
//! A target is a name and a function of bytes: it panics when something does not hold. Inputs are text where they can
//! be, so that a person can read and write them.

mod delivery;
mod endpoints;
mod event;
mod plan;
mod provider_page;
mod reference;
mod request;
mod rows;

use endpoints::Endpoint;

/// 2026-01-01T00:00:00Z: when deliveries arrive that do not say.
const T: i64 = 1_767_225_600;

/// The readers besides the fifteen schemes.
const READERS: [&str; 5] = ["event", "record", "provider_page", "rows", "plan"];

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Read, and every assertion about what was read held.
    Accepted,
    /// Refused, in a form that may be logged.
    Refused,
}

/// One target.
pub enum Target {
    /// Header and body of a scheme.
    Scheme(Box<Endpoint>),
    /// A reader of its own.
    Reader(&'static str),
}

impl Target {
    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        endpoints::NAMES.into_iter().chain(READERS)
    }

    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        if let Some(reader) = READERS.into_iter().find(|reader| *reader == name) {
            return Some(Self::Reader(reader));
        }
        Some(Self::Scheme(Box::new(Endpoint::named(name)?)))
    }

    /// Checks one input.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn check(&self, data: &[u8]) -> Outcome {
        match self {
            Self::Scheme(endpoint) => delivery::check(endpoint, data),
            Self::Reader("event") => event::event(data),
            Self::Reader("record") => event::record(data),
            Self::Reader("provider_page") => provider_page::check(data),
            Self::Reader("rows") => rows::check(data),
            Self::Reader(_) => plan::check(data),
        }
    }
}

/// A number that only the bytes decide (FNV-1a).
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Fails on an error that holds what it must not: anything but our own words, places and numbers.
fn is_our_own(text: &str, words: &str) {
    for word in text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_') {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_ours = words.split_ascii_whitespace().any(|known| known == word);
        assert!(is_number || is_ours, "an error has the word {word:?}: {text}");
    }
    assert!(text.len() <= 300 && !text.chars().any(char::is_control), "an error that is no line: {text:?}");
}
