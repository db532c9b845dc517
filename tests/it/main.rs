//! One integration binary: features are tested at the boundary.

mod apply;
mod demo_world;
