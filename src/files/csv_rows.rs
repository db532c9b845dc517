//! CSV by RFC 4180, strictly: a quote stands at both ends of a field or is doubled inside of one, every row has as
//! many fields as the header, and a line ends in LF or CRLF. Pure.
//!
//! Reading on after a stray quote would shift columns without a word, so it is the first thing refused.

use super::ROW_BYTES_MAX;
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;

/// Why a row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CsvFault {
    /// Line on which it is seen, counted from that of the text's start.
    pub(super) line: u64,
    /// Position of the field from 0; `None` where it is about the row.
    pub(super) position: Option<usize>,
    pub(super) message: String,
}

/// How one field ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Delimiter,
    Line,
}

/// Goes through a text field by field.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    delimiter: u8,
    /// Whether a carriage return anywhere is part of a line end, so that none has to be looked for.
    is_cr_clean: bool,
    /// Whether the text was cut because a row is too long.
    is_cut: bool,
}

impl<'a> Fields<'a> {
    /// Starts at the first byte, which is on `line`.
    pub(super) fn new(text: &'a str, line: u64, delimiter: u8, is_cut: bool) -> Self {
        let bytes = text.as_bytes();
        let is_cr_clean = memchr_iter(b'\r', bytes).all(|at| bytes.get(at + 1) == Some(&b'\n'));
        Self { text, at: 0, line, delimiter, is_cr_clean, is_cut }
    }

    /// Whether a row without quotes can be cut at its delimiters and its line end and be right.
    pub(super) const fn is_cuttable(&self) -> bool {
        self.is_cr_clean && !self.is_cut
    }

    /// Goes on at the byte `at`, where a row begins on `line`.
    pub(super) const fn go_to(&mut self, at: usize, line: u64) {
        (self.at, self.line) = (at, line);
    }

    /// Bytes read so far.
    pub(super) const fn read(&self) -> usize {
        self.at
    }

    /// Lines begun so far, from the first one's number.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    /// Hands each field of the next row to `take`; `Some(line, fields)` of the row, `None` at the end. Lines with nothing on them
    /// hold no row.
    #[inline]
    pub(super) fn row(
        &mut self,
        mut take: impl FnMut(usize, Cow<'a, str>),
    ) -> Result<Option<(u64, usize)>, CsvFault> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                None => return Ok(None),
                Some(b'\n') => self.at += 1,
                Some(b'\r') if bytes.get(self.at + 1) == Some(&b'\n') => self.at += 2,
                Some(_) => break,
            }
            self.line += 1;
        }
        let (line, mut position) = (self.line, 0);
        loop {
            let (field, end) = self.field(position)?;
            take(position, field);
            position += 1;
            if end == End::Line {
                self.line += 1;
                return Ok(Some((line, position)));
            }
        }
    }

    #[inline]
    fn field(&mut self, position: usize) -> Result<(Cow<'a, str>, End), CsvFault> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) == Some(&b'"') {
            return self.quoted(position);
        }
        let rest = &bytes[self.at..];
        let Some(len) = field_end(rest, self.delimiter) else {
            return Err(self.too_long(position, false));
        };
        if rest[len] == b'"' {
            return Err(self.fault(
                Some(position),
                "a quote inside a field that does not begin with one: a field with quotes is quoted whole, and its \
                 quotes are doubled",
            ));
        }
        let mut field = &self.text[self.at..self.at + len];
        let end = if rest[len] == b'\n' { End::Line } else { End::Delimiter };
        if end == End::Line {
            field = field.strip_suffix('\r').unwrap_or(field);
        }
        if !self.is_cr_clean && field.contains('\r') {
            return Err(
                self.fault(Some(position), "a carriage return that ends no line: lines end in LF or CRLF")
            );
        }
        self.at += len + 1;
        Ok((Cow::Borrowed(field), end))
    }

    /// The field at hand begins with a quote.
    fn quoted(&mut self, position: usize) -> Result<(Cow<'a, str>, End), CsvFault> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let (mut at, mut has_doubled) = (start, false);
        let close = loop {
            let Some(found) = memchr(b'"', &bytes[at..]) else {
                return Err(self.too_long(position, true));
            };
            at += found;
            if bytes.get(at + 1) != Some(&b'"') {
                break at;
            }
            has_doubled = true;
            at += 2;
        };
        let inside = &self.text[start..close];
        let lines = memchr_iter(b'\n', inside.as_bytes()).count() as u64;
        let (end, next) = match (bytes.get(close + 1), bytes.get(close + 2)) {
            (Some(byte), _) if *byte == self.delimiter => (End::Delimiter, close + 2),
            (Some(b'\n'), _) => (End::Line, close + 2),
            (Some(b'\r'), Some(b'\n')) => (End::Line, close + 3),
            (None, _) => return Err(self.too_long(position, true)),
            _ => {
                self.line += lines;
                return Err(self.fault(
                    Some(position),
                    "text after a closing quote: a quote inside a quoted field is doubled",
                ));
            }
        };
        self.line += lines;
        self.at = next;
        let field =
            if has_doubled { Cow::Owned(inside.replace("\"\"", "\"")) } else { Cow::Borrowed(inside) };
        Ok((field, end))
    }

    fn too_long(&self, position: usize, is_quoted: bool) -> CsvFault {
        let limit = format!("{} MiB", ROW_BYTES_MAX >> 20);
        let message = match (self.is_cut, is_quoted) {
            (true, true) => format!("the quoted field that begins here does not end within {limit}"),
            (true, false) => format!("the row is longer than {limit}"),
            (false, _) => {
                "the quoted field that begins here is not closed before the end of the file".to_owned()
            }
        };
        self.fault(Some(position), &message)
    }

    fn fault(&self, position: Option<usize>, message: &str) -> CsvFault {
        CsvFault { line: self.line, position, message: message.to_owned() }
    }
}

