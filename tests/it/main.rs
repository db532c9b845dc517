//! One binary for all tests at the boundary.

mod cli;
mod config;
mod local_side;
mod tidy;
