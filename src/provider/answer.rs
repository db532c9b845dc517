//! What an answer of the provider means: done, try again, slow down, or stop. Pure but for reading the body.
//!
//! The one thing to get right: a 200 proves nothing until its body is whole JSON.

use super::client::root_cause;
use super::fetch_error::FetchError;
use super::limit::Exceeded;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Status, the headers that matter, and the body.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub status: u16,
    pub should_retry: Option<bool>,
    pub retry_after: Option<String>,
    pub limited_reason: Option<String>,
    pub body: Vec<u8>,
    /// The body broke off, or is larger than its bound.
    pub broken: Option<Broken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    CutOff,
    TooLarge { bytes_max: usize },
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done(Vec<u8>),
    Stop(FetchError),
    Retry {
        why: Why,
        retry_after: Option<String>,
    },
    /// The rate is too high; `None` where only this resource has a limit of its own.
    SlowDown {
        exceeded: Option<Exceeded>,
        retry_after: Option<String>,
    },
}

/// Why a request is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Locked,
    Server(u16),
    CutOff,
    Damaged,
    Unreachable(String),
}

impl Why {
    pub(super) fn into_error(self, what: String, attempts: u32) -> FetchError {
        match self {
            Self::Locked => FetchError::Locked { what, attempts },
            Self::Server(status) => FetchError::Server { what, status, attempts },
            Self::CutOff => FetchError::Truncated { what, attempts },
            Self::Damaged => FetchError::Damaged { what, attempts },
            Self::Unreachable(reason) => FetchError::Unreachable { what, attempts, reason },
        }
    }
}

impl Answer {
    /// Reads the body up to its bound.
    pub(super) async fn read(
        mut response: reqwest::Response,
        bytes_max: usize,
    ) -> Result<Self, reqwest::Error> {
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let mut answer = Self {
            status: response.status().as_u16(),
            should_retry: header("stripe-should-retry").and_then(|text| text.parse().ok()),
            retry_after: header("retry-after"),
            limited_reason: header("stripe-rate-limited-reason"),
            body: Vec::new(),
            broken: None,
        };
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if answer.body.len() + chunk.len() > bytes_max => {
                    answer.broken = Some(Broken::TooLarge { bytes_max });
                    return Ok(answer);
                }
                Ok(Some(chunk)) => answer.body.extend_from_slice(&chunk),
                Ok(None) => return Ok(answer),
                Err(error) if error.is_timeout() => return Err(error),
                Err(_) => {
                    answer.broken = Some(Broken::CutOff);
                    return Ok(answer);
                }
            }
        }
    }
}

/// The machine-readable part of an error body.
#[derive(Debug, Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    error: ErrorPart,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorPart {
    code: String,
    param: String,
}

/// Decides.
pub(super) fn judge(answer: Result<Answer, reqwest::Error>, what: &str) -> Verdict {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return match root_cause(&error) {
                (true, reason) => Verdict::Stop(FetchError::Tls { what: what.to_owned(), reason }),
                (false, reason) => Verdict::Retry { why: Why::Unreachable(reason), retry_after: None },
            };
        }
    };
    if let Some(Broken::TooLarge { bytes_max }) = answer.broken {
        return Verdict::Stop(FetchError::TooLarge { what: what.to_owned(), bytes_max });
    }
    if (200..300).contains(&answer.status) { judge_body(answer, what) } else { judge_refusal(&answer, what) }
}

fn judge_body(answer: Answer, what: &str) -> Verdict {
    let retry = |why| Verdict::Retry { why, retry_after: None };
    if answer.broken.is_some() {
        return retry(Why::CutOff);
    }
    let not_json = |found| Verdict::Stop(FetchError::NotJson { what: what.to_owned(), found });
    match serde_json::from_slice::<&RawValue>(&answer.body) {
        Ok(_) => Verdict::Done(answer.body),
        Err(error) => match answer.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => not_json("empty"),
            Some(b'<') => not_json("HTML"),
            // Begun as JSON: an end that came too early, or bytes that were damaged on their way.
            Some(b'{') if error.is_eof() => retry(Why::CutOff),
            Some(b'{') => retry(Why::Damaged),
            Some(_) => not_json("other text"),
        },
    }
}

fn judge_refusal(answer: &Answer, what: &str) -> Verdict {
    let what = what.to_owned();
    let ErrorPart { code, param } =
        serde_json::from_slice::<ErrorBody>(&answer.body).unwrap_or_default().error;
    let retry_after = answer.retry_after.clone();
    let retry = |why| Verdict::Retry { why, retry_after: retry_after.clone() };
    match (answer.status, code.as_str(), param.as_str()) {
        (401, ..) => Verdict::Stop(FetchError::Unauthorized { what }),
        (403, ..) => Verdict::Stop(FetchError::Forbidden { what }),
        (400 | 404, "resource_missing", "starting_after") => Verdict::Stop(FetchError::CursorLost { what }),
        (404, ..) | (400, "resource_missing", _) => Verdict::Stop(FetchError::NotFound { what }),
        // docs.stripe.com/rate-limits: a lock, not a limit.
        (429, "lock_timeout", _) if answer.limited_reason.is_none() => retry(Why::Locked),
        (429, ..) => {
            let exceeded = match answer.limited_reason.as_deref() {
                Some("resource-specific") => None,
                Some(reason) if reason.starts_with("global") => Some(Exceeded::Account),
                _ => Some(Exceeded::Endpoint),
            };
            Verdict::SlowDown { exceeded, retry_after }
        }
        (409, ..) if answer.should_retry != Some(false) => retry(Why::Locked),
        (status @ 500.., ..) if answer.should_retry != Some(false) => retry(Why::Server(status)),
        (status, ..) if answer.should_retry == Some(true) => retry(Why::Server(status)),
        (status @ 300..400, ..) => Verdict::Stop(FetchError::Redirected { what, status }),
        (status @ 500.., ..) => Verdict::Stop(FetchError::Server { what, status, attempts: 1 }),
        (status, ..) => Verdict::Stop(FetchError::Refused {
            what,
            status,
            code: machine_word(code),
            param: machine_word(param),
        }),
    }
}

/// A word of the provider as it may be shown: machine words only, and none that looks like a key, which a proxy
/// or a debugging page may send back.
fn machine_word(word: String) -> String {
    const CHARACTERS_MAX: usize = 64;
    const KEYS: [&str; 4] = ["sk_", "rk_", "pk_", "whsec_"];
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '[' | ']');
    let is_shown = word.len() <= CHARACTERS_MAX
        && word.chars().all(is_plain)
        && !KEYS.iter().any(|key| word.contains(key));
    if is_shown { word } else { "[not shown]".to_owned() }
}
