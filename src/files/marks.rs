//! Where the fields of a block of CSV end, found in one pass over its bytes instead of one search for each field, and the
//! rows that can be cut there as they stand. Pure.
//!
//! Nothing is judged here: a row that has a quote, another number of fields or nothing at all is left to the careful
//! reader (`csv_rows.rs`), which reads every row and knows what is wrong with one.

/// Bytes that are looked at together: as many as a mask has bits.
const CHUNK_BYTES: usize = 64;
/// Positions that are written at once; what stands past the last one is written over.
const AT_ONCE: usize = 8;

/// Appends the positions of all delimiters, line ends and quotes, in order. Blocks are far smaller than 4 GiB.
pub(super) fn find(bytes: &[u8], delimiter: u8, found: &mut Vec<u32>) {
    let (chunks, rest) = bytes.as_chunks::<CHUNK_BYTES>();
    let mut last = [0; CHUNK_BYTES];
    for (byte, from) in last.iter_mut().zip(rest) {
        *byte = *from;
    }
    let last_mask = mask(&last, delimiter) & ((1_u64 << rest.len()) - 1);
    let masks = chunks.iter().map(|chunk| mask(chunk, delimiter)).chain([last_mask]);
    let mut count = found.len();
    for (base, mask) in (0_u32..).step_by(CHUNK_BYTES).zip(masks) {
        if found.len() < count + CHUNK_BYTES {
            found.resize(2 * found.len() + 2 * CHUNK_BYTES, 0);
        }
        let mut left = mask;
        let mut at = count;
        // Nearly always once: how often it goes round is hard to foresee for a processor.
        while left != 0 {
            if let Some(places) = found.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<AT_ONCE>()) {
                for place in places {
                    *place = base.wrapping_add(left.trailing_zeros());
                    left &= left.wrapping_sub(1);
                }
            }
            at += AT_ONCE;
        }
        count += mask.count_ones() as usize;
    }
    found.truncate(count);
}

/// A bit for each byte that ends something, the first byte lowest.
#[inline]
fn mask(chunk: &[u8; CHUNK_BYTES], delimiter: u8) -> u64 {
    /// Moves the lowest bit of each of eight bytes into the highest byte, in their order.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut ends = [0_u8; CHUNK_BYTES];
    for (end, byte) in ends.iter_mut().zip(chunk) {
        *end = u8::from(*byte == delimiter) | u8::from(*byte == b'\n') | u8::from(*byte == b'"');
    }
    let (words, _) = ends.as_chunks::<8>();
    let gathered = words.iter().map(|word| u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56);
    gathered.zip((0..).step_by(8)).fold(0, |mask, (byte, shift)| mask | byte << shift)
}

/// Cuts plain rows out of a block.
#[derive(Debug)]
pub(super) struct PlainRows<'a> {
    bytes: &'a [u8],
    /// What [`find`] found and no row took.
    ends: &'a [u32],
    delimiter: u8,
    /// Fields that a row has.
    width: usize,
}

impl<'a> PlainRows<'a> {
    /// The rows of `bytes`, whose marks are `ends`.
    pub(super) const fn new(bytes: &'a [u8], ends: &'a [u32], delimiter: u8, width: usize) -> Self {
        Self { bytes, ends, delimiter, width }
    }

    /// Where the fields of the row that begins at `at` end, where it is a plain one.
    #[inline]
    pub(super) fn row(&mut self, at: usize) -> Option<&'a [u32]> {
        // Marks of rows that were read carefully.
        while self.ends.first().is_some_and(|end| (*end as usize) < at) {
            self.ends = &self.ends[1..];
        }
        let (row, later) = self.ends.split_at_checked(self.width)?;
        let (last, inner) = row.split_last()?;
        let is = |end: &u32, byte: u8| self.bytes.get(*end as usize) == Some(&byte);
        let is_blank = matches!(self.bytes.get(at), None | Some(b'\n' | b'\r'));
        let is_plain = !is_blank && is(last, b'\n') && inner.iter().all(|end| is(end, self.delimiter));
        if !is_plain {
            return None;
        }
        self.ends = later;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_where_a_slow_search_finds_them() {
        let mut state = 5_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for round in 0..2_000 {
            let len = usize::try_from(next() % 300).unwrap();
            // From blocks of nothing but marks to blocks of all bytes.
            let bytes: Vec<u8> = (0..len)
                .map(|_| match next() % (1 + round % 9) {
                    0 => b",\n\""[usize::try_from(next() % 3).unwrap()],
                    _ => next().to_le_bytes()[0],
                })
                .collect();
            let expected: Vec<u32> = (0..)
                .zip(&bytes)
                .filter(|(_, byte)| matches!(byte, b',' | b'\n' | b'"'))
                .map(|(at, _)| at)
                .collect();
            let mut found = Vec::new();
            find(&bytes, b',', &mut found);
            assert_eq!(found, expected, "{bytes:?}");
        }
    }

    #[test]
    fn only_plain_rows_are_cut() {
        let bytes = b"a,b\n\nc,\"d\"\ne\nf,g,h\ni,j\r\n";
        let mut ends = Vec::new();
        find(bytes, b',', &mut ends);
        let mut rows = PlainRows::new(bytes, &ends, b',', 2);
        assert_eq!(rows.row(0), Some(&[1, 3][..]));
        for at in [4, 5, 11, 13] {
            assert_eq!(rows.row(at), None, "{at}");
        }
        assert_eq!(rows.row(19), Some(&[20, 23][..]));
        assert_eq!(rows.row(bytes.len()), None);
    }
}
