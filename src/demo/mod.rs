//! A Stripe-shaped provider on loopback with planted faults, and the handlers that it delivers to.
//!
//! Nothing here uses `findings/` or `compare/`: what a run ought to find is worked out from the
//! stories, so that planted and found are counted by different code.

mod books;
mod desk;
pub mod emulator;
pub mod faults;
pub mod folder;
pub mod handlers;
mod payment;
mod random;
pub mod recovery;
mod records;
mod story;
mod timeline;
pub mod show;
pub mod verdict;
mod wire;
pub mod world;

pub use books::{PROVIDER, deliver};
pub use emulator::Emulator;
pub use payment::{Charge, Dispute, Flow, Outcome, Payment, Refund, settled_minor, settlement};
pub use random::Rng;
pub use timeline::{Change, Meaning};
pub use world::{Event, Record, Stream, TruthEffect, World};
