//! Arguments of `recon compare`, and what they mean once checked.

use super::UsageError;
use crate::config::{CompareSettings, Locale, parse_size, suggestion};
use crate::files::{Delimiter, Encoding, FileSettings, Numbers, Units};
use crate::report::cell::Style;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names that `--left` and `--right` know.
const NAMES: [&str; 9] =
    ["key", "amount", "currency", "currency-is", "status", "units", "numbers", "delimiter", "encoding"];
const MEMORY_BYTES: usize = 256 << 20;

/// Arguments of `recon compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// The one side: a file, or a glob in quotes.
    #[arg(value_name = "LEFT")]
    pub left: String,
    /// The other side.
    #[arg(value_name = "RIGHT")]
    pub right: String,
    /// Column of the id, or columns that are the id together.
    #[arg(long, value_name = "COL[,COL]")]
    pub key: Option<String>,
    /// Column of the amount.
    #[arg(long, value_name = "COL")]
    pub amount: Option<String>,
    /// Column of the currency.
    #[arg(long, value_name = "COL")]
    pub currency: Option<String>,
    /// The currency of all rows, where no column says it.
    #[arg(long, value_name = "CODE", conflicts_with = "currency")]
    pub currency_is: Option<String>,
    /// Column of a status; rows with another status are then not equal.
    #[arg(long, value_name = "COL")]
    pub status: Option<String>,
    /// What is other on the left: NAME=VALUE, separated by commas; may be repeated.
    #[arg(long = "left", value_name = "NAME=VALUE", id = "left_map")]
    pub left_map: Vec<String>,
    /// What is other on the right.
    #[arg(long = "right", value_name = "NAME=VALUE", id = "right_map")]
    pub right_map: Vec<String>,
    /// What whole numbers are: decimal (1999 is 1999.00) or minor (1999 is 19.99). Not given, they are refused where both could be meant.
    #[arg(long, value_name = "UNITS")]
    pub units: Option<String>,
    /// Spelling of amounts: plain (1234.56), point (1,234.56) or comma (1.234,56).
    #[arg(long, value_name = "SPELLING")]
    pub numbers: Option<String>,
    /// Decimals of currencies outside of ISO 4217, or of a provider that counts them otherwise, such as usdt=6,isk=2.
    #[arg(long, value_name = "CODE=N")]
    pub exponent: Vec<String>,
    /// Between the fields of CSV: comma, semicolon, tab or pipe. Not given, what fits the header.
    #[arg(long, value_name = "NAME")]
    pub delimiter: Option<String>,
    /// Encoding of the files where it is not UTF-8, such as latin1 or utf-16le.
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// Write every difference to this CSV file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// That file for spreadsheets: ids as text, decimal amounts, a guard against formulas.
    #[arg(long)]
    pub spreadsheet: bool,
    /// Its spelling: en, or pt-BR (`;` and decimal comma). Implies --spreadsheet.
    #[arg(long, value_name = "LOCALE")]
    pub locale: Option<String>,
    /// Memory to work with, at least 16MiB; default 256MiB. The result is the same for any size.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Threads; default: the machine's processors. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Folder for temporary files; default: the system's.
    #[arg(long, value_name = "DIR")]
    pub spill: Option<PathBuf>,
}

/// Where the currency of a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrencyFrom {
    /// In this wanted column.
    Column(usize),
    /// Nowhere: all rows are in this one.
    Fixed(String),
}

/// One side: its files, and where its wanted columns are among those of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideRequest {
    /// Path or glob.
    pub pattern: String,
    /// How its files are read. The key's columns come first.
    pub files: FileSettings,
    /// How many columns the key has.
    pub key_columns: usize,
    /// The amount's column.
    pub amount: usize,
    /// The currency.
    pub currency: CurrencyFrom,
    /// The status's column, where there is one.
    pub status: Option<usize>,
    /// What whole numbers are.
    pub units: Option<Units>,
    /// How amounts are spelled.
    pub numbers: Numbers,
}

