//! One integration binary: features are tested at the boundary.
#![expect(clippy::unwrap_used, reason = "a helper of tests may stop its test")]

mod demo_world;
