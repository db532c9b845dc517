//! What becomes known of a run to those who were not there: a message of what is new, a ping, numbers.
//!
//! The one thing to get right: none of it changes how the run ended. What cannot be told is said on stderr after a
//! bounded number of attempts. Texts hold counts, kinds, sums and hashes only: no object, no customer.

pub mod found;
pub mod mail;
pub mod metrics;
pub mod tell;
pub mod text;

pub use found::{Ended, Found, One};
pub use tell::tell;
