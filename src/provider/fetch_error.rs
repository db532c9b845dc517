//! Why a request to the provider brought nothing. Each says what was being asked and, in its hint, what to do.
//!
//! Texts carry the endpoint's path, ids and the provider's machine codes; never bodies, keys or messages
//! written for people, which may quote personal data.

use std::time::Duration;
use thiserror::Error;

/// Why a request brought nothing. `what` names the request: method, path, account.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FetchError {
    /// 404, or 400 `resource_missing` for the object itself.
    #[error("{what}: the provider does not know it")]
    NotFound {
        /// The request.
        what: String,
    },
    /// 400 `resource_missing` for `starting_after`: the object that the cursor names is gone.
    #[error("{what}: the object that the page cursor names is gone")]
    CursorLost {
        /// The request.
        what: String,
    },
    /// 401.
    #[error("{what}: the provider refuses the API key (401)")]
    Unauthorized {
        /// The request.
        what: String,
    },
    /// 403.
    #[error("{what}: the API key may not read this (403)")]
    Forbidden {
        /// The request.
        what: String,
    },
    /// The run's time would be over before the provider wants to be asked again, or is over now.
    #[error("{what}: waiting {wait:?} would exceed the run's budget, {left:?} left")]
    Budget {
        /// The request.
        what: String,
        /// The wait.
        wait: Duration,
        /// What is left of the budget.
        left: Duration,
    },
    /// 429 `lock_timeout`, or 409, at every attempt.
    #[error("{what}: the object is still locked after {attempts} attempts")]
    Locked {
        /// The request.
        what: String,
        /// Attempts made.
        attempts: u32,
    },
    /// 429 at every attempt.
    #[error("{what}: refused for its rate at each of {attempts} attempts (429)")]
    RateLimited {
        /// The request.
        what: String,
        /// Attempts made.
        attempts: u32,
    },
    /// 5xx at every attempt.
    #[error("{what}: the provider answered {status} at each of {attempts} attempts")]
    Server {
        /// The request.
        what: String,
        /// Last status.
        status: u16,
        /// Attempts made.
        attempts: u32,
    },
    /// Any other refusal.
    #[error("{what}: the provider answered {status}, code `{code}`, parameter `{param}`")]
    Refused {
        /// The request.
        what: String,
        /// Status.
        status: u16,
        /// The provider's machine code, or empty.
        code: String,
        /// The parameter it names, or empty.
        param: String,
    },
    /// A redirect, which is never followed: it could carry the key to another host.
    #[error("{what}: the provider redirects elsewhere ({status}), which is not followed")]
    Redirected {
        /// The request.
        what: String,
        /// Status.
        status: u16,
    },
    /// No encrypted connection.
    #[error("{what}: no secure connection: {reason}")]
    Tls {
        /// The request.
        what: String,
        /// What rustls says.
        reason: String,
    },
    /// No connection, or none that lasted.
    #[error("{what}: unreachable after {attempts} attempts: {reason}")]
    Unreachable {
        /// The request.
        what: String,
        /// Attempts made.
        attempts: u32,
        /// The system's words.
        reason: String,
    },
    /// 200, but something else than JSON.
    #[error("{what}: the answer is {found}, not JSON")]
    NotJson {
        /// The request.
        what: String,
        /// `HTML`, `empty` or `other text`.
        found: &'static str,
    },
    /// 200, but the body ends too early.
    #[error("{what}: the answer was cut off at each of {attempts} attempts")]
    Truncated {
        /// The request.
        what: String,
        /// Attempts made.
        attempts: u32,
    },
    /// 200, but the body is not JSON although it begins as JSON does (bytes that are not UTF-8, say).
    #[error("{what}: the answer was damaged, no readable JSON, at each of {attempts} attempts")]
    Damaged {
        /// The request.
        what: String,
        /// Attempts made.
        attempts: u32,
    },
    /// The body is larger than any page can be.
    #[error("{what}: the answer is larger than {bytes_max} bytes")]
    TooLarge {
        /// The request.
        what: String,
        /// The bound.
        bytes_max: usize,
    },
    /// JSON, but not a list of records, or a record without id or creation time.
    #[error("{what}: unexpected shape: {problem}")]
    Shape {
        /// The request.
        what: String,
        /// What is missing.
        problem: String,
    },
}

impl FetchError {
    /// Whether it says that nobody is answered, rather than that this request was not.
    #[must_use]
    pub const fn concerns_all(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Tls { .. } | Self::RateLimited { .. })
    }

    /// What a person can do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => {
                "check `base_url`, and that `mode` and the key belong to the same account"
            }
            Self::CursorLost { .. } => "run it again: the range is read by time where its cursor is gone",
            Self::Unauthorized { .. } => {
                "check the API key: right account, right mode, not rolled; no other request was sent with it"
            }
            Self::Forbidden { .. } => "give the restricted key read permission for this resource",
            Self::Budget { .. } => {
                "run it again later: it goes on where it stopped; or raise `[limits] run_budget`"
            }
            Self::Locked { .. } => "something else keeps writing to this object; run it again later",
            Self::RateLimited { .. } => {
                "lower `requests_per_second`, or stop what else uses this account's limit; then run it again"
            }
            Self::Server { .. } => {
                "see the provider's status page; run it again later: it goes on where it stopped"
            }
            Self::Refused { .. } => "look the code up in the provider's documentation of errors",
            Self::Redirected { .. } => "set `base_url` to the API's own address",
            Self::Tls { .. } => {
                "check that `base_url` is an https address, the clock, and the system's root certificates"
            }
            Self::Unreachable { .. } => {
                "check `base_url`, name resolution and the network; then run it again"
            }
            Self::NotJson { .. } => {
                "something between here and the provider answers in its place: check `base_url` and proxies"
            }
            Self::Truncated { .. } => {
                "something between here and the provider cuts answers off; run it again"
            }
            Self::Damaged { .. } => {
                "something between here and the provider changes answers, or one record is broken there: run it again; \
                 if it stays, narrow it down with --since and --until and report it"
            }
            Self::TooLarge { .. } | Self::Shape { .. } => {
                "check `base_url`; if it is right, the provider's API has changed: report it"
            }
        }
    }
}

/// The hint of the provider error in a chain of errors, where there is one.
#[must_use]
pub fn hint_of(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| cause.downcast_ref::<FetchError>()).map(FetchError::hint)
}
