//! Keyed hashes, their text forms, comparison in constant time, and age.

use super::delivery::Delivery;
use super::verdict::Refusal;
use crate::config::Secret;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use ring::{hmac, signature};
use subtle::ConstantTimeEq;

/// Digits of a timestamp at most: 13 are milliseconds of this century.
const TIMESTAMP_DIGITS_MAX: usize = 13;

/// HMAC of parts put end to end.
pub(super) fn mac(algorithm: hmac::Algorithm, key: &[u8], parts: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(&hmac::Key::new(algorithm, key));
    for part in parts {
        context.update(part);
    }
    context.sign()
}

/// HMAC-SHA256 of parts put end to end, with a text's own bytes as the key.
pub(super) fn sha256_mac(secret: &str, parts: &[&[u8]]) -> hmac::Tag {
    mac(hmac::HMAC_SHA256, secret.as_bytes(), parts)
}

/// Whether two values are equal, in a time that tells only their lengths.
pub(super) fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

/// Which secret made it, from 1. Empty secrets never count.
pub(super) fn slot_of(secrets: &[Secret], is_made_with: impl Fn(&str) -> bool) -> Result<usize, Refusal> {
    let is_match = |secret: &Secret| !secret.reveal().is_empty() && is_made_with(secret.reveal());
    secrets.iter().position(is_match).map(|at| at + 1).ok_or(Refusal::WrongSignature)
}

/// Bytes of lower-case hexadecimal text, which is how every provider here writes it.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Base64 text in the standard alphabet, padded.
pub(super) fn to_base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Bytes of base64 text in its standard alphabet, padded.
pub(super) fn unbase64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Bytes of base64 text that may lack its padding, as secrets sometimes do.
pub(super) fn unbase64_secret(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::general_purpose::PAD
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
    );
    LENIENT.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

/// Whether an Ed25519 signature of `message` was made with the private half of `public_key`.
pub(super) fn is_ed25519(public_key: &[u8], message: &[u8], signed: &[u8]) -> bool {
    signature::UnparsedPublicKey::new(&signature::ED25519, public_key).verify(message, signed).is_ok()
}

/// A timestamp of digits alone.
pub(super) fn timestamp(text: &str) -> Result<i64, Refusal> {
    let is_digits =
        (1..=TIMESTAMP_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits {
        return Err(Refusal::MalformedSignature);
    }
    text.parse().map_err(|_| Refusal::MalformedSignature)
}

/// Refuses what was signed further from the time of receipt than `age_max_s`, on either side; exactly as far
/// is allowed. `None` allows every age.
pub(super) fn check_age(
    delivery: &Delivery<'_>,
    signed_at_us: i64,
    age_max_s: Option<u32>,
) -> Result<(), Refusal> {
    let Some(age_max_s) = age_max_s else { return Ok(()) };
    let age_us = i128::from(delivery.received_at_us) - i128::from(signed_at_us);
    let age_max_us = i128::from(age_max_s) * 1_000_000;
    if age_us > age_max_us {
        return Err(Refusal::TooOld);
    }
    if age_us < -age_max_us {
        return Err(Refusal::FromTheFuture);
    }
    Ok(())
}

/// [`check_age`] of a time in whole seconds.
pub(super) fn check_age_s(
    delivery: &Delivery<'_>,
    signed_at_s: i64,
    age_max_s: Option<u32>,
) -> Result<(), Refusal> {
    check_age(delivery, signed_at_s.saturating_mul(1_000_000), age_max_s)
}
