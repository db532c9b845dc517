//! The error of a configuration, statement or schema that cannot be used: exit 78, nothing written.
//! Its texts name files, lines, keys and columns, never values that could be secrets.

use thiserror::Error;

/// Something that a person must put right in the configuration or in the local schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Unusable {
    /// What is wrong, with the place (`recon.toml:12: …`, `effects.sql: …`).
    pub message: String,
    /// What to do about it; empty where the message says it.
    pub hint: String,
}

impl Unusable {
    /// An error from its two texts.
    #[must_use]
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// The known word that is nearest to a mistyped one, where any is near enough to be meant.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let near_max = (word.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, candidate)| {
            let is_cut_short = word.len() >= 3 && candidate.starts_with(&*word);
            *distance <= near_max || is_cut_short
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?` where a near word exists, else the list of known ones.
#[must_use]
pub fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_named_and_a_far_one_is_not() {
        let known = ["requests_per_second", "settle_delay", "mode"];
        assert_eq!(nearest("request_per_second", known), Some("requests_per_second"));
        assert_eq!(nearest("Mode", known), Some("mode"));
        assert_eq!(nearest("settle", known), Some("settle_delay"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(suggestion("colour", &known), "known here: requests_per_second, settle_delay, mode");
    }
}
