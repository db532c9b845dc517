//! A file of rows, CSV or JSON Lines, beside readers that share no code with ours: the `csv` crate and `serde_json`.

use super::Outcome;
use recon::files::{FileSettings, ROW_BYTES_MAX, Row, Source, read_in_parallel};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

const COLUMNS: [&str; 2] = ["id", "amount"];
/// Delimiters that are tried on a header.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What keeps `serde_json` from making a value of a JSON text.
const UNMADE: [&str; 4] =
    ["number out of range", "recursion limit", "surrogate", "unexpected end of hex escape"];

/// Line, and the two fields.
type Read = (u64, [Option<String>; 2]);

pub fn check(data: &[u8]) -> Outcome {
    // What is packed is another reader's, and could unpack to anything.
    if matches!(data, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]) {
        return Outcome::Refused;
    }
    let path = std::env::temp_dir().join(format!(
        "recon-fuzz-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, data).expect("a file can be written");
    let (found, again) = (read(&path), read(&path));
    std::fs::remove_file(&path).expect("a file can be removed");
    assert_eq!(found, again, "read twice, it differs");
    let text = std::str::from_utf8(data.strip_prefix(MARK).unwrap_or(data)).ok();
    match found {
        Ok(rows) => {
            let text = text.expect("only text is read");
            if text.trim_ascii_start().starts_with('{') {
                beside_json(text, &rows);
            } else {
                beside_csv(text, &rows);
            }
            Outcome::Accepted
        }
        Err(error) => {
            assert!(!error.chars().any(char::is_control), "an error that is no line: {error:?}");
            assert!(!text.is_some_and(is_plain), "a plain file is refused: {error}");
            Outcome::Refused
        }
    }
}

fn read(path: &Path) -> Result<Vec<Read>, String> {
    let settings = FileSettings { columns: COLUMNS.map(str::to_owned).to_vec(), ..FileSettings::default() };
    let source = Source::new(vec![(path.to_owned(), Arc::new(settings))]);
    let take = |rows: &mut Vec<Read>, row: Row<'_, '_>| {
        let field = |at: usize| row.fields[at].as_deref().map(str::to_owned);
        rows.push((row.line, [field(0), field(1)]));
        Ok(())
    };
    let read = read_in_parallel(&source, vec![Vec::new()], take);
    read.map(|rows| rows.concat()).map_err(|error| format!("{error:#}"))
}

/// Header and rows as the `csv` crate has them; `None` where it refuses.
fn by_csv(text: &str, delimiter: u8) -> Option<(Vec<String>, Vec<csv::StringRecord>)> {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
    let header =
        reader.headers().ok()?.iter().map(|name| name.trim_matches([' ', '\t']).to_owned()).collect();
    Some((header, reader.records().collect::<Result<_, _>>().ok()?))
}

fn places(header: &[String]) -> Option<[usize; 2]> {
    let place = |column: &str| {
        let mut found = header.iter().enumerate().filter(|(_, name)| *name == column);
        found.next().map(|(at, _)| at).filter(|_| found.next().is_none())
    };
    Some([place(COLUMNS[0])?, place(COLUMNS[1])?])
}

fn beside_csv(text: &str, rows: &[Read]) {
    let is_same = |delimiter: u8| {
        let Some((header, records)) = by_csv(text, delimiter) else { return false };
        let Some(places) = places(&header) else { return false };
        records.len() == rows.len()
            && records.iter().zip(rows).all(|(record, (line, row))| {
                let is_field = |at: usize| record.get(places[at]) == row[at].as_deref();
                is_field(0) && is_field(1) && *line > 0
            })
    };
    assert!(DELIMITERS.into_iter().any(is_same), "the csv crate reads other rows than {rows:?}");
    let lines: Vec<u64> = rows.iter().map(|(line, _)| *line).collect();
    assert!(lines.is_sorted_by(|one, other| one < other), "lines that do not rise: {lines:?}");
    let all: Vec<&str> = text.split('\n').collect();
    for (line, [id, _]) in rows {
        let at = usize::try_from(*line).expect("a line of a small file") - 1;
        let first = id.as_deref().unwrap_or_default().split(['\n', '"', '\r']).next().unwrap_or_default();
        assert!(all[at..].join("\n").contains(first), "line {line} has no such row");
    }
}

fn beside_json(text: &str, rows: &[Read]) {
    let lines = (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
    let mut rest = rows.iter();
    for (line, text) in lines {
        let (at, fields) = rest.next().expect("a row for each line");
        assert_eq!(*at, line, "the line of a row");
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            // Values that are not wanted are passed over, and not made.
            Err(error) => {
                let error = error.to_string();
                let is_known = UNMADE.iter().any(|known| error.contains(known));
                assert!(is_known, "what is read is no JSON: {error}");
                continue;
            }
        };
        let object = value.as_object().expect("what is read is an object");
        for (column, field) in COLUMNS.iter().zip(fields) {
            match object.get(*column) {
                None | Some(Value::Null) => assert!(field.is_none(), "a value from nowhere"),
                Some(Value::String(text)) => assert_eq!(field.as_ref(), Some(text), "another text"),
                Some(Value::Number(number)) => {
                    let spelled = field.as_deref().and_then(|field| field.parse::<f64>().ok());
                    assert_eq!(spelled, number.as_f64(), "another number");
                }
                Some(_) => panic!("neither a text nor a number was read"),
            }
        }
    }
    assert!(rest.next().is_none(), "a row without a line");
}

/// Text of a table that nothing can be wrong with: it must be read.
fn is_plain(text: &str) -> bool {
    let Some(header) = text.lines().next() else { return false };
    let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    !text.contains(['"', '\r', '\0', '\u{feff}'])
        && !header.contains([';', '\t', '{', '['])
        && header.starts_with(|first: char| first.is_ascii_alphabetic())
        && !header.starts_with("PAR1")
        && !header.starts_with("PK")
        && !header.starts_with("BZh")
        && places(&fields(header)).is_some()
        && text.lines().all(|line| line.is_empty() || fields(line).len() == fields(header).len())
        && text.len() < ROW_BYTES_MAX
}
