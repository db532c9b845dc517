//! Files that cannot be used: one error line that names file, line and column, a hint, exit 78 or 2, nothing written.

use super::Table;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const GOOD: &str = "id,amount,currency\nch_1,19.99,usd\n";

/// Whatever is wrong on the right: nothing is written, and what was there stays.
#[track_caller]
fn refused(right: impl AsRef<[u8]>, code: i32, words: &[&str]) {
    let table = Table::of(GOOD, "");
    table.write("right.csv", right);
    refused_in(&table, "right.csv", &[], code, words);
}

#[track_caller]
fn refused_in(table: &Table, right: &str, more: &[&str], code: i32, words: &[&str]) {
    table.write("out.csv", "what was there");
    let before = std::fs::read_dir(table.folder.path()).unwrap().count();
    table.sides("left.csv", right, &[&["--out", "out.csv"], more].concat()).refused(code, words);
    assert_eq!(table.read("out.csv"), "what was there");
    assert_eq!(std::fs::read_dir(table.folder.path()).unwrap().count(), before);
}

#[test]
fn a_row_that_is_no_row_is_named_with_line_and_column() {
    let header = "id,amount,currency\n";
    for (row, words) in [
        ("ch_2,5\" pipe,usd", ["right.csv:3: column `amount`", "a quote inside"]),
        ("\"ch_2\"x,1.00,usd", ["right.csv:3: column `id`", "after a closing quote"]),
        ("ch_2,1.00,\"usd", ["right.csv:3: column `currency`", "not closed before the end"]),
        ("ch_2,1.00", ["right.csv:3: the row has 2 fields and the header 3", "`currency` is missing"]),
        ("ch_2,1.00,usd,", ["right.csv:3: the row has 4 fields", "the header 3"]),
        ("ch_2,1,000.00,usd", ["right.csv:3: the row has 4 fields", "the header 3"]),
        ("ch_2,,usd", ["right.csv:3: column `amount`", "is empty"]),
        ("ch_2,2.675,usd", ["right.csv:3: column `amount`", "more than 2 decimals"]),
        ("ch_2,Maria Silva,usd", ["right.csv:3: column `amount`", "a text of 11 characters"]),
        ("ch_2,1999,usd", ["right.csv:3: column `amount`", "1999 or 19.99 usd"]),
        ("ch_2,1e3,usd", ["right.csv:3: column `amount`", "not a decimal amount"]),
        (
            "ch_2,99999999999999999999.00,usd",
            ["right.csv:3: column `amount`", "larger than an amount can be"],
        ),
        ("ch_2,1.00,", ["right.csv:3: column `currency`", "is empty"]),
        ("ch_2,1.00,usdt", ["right.csv:3: column `currency`", "--exponent CODE=N"]),
        (",1.00,usd", ["right.csv:3: column `id`", "is empty"]),
        ("ch\0_2,1.00,usd", ["right.csv:3", "NUL"]),
        ("ch_2\rch_3,1.00,usd", ["right.csv:3: column `id`", "carriage return"]),
    ] {
        refused(format!("{header}ch_1,19.99,usd\n{row}\n"), 78, &words);
    }
    refused(
        format!("{header}\"multi\nline\",1.00,usd\nch_2,x.y,usd\n"),
        78,
        &["right.csv:4: column `amount`"],
    );
    refused(
        b"id,amount,currency\nJo\xe3o,1.00,usd\n",
        78,
        &["right.csv:2", "not UTF-8", "--encoding latin1"],
    );
}

#[test]
fn c61_nothing_of_a_row_is_said_but_its_place() {
    let private = ["Maria Silva", "maria@example.com", "111.444.777-35", "+55 11 5550-0100", "4242"];
    for cell in private {
        let table = Table::of(GOOD, &format!("id,amount,currency\nch_1,{cell}x,usd\n"));
        let said = table.compare(&[]);
        assert_eq!(said.code, 78);
        assert!(!said.stderr.contains(cell) && !said.stdout.contains(cell), "{}", said.stderr);
        // A file without a header: its first row must not be quoted either.
        let table = Table::of(GOOD, &format!("{cell},1.00,usd\n"));
        let said = table.compare(&[]);
        assert_eq!(said.code, 78);
        assert!(!said.stderr.contains(cell), "{}", said.stderr);
    }
}