/// Where the first delimiter, line end or quote stands. Fields are short, so eight bytes at a time beat a search that
/// has to be set up: a byte of `word ^ pattern` is zero where the pattern's byte stands, and the lowest one is exact
/// (Hacker's Delight, section 6-1).
#[inline]
fn field_end(bytes: &[u8], delimiter: u8) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let patterns = [delimiter, b'\n', b'"'].map(|byte| LOW * u64::from(byte));
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ patterns[0]) | zeros(word ^ patterns[1]) | zeros(word ^ patterns[2]);
        if found != 0 {
            return Some(number * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = rest.iter().position(|byte| *byte == delimiter || matches!(byte, b'\n' | b'"'))?;
    Some(words.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(u64, Vec<String>)>, CsvFault> {
        let mut fields = Fields::new(text, 1, b',', false);
        let mut found = Vec::new();
        loop {
            let mut row = Vec::new();
            match fields.row(|_, field| row.push(field.into_owned()))? {
                Some((line, count)) => {
                    assert_eq!(count, row.len());
                    found.push((line, row));
                }
                None => return Ok(found),
            }
        }
    }

    #[test]
    fn c58_ids_newlines_and_quotes_survive() {
        let text = "00367901234567890323,\"ACME; \"\"Ltd\"\"\r\nsecond, line\",10\r\n1E5,,\n2-3,\"\",x\n";
        let expected = [
            (1, vec!["00367901234567890323", "ACME; \"Ltd\"\r\nsecond, line", "10"]),
            (3, vec!["1E5", "", ""]),
            (4, vec!["2-3", "", "x"]),
        ];
        let expected =
            expected.map(|(line, row)| (line, row.into_iter().map(str::to_owned).collect::<Vec<_>>()));
        assert_eq!(rows(text).unwrap(), expected);
    }

    #[test]
    fn lines_with_nothing_on_them_are_no_rows_but_count() {
        let found = rows("\n\r\na,b\n\n\nc,d\n").unwrap();
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 6]);
    }

    #[test]
    fn what_would_shift_columns_is_refused_where_it_stands() {
        for (text, line, position, words) in [
            ("a,b\nc,5\" pipe\n", 2, 1, "a quote inside"),
            ("a,\"b\nc\"d,e\n", 2, 1, "after a closing quote"),
            ("a,b\nc,\"d\n", 2, 1, "not closed"),
            ("a,b\rc,d\n", 1, 1, "carriage return"),
            ("a,\"b\\\"c\",d\n", 1, 1, "after a closing quote"),
        ] {
            let fault = rows(text).unwrap_err();
            assert_eq!((fault.line, fault.position), (line, Some(position)), "{text}");
            assert!(fault.message.contains(words), "{}", fault.message);
        }
    }

    #[test]
    fn the_end_of_a_field_is_where_a_slow_search_finds_it() {
        let mut state = 3_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let len = usize::try_from(state >> 59).unwrap();
            let mixed = |at: usize| state.rotate_left(u32::try_from(at * 7 % 64).unwrap()).to_le_bytes()[3];
            let bytes: Vec<u8> = (0..len)
                .map(|at| match mixed(at) {
                    byte @ (0..=3 | 0x80..) => byte,
                    byte => [b',', b'\n', b'"', b'-', b'+', b'#', b'!', 0xac][usize::from(byte) % 8]
                        .wrapping_add(byte & 64),
                })
                .collect();
            let expected = bytes.iter().position(|byte| matches!(byte, b',' | b'\n' | b'"'));
            assert_eq!(field_end(&bytes, b','), expected, "{bytes:?}");
        }
    }

    #[test]
    fn it_reads_what_the_csv_crate_reads() {
        let mut state = 7_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..300 {
            let alphabet = ["a", "é", ",", "\"", "\n", "\r\n", ";", " ", "0"];
            let table: Vec<Vec<String>> = (0..=next(6))
                .map(|_| {
                    let field = |next: &mut dyn FnMut(u64) -> u64| -> String {
                        (0..next(6)).map(|_| alphabet[usize::try_from(next(9)).unwrap()]).collect()
                    };
                    let mut row: Vec<String> = (0..3).map(|_| field(&mut next)).collect();
                    row[0].push('x');
                    row
                })
                .collect();
            let mut writer = csv::Writer::from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let found: Vec<Vec<String>> = rows(&text).unwrap().into_iter().map(|(_, row)| row).collect();
            assert_eq!(found, table, "{text:?}");
        }
    }
}
