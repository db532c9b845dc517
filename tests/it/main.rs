//! One integration binary: features are tested at the boundary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod docs;
mod report;
mod report_publish;
mod sample;
