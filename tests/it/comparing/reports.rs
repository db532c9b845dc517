//! The file of differences: quoting, formulas, spreadsheets, counts; and what is printed.

use super::{Table, rows};
use recon::report::differences_csv::COLUMNS;
use std::path::Path;

fn names() -> Table {
    let left = "id,amount,currency,state\n\
                \"=1+1\",1.00,brl,+5511900000000\n\
                00367901234567890323,1234.56,brl,\"ACME; \"\"Ltd\"\"\r\nsecond line\"\n\
                1E5,-2.00,brl,  =1\n\
                2-3,3.00,brl,Ação São João\n";
    Table::of(left, "id,amount,currency,state\n")
}

#[test]
fn c58_every_byte_of_an_id_survives_the_machine_file() {
    let table = names();
    let said = table.compare(&["--status", "state", "--out", "out.csv"]);
    assert_eq!((said.code, said.last("findings")), (1, "4"));
    let found = rows(&table.path("out.csv"));
    let keys: Vec<&str> = found.iter().map(|row| row["key"].as_str()).collect();
    assert_eq!(keys, ["00367901234567890323", "1E5", "2-3", "=1+1"]);
    assert_eq!(found[0]["left_status"], "ACME; \"Ltd\"\r\nsecond line");
    assert_eq!(found[1]["left_status"], "  =1");
    assert_eq!(found[3]["left_status"], "+5511900000000");
    // The line on which a row begins, in a file with a row of two lines.
    let lines: Vec<&str> = found.iter().map(|row| row["left_line"].as_str()).collect();
    assert_eq!(lines, ["3", "5", "6", "2"]);
}

#[test]
fn c56_nothing_runs_as_a_formula_in_the_spreadsheet_file() {
    let table = names();
    let said = table.compare(&["--status", "state", "--out", "out.csv", "--spreadsheet"]);
    assert_eq!(said.code, 1);
    let found = rows(&table.path("out.csv"));
    assert!(found.iter().all(|row| row["key"].starts_with('\'')), "ids are text");
    for row in &found {
        for (name, cell) in
            row.iter().filter(|(name, _)| !name.ends_with("_minor") && !name.ends_with("_decimal"))
        {
            let first = cell.trim_start().chars().next().unwrap_or('x');
            assert!(!"=+-@|%".contains(first), "{name}: {cell}");
        }
    }
    assert_eq!(found[1]["left_minor"], "-200", "an amount is no formula");
    assert_eq!(found[1]["left_decimal"], "-2.00");
}

#[test]
fn c59_pt_br_has_its_separator_comma_mark_and_line_ends() {
    let table = names();
    assert_eq!(table.compare(&["--status", "state", "--out", "out.csv", "--locale", "pt-BR"]).code, 1);
    let text = table.read("out.csv");
    assert!(text.starts_with("\u{feff}kind;cause;key;"), "{text}");
    assert!(text.contains(";1234,56;") && text.contains("Ação São João") && !text.contains("sep="), "{text}");
    assert_eq!(text.matches("\r\n").count(), 1 + 4 + 1, "header, rows, and a line end inside of a cell");
    // And it can be compared again as it is: our own file is input, too.
    table.write("again.csv", text.replace(";'", ";"));
    let named =
        ["--key", "key", "--amount", "left_decimal", "--currency", "left_currency", "--numbers", "comma"];
    let said = table.raw(
        &[
            &["left.csv", "again.csv"],
            &named[..],
            &["--left", "key=id,amount=amount,currency=currency,numbers=plain"],
        ]
        .concat(),
    );
    assert_eq!((said.code, said.last("matched")), (0, "4"), "{}{}", said.stdout, said.stderr);
}

