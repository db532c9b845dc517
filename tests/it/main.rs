//! One integration binary: features are tested at the boundary.

mod apply;
mod cli;
mod config;
mod demo_world;
mod local_side;
mod tidy;
