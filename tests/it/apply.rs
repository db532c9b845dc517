//! Corrections on real SQLite files: the door, plans, leases, history.

mod books;
mod concurrency;
mod door;
mod history;
mod moved;
mod plan;
