//! Comparing files: two CSV files with planted double credits, beside DuckDB on the same files.
//!
//! `cargo bench --bench comparing_files` generates a million rows a side, compares them with both and prints wall time,
//! processor time and peak memory; `-- 10000000` takes another size. A fifth of the keys repeats, rightly, on both
//! sides; a thousand rows stand once more on the right. Needs a Python with DuckDB 2, named by `RECON_BENCH_PYTHON`
//! where it is not `python3`; without one only our side is measured. Both must name the same keys. Both run as
//! processes of their own, one after the other; on a busy machine processor time says more than wall time.

#[path = "comparing/process.rs"]
mod process;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use recon::cli::{Cli, Command, CompareRequest};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

const DOUBLED: u64 = 1_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["generate", folder, rows] => generate(Path::new(folder), rows.parse()?),
        ["compare", folder, more @ ..] => compare(folder, more),
        [] => side_by_side(1_000_000),
        [rows] => side_by_side(rows.parse()?),
        _ => bail!("usage: comparing_files [ROWS] | generate FOLDER ROWS | compare FOLDER [ARGUMENT…]"),
    }
}

/// A step of a generator that visits every number below `count` once: an odd stride with no factor in common.
fn shuffled(count: u64, at: u64) -> u64 {
    let mut stride = (2_654_435_761 % count) | 1;
    while gcd(stride, count) != 1 {
        stride += 2;
    }
    at.wrapping_mul(stride) % count
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Row `number`: every fifth row has the key of the one before it, and every tenth its amount, too.
fn row(text: &mut String, number: u64) {
    let key = if number % 5 == 4 { number - 1 } else { number };
    let amount = if number % 10 == 4 { number - 1 } else { number };
    let minor = 100 + amount.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000;
    let currency = ["usd", "eur", "brl"][usize::try_from(key % 3).unwrap_or(0)];
    // Writing to a String cannot fail.
    writeln!(
        text,
        "ch_3P{:016x}{key:08},2024-05-{:02}T12:00:00Z,{}.{:02},{currency},paid",
        key.wrapping_mul(0xbf58_476d_1ce4_e5b9),
        1 + key % 28,
        minor / 100,
        minor % 100
    )
    .ok();
}

fn generate(folder: &Path, rows: u64) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, is_right) in [("left.csv", false), ("right.csv", true)] {
        let mut out = std::io::BufWriter::new(std::fs::File::create(folder.join(name))?);
        out.write_all(b"id,created,amount,currency,status\n")?;
        let mut text = String::new();
        for at in 0..rows {
            // The two sides come in orders of their own.
            let number = if is_right { shuffled(rows, at) } else { at };
            text.clear();
            row(&mut text, number);
            // Of rows whose key is alone, repeats with another amount, and repeats as a whole.
            let step = rows / DOUBLED;
            if is_right && number % step == number / step % 5 {
                row(&mut text, number);
            }
            out.write_all(text.as_bytes())?;
        }
        out.flush()?;
    }
    Ok(())
}

fn side_by_side(rows: u64) -> Result<()> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = base.join("target/bench-data").join(format!("comparing-files-{rows}"));
    generate(&folder, rows)?;
    for run in 1..=2 {
        println!("run {run}");
        process::ours(&folder)?;
        if !process::duckdb("duckdb_files.py", &folder, &[]) {
            continue;
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        ensure!(
            read("ours.txt")? == read("duckdb.txt")?,
            "the sides name other keys: see {}",
            folder.display()
        );
        println!("both name the same keys");
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))
}

/// Our side, through the command line as it is typed.
fn compare(folder: &str, more: &[&str]) -> Result<()> {
    let start = Instant::now();
    let at = |name: &str| format!("{folder}/{name}");
    let (left, right, out) = (at("left.csv"), at("right.csv"), at("differences.csv"));
    let named =
        ["--key", "id", "--amount", "amount", "--currency", "currency", "--out", &out, "--spill", folder];
    let words = [&["recon", "compare", &left, &right], &named[..], more].concat();
    let Some(Command::Compare(args)) = Cli::try_parse_from(words)?.command else { bail!("no comparison") };
    let mut text = Vec::new();
    recon::commands::compare::compare(&CompareRequest::new(*args)?, &mut text)?;
    let elapsed = start.elapsed();
    let mut keys: Vec<String> = Vec::new();
    for record in csv::Reader::from_path(&out)?.records() {
        let record = record?;
        ensure!(&record[0] == "duplicate_on_right", "{record:?}");
        keys.push(format!("{}\n", &record[2]));
    }
    keys.sort();
    std::fs::write(at("ours.txt"), keys.concat())?;
    println!("ours: {} ms, {}, {} double credits", elapsed.as_millis(), process::spent()?, keys.len());
    Ok(())
}
