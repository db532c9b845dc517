//! Both sides as processes of their own, one after the other: our side again with `compare`, DuckDB through Python, and
//! what the own process took.

use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Our side on `folder`, in a process of its own.
pub fn ours(folder: &Path) -> Result<()> {
    let status = Command::new(std::env::current_exe()?).arg("compare").arg(folder).status()?;
    ensure!(status.success(), "our side failed");
    Ok(())
}

/// A script of `benches/` on `folder`. Answers whether there was a DuckDB that did it; where there is none, it says so.
pub fn duckdb(script: &str, folder: &Path, more: &[&OsStr]) -> bool {
    let python = std::env::var("RECON_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(script);
    let status = Command::new(&python).arg(script).arg(folder).args(more).status();
    let is_measured = status.is_ok_and(|status| status.success());
    if !is_measured {
        println!("duckdb was not measured: `{python}` has no DuckDB 2, or a statement failed");
    }
    is_measured
}

/// Processor time of all threads so far and the most memory ever held, for a line of output.
pub fn spent() -> Result<String> {
    Ok(format!("processor {} ms, peak {} MiB", processor_ms()?, peak_kib()? / 1024))
}

/// Most memory that this process ever held, from `/proc` (proc(5), `VmHWM`).
fn peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Processor time of all threads so far, from `/proc` (proc(5), fields 14 and 15 of `stat`; Linux
/// counts them in hundredths of a second).
fn processor_ms() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').context("no process name")?.1;
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(10 * ticks.sum::<Result<u64, _>>()?)
}
