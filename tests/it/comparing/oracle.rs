//! A naive model that shares no code with the comparison: it holds everything, counts every value of every key in lists,
//! and says how many differences of each kind a key has; which rows they name is checked against the files themselves.

use super::{Table, rows};
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// A row as the model sees it: currency, amount as typed, minor units, status.
type Value = (String, i64, String);

struct Written {
    /// Line → (key, value).
    lines: BTreeMap<u64, (String, Value)>,
}

fn decimal(minor: i64, currency: &str) -> String {
    let (sign, magnitude) = (if minor < 0 { "-" } else { "" }, minor.unsigned_abs());
    match currency {
        "jpy" => format!("{sign}{magnitude}"),
        "kwd" => format!("{sign}{}.{:03}", magnitude / 1000, magnitude % 1000),
        _ => format!("{sign}{}.{:02}", magnitude / 100, magnitude % 100),
    }
}

fn write(table: &Table, name: &str, side: &[(String, Value)]) -> Written {
    let mut text = String::from("id,currency,status,amount\n");
    let mut lines = BTreeMap::new();
    for (line, (key, value)) in (2..).zip(side) {
        let (currency, minor, status) = value;
        text += &["\"", &key.replace('"', "\"\""), "\",", currency, ",", status, ","].concat();
        text += &decimal(*minor, currency);
        text.push('\n');
        lines.insert(line, (key.clone(), value.clone()));
    }
    table.write(name, text);
    Written { lines }
}

/// Two sides that mostly agree, with keys that repeat and look alike.
fn sides(seed: u64) -> [Vec<(String, Value)>; 2] {
    let mut random = Random::new(seed);
    let mut sides = [Vec::new(), Vec::new()];
    let keys = 1 + random.below(60);
    for number in 0..keys {
        let key = match number % 7 {
            0 => format!("Ch_{number}"),
            1 => format!("ch_{}", number - 1),
            2 => format!("ch_{} ", number - 2),
            3 => format!("caf\u{e9}_{}", number / 7),
            4 => format!("cafe\u{301}_{}", number / 7),
            5 => format!("=\"{number}\",;|\\"),
            _ => format!("ch_{number}"),
        };
        for _ in 0..random.below(5) {
            let currency = ["usd", "jpy", "kwd"][usize::try_from(random.below(3)).unwrap()].to_owned();
            let value: Value = (
                currency,
                random.between(-3, 4),
                ["paid", "open"][usize::from(random.chance(30))].to_owned(),
            );
            let changed = |random: &mut Random, value: &Value| {
                let (currency, minor, status) = value.clone();
                match random.below(3) {
                    0 => (currency, minor + 1, status),
                    1 => (if currency == "usd" { "kwd" } else { "usd" }.to_owned(), minor, status),
                    _ => (currency, minor, "void".to_owned()),
                }
            };
            let copies = [0, 1, 1, 1, 1, 2, 3];
            for side in &mut sides {
                for _ in 0..*random.pick(&copies) {
                    let value = if random.chance(10) { changed(&mut random, &value) } else { value.clone() };
                    side.push((key.clone(), value));
                }
            }
        }
    }
    for side in &mut sides {
        random.shuffle(side);
    }
    sides
}

/// How many differences of each kind the rows of one key make.
fn expected(left: &[&Value], right: &[&Value]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |kind: &'static str, count: u64| {
        if count > 0 {
            *counts.entry(kind).or_default() += count;
        }
    };
    let count = |side: &[&Value], value: &Value| side.iter().filter(|other| **other == value).count() as u64;
    // What only one side has, by currency and amount: (left, right).
    let mut alone: BTreeMap<(&str, i64), (u64, u64)> = BTreeMap::new();
    let values: BTreeSet<&Value> = left.iter().chain(right).copied().collect();
    for value in values {
        match (count(left, value), count(right, value)) {
            (0, right) => alone.entry((&value.0, value.1)).or_default().1 += right,
            (left, 0) => alone.entry((&value.0, value.1)).or_default().0 += left,
            (left, right) => {
                add("duplicate_on_left", left.saturating_sub(right));
                add("duplicate_on_right", right.saturating_sub(left));
            }
        }
    }
    let mut of_currency: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for ((currency, _), (left, right)) in alone {
        let paired = left.min(right);
        add("status_differs", paired);
        let rest = of_currency.entry(currency).or_default();
        (rest.0, rest.1) = (rest.0 + left - paired, rest.1 + right - paired);
    }
    let mut of_key = (0, 0);
    for (left, right) in of_currency.into_values() {
        let paired = left.min(right);
        add("amount_differs", paired);
        of_key = (of_key.0 + left - paired, of_key.1 + right - paired);
    }
    let paired = of_key.0.min(of_key.1);
    add("currency_differs", paired);
    add("missing_on_right", of_key.0 - paired);
    add("missing_on_left", of_key.1 - paired);
    counts
}

