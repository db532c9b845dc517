//! The tests of whatever writes to a store once more, on PostgreSQL: this very binary again, with only
//! those tests and another database. A failure shows what they said.
//!
//! One of them alone: `RECON_TEST_STORE=postgres cargo test --test it NAME`.

use crate::postgres::{ASKED_FOR, Cluster};
use std::process::Command;

/// Seeds of the oracle; those on SQLite are more.
const SEEDS: &str = "24";

#[track_caller]
fn again_on_postgres(names: &[&str]) {
    let cluster = Cluster::shared();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(names)
        .args(["--test-threads", "2"])
        .env(ASKED_FOR, format!("postgres:{}", cluster.folder().display()))
        .env("RECON_SEEDS", SEEDS)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "on PostgreSQL:\n{said}{}", String::from_utf8_lossy(&output.stderr));
    let count = said.lines().find_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse().ok());
    assert!(count.is_some_and(|count: u32| count >= 3), "too few tests are called so:\n{said}");
}

#[test]
fn postgres_applies_as_sqlite_does() {
    again_on_postgres(&["apply::"]);
}

#[test]
fn postgres_passes_the_oracle() {
    again_on_postgres(&["oracle::"]);
}

#[test]
fn postgres_survives_kills() {
    again_on_postgres(&["kill::"]);
}

#[test]
fn postgres_works_through_its_inbox() {
    again_on_postgres(&["work::"]);
}

#[test]
fn postgres_changes_no_report() {
    again_on_postgres(&["determinism::", "breaks::"]);
}

#[test]
fn postgres_keeps_the_lives_of_findings() {
    again_on_postgres(&["life::"]);
}
