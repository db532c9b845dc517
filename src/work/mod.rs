//! Applies what was received, each event once: claim → read → ask for objects → one transaction → end.
//!
//! Reading order: `read.rs` and `decide.rs` (pure), `fetch.rs` (the provider), `book.rs`, `grounds.rs` and `money.rs`
//! (the transaction), `beside.rs` (in a task of its own), `worker.rs` (the loop) and `tally.rs` (what it counts), then
//! what follows from effects: `outbox.rs` and `notify.rs`, which `call.rs` sends.

mod beside;
mod book;
mod call;
mod decide;
mod fetch;
mod grounds;
mod money;
mod notify;
mod outbox;
mod read;
mod tally;
mod worker;

pub use book::{Booking, End, Item, book};
pub use call::{Caller, no_answer};
pub use decide::{Deed, Plan, Source};
pub use fetch::{Fetched, Said};
pub use grounds::{Grounds, fingerprint};
pub use notify::Notifier;
pub use outbox::{Sender, Sent};
pub use read::{Meaning, Own, Subject, is_fetched, read};
pub use tally::Tally;
pub use worker::{Worker, next_attempts};
