//! The last line of stdout, `outcome=…`: what cron jobs and other scripts read. Its fields and their
//! order are a contract; new ones may only be added before `report=`, which is last because a
//! folder's name may hold blanks.

use super::Outcome;
use crate::record::{Window, format_instant};
use chrono_tz::Tz;

/// The last line of stdout of every command that runs: a contract.
#[derive(Clone, Copy, Debug)]
pub struct LastLine<'a> {
    /// How it ended.
    pub outcome: Outcome,
    /// Findings without timing differences and accepted ones.
    pub findings: usize,
    /// Findings that the cut-off explains.
    pub timing_differences: usize,
    /// Findings that persons have accepted; told where there are any.
    pub accepted: usize,
    /// Corrections planned.
    pub corrections: usize,
    /// Window and zone, where they were resolved.
    pub window: Option<(Window, Tz)>,
    /// The report's folder, empty where there is none.
    pub report: &'a str,
}

impl std::fmt::Display for LastLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let window = self.window.map_or_else(String::new, |(window, zone)| {
            format!("{}..{}", format_instant(window.from_us, zone), format_instant(window.until_us, zone))
        });
        let accepted =
            if self.accepted == 0 { String::new() } else { format!(" accepted={}", self.accepted) };
        write!(
            f,
            "outcome={} findings={} timing_differences={} corrections={} window={window}{accepted} report={}",
            self.outcome.as_str(),
            self.findings,
            self.timing_differences,
            self.corrections,
            self.report
        )
    }
}
