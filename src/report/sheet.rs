//! Writes a CSV file, cell by cell, in the style asked for; [`super::cell`] says how each
//! value is spelled. A row that does not fit its columns is a fault of the program and panics.

use super::cell::{BYTE_ORDER_MARK, Cell, Column, Style, decimal_headers, is_minor, spell};
use anyhow::{Context, Result};
use std::io::Write;

/// Characters that one cell may have in a spreadsheet file. Excel holds 32,767 and cuts the rest off
/// without a word (Excel specifications and limits, support.microsoft.com).
pub const CELL_CHARS_MAX: usize = 32_000;

/// A CSV file that is being written, into memory where nothing else is said.
pub struct Sheet<W: Write = Vec<u8>> {
    style: Style,
    columns: &'static [Column],
    writer: csv::Writer<W>,
    rows: u64,
}

impl Sheet {
    /// Starts a file in memory with its header.
    ///
    /// # Errors
    /// When the CSV writer refuses.
    pub fn new(style: Style, columns: &'static [Column]) -> Result<Self> {
        Self::over(Vec::new(), style, columns)
    }
}

impl<W: Write> Sheet<W> {
    /// Starts a file in `out` with its header.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn over(mut out: W, style: Style, columns: &'static [Column]) -> Result<Self> {
        if style.is_pt_br() {
            out.write_all(BYTE_ORDER_MARK)?;
        }
        let mut builder = csv::WriterBuilder::new();
        if style.is_pt_br() {
            builder.delimiter(b';').terminator(csv::Terminator::CRLF);
        }
        let mut writer = builder.from_writer(out);
        for column in columns {
            writer.write_field(column.name)?;
        }
        for twin in decimal_headers(style, columns) {
            writer.write_field(twin)?;
        }
        end_row(&mut writer)?;
        Ok(Self { style, columns, writer, rows: 0 })
    }

    /// Adds a row; one cell for each column.
    ///
    /// # Errors
    /// When the CSV writer refuses.
    ///
    /// # Panics
    /// When the cells are not the columns' cells: the program is wrong.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        assert!(cells.len() == self.columns.len(), "{} cells for {}", cells.len(), self.columns.len());
        for (cell, column) in cells.iter().zip(self.columns) {
            assert!(cell.fits(*column), "{cell:?} does not fit the column {}", column.name);
            self.writer.write_field(spell(*cell, self.style).as_bytes())?;
        }
        if self.style.is_spreadsheet() {
            for (cell, _) in cells.iter().zip(self.columns).filter(|(_, column)| is_minor(**column)) {
                let text = match *cell {
                    Cell::Minor(minor, exponent) => self.style.decimal(minor, exponent),
                    _ => String::new(),
                };
                self.writer.write_field(text)?;
            }
        }
        end_row(&mut self.writer)?;
        self.rows += 1;
        Ok(())
    }

    /// What was written to, and the number of rows without the header.
    ///
    /// # Errors
    /// When the CSV writer refuses.
    pub fn finish(self) -> Result<(W, u64)> {
        let Self { writer, rows, .. } = self;
        let out = writer.into_inner().map_err(|error| anyhow::Error::msg(error.error().to_string()));
        Ok((out.context("finish a CSV file")?, rows))
    }
}

/// Ids joined by `|`. In a spreadsheet file a list that a cell cannot hold ends with the number of
/// ids left out; machine files are always whole.
#[must_use]
pub fn join_ids<'a>(ids: impl IntoIterator<Item = &'a str>, style: Style) -> String {
    let (mut kept, mut length, mut left_out) = (Vec::new(), 0_usize, 0_usize);
    for id in ids {
        length = length.saturating_add(id.len() + 1);
        if style.is_spreadsheet() && length > CELL_CHARS_MAX {
            left_out += 1;
        } else {
            kept.push(id);
        }
    }
    let rest = format!("and {left_out} more");
    if left_out > 0 {
        kept.push(&rest);
    }
    kept.join("|")
}

