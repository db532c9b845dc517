//! One integration binary: features are tested at the boundary.

mod docs;
mod report;
mod report_publish;
mod sample;
