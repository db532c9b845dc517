//! Any provider that signs by HMAC: header, hash, encoding, and what is signed are settings.

use crate::receive::again::{Headers, Signing, headers};
use crate::receive::body::{Reading, event, hashed, object, text};
use crate::receive::crypto::{
    check_age_s, is_same, mac, slot_of, timestamp, to_base64, unbase64, unbase64_secret, unhex,
};
use crate::receive::delivery::Delivery;
use crate::receive::verdict::Refusal;
use crate::receive::verify::Asked;
use crate::record::hex;
use ring::hmac;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The hash of the HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1, as old providers still use it; in an HMAC it holds.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How bytes are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As they are; for secrets only.
    Plain,
    /// Hexadecimal; in lower case for signatures.
    Hex,
    /// Base64 of the standard alphabet, padded.
    Base64,
}

/// Where an id or a type stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A header.
    Header(String),
    /// A field of the body's JSON: names, outermost first.
    Field(Vec<String>),
}

/// A scheme that the settings describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HmacScheme {
    /// Header of the signature.
    pub signature_header: String,
    /// What stands before the signature in its header, such as `sha256=`; may be empty.
    pub prefix: String,
    /// Hash.
    pub hash: Hash,
    /// How the signature is written: [`Encoding::Hex`] or [`Encoding::Base64`].
    pub encoding: Encoding,
    /// How the secret is written.
    pub secret_encoding: Encoding,
    /// Header of the time of signing in Unix seconds, where there is one.
    pub timestamp_header: Option<String>,
    /// What is signed.
    pub signed: Template,
    /// Where the event id stands; `None` takes the hash of the body.
    pub event_id: Option<Place>,
    /// Where the event's type stands.
    pub event_type: Option<Place>,
}

impl HmacScheme {
    /// The key in a secret; `None` when it is not in the encoding that it should be in.
    pub(in crate::receive) fn key(&self, secret: &str) -> Option<Vec<u8>> {
        match self.secret_encoding {
            Encoding::Plain => Some(secret.as_bytes().to_vec()),
            Encoding::Hex => unhex(&secret.to_ascii_lowercase()),
            Encoding::Base64 => unbase64_secret(secret),
        }
        .filter(|key| !key.is_empty())
    }

    fn made(&self, secret: &str, delivery: &Delivery<'_>, time: &str) -> Option<hmac::Tag> {
        let signed = self.signed.0.iter().map(|part| match part {
            Part::Text(text) => text.as_bytes(),
            Part::Body => delivery.body,
            Part::Timestamp => time.as_bytes(),
            Part::Url => delivery.url.as_bytes(),
            Part::Method => delivery.method.as_bytes(),
        });
        let signed: Vec<&[u8]> = signed.collect();
        let algorithm = match self.hash {
            Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        };
        Some(mac(algorithm, &self.key(secret)?, &signed))
    }
}

/// What is signed: text with `{body}`, `{timestamp}`, `{url}` and `{method}` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Body,
    Timestamp,
    Url,
    Method,
}

impl Template {
    /// Reads a template such as `{timestamp}.{body}`.
    ///
    /// # Errors
    /// What is wrong with it, for the person who wrote it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const NAMES: &str = "may name {body}, {timestamp}, {url} and {method} only";
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}').ok_or("has a brace that is not closed")?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(match name {
                "body" => Part::Body,
                "timestamp" => Part::Timestamp,
                "url" => Part::Url,
                "method" => Part::Method,
                _ => return Err(NAMES),
            });
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|part| *part != Part::Text(String::new()));
        match parts.iter().filter(|part| **part == Part::Body).count() {
            0 => Err("must have {body} in it: a signature that does not cover the body proves nothing"),
            1 => Ok(Self(parts)),
            _ => Err("must have {body} in it once"),
        }
    }
}

impl Template {
    /// Whether the URL is signed.
    #[must_use]
    pub fn has_url(&self) -> bool {
        self.0.contains(&Part::Url)
    }

    /// Whether a time is signed.
    #[must_use]
    pub fn has_timestamp(&self) -> bool {
        self.0.contains(&Part::Timestamp)
    }
}

pub fn authenticate(asked: &Asked<'_>, scheme: &HmacScheme) -> Result<usize, Refusal> {
    let delivery = asked.delivery;
    let header = delivery.signature(&scheme.signature_header)?;
    let signature = header.strip_prefix(scheme.prefix.as_str()).ok_or(Refusal::MalformedSignature)?;
    let given = match scheme.encoding {
        Encoding::Hex => unhex(signature),
        Encoding::Base64 => unbase64(signature),
        Encoding::Plain => None,
    };
    let given = given.ok_or(Refusal::MalformedSignature)?;
    let time = scheme.timestamp_header.as_ref().map(|name| delivery.signature(name)).transpose()?;
    let time_s = time.map(timestamp).transpose()?;
    let slot = slot_of(asked.secrets, |secret| {
        let made = scheme.made(secret, delivery, time.unwrap_or_default());
        made.is_some_and(|made| is_same(&given, made.as_ref()))
    })?;
    // An unsigned time says nothing about age.
    if scheme.signed.has_timestamp()
        && let Some(time_s) = time_s
    {
        check_age_s(delivery, time_s, asked.settings.age_max_s)?;
    }
    Ok(slot)
}

pub fn sign(signing: &Signing<'_>, scheme: &HmacScheme) -> Option<Headers> {
    let made = scheme.made(signing.secret, signing.delivery, &signing.at_s)?;
    let made = match scheme.encoding {
        Encoding::Hex | Encoding::Plain => hex(made.as_ref()),
        Encoding::Base64 => to_base64(made),
    };
    let time = scheme.timestamp_header.as_deref().map(|name| (name, signing.at_s.clone()));
    let signature = (scheme.signature_header.as_str(), format!("{}{made}", scheme.prefix));
    Some(headers([signature].into_iter().chain(time)))
}

pub fn read(asked: &Asked<'_>, scheme: &HmacScheme) -> Result<Reading, Refusal> {
    let body = asked.delivery.body;
    let event_type = found(asked, scheme.event_type.as_ref())?.unwrap_or_default();
    let event_id = match &scheme.event_id {
        Some(place) => found(asked, Some(place))?,
        None => Some(hashed(body)),
    };
    Ok(Reading::of(event(asked.settings, body, event_id, event_type)?))
}

fn found(asked: &Asked<'_>, place: Option<&Place>) -> Result<Option<String>, Refusal> {
    let path = match place {
        None => return Ok(None),
        Some(Place::Header(name)) => return Ok(asked.delivery.header(name)?.map(str::to_owned)),
        Some(Place::Field(path)) => path,
    };
    let Some((first, inner)) = path.split_first() else { return Ok(None) };
    let whole: BTreeMap<String, &RawValue> = object(asked.delivery.body)?;
    let mut field = whole.get(first.as_str()).copied();
    for name in inner {
        let Some(raw) = field else { return Ok(None) };
        let fields = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get());
        field = fields.ok().and_then(|fields| fields.get(name.as_str()).copied());
    }
    Ok(text(field))
}
