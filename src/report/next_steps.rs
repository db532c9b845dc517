//! What to do next, as commands that can be pasted.

use super::summary::{Commands, Summary};

/// The steps, in order; empty when there is nothing to do.
pub(super) fn next_steps(summary: &Summary, review: usize, commands: &Commands<'_>) -> Vec<String> {
    let mut steps = Vec::new();
    let gaps: Vec<_> = summary.not_seen.iter().filter(|range| range.status == "gap").collect();
    if gaps.iter().any(|gap| gap.cause == "no_permission") {
        steps.push("give the API key read permission for the streams marked no_permission above".to_owned());
    }
    if !summary.tied_out {
        steps.push(format!(
            "do not close the period on these numbers: a difference is unexplained, which is a fault of \
             recon; keep {} and report it",
            commands.dir
        ));
    }
    if !gaps.is_empty() || (summary.outcome == "incomplete" && summary.tied_out) {
        steps.push(format!("run it again, it resumes where it stopped: {}", commands.rerun));
    }
    if summary.corrections > 0 {
        let plan = shell_word(&format!("{}/plan.csv", commands.dir.trim_end_matches('/')));
        steps.push(format!("read {plan} and delete the rows that you do not want"));
        steps.push(format!("carry out the rest: {} apply {plan}", commands.program));
        steps.push(format!("check: {}", commands.rerun));
    }
    if review > 0 {
        let they = if review == 1 { "1 finding needs" } else { &format!("{review} findings need") };
        steps.push(format!("{they} a person: the rows of findings.csv whose correction is `review`"));
    }
    steps
}

/// A word as a POSIX shell takes it.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:@%+=,-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