fn end_row<W: Write>(writer: &mut csv::Writer<W>) -> Result<()> {
    writer.write_record(None::<&[u8]>).context("end a CSV row")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Locale;
    use crate::report::cell::{Holds, unmark};
    use crate::report::read;

    const COLUMNS: [Column; 4] = [
        Column::new("id", Holds::Id),
        Column::new("name", Holds::Text),
        Column::new("rows", Holds::Count),
        Column::new("amount_minor", Holds::Minor),
    ];
    const STYLES: [Style; 3] =
        [Style::Machine, Style::Spreadsheet(Locale::En), Style::Spreadsheet(Locale::PtBr)];

    fn one(style: Style, id: &str, name: &str, minor: i64) -> Vec<u8> {
        let mut sheet = Sheet::new(style, &COLUMNS).unwrap();
        sheet.push(&[Cell::Id(id), Cell::Text(name), Cell::Count(1), Cell::Minor(minor, 2)]).unwrap();
        sheet.finish().unwrap().0
    }

    /// Fields of the second record, by the csv crate alone.
    fn fields(bytes: &[u8], style: Style) -> Vec<String> {
        let mut builder = csv::ReaderBuilder::new();
        builder.delimiter(if style.is_pt_br() { b';' } else { b',' });
        let record = builder.from_reader(bytes).records().next().unwrap().unwrap();
        record.iter().map(str::to_owned).collect()
    }

    #[test]
    fn c56_formulas_are_neutralised_in_text_cells_only() {
        let names = [
            "=1+1",
            "+5511900000000",
            "-2+3",
            "@SUM(A1)",
            "|cmd",
            "%0A",
            "\t=1",
            "  =1",
            "\r\n=1",
            "\u{a0}@x",
            "＝1+1",
            "'=1",
        ];
        for name in names {
            for style in &STYLES[1..] {
                let row = fields(&one(*style, "ch_1", name, -1200), *style);
                assert_eq!(row[1], format!("'{name}"), "{style:?}");
                assert_eq!(unmark(&row[1]), name);
                assert_eq!(row[3], "-1200", "an amount is no formula");
            }
            assert_eq!(fields(&one(Style::Machine, "ch_1", name, -1200), Style::Machine)[1], name);
        }
        for name in ["a=1", "1-2", "ACME - Ltd", "", "  plain"] {
            assert_eq!(fields(&one(STYLES[1], "ch_1", name, 0), STYLES[1])[1], name);
        }
    }

    #[test]
    fn c58_ids_newlines_and_quotes_survive() {
        let name = "ACME; \"Ltd\"\r\nsecond line";
        for id in ["00367901234567890323", "1E5", "2-3", "=ch_1", "'quoted"] {
            for style in STYLES {
                let bytes = one(style, id, name, 10);
                let row = fields(&bytes, style);
                let written = if style.is_spreadsheet() { format!("'{id}") } else { id.to_owned() };
                assert_eq!(row[..4], [written, name.to_owned(), "1".to_owned(), "10".to_owned()]);
                let table = read::read(&COLUMNS, &bytes).unwrap();
                assert_eq!(table.rows[0].cells, [id, name, "1", "10"], "{style:?}");
            }
        }
        assert_eq!(
            String::from_utf8(one(Style::Machine, "00367901234567890323", name, 10)).unwrap(),
            "id,name,rows,amount_minor\n\
             00367901234567890323,\"ACME; \"\"Ltd\"\"\r\nsecond line\",1,10\n"
        );
    }

    #[test]
    fn c59_pt_br_spreadsheet() {
        let name = "Ação São João";
        let pt = one(Style::Spreadsheet(Locale::PtBr), "ch_1", name, 123_456);
        assert_eq!(
            String::from_utf8(pt.clone()).unwrap(),
            "\u{feff}id;name;rows;amount_minor;amount_decimal\r\n'ch_1;Ação São João;1;123456;1234,56\r\n"
        );
        assert!(pt.starts_with(BYTE_ORDER_MARK));
        let en = one(Style::Spreadsheet(Locale::En), "ch_1", name, 123_456);
        assert_eq!(
            String::from_utf8(en).unwrap(),
            "id,name,rows,amount_minor,amount_decimal\n'ch_1,Ação São João,1,123456,1234.56\n"
        );
        let machine = one(Style::Machine, "ch_1", name, 123_456);
        assert_eq!(
            String::from_utf8(machine.clone()).unwrap(),
            "id,name,rows,amount_minor\nch_1,Ação São João,1,123456\n"
        );
        let marked = [BYTE_ORDER_MARK, &machine].concat();
        for bytes in [pt, machine, marked] {
            let table = read::read(&COLUMNS, &bytes).unwrap();
            assert_eq!(table.cell(&table.rows[0], "id"), "ch_1");
            assert_eq!(table.cell(&table.rows[0], "name"), name);
            assert_eq!(table.minor(&table.rows[0], "amount_minor").unwrap(), 123_456);
        }
    }

    /// A small generator (`SplitMix64`), so that a failing seed can be run again anywhere.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let bound = u64::try_from(bound).unwrap();
            usize::try_from((mixed ^ (mixed >> 31)) % bound).unwrap()
        }

        fn text(&mut self) -> String {
            const PARTS: [&str; 22] = [
                ",", ";", "\"", "\"\"", "\n", "\r", "\r\n", "\t", " ", "'", "=", "+", "-", "@", "|", "%",
                "a", "0", "ã", "\u{feff}", "\0", "sep=;",
            ];
            (0..self.below(7)).map(|_| PARTS[self.below(PARTS.len())]).collect()
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for seed in 0..3_000_u64 {
            let mut random = Random(seed);
            let rows: Vec<(String, String)> =
                (0..=random.below(3)).map(|_| (random.text(), random.text())).collect();
            for style in STYLES {
                let mut sheet = Sheet::new(style, &COLUMNS).unwrap();
                for (id, name) in &rows {
                    let cells = [Cell::Id(id), Cell::Text(name), Cell::Count(7), Cell::Empty];
                    sheet.push(&cells).unwrap();
                }
                let (bytes, count) = sheet.finish().unwrap();
                assert_eq!(count, u64::try_from(rows.len()).unwrap());
                let mut builder = csv::ReaderBuilder::new();
                builder.delimiter(if style.is_pt_br() { b';' } else { b',' });
                for (record, (id, name)) in builder.from_reader(&*bytes).records().zip(&rows) {
                    let record = record.unwrap();
                    let raw =
                        |at: usize| if style.is_spreadsheet() { unmark(&record[at]) } else { &record[at] };
                    assert_eq!((raw(0), raw(1)), (&**id, &**name), "seed {seed}, {style:?}");
                }
                let table = read::read(&COLUMNS, &bytes).unwrap();
                let read: Vec<_> =
                    table.rows.iter().map(|row| (row.cells[0].clone(), row.cells[1].clone())).collect();
                assert_eq!(read, rows, "seed {seed}, {style:?}");
            }
        }
    }

    #[test]
    fn a_list_that_a_spreadsheet_cell_cannot_hold_says_what_is_left_out() {
        let ids: Vec<String> = (0..4_000).map(|number| format!("finding_{number:04}")).collect();
        let all = join_ids(ids.iter().map(String::as_str), Style::Machine);
        assert_eq!(all.split('|').count(), 4_000);
        let cut = join_ids(ids.iter().map(String::as_str), STYLES[1]);
        assert!(cut.len() < 32_767, "{}", cut.len());
        let kept = cut.split('|').count() - 1;
        assert!(cut.ends_with(&format!("|and {} more", 4_000 - kept)));
        assert_eq!(join_ids(["a", "b"], STYLES[1]), "a|b");
    }

    #[test]
    #[should_panic(expected = "does not fit the column amount_minor")]
    fn a_cell_in_the_wrong_column_is_a_fault_of_the_program() {
        let mut sheet = Sheet::new(Style::Machine, &COLUMNS).unwrap();
        sheet.push(&[Cell::Id("a"), Cell::Text(""), Cell::Count(1), Cell::Text("12")]).unwrap();
    }
}
