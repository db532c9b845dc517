//! One HTTP request of a provider, as it came.

use super::verdict::Refusal;

/// One attempt of a provider to hand over events.
///
/// It has no `Debug`: headers and body hold signatures and personal data.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    /// The request's method, in capitals.
    pub method: &'a str,
    /// The public URL as the provider calls it, with path and query: Twilio and Square sign it, so behind a
    /// proxy it comes from the settings and not from the request.
    pub url: &'a str,
    /// Names, in any case, with values as received. A name may stand more than once.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body as received.
    pub body: &'a [u8],
    /// When the request arrived, Unix µs. Ages are judged by it, once and never later.
    pub received_at_us: i64,
}

impl<'a> Delivery<'a> {
    /// The value of a header, without blanks around it; `None` when it is missing or empty.
    ///
    /// # Errors
    /// `MalformedHeader` when the header stands more than once or is not plain visible ASCII: which value
    /// the provider meant cannot be known.
    pub(super) fn header(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let Some((_, value)) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(Refusal::MalformedHeader);
        }
        let text = str::from_utf8(value).map_err(|_| Refusal::MalformedHeader)?.trim_matches([' ', '\t']);
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(Refusal::MalformedHeader);
        }
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The value of a header that carries the signature or a part of what is signed.
    pub(super) fn signature(&self, name: &str) -> Result<&'a str, Refusal> {
        self.header(name)?.ok_or(Refusal::MissingSignature)
    }

    /// The URL's query, without the question mark; no fragment.
    pub(super) fn query(&self) -> &'a str {
        let whole = self.url.split('#').next().unwrap_or_default();
        whole.split_once('?').map_or("", |(_, query)| query)
    }

    /// The first value of a field of the query, decoded.
    pub(super) fn query_field(&self, name: &str) -> Option<String> {
        let mut fields = form_urlencoded::parse(self.query().as_bytes());
        fields.find(|(field, _)| field == name).map(|(_, value)| value.into_owned())
    }

    /// The media type of the body in lower case, without parameters; empty when none is named.
    pub(super) fn media_type(&self) -> Result<String, Refusal> {
        let whole = self.header("content-type")?.unwrap_or_default();
        Ok(whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// Whether the body is a form, where the scheme knows forms and JSON.
    ///
    /// # Errors
    /// `WrongContentType` when it says to be neither.
    pub(super) fn is_form(&self) -> Result<bool, Refusal> {
        match self.media_type()?.as_str() {
            "application/x-www-form-urlencoded" => Ok(true),
            "" | "application/json" => Ok(false),
            other if other.starts_with("application/") && other.ends_with("+json") => Ok(false),
            _ => Err(Refusal::WrongContentType),
        }
    }
}
