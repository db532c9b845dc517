//! `recon compare LEFT RIGHT`: two files, row by row, with no configuration.
//!
//! Steps: find the files of both sides · read all rows, adding up both sides · pair them · write the differences ·
//! print totals, what explains them, and the first differences. Nothing is written before everything was read.

mod reading;
mod writing;

use super::Outcome;
use crate::cli::{CompareRequest, SideRequest, UsageError};
use crate::compare::Pairs;
use crate::config::Unusable;
use crate::files::{Currencies, expand};
use crate::report::differences_csv::Names;
use crate::report::pair_summary::{PairSummary, SideTold};
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Currencies and files by their numbers.
struct Known<'a> {
    currencies: &'a Currencies,
    paths: &'a [PathBuf],
}

impl Names for Known<'_> {
    fn currency(&self, number: u16) -> (&str, u32) {
        self.currencies.get(number)
    }

    fn file(&self, number: u32) -> Cow<'_, str> {
        self.paths.get(number as usize).map_or(Cow::Borrowed(""), |path| path.to_string_lossy())
    }
}

/// Compares the two sides and prints what it found to `out`.
///
/// # Errors
/// When a file cannot be read or is not what it should be, or the differences cannot be written.
pub fn compare(request: &CompareRequest, out: &mut dyn Write) -> Result<Outcome> {
    let currencies = Currencies::new(&request.exponents);
    let files = [files_of(&request.sides[0])?, files_of(&request.sides[1])?];
    refuse_shared(&files)?;
    if let Some(target) = &request.out {
        refuse_target(target, &files)?;
    }
    let pairs = Pairs::new(&request.settings, &request.spill);
    let parts = reading::read(request, &files, &currencies, &pairs)?;
    let compared = pairs.judge(parts)?;
    let paths: Vec<PathBuf> = files.iter().flatten().cloned().collect();
    let names = Known { currencies: &currencies, paths: &paths };
    let mut summary = PairSummary::default();
    match &request.out {
        Some(target) => writing::write(target, request.style, &compared, &names, &mut summary)?,
        None => {
            for difference in compared.differences()? {
                summary.add(&difference?, &names);
            }
        }
    }
    let told = |side: usize| SideTold { name: &request.sides[side].pattern, files: files[side].len() };
    let report = request.out.as_ref().map(|path| path.display().to_string());
    let (sums, matched) = (compared.sums(), compared.matched());
    let text = summary.text([told(0), told(1)], sums, matched, &names, report.as_deref());
    out.write_all(text.as_bytes()).context("write to stdout")?;
    Ok(summary.outcome(sums, matched))
}

fn files_of(side: &SideRequest) -> Result<Vec<PathBuf>> {
    expand(&side.pattern)
}

/// One file on both sides would agree with itself.
fn refuse_shared(files: &[Vec<PathBuf>; 2]) -> Result<()> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let is_file = |path: &&PathBuf| path.is_file();
    let left: BTreeSet<PathBuf> = files[0].iter().filter(is_file).map(real).collect();
    if let Some(shared) = files[1].iter().filter(is_file).find(|path| left.contains(&real(path))) {
        return Err(UsageError::new(
            format!("{} is on both sides", shared.display()),
            "a file always agrees with itself: name another one",
        )
        .into());
    }
    Ok(())
}

/// What is compared is never written over, and a folder that is missing is told before an hour of reading.
fn refuse_target(target: &Path, files: &[Vec<PathBuf>; 2]) -> Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if target.file_name().is_none() || target.is_dir() || !folder.is_dir() {
        let message = format!("--out {}: a file in a folder that exists is needed", target.display());
        return Err(UsageError::new(message, "make the folder first").into());
    }
    let real = |path: &Path| path.canonicalize().ok();
    let is_input =
        files.iter().flatten().any(|path| real(path).is_some_and(|path| Some(path) == real(target)));
    if is_input {
        let message = format!("--out {} is one of the files that are compared", target.display());
        return Err(Unusable::new(message, "name another file").into());
    }
    Ok(())
}
