//! The same rows in every form that is read, and what stays apart although it looks the same.

use super::{Table, rows};
use std::io::Write;

const LEFT: &str = "id,amount,currency\nch_1,19.99,usd\nch_2,-5.00,usd\nch_3,5800,jpy\n";
const RIGHT: &str = "id,amount,currency\nch_1,19.99,usd\nch_2,-5.00,usd\nch_3,5800,jpy\nch_1,19.99,usd\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

#[track_caller]
fn one_double(table: &Table, left: &str, right: &str, more: &[&str]) {
    let said = table.sides(left, right, &[&["--out", "out.csv"], more].concat());
    assert_eq!(
        (said.code, said.last("findings"), said.last("matched")),
        (1, "1", "3"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    let found = rows(&table.path("out.csv"));
    assert_eq!(found[0]["kind"], "duplicate_on_right");
    assert_eq!(
        (&*found[0]["key"], &*found[0]["difference_minor"], &*found[0]["right_line"]),
        ("ch_1", "-1999", "5")
    );
    assert_eq!(found[0]["repeats"], format!("{right}:2"));
}

#[test]
fn one_file_in_many_forms_is_one_answer() {
    let table = Table::of(LEFT, RIGHT);
    one_double(&table, "left.csv", "right.csv", &[]);
    let written: [(&str, Vec<u8>); 8] = [
        ("semicolon.csv", RIGHT.replace(',', ";").into_bytes()),
        ("tab.tsv", RIGHT.replace(',', "\t").into_bytes()),
        ("crlf.csv", RIGHT.replace('\n', "\r\n").into_bytes()),
        ("marked.csv", format!("\u{feff}{RIGHT}").into_bytes()),
        (
            "quoted.csv",
            format!("\"{}\"\n", RIGHT.trim_end().replace(',', "\",\"").replace('\n', "\"\n\"")).into_bytes(),
        ),
        ("packed.csv.gz", gzip(RIGHT)),
        ("packed.csv.zst", zstd(RIGHT)),
        ("no_end.csv", RIGHT.trim_end().into()),
    ];
    for (name, bytes) in written {
        table.write(name, bytes);
        one_double(&table, "left.csv", name, &[]);
    }
    table.write("wide.csv", RIGHT.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    one_double(&table, "left.csv", "wide.csv", &["--right", "encoding=utf-16le"]);
    table.write("pipe.csv", RIGHT.replace(',', "|"));
    one_double(&table, "left.csv", "pipe.csv", &["--right", "delimiter=pipe"]);
}

#[test]
fn json_lines_are_read_as_spelled() {
    let table = Table::of(LEFT, RIGHT);
    table.write(
        "right.jsonl",
        "\n{\"id\":\"ch_1\",\"amount\":19.99,\"currency\":\"usd\",\"more\":{\"id\":7}}\n\
         {\"amount\":\"-5.00\",\"currency\":\"USD\",\"id\":\"ch_\\u0032\"}\n\
         {\"id\":\"ch_3\",\"amount\":5800,\"currency\":\"jpy\"}\n\
         {\"id\":\"ch_1\",\"amount\":19.990,\"currency\":\"usd\"}",
    );
    let said = table.sides("left.csv", "right.jsonl", &["--out", "out.csv"]);
    assert_eq!((said.code, said.last("findings")), (1, "1"), "{}", said.stderr);
    let found = rows(&table.path("out.csv"));
    assert_eq!((&*found[0]["right_line"], &*found[0]["repeats"]), ("5", "right.jsonl:2"));
    assert!(said.stderr.contains("has no line end"), "{}", said.stderr);
}

#[test]
fn a_glob_is_one_side_and_rows_are_named_by_their_file() {
    let table = Table::of(LEFT, "");
    let header = "currency,other,id,amount\n";
    table.write("b-2.csv", format!("{header}usd,,ch_1,19.99\n"));
    table.write("b-1.csv", "id,amount,currency\nch_1,19.99,usd\nch_2,-5.00,usd\n");
    table.write("b-3.csv", format!("{header}jpy,x,ch_3,5800\n"));
    let said = table.sides("left.csv", "b-*.csv", &["--out", "out.csv"]);
    assert_eq!((said.code, said.last("findings")), (1, "1"), "{}", said.stderr);
    let found = rows(&table.path("out.csv"));
    assert_eq!((&*found[0]["right_file"], &*found[0]["right_line"]), ("b-2.csv", "2"));
    assert_eq!(found[0]["repeats"], "b-1.csv:2");
    assert!(said.stdout.contains("b-*.csv (3 files): 4 rows"), "{}", said.stdout);
}

#[test]
fn sides_may_name_and_spell_their_columns_otherwise() {
    let table =
        Table::of("charge,gross,ccy\nch_1,1999,usd\nch_2,100,usd\n", "id;total\nch_1;1.019,99\nch_2;1,00\n");
    let said = table.raw(&[
        "left.csv",
        "right.csv",
        "--key",
        "id",
        "--left",
        "key=charge,amount=gross,units=minor,currency=ccy",
        "--right",
        "amount=total,numbers=comma,currency-is=USD",
    ]);
    assert_eq!((said.code, said.last("matched")), (1, "1"), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("amount_differs"), "{}", said.stdout);
    assert!(
        said.stdout.contains("left 19.99 usd (left.csv:2), right 1019.99 usd (right.csv:2)"),
        "{}",
        said.stdout
    );
}

#[test]
fn c70_ids_that_only_look_alike_are_different_ids() {
    let pairs = [
        ("evt_1AbC", "evt_1aBc"),
        ("evt_1", "evt_1 "),
        ("caf\u{e9}", "cafe\u{301}"),
        ("1", "01"),
        ("1", "1.0"),
    ];
    for (left, right) in pairs {
        let row = |id: &str| format!("id,amount,currency\n{id},1.00,usd\n");
        let table = Table::of(&row(left), &row(right));
        let said = table.compare(&[]);
        assert_eq!((said.code, said.last("findings"), said.last("matched")), (1, "2", "0"), "{left} {right}");
        assert!(said.stdout.contains("missing_on_left") && said.stdout.contains("missing_on_right"));
    }
}

#[test]
fn a_key_of_several_columns_is_all_of_them() {
    let table = Table::of(
        "order,line,amount,currency\na,b|c,1.00,usd\na|b,c,2.00,usd\nx,,3.00,usd\n",
        "order,line,amount,currency\na|b,c,1.00,usd\na,b|c,2.00,usd\nx,,3.00,usd\n",
    );
    let named = ["--key", "order,line", "--amount", "amount", "--currency", "currency", "--out", "out.csv"];
    let said = table.raw(&[&["left.csv", "right.csv"], &named[..]].concat());
    assert_eq!((said.code, said.last("findings"), said.last("matched")), (1, "2", "1"), "{}", said.stderr);
    let keys: Vec<String> = rows(&table.path("out.csv")).iter().map(|row| row["key"].clone()).collect();
    assert_eq!(keys, ["a|b\\|c", "a\\|b|c"]);
}

#[test]
fn c39_c41_c48_c50_amounts_and_currencies_that_differ_say_how() {
    let header = "id,amount,currency\n";
    let table = Table::of(
        &format!("{header}a,5800,jpy\nb,18.600,kwd\nc,9000,jpy\nd,6527.81,eur\ne,5.00,usd\nf,1.00,usd\n"),
        &format!("{header}a,58,jpy\nb,1.860,kwd\nc,90.00,usd\nd,6527.80,eur\ne,-5.00,usd\nf,1.02,usd\n"),
    );
    let said = table.compare(&["--out", "out.csv"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let found: Vec<(String, String)> =
        rows(&table.path("out.csv")).iter().map(|row| (row["kind"].clone(), row["cause"].clone())).collect();
    let expected = [
        ("amount_differs", "factor=100"),
        ("amount_differs", "factor=10"),
        ("currency_differs", "same_number"),
        ("amount_differs", "rounding"),
        ("amount_differs", "sign"),
        ("amount_differs", ""),
    ];
    assert_eq!(found, expected.map(|(kind, cause)| (kind.to_owned(), cause.to_owned())));
    // No sum across currencies.
    assert!(said.stdout.contains("\njpy ") && said.stdout.contains("\nkwd "), "{}", said.stdout);
}

#[test]
fn a_status_makes_rows_differ_only_where_it_is_asked_for() {
    let table = Table::of(
        "id,amount,currency,state\na,1.00,usd,paid\n",
        "id,amount,currency,state\na,1.00,usd,open\n",
    );
    assert_eq!(table.compare(&[]).code, 0);
    let said = table.compare(&["--status", "state"]);
    assert_eq!(said.code, 1);
    assert!(said.stdout.contains("status_differs"), "{}", said.stdout);
}