#[test]
fn a_header_that_does_not_fit_names_what_it_lacks() {
    refused(
        "id,amount_eur,currency\nch_1,1.00,usd\n",
        78,
        &["right.csv:1", "no column `amount`", "did you mean"],
    );
    refused("ID,amount,currency\nch_1,1.00,usd\n", 78, &["no column `id`", "did you mean `ID`"]);
    refused("aa,bbbbbbbb,ccc\n", 78, &["with 3 columns, has no column `id`, `amount`, `currency`"]);
    refused(
        "id,amount,currency,amount\nch_1,1.00,usd,2.00\n",
        78,
        &["right.csv:1", "`amount` more than once"],
    );
    refused("", 78, &["right.csv is empty"]);
    refused("\n\n", 78, &["right.csv is empty"]);
    refused("\u{feff}", 78, &["right.csv is empty"]);
    // One that nobody asks for may stand twice.
    let table = Table::of(GOOD, "id,x,amount,x,currency\nch_1,,19.99,,usd\n");
    assert_eq!(table.compare(&[]).code, 0);
    // A header alone is an export without rows.
    let table = Table::of("id,amount,currency\n", "id,amount,currency\n");
    let said = table.compare(&[]);
    assert_eq!((said.code, said.last("left_rows")), (0, "0"));
}

#[test]
fn what_is_no_table_says_what_it_is() {
    refused(b"PK\x03\x04xxxxxxxx", 78, &["right.csv is a ZIP or an Excel file"]);
    refused(b"PAR1xxxxxxxx", 78, &["right.csv is a Parquet file"]);
    refused(b"\xfd7zXZ\x00xxxx", 78, &["xz"]);
    refused("[{\"id\":\"ch_1\"}]", 78, &["right.csv is a JSON array", "jq -c"]);
    let wide: Vec<u8> = "\u{feff}id,amount,currency\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(wide, 78, &["right.csv is UTF-16", "--encoding utf-16le"]);
    refused([0_u8, 1, 2, 3, 0, 0, 255].repeat(1000), 78, &["right.csv:1", "not UTF-8"]);
    refused(
        "{\"id\":\"ch_1\",\"amount\":1.5,\"currency\":\"usd\"}\n{\"id\":",
        78,
        &["right.csv:2: no json object"],
    );
    refused("{\"id\":\"ch_1\",\"currency\":\"usd\"}\n", 78, &["right.csv:1: column `amount`: is empty"]);
    refused("{\"id\":\"ch_1\",\"id\":\"ch_2\"}\n", 78, &["right.csv:1: column `id`: stands twice"]);
    refused(
        "{\"id\":\"a\\u0000b\",\"amount\":1.5,\"currency\":\"usd\"}\n",
        78,
        &["right.csv:1: column `id`"],
    );
    refused("{\"id\":true}\n", 78, &["right.csv:1: column `id`: is neither a text nor a number"]);
}

#[test]
fn a_row_of_a_hundred_megabytes_ends_it_without_being_held() {
    let long = "x".repeat(100 << 20);
    refused(
        format!("id,amount,currency\nch_1,1.00,usd\nch_2{long},1.00,usd\n"),
        78,
        &["right.csv:3: column `id`", "longer than 1 MiB"],
    );
    refused(
        format!("id,amount,currency\nch_1,\"{long}\",usd\n"),
        78,
        &["right.csv:2: column `amount`", "does not end within 1 MiB"],
    );
    refused(format!("{{\"id\":\"{long}\"}}\n"), 78, &["right.csv:1", "longer than 1 MiB"]);
    refused(long, 78, &["right.csv:1"]);
    // A quote that nobody closed, with good rows behind it.
    let rows = "ch_3,1.00,usd\n".repeat(200_000);
    refused(
        format!("id,amount,currency\nch_1,1.00,usd\n\"ch_2,1.00,usd\n{rows}"),
        78,
        &["right.csv:3: column `id`"],
    );
    refused(
        format!("id,amount,currency\nch_1,1.00,usd\nch_2 5\",1.00,usd\n{rows}"),
        78,
        &["right.csv:3: column `id`", "a quote inside"],
    );
}

#[test]
fn the_first_error_in_the_order_of_rows_is_told_at_every_run() {
    let row = |number: u64| format!("ch_{number},1.00,usd\n");
    let rows = |from: u64| (from..from + 60_000).map(row).collect::<Vec<_>>().concat();
    let bad = "bad,x,usd\n";
    let table = Table::of(
        GOOD,
        &format!("id,amount,currency\n{}{bad}{}{bad}{}", rows(0), rows(100_000), rows(200_000)),
    );
    for _ in 0..10 {
        table.compare(&["--threads", "4"]).refused(78, &["right.csv:60002: column `amount`"]);
    }
}

