//! The worker: what was received is applied once, in the right order, through errors, rivals and kills.

mod again;
mod bodies;
mod health;
mod kills;
mod lagging;
mod once;
mod operating;
mod order;
mod outbox;
mod overtaken;
mod patience;
mod payout;
mod poison;
mod sending;
mod served;
pub mod shop;
mod telling;
mod trouble;
mod undo;
