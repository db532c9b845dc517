//! The worker: what was received is applied once, in the right order, through errors, rivals and kills.

mod ear;
mod kills;
mod once;
mod operating;
mod order;
mod sending;
mod served;
mod shop;
mod trouble;
