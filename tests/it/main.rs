//! One integration binary: features are tested at the boundary.

mod postgres;
mod random;
mod rules;
mod world;
