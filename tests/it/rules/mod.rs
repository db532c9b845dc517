//! The rules in SQL are the specification: they and the engine must find the same rows.

mod generate;
mod hot;
mod properties;
mod relations;
mod specification;

pub use specification::sqlite_lines;
