//! Corrections on real stores: the door, plans, leases, history.

pub mod books;
mod concurrency;
mod door;
mod history;
mod moved;
mod plan;
