//! Reads the rows of both sides into the comparison, on all threads.

use crate::cli::{CompareRequest, CurrencyFrom, SideRequest};
use crate::compare::{PairFeed, PairPart, PairRow, Pairs, Place};
use crate::config::Unusable;
use crate::files::{Currencies, MoneyFault, MoneyReader, Row, RowFault, Source, read_in_parallel};
use anyhow::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// One thread's work.
struct Worker<'a> {
    feed: PairFeed,
    money: [MoneyReader<'a>; 2],
    key: Vec<u8>,
}

/// Reads everything; the number of a file is its place among those of the left and then those of the right.
pub(super) fn read(
    request: &CompareRequest,
    files: &[Vec<PathBuf>; 2],
    currencies: &Currencies,
    pairs: &Pairs,
) -> Result<Vec<PairPart>> {
    let mut listed = Vec::new();
    for (side, paths) in request.sides.iter().zip(files) {
        let settings = Arc::new(side.files.clone());
        listed.extend(paths.iter().map(|path| (path.clone(), Arc::clone(&settings))));
    }
    let source = Source::new(listed);
    let money = |side: &SideRequest| MoneyReader::new(currencies, side.units, side.numbers);
    let mut fixed = [None, None];
    for (number, side) in fixed.iter_mut().zip(&request.sides) {
        if let CurrencyFrom::Fixed(code) = &side.currency {
            let read = money(side).currency(code);
            *number =
                Some(read.map_err(|fault| {
                    Unusable::new(format!("--currency-is: {}", fault.message), fault.hint)
                })?);
        }
    }
    let mut workers = Vec::new();
    for _ in 0..request.settings.threads {
        let [left, right] = &request.sides;
        workers.push(Worker { feed: pairs.feed()?, money: [money(left), money(right)], key: Vec::new() });
    }
    let left_files = u32::try_from(files[0].len())?;
    let take = |worker: &mut Worker<'_>, row: Row<'_, '_>| {
        let side = usize::from(row.file >= left_files);
        worker.take(&request.sides[side], side, fixed[side], row)
    };
    let workers = read_in_parallel(&source, workers, take)?;
    for note in source.notes() {
        tracing::warn!("{}: {}", note.path.display(), note.note);
    }
    workers.into_iter().map(|worker| worker.feed.close()).collect()
}

impl Worker<'_> {
    #[inline]
    fn take(
        &mut self,
        request: &SideRequest,
        side: usize,
        fixed: Option<u16>,
        row: Row<'_, '_>,
    ) -> Result<(), RowFault> {
        let text = |column: usize| row.fields.get(column).and_then(Option::as_deref).unwrap_or_default();
        let key = if request.key_columns == 1 {
            text(0).as_bytes()
        } else {
            self.key.clear();
            for column in 0..request.key_columns {
                if column > 0 {
                    self.key.push(0);
                }
                self.key.extend_from_slice(text(column).as_bytes());
            }
            &self.key
        };
        if key.iter().all(|byte| *byte == 0) {
            let (message, hint) =
                ("is empty, and a row without an id has no partner".to_owned(), String::new());
            return Err(RowFault::Cell { column: 0, message, hint });
        }
        let cell = |column: usize| {
            move |fault: MoneyFault| RowFault::Cell { column, message: fault.message, hint: fault.hint }
        };
        let money = &mut self.money[side];
        let currency = match (fixed, &request.currency) {
            (Some(number), _) => number,
            (None, CurrencyFrom::Column(column)) => money.currency(text(*column)).map_err(cell(*column))?,
            (None, CurrencyFrom::Fixed(_)) => return Err(anyhow::anyhow!("the currency was not read").into()),
        };
        let amount_minor = money.amount(text(request.amount), currency).map_err(cell(request.amount))?;
        let status = request.status.map_or("", text).as_bytes();
        let place = Place { source: row.file, line: row.line };
        self.feed.add(&PairRow { key, currency, amount_minor, status, is_left: side == 0, place })?;
        Ok(())
    }
}
