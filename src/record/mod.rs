//! The vocabulary that every other module speaks. Pure: no IO, no clock, no randomness.
//!
//! Read `fact.rs` first; it says what one thing seen on one side looks like.

mod coverage;
mod fact;
mod hash;
mod ids;
mod invoice;
mod money;
mod window;

pub use coverage::{Coverage, CoverageStatus};
pub use fact::{
    Alias, EffectKind, Fact, InboxEvent, InboxStatus, LocalEffect, LocalState, Note, NoteKind,
    ProviderEffect, ProviderEvent, ProviderState, Status, Tracks,
};
pub use hash::{hex, id_of, sha256_hex};
pub use ids::{EffectKey, EventKey, Scope};
pub use invoice::InvoiceParts;
pub use money::{MoneyError, decimal_from_minor, iso_exponent, minor_from_decimal};
pub use window::{
    SECOND_US, Window, WindowError, day_start, format_instant, parse_bound, parse_instant, parse_month,
    parse_zone,
};