/// A checked request for a comparison.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// Left, right.
    pub sides: [SideRequest; 2],
    /// Decimals that were said, by lower-case code.
    pub exponents: BTreeMap<String, u32>,
    /// Where differences are written.
    pub out: Option<PathBuf>,
    /// How that file is spelled.
    pub style: Style,
    /// Memory and threads.
    pub settings: CompareSettings,
    /// Folder for temporary files.
    pub spill: PathBuf,
}

impl CompareRequest {
    /// Checks the arguments.
    ///
    /// # Errors
    /// When one of them cannot mean anything, or something is missing.
    pub fn new(args: CompareArgs) -> Result<Self, UsageError> {
        let common = common(&args);
        let left = side(args.left, &args.left_map, &common, "--left")?;
        let right = side(args.right, &args.right_map, &common, "--right")?;
        if left.key_columns != right.key_columns {
            return Err(UsageError::new("the key has more columns on one side than on the other", ""));
        }
        if left.status.is_some() != right.status.is_some() {
            return Err(UsageError::new(
                "one side has a status and the other has none",
                "name both, or none",
            ));
        }
        let locale = match &args.locale {
            Some(text) => {
                Some(Locale::parse(text).ok_or_else(|| UsageError::new("--locale must be en or pt-BR", ""))?)
            }
            None => args.spreadsheet.then_some(Locale::En),
        };
        let threads = args.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            usize::from,
        );
        Ok(Self {
            sides: [left, right],
            exponents: exponents(&args.exponent)?,
            out: args.out,
            style: locale.map_or(Style::Machine, Style::Spreadsheet),
            settings: CompareSettings { memory_bytes_max: memory(args.memory.as_deref())?, threads },
            spill: args.spill.unwrap_or_else(std::env::temp_dir),
        })
    }
}

type Map = BTreeMap<String, Vec<String>>;

/// What holds for both sides where they say nothing else.
fn common(args: &CompareArgs) -> Map {
    let mut map = Map::new();
    if let Some(key) = &args.key {
        map.insert("key".to_owned(), split(key));
    }
    let single = [
        ("amount", &args.amount),
        ("currency", &args.currency),
        ("currency-is", &args.currency_is),
        ("status", &args.status),
        ("units", &args.units),
        ("numbers", &args.numbers),
        ("delimiter", &args.delimiter),
        ("encoding", &args.encoding),
    ];
    for (name, value) in single {
        if let Some(value) = value {
            map.insert(name.to_owned(), vec![value.clone()]);
        }
    }
    map
}

/// At commas; a backslash before a comma keeps it.
fn split(text: &str) -> Vec<String> {
    let kept = text.replace("\\,", "\0");
    kept.split(',').map(|part| part.replace('\0', ",")).collect()
}

/// The pairs of one side's arguments. A part that names nothing known goes on with the value before it.
fn pairs(arguments: &[String], flag: &str) -> Result<Map, UsageError> {
    let mut map = Map::new();
    for argument in arguments {
        let mut current: Option<String> = None;
        for part in split(argument) {
            if let Some((name, value)) = part.split_once('=').filter(|(name, _)| NAMES.contains(&name.trim()))
            {
                let name = name.trim().to_owned();
                if map.insert(name.clone(), vec![value.to_owned()]).is_some() {
                    return Err(UsageError::new(format!("{flag} says `{name}` twice"), ""));
                }
                current = Some(name);
            } else if let Some(values) = current.as_ref().and_then(|name| map.get_mut(name)) {
                values.push(part);
            } else {
                let name = part.split('=').next().unwrap_or_default();
                let message = format!("{flag} {part}: NAME=VALUE is needed, with a NAME that is known");
                return Err(UsageError::new(message, suggestion(name, &NAMES)));
            }
        }
    }
    Ok(map)
}

