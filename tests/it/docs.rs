//! Pages that must say what the code does: `docs/findings.md` and `reports/*.md`.
//! `RECON_BLESS=1` writes what is expected instead of comparing.

use crate::sample::sample;
use recon::findings::{SOURCES, doc};
use recon::report::cell::{Column, Style};
use recon::report::summary::{Commands, Summary};
use recon::report::{coverage_csv, findings_csv, inbox_health, manifest, plan_csv, render, tie_out};
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

/// Compares a page with what it should be, or renews it.
fn check(path: &str, expected: &str) {
    if std::env::var_os("RECON_BLESS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), expected).unwrap();
    }
    assert_eq!(read(path), expected, "{path} is out of date; RECON_BLESS=1 renews it");
}

#[test]
fn docs_findings_is_current() {
    check("docs/findings.md", &doc::render(&SOURCES).unwrap());
}

fn pages() -> [(&'static str, &'static [Column]); 5] {
    [
        ("findings", &findings_csv::COLUMNS),
        ("tie_out", &tie_out::COLUMNS),
        ("coverage", &coverage_csv::COLUMNS),
        ("plan", &plan_csv::COLUMNS),
        ("inbox_health", &inbox_health::COLUMNS),
    ]
}

/// (name, type) of the rows of the table under `## Columns`.
fn listed_columns(page: &str) -> Vec<(String, String)> {
    let section = page.split("## Columns\n").nth(1).expect("a section `## Columns`");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let mut cells = line.split('|').skip(1).map(str::trim);
        (cells.next().unwrap().trim_matches('`').to_owned(), cells.next().unwrap().to_owned())
    })
    .collect()
}

#[test]
fn report_pages_list_the_columns_of_the_code() {
    for (name, columns) in pages() {
        let expected: Vec<(String, String)> =
            columns.iter().map(|column| (column.name.to_owned(), column.holds.as_str().to_owned())).collect();
        assert_eq!(listed_columns(&read(&format!("reports/{name}.md"))), expected, "reports/{name}.md");
    }
    let design = "finding_id, kind, cause, severity, provider, account, mode, object_id, event_ids, effect_ids, \
                  currency, expected_minor, found_minor, difference_minor, expected_state, found_state, \
                  occurred_at, first_seen_at, age_days, status, owner, correction, note";
    let names: Vec<&str> = findings_csv::COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.join(", "), design, "the contract");
    let names: Vec<&str> = plan_csv::COLUMNS.iter().map(|column| column.name).collect();
    let design = "correction_id, finding_id, action, effect_key, object_id, currency, amount_minor, \
                  target_state, reason, allowed_by";
    assert_eq!(names.join(", "), design, "the contract");
}

/// The page with the first code block under `## Sample` replaced.
fn with_sample(page: &str, sample: &str) -> String {
    let start = page.find("## Sample\n").expect("a section `## Sample`");
    let open = start + page[start..].find("\n```").expect("a code block") + 1;
    let body = open + page[open..].find('\n').unwrap() + 1;
    let close = body + page[body - 1..].find("\n```").expect("an end of the code block");
    format!("{}{sample}{}", &page[..body], &page[close..])
}

#[test]
fn samples_in_report_pages_are_what_the_code_writes() {
    let sample = sample();
    sample.with(Style::Machine, |input| {
        let files = render(input).unwrap();
        for file in &files {
            let path = format!("reports/{}", file.name.replace(".csv", ".md"));
            check(&path, &with_sample(&read(&path), std::str::from_utf8(&file.bytes).unwrap()));
        }
        let manifest = String::from_utf8(manifest::render(input, &files).unwrap()).unwrap();
        check("reports/manifest.md", &with_sample(&read("reports/manifest.md"), &manifest));
        let commands = Commands {
            dir: "reports/out/20240601T061500Z-4f1d",
            program: "recon",
            rerun: "recon --month 2024-05",
        };
        let text = Summary::of(input, &commands).unwrap().text(false);
        check("reports/summary.md", &with_sample(&read("reports/summary.md"), &text));
    });
}

#[test]
fn the_index_names_every_page() {
    let index = read("reports/README.md");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            Path::new(name).extension().is_some_and(|ending| ending == "md") && name != "README.md"
        })
        .collect();
    names.sort();
    assert_eq!(names.len(), 7, "{names:?}");
    for name in names {
        assert!(index.contains(&format!("({name})")), "reports/README.md does not link {name}");
    }
}
