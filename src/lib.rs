//! `recon` finds missed, doubled and out-of-order-applied payment webhooks, says how much money that
//! is, and puts it right once.
//!
//! Modules stand in the order in which data flows; a module uses only what stands before it.

pub mod record;
pub mod clock;
pub mod compact;
mod leftover;
pub mod spill;
pub mod telemetry;
pub mod findings;
pub mod config;
pub mod correction;
pub mod store;
pub mod provider;
pub mod files;
pub mod proposal;
pub mod gather;
pub mod compare;
pub mod report;
pub mod apply;
pub mod receive;
pub mod serve;
pub mod work;
pub mod night;
pub mod cli;
pub mod demo;
pub mod commands;