/// The row that a difference names on a side, which must be as it says.
fn named<'w>(
    row: &BTreeMap<String, String>,
    side: &str,
    written: &'w Written,
    seen: &mut BTreeSet<(String, u64)>,
) -> Option<&'w Value> {
    let cell = |name: &str| row[&format!("{side}_{name}")].as_str();
    if cell("line").is_empty() {
        assert!(cell("minor").is_empty() && cell("currency").is_empty() && cell("file").is_empty());
        return None;
    }
    let line: u64 = cell("line").parse().unwrap();
    assert_eq!(cell("file"), format!("{side}.csv"));
    let (key, value) = &written.lines[&line];
    assert_eq!(*key, row["key"]);
    assert_eq!((cell("currency"), cell("minor")), (&*value.0, &*value.1.to_string()));
    assert_eq!(cell("status"), value.2);
    assert!(seen.insert((side.to_owned(), line)), "{side}:{line} is named twice");
    Some(value)
}

fn judge(row: &BTreeMap<String, String>, left: Option<&Value>, right: Option<&Value>) {
    let kind = row["kind"].as_str();
    let fits = match (kind, left, right) {
        ("status_differs", Some(left), Some(right)) => {
            left.0 == right.0 && left.1 == right.1 && left.2 != right.2
        }
        ("amount_differs", Some(left), Some(right)) => left.0 == right.0 && left.1 != right.1,
        ("currency_differs", Some(left), Some(right)) => left.0 != right.0,
        ("missing_on_right" | "duplicate_on_left", Some(_), None)
        | ("missing_on_left" | "duplicate_on_right", None, Some(_)) => true,
        _ => false,
    };
    assert!(fits, "{row:?}");
    assert_eq!(kind.starts_with("duplicate"), !row["repeats"].is_empty(), "{row:?}");
}

fn check(seed: u64) {
    let table = Table::new();
    let [left, right] = sides(seed);
    let written = [write(&table, "left.csv", &left), write(&table, "right.csv", &right)];
    let arguments = ["--status", "status", "--out", "out.csv"];
    let said = table.compare(&arguments);
    let found = rows(&table.path("out.csv"));
    let mut expected_counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let keys: BTreeSet<&String> = left.iter().chain(&right).map(|(key, _)| key).collect();
    for key in keys {
        let of = |side: &'_ [(String, Value)]| -> Vec<Value> {
            side.iter().filter(|(other, _)| other == key).map(|(_, value)| value.clone()).collect()
        };
        let (left, right) = (of(&left), of(&right));
        let (left, right): (Vec<&Value>, Vec<&Value>) = (left.iter().collect(), right.iter().collect());
        for (kind, count) in expected(&left, &right) {
            expected_counts.insert((key.clone(), kind), count);
        }
    }
    let mut counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let (mut seen, mut net) = (BTreeSet::new(), BTreeMap::<String, i64>::new());
    for row in &found {
        *counts.entry((row["key"].clone(), &row["kind"])).or_default() += 1;
        let sides = [named(row, "left", &written[0], &mut seen), named(row, "right", &written[1], &mut seen)];
        judge(row, sides[0], sides[1]);
        for (value, sign) in sides.into_iter().zip([1, -1]) {
            if let Some((currency, minor, _)) = value {
                *net.entry(currency.clone()).or_default() += sign * minor;
            }
        }
        if let [Some(left), Some(right)] = sides
            && left.0 != right.0
        {
            assert_eq!(row["difference_minor"], "");
        } else {
            let of = |value: Option<&Value>| value.map_or(0, |value| value.1);
            assert_eq!(row["difference_minor"], (of(sides[0]) - of(sides[1])).to_string());
        }
    }
    assert_eq!(counts, expected_counts, "seed {seed}");
    // Findings add up to the difference, per currency.
    let mut totals = BTreeMap::<String, i64>::new();
    for (side, sign) in [(&left, 1), (&right, -1)] {
        for (_, (currency, minor, _)) in side {
            *totals.entry(currency.clone()).or_default() += sign * minor;
        }
    }
    totals.retain(|_, minor| *minor != 0);
    net.retain(|_, minor| *minor != 0);
    assert_eq!(net, totals, "seed {seed}");
    let matched: usize = said.last("matched").parse().unwrap();
    assert_eq!(matched, left.len() - seen.iter().filter(|(side, _)| side == "left").count(), "seed {seed}");
    assert_eq!(said.code, i32::from(!found.is_empty()), "seed {seed}: {}", said.stderr);
    assert_eq!(said.last("findings"), found.len().to_string());
    assert!(!said.stdout.contains("not to be relied on"));
}

