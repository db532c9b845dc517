//! Deliveries: is this from the provider, and which events does it hold?
//!
//! Pure. The signature is checked over the bytes as they came, before anything is parsed (Adyen signs single
//! values inside the body, so its body is parsed first, under the same limits). What gets through is the
//! identity of each event and where its raw bytes lie; nothing is ever written again from a parsed form.

mod again;
mod body;
mod crypto;
mod delivery;
mod scheme;
mod settings;
mod verdict;
mod verify;

pub use again::{Again, Kept, again};
pub use body::{BODY_DEPTH_MAX, EVENTS_MAX, FORM_FIELDS_MAX, TEXT_BYTES_MAX};
pub use delivery::Delivery;
pub use scheme::hmac::{Encoding, Hash, HmacScheme, Place, Template};
pub use scheme::paypal::{PayPal, TrustedRoot, certificate_url};
pub use settings::{Scheme, Settings, UnusableSecret, check_secrets};
pub use verdict::{Received, Refusal, Reply, Verified};
pub use verify::{authenticate, verify};
