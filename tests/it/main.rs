//! One integration binary: features are tested at the boundary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod apply;
mod bad_input;
mod bad_surroundings;
mod books;
mod books_oracle;
mod both_stores;
mod breaks;
mod cases;
mod chaos;
mod cli;
mod config;
mod databases;
mod demo;
mod demo_reading;
mod demo_recovery;
mod demo_world;
mod determinism;
mod docs;
mod fuzz;
mod invoices;
mod kill;
mod local_side;
mod mariadb;
mod oracle;
mod paging;
mod pgbouncer;
mod postgres;
mod postgres_books;
mod postgres_store;
mod random;
mod receive;
mod receive_sdks;
mod report;
mod report_publish;
mod rules;
mod sample;
mod serve;
mod stage;
mod tidy;
mod whole;
mod windows;
mod witness;
mod work;
mod world;