#[test]
fn c78_the_file_appears_whole_and_replaces_the_one_before() {
    let table = names();
    table.write("out.csv", "before");
    assert_eq!(table.compare(&["--out", "out.csv"]).code, 1);
    assert_eq!(rows(&table.path("out.csv")).len(), 4);
    let mut names: Vec<String> = std::fs::read_dir(table.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["left.csv", "out.csv", "right.csv"]);
    // Without differences it is a header alone.
    table.write("right.csv", table.read("left.csv"));
    assert_eq!(table.compare(&["--out", "out.csv"]).code, 0);
    assert!(table.read("out.csv").starts_with("kind,cause,key,") && rows(&table.path("out.csv")).is_empty());
}

#[test]
fn the_summary_ties_out_per_currency_and_names_rows() {
    let table = Table::of(
        "id,amount,currency\na,10.00,usd\nb,5.00,usd\nc,7,jpy\nd,1.00,eur\n",
        "id,amount,currency\na,10.00,usd\na,10.00,usd\nb,5.50,usd\nc,7.00,usd\nd,1.00,eur\n",
    );
    let said = table.compare(&[]);
    let expected = "\
left   left.csv: 4 rows
right  right.csv: 5 rows
       2 rows of each side have an equal one on the other

currency   left  right  difference  explained  unexplained
eur        1.00   1.00        0.00       0.00         0.00
jpy           7      0           7          7            0
usd       15.00  32.50      -17.50     -17.50         0.00

kind                currency  findings  difference
duplicate_on_right  usd              1      -10.00
amount_differs      usd              1       -0.50
currency_differs    jpy              1           7
currency_differs    usd              1       -7.00

duplicate_on_right  a: right 10.00 usd (right.csv:3), repeats right.csv:2
amount_differs      b: left 5.00 usd (left.csv:3), right 5.50 usd (right.csv:4)
currency_differs    c: left 7 jpy (left.csv:4), right 7.00 usd (right.csv:5)

outcome=findings findings=3 left_rows=4 right_rows=5 matched=2 report=
";
    assert_eq!(said.stdout, expected, "{}", said.stderr);
    assert_eq!(said.stderr, "");
}

#[test]
fn only_the_first_differences_are_printed_and_the_rest_is_counted() {
    let rows = (0..50).map(|number| format!("k{number:02},1.00,usd\n")).collect::<Vec<_>>().concat();
    let table = Table::of(&format!("id,amount,currency\n{rows}"), "id,amount,currency\n");
    let said = table.compare(&[]);
    assert_eq!(said.stdout.lines().filter(|line| line.starts_with("missing_on_right    k")).count(), 20);
    assert!(said.stdout.contains("… 30 more: --out FILE writes all of them"), "{}", said.stdout);
}

/// The code block that follows a line of the page.
fn block<'p>(page: &'p str, before: &str) -> &'p str {
    let start = page.find(&format!("\n{before}\n```\n")).unwrap_or_else(|| panic!("no block after {before}"));
    let body = &page[start + before.len() + "\n\n```\n".len()..];
    &body[..body.find("```\n").unwrap()]
}

/// `RECON_BLESS=1` writes what the program says into the page.
#[test]
fn the_page_shows_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compare.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let table = Table::new();
    table.write("provider.csv", block(&page, "`provider.csv`:"));
    table.write("books.csv", block(&page, "`books.csv`:"));
    let command = page.lines().find_map(|line| line.strip_prefix("recon compare ")).unwrap();
    let said = table.raw(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(said.code, 1, "{}", said.stderr);
    let shown = block(&page, "It prints:");
    if std::env::var_os("RECON_BLESS").is_some() {
        let renewed = page.replace(
            &format!("It prints:\n```\n{shown}```"),
            &format!("It prints:\n```\n{}```", said.stdout),
        );
        std::fs::write(&path, renewed).unwrap();
    } else {
        assert_eq!(shown, said.stdout, "docs/compare.md is out of date; RECON_BLESS=1 renews it");
    }
    let listed: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_end_matches('`')).take(2).collect())
        .filter(|cells: &Vec<&str>| ["id", "text", "minor units", "count"].contains(&cells[1]))
        .collect();
    let columns: Vec<Vec<&str>> =
        COLUMNS.iter().map(|column| vec![column.name, column.holds.as_str()]).collect();
    assert_eq!(listed, columns);
}
