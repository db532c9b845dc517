//! The life of findings: new, open, cleared, reopened, given to somebody, accepted, closed, and the story of a payment.

mod hostile;
mod persons;
mod sequence;
mod story;

use crate::stage::{Ended, Stage};

/// The binary on a stage, so many seconds after the world's time, by a person of this name.
pub fn by(stage: &Stage, name: &str, later_s: i64, arguments: &[&str]) -> Ended {
    let mut command = stage.command(arguments);
    command.env("RECON_NOW", (stage.world.now_us / 1_000_000 + later_s).to_string());
    if !name.is_empty() {
        command.env("USER", name);
    }
    Ended::of(&command.output().unwrap())
}

/// A run over the world's window, so many seconds after the world's time.
pub fn run(stage: &Stage, later_s: i64) -> Ended {
    let arguments = stage.run_arguments(&[]);
    by(stage, "", later_s, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Columns of the rows of the latest `findings.csv` but timing differences.
pub fn rows(stage: &Stage) -> Vec<csv::StringRecord> {
    let text = stage.latest("findings.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.records().map(Result::unwrap).filter(|row| &row[1] != "timing_difference").collect()
}

/// The value of a name in a last line.
pub fn last<'a>(ended: &'a Ended, name: &str) -> Option<&'a str> {
    let line = ended.stdout.lines().last().unwrap();
    line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

#[track_caller]
pub fn ends(ended: &Ended, code: i32) {
    assert_eq!(ended.code, Some(code), "{}{}", ended.stdout, ended.stderr);
}

pub async fn execute(stage: &Stage, sql: &str) -> u64 {
    let store = stage.store().await;
    let done = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(store.pool()).await.unwrap();
    store.close().await;
    done.rows_affected()
}