#[test]
fn every_difference_is_found_and_nothing_else_for_every_seed() {
    let seeds = std::env::var("RECON_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    (0..seeds).for_each(check);
}

/// The values of the differences, without where their rows stand.
fn values(table: &Table) -> Vec<Vec<String>> {
    let named = [
        "kind",
        "cause",
        "key",
        "left_currency",
        "left_minor",
        "right_currency",
        "right_minor",
        "left_status",
    ];
    let mut found: Vec<Vec<String>> =
        rows(&table.path("out.csv")).iter().map(|row| named.map(|name| row[name].clone()).to_vec()).collect();
    found.sort();
    found
}

#[test]
fn threads_memory_and_the_order_of_rows_change_nothing() {
    let mut sides = sides(4_711);
    let table = Table::new();
    let compare = |table: &Table, sides: &[Vec<(String, Value)>; 2], more: &[&str]| {
        write(table, "left.csv", &sides[0]);
        write(table, "right.csv", &sides[1]);
        table.compare(&[&["--status", "status", "--out", "out.csv"], more].concat());
        (table.read("out.csv"), values(table))
    };
    let (bytes, expected) = compare(&table, &sides, &[]);
    for more in [["--threads", "1", "--memory", "16MiB"], ["--threads", "7", "--memory", "1GiB"]] {
        assert_eq!(compare(&table, &sides, &more).0, bytes, "{more:?}");
    }
    let mut random = Random::new(5);
    for _ in 0..5 {
        for side in &mut sides {
            random.shuffle(side);
        }
        assert_eq!(compare(&table, &sides, &[]).1, expected);
    }
}

#[test]
fn a_thousand_double_credits_are_found_exactly() {
    const ROWS: u64 = 60_000;
    let table = Table::new();
    let mut random = Random::new(99);
    let (mut left, mut right) = (String::from("id,amount,currency\n"), String::from("id,amount,currency\n"));
    let mut doubled: Vec<u64> = (0..ROWS).collect();
    random.shuffle(&mut doubled);
    let mut doubled: Vec<u64> = doubled.into_iter().take(1_000).collect();
    let mut text = Vec::new();
    let mut total = 0;
    for number in 0..ROWS {
        // Every eighth key has the same row twice, rightly, on both sides.
        let minor = random.between(1, 100_000);
        let row = format!("ch_{number:08},{},usd\n", decimal(minor, "usd"));
        text.push(row.clone());
        if number % 8 == 0 {
            text.push(row.clone());
        }
        if doubled.contains(&number) {
            total += minor;
        }
    }
    random.shuffle(&mut text);
    left += &text.concat();
    let mut extra: Vec<String> = text
        .iter()
        .filter(|row| doubled.binary_search(&0).is_ok() || is_of(row, &doubled))
        .cloned()
        .collect();
    extra.sort();
    extra.dedup();
    assert_eq!(extra.len(), 1_000);
    text.extend(extra);
    random.shuffle(&mut text);
    right += &text.concat();
    table.write("left.csv", left);
    table.write("right.csv", right);
    let said = table.compare(&["--out", "out.csv"]);
    assert_eq!((said.code, said.last("findings")), (1, "1000"), "{}", said.stderr);
    let found = rows(&table.path("out.csv"));
    assert!(found.iter().all(|row| row["kind"] == "duplicate_on_right"));
    let net: i64 = found.iter().map(|row| row["difference_minor"].parse::<i64>().unwrap()).sum();
    assert_eq!(net, -total);
    doubled.sort_unstable();
    let keys: Vec<String> = doubled.iter().map(|number| format!("ch_{number:08}")).collect();
    assert_eq!(found.iter().map(|row| row["key"].clone()).collect::<Vec<_>>(), keys);
}

fn is_of(row: &str, numbers: &[u64]) -> bool {
    let number: u64 = row[3..11].parse().unwrap();
    numbers.contains(&number)
}
