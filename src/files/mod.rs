//! Files as sides: CSV and JSON Lines, plain or packed, read strictly into rows of text.
//!
//! The one thing to get right: nothing is skipped and nothing is guessed. A row that cannot be read ends the reading
//! with its file, line and column; a file that changed meanwhile is no answer; an amount whose unit is not clear is
//! refused. Texts are kept byte for byte: ids that differ by case, blanks or Unicode form are different ids.

mod money;
mod side;
mod csv_rows;
mod json_rows;
mod layout;
mod marks;
mod unpack;
mod open;
mod source;
mod parallel;

pub use money::{Currencies, EXPONENT_MAX, MoneyFault, MoneyReader, Numbers, Units};
pub use open::expand;
pub use parallel::{RowFault, read_in_parallel};
pub use side::{Delimiter, Encoding, FileSettings};
pub use source::{FileNote, Row, Source, header_of};

/// Bytes that one row may have; a longer one is a quote that nobody closed, or no table at all.
pub const ROW_BYTES_MAX: usize = 1 << 20;
