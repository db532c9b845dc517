//! Writes the differences: under a temporary name beside the target, synced, renamed. What was there before stays as it
//! is until the whole of the new file is on disk.

use crate::compare::Compared;
use crate::leftover::{is_unfinished, sweep, unfinished};
use crate::report::cell::Style;
use crate::report::differences_csv::{self, Names};
use crate::report::pair_summary::PairSummary;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Writes all differences to `target` and adds them up in `summary`.
pub(super) fn write(
    target: &Path,
    style: Style,
    compared: &Compared,
    names: &impl Names,
    summary: &mut PairSummary,
) -> Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = target.file_name().unwrap_or_default();
    sweep(folder, |found| is_unfinished(found, name));
    let temporary = unfinished(target);
    let written = write_all(&temporary, style, compared, names, summary)
        .and_then(|()| Ok(std::fs::rename(&temporary, target)?))
        .with_context(|| format!("write {}", target.display()));
    if written.is_err() {
        // The first failure is the one to tell.
        std::fs::remove_file(&temporary).ok();
        return written;
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.with_context(|| format!("sync the folder {}", folder.display()))
}

fn write_all(
    temporary: &Path,
    style: Style,
    compared: &Compared,
    names: &impl Names,
    summary: &mut PairSummary,
) -> Result<()> {
    let file = File::create(temporary)?;
    // While it is held, nobody takes it for one that was left behind. Some network file systems have no locks: there
    // nobody takes any.
    file.lock().ok();
    let file = BufWriter::with_capacity(128 << 10, file);
    let mut sheet = differences_csv::start(file, style)?;
    for difference in compared.differences()? {
        let difference = difference?;
        summary.add(&difference, names);
        differences_csv::push(&mut sheet, &difference, names)?;
    }
    let (file, _) = sheet.finish()?;
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    Ok(file.sync_all()?)
}
