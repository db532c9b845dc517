//! What became of a delivery: verified events with the answer that the provider expects, or a refusal.

use std::ops::Range;
use thiserror::Error;

/// A delivery that the provider made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which of the secrets matched, from 1. Two slots are in use during a rotation.
    pub secret_slot: usize,
    /// The events in it, in the order of the body; none for a handshake.
    pub events: Vec<Received>,
    /// What to answer once the events are stored.
    pub reply: Reply,
}

/// One event, found in a verified delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The provider's event id, or the key that its scheme composes where the provider has none.
    pub event_id: String,
    /// The provider's word for the type; empty when it says none.
    pub event_type: String,
    /// The provider's account that it belongs to; `""` for the platform account.
    pub account: String,
    /// `live` or `test`.
    pub mode: String,
    /// When the provider says that it happened, Unix µs; `None` where it does not say, or not in which zone.
    pub created_us: Option<i64>,
    /// Where its raw bytes lie in the delivery's body: all of it, or one item of a batch.
    pub body: Range<usize>,
}

/// What a provider wants to hear. Sent only after the events are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200 without a body.
    Ok,
    /// 204: Discord's webhook events.
    NoContent,
    /// 200 with `[accepted]`: Adyen.
    Accepted,
    /// 200 with `{"type":1}`: Discord's PING of an interactions endpoint.
    Pong,
    /// 200 with the text that Slack asked to have back.
    Challenge(String),
}

impl Reply {
    /// HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        if *self == Self::NoContent { 204 } else { 200 }
    }

    /// Value of `Content-Type`, where there is a body.
    #[must_use]
    pub fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Ok | Self::NoContent => None,
            Self::Accepted | Self::Challenge(_) => Some("text/plain; charset=utf-8"),
            Self::Pong => Some("application/json"),
        }
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &str {
        match self {
            Self::Ok | Self::NoContent => "",
            Self::Accepted => "[accepted]",
            Self::Pong => r#"{"type":1}"#,
            Self::Challenge(text) => text,
        }
    }
}

/// Why a delivery is refused. It holds nothing of the delivery, so it can be logged and counted as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Refusal {
    /// The header (Adyen: the field) with the signature is missing or empty.
    #[error("no signature")]
    MissingSignature,
    /// The signature's header does not have the scheme's form.
    #[error("the signature's header is not in the scheme's form")]
    MalformedSignature,
    /// No secret makes this signature of these bytes.
    #[error("the signature matches no secret")]
    WrongSignature,
    /// What is signed and what is not contradict each other.
    #[error("the unsigned part contradicts the signed part")]
    Contradiction,
    /// Signed longer ago than allowed, at the time of receipt.
    #[error("signed too long ago")]
    TooOld,
    /// Signed later than the time of receipt allows.
    #[error("signed in the future")]
    FromTheFuture,
    /// A header that is needed stands twice, or is no visible ASCII.
    #[error("a header stands twice or is not plain text")]
    MalformedHeader,
    /// Not the JSON or form of the scheme: no UTF-8, no object, nested too deep, or too many fields.
    #[error("the body cannot be read")]
    MalformedBody,
    /// Nothing in it to know the event by.
    #[error("the event has no id")]
    NoIdentity,
    /// An id, a type or an account with control characters or longer than [`super::TEXT_BYTES_MAX`].
    #[error("an id is too long or has control characters")]
    UnusableIdentity,
    /// More events than [`super::EVENTS_MAX`] in one body.
    #[error("too many events in one body")]
    TooManyEvents,
    /// A content type that the scheme does not send.
    #[error("the content type is none that the scheme sends")]
    WrongContentType,
    /// Genuine, but of a kind that this endpoint does not take.
    #[error("a kind of delivery that is not supported")]
    Unsupported,
    /// The certificate's URL is not on a host of the provider.
    #[error("the certificate is not on a host of the provider")]
    ForeignCertificate,
    /// The certificate is not there (yet): a fault of this side.
    #[error("the provider's certificate is not at hand")]
    NoCertificate,
    /// The certificate does not lead to a trusted root, has expired or is not the provider's.
    #[error("the provider's certificate is not trusted")]
    UntrustedCertificate,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Self; 16] = [
        Self::MissingSignature,
        Self::MalformedSignature,
        Self::WrongSignature,
        Self::Contradiction,
        Self::TooOld,
        Self::FromTheFuture,
        Self::MalformedHeader,
        Self::MalformedBody,
        Self::NoIdentity,
        Self::UnusableIdentity,
        Self::TooManyEvents,
        Self::WrongContentType,
        Self::Unsupported,
        Self::ForeignCertificate,
        Self::NoCertificate,
        Self::UntrustedCertificate,
    ];

    /// The word for it: a metric's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingSignature => "missing_signature",
            Self::MalformedSignature => "malformed_signature",
            Self::WrongSignature => "wrong_signature",
            Self::Contradiction => "contradiction",
            Self::TooOld => "too_old",
            Self::FromTheFuture => "from_the_future",
            Self::MalformedHeader => "malformed_header",
            Self::MalformedBody => "malformed_body",
            Self::NoIdentity => "no_identity",
            Self::UnusableIdentity => "unusable_identity",
            Self::TooManyEvents => "too_many_events",
            Self::WrongContentType => "wrong_content_type",
            Self::Unsupported => "unsupported",
            Self::ForeignCertificate => "foreign_certificate",
            Self::NoCertificate => "no_certificate",
            Self::UntrustedCertificate => "untrusted_certificate",
        }
    }

    /// HTTP status: 401 for whoever is not shown to be the provider (Discord insists on it), 400 for a body
    /// that cannot be used, 503 when the provider is to try again.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::MalformedBody
            | Self::NoIdentity
            | Self::UnusableIdentity
            | Self::TooManyEvents
            | Self::Unsupported => 400,
            Self::WrongContentType => 415,
            Self::NoCertificate => 503,
            _ => 401,
        }
    }
}
