//! A correction plan as a person may have edited it.

use super::Outcome;
use recon::record::iso_exponent;
use recon::report::plan_csv::{PlanRow, read};
use std::collections::BTreeSet;

const HEADER: &str = "correction_id,finding_id,action,effect_key,object_id,currency,amount_minor,target_state,reason,allowed_by";
/// An error quotes 40 characters of a cell at most, each escaped.
const ERROR_BYTES_MAX: usize = 800;

pub fn check(data: &[u8]) -> Outcome {
    let of = |bytes: &[u8]| read(bytes, &|_, currency| iso_exponent(currency));
    match of(data) {
        Ok(rows) => {
            let ids: BTreeSet<&str> = rows.iter().map(|row| row.correction_id.as_str()).collect();
            assert_eq!(ids.len(), rows.len(), "a correction stands twice");
            for row in &rows {
                let needed =
                    [&row.correction_id, &row.finding_id, &row.effect_key, &row.object_id, &row.allowed_by];
                assert!(needed.iter().all(|text| !text.is_empty()), "an empty cell that is needed");
            }
            let again = of(written(&rows).as_bytes()).expect("what was read can be written and read");
            assert!(again == rows, "what was written reads differently");
            Outcome::Accepted
        }
        Err(error) => {
            let text = format!("{error:#}");
            let is_line = text.len() <= ERROR_BYTES_MAX && !text.chars().any(char::is_control);
            assert!(is_line, "an error that is no line: {text:?}");
            Outcome::Refused
        }
    }
}

fn written(rows: &[PlanRow]) -> String {
    let lines = rows.iter().map(|row| {
        let cells = row.cells().map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")));
        cells.join(",")
    });
    std::iter::once(HEADER.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}