fn side(pattern: String, arguments: &[String], common: &Map, flag: &str) -> Result<SideRequest, UsageError> {
    let own = pairs(arguments, flag)?;
    let mut map = common.clone();
    if own.contains_key("currency") {
        map.remove("currency-is");
    }
    if own.contains_key("currency-is") {
        map.remove("currency");
    }
    map.extend(own);
    let mut columns = map.remove("key").unwrap_or_default();
    let key_columns = columns.len();
    if key_columns == 0 {
        return Err(UsageError::new(
            "--key is missing",
            "name the column of the id, such as --key charge_id",
        ));
    }
    let amount = single(&mut map, "amount")?
        .ok_or_else(|| UsageError::new("--amount is missing", "name the column, such as --amount amount"))?;
    columns.push(amount);
    let currency = currency(&mut map, &mut columns)?;
    let status = single(&mut map, "status")?.map(|column| {
        columns.push(column);
        columns.len() - 1
    });
    for (place, column) in columns.iter().enumerate() {
        if columns[..place].contains(column) {
            return Err(UsageError::new(format!("the column `{column}` is named twice"), ""));
        }
    }
    let units = word(&mut map, "units", &["decimal", "minor"], |text| match text {
        "decimal" => Some(Units::Decimal),
        "minor" => Some(Units::Minor),
        _ => None,
    })?;
    let numbers = word(&mut map, "numbers", &["plain", "point", "comma"], |text| match text {
        "plain" => Some(Numbers::Plain),
        "point" => Some(Numbers::Point),
        "comma" => Some(Numbers::Comma),
        _ => None,
    })?
    .unwrap_or_default();
    let delimiter = word(&mut map, "delimiter", &["comma", "semicolon", "tab", "pipe"], Delimiter::parse)?;
    let encodings = ["utf-8", "latin1", "windows-1252", "utf-16le", "utf-16be"];
    let encoding = word(&mut map, "encoding", &encodings, Encoding::parse)?.unwrap_or_default();
    let files = FileSettings { columns, delimiter, encoding };
    Ok(SideRequest { pattern, files, key_columns, amount: key_columns, currency, status, units, numbers })
}

fn currency(map: &mut Map, columns: &mut Vec<String>) -> Result<CurrencyFrom, UsageError> {
    if let Some(column) = single(map, "currency")? {
        columns.push(column);
        return Ok(CurrencyFrom::Column(columns.len() - 1));
    }
    let hint = "name the column, or say --currency-is usd where all rows are in one currency";
    let code = single(map, "currency-is")?.ok_or_else(|| UsageError::new("--currency is missing", hint))?;
    Ok(CurrencyFrom::Fixed(code))
}

/// The one value of a name.
fn single(map: &mut Map, name: &str) -> Result<Option<String>, UsageError> {
    let values = map.remove(name).unwrap_or_default();
    if values.len() > 1 {
        let message = format!("`{name}` is one column, and {} are named", values.len());
        return Err(UsageError::new(message, "a comma in a column's name is written \\,"));
    }
    Ok(values.into_iter().next())
}

/// A word out of a few.
fn word<T>(
    map: &mut Map,
    name: &str,
    known: &[&str],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, UsageError> {
    let Some(text) = single(map, name)? else { return Ok(None) };
    match parse(text.trim()) {
        Some(value) => Ok(Some(value)),
        None => Err(UsageError::new(format!("--{name} {text}: not a known word"), suggestion(&text, known))),
    }
}

fn exponents(arguments: &[String]) -> Result<BTreeMap<String, u32>, UsageError> {
    let mut found = BTreeMap::new();
    for part in arguments.iter().flat_map(|argument| argument.split(',')) {
        let pair = part
            .split_once('=')
            .and_then(|(code, exponent)| Some((code.trim(), exponent.trim().parse().ok()?)));
        let fits = |(code, exponent): &(&str, u32)| {
            let is_code =
                (3..=8).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_code && *exponent <= crate::files::EXPONENT_MAX
        };
        let Some((code, exponent)) = pair.filter(fits) else {
            let hint = format!("such as --exponent usdt=6; at most {} decimals", crate::files::EXPONENT_MAX);
            return Err(UsageError::new(format!("--exponent {part}: CODE=N is needed"), hint));
        };
        found.insert(code.to_ascii_lowercase(), exponent);
    }
    Ok(found)
}

fn memory(text: Option<&str>) -> Result<usize, UsageError> {
    const BYTES_MIN: usize = 16 << 20;
    let Some(text) = text else { return Ok(MEMORY_BYTES) };
    let bytes = parse_size(text).map_err(|error| UsageError::new(format!("--memory {text}: {error}"), ""))?;
    if bytes < BYTES_MIN {
        return Err(UsageError::new("--memory must be at least 16MiB", ""));
    }
    Ok(bytes)
}