#[test]
fn files_that_are_not_whole_end_as_incomplete() {
    let table = Table::of(GOOD, "");
    let text = format!("id,amount,currency\n{}", "ch_1,19.99,usd\n".repeat(200_000));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    table.write("cut.csv.gz", &gzip[..gzip.len() / 2]);
    refused_in(&table, "cut.csv.gz", &[], 2, &["cut.csv.gz", "cut off", "after line"]);
    let mut damaged = gzip.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 0xff;
    table.write("damaged.csv.gz", damaged);
    refused_in(&table, "damaged.csv.gz", &[], 2, &["damaged.csv.gz", "damaged"]);
    let zstd =
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    table.write("cut.csv.zst", &zstd[..zstd.len() - 9]);
    refused_in(&table, "cut.csv.zst", &[], 2, &["cut.csv.zst", "cut off"]);
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    let table = Table::of(GOOD, "");
    let made = Command::new("mkfifo").arg(table.path("pipe.csv")).status().unwrap();
    assert!(made.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.current_dir(table.folder.path()).env_clear().args(["compare", "pipe.csv", "left.csv"]);
    command.args(["--key", "id", "--amount", "amount", "--currency", "currency"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = std::fs::OpenOptions::new().write(true).open(table.path("pipe.csv")).unwrap();
    pipe.write_all(format!("{GOOD}ch_1,19.99,usd\n").as_bytes()).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(
        stdout.contains("duplicate_on_left   ch_1: left 19.99 usd (pipe.csv:3), repeats pipe.csv:2"),
        "{stdout}"
    );
}

#[test]
fn names_that_are_no_files_are_told() {
    let table = Table::of(GOOD, GOOD);
    std::fs::create_dir(table.path("folder")).unwrap();
    refused_in(&table, "none.csv", &[], 78, &["there is no file none.csv"]);
    refused_in(&table, "none-*.csv", &[], 78, &["no file matches none-*.csv"]);
    refused_in(&table, "folder", &[], 78, &["folder is a folder", "folder/*.csv"]);
    refused_in(&table, "./left.csv", &[], 78, &["left.csv is on both sides"]);
    refused_in(&table, "*.csv", &[], 78, &["on both sides"]);
    table
        .sides("left.csv", "right.csv", &["--out", "right.csv"])
        .refused(78, &["--out right.csv is one of the files"]);
    table.sides("left.csv", "right.csv", &["--out", "none/out.csv"]).refused(78, &["--out none/out.csv"]);
    assert_eq!(table.read("right.csv"), GOOD);
}

#[test]
fn c81_a_target_that_cannot_be_written_leaves_nothing() {
    let table = Table::of(GOOD, "id,amount,currency\nch_2,19.99,usd\n");
    std::fs::create_dir(table.path("spills")).unwrap();
    let said = table.compare(&["--spill", "/dev/null/x"]);
    said.refused(2, &["/dev/null/x"]);
    // Root may write everywhere, so this one only holds for other users.
    std::fs::create_dir(table.path("closed")).unwrap();
    std::fs::set_permissions(table.path("closed"), std::fs::Permissions::from_mode(0o500)).unwrap();
    let said = table.compare(&["--out", "closed/out.csv"]);
    if said.code != 1 {
        said.refused(2, &["closed/out.csv"]);
        assert_eq!(std::fs::read_dir(table.path("closed")).unwrap().count(), 0);
    }
}

#[test]
fn arguments_that_mean_nothing_are_told() {
    let table = Table::of(GOOD, GOOD);
    let files = ["left.csv", "right.csv"];
    for (more, words) in [
        (vec!["--amount", "a", "--currency", "c"], "--key is missing"),
        (vec!["--key", "id", "--currency", "c"], "--amount is missing"),
        (vec!["--key", "id", "--amount", "a"], "--currency is missing"),
        (vec!["--key", "id", "--amount", "id", "--currency", "c"], "`id` is named twice"),
        (vec!["--key", "id", "--amount", "a", "--currency-is", "xxxx"], "`xxxx` is no currency"),
        (
            vec!["--key", "id", "--amount", "a", "--currency", "c", "--left", "amout=x"],
            "did you mean `amount`?",
        ),
        (
            vec!["--key", "id", "--amount", "a", "--currency", "c", "--left", "amount=x,y"],
            "`amount` is one column",
        ),
        (
            vec!["--key", "id", "--amount", "a", "--currency", "c", "--right", "key=x,y"],
            "more columns on one side",
        ),
        (
            vec!["--key", "id", "--amount", "a", "--currency", "c", "--right", "status=s"],
            "one side has a status",
        ),
        (vec!["--key", "id", "--amount", "a", "--currency", "c", "--units", "cents"], "--units cents"),
        (vec!["--key", "id", "--amount", "a", "--currency", "c", "--exponent", "usd"], "--exponent usd"),
        (vec!["--key", "id", "--amount", "a", "--currency", "c", "--memory", "1MiB"], "at least 16MiB"),
        (vec!["--key", "id", "--amount", "a", "--currency", "c", "--locale", "fr"], "en or pt-BR"),
    ] {
        table.raw(&[&files[..], &more].concat()).refused(78, &[words]);
    }
}
