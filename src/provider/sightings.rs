//! What one chain has seen of its list: enough to tell a repeat from progress, and a short answer from a whole
//! one. Pure.
//!
//! Ids are kept as hashes. A collision can cost a request, never a record: what is stored is decided by ids.

use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64;

/// Last ids of the oldest second that are kept, to be tried as a cursor in place of a lost one.
const TIE_IDS_MAX: usize = 4;

/// A *sequence* is a request by time and the requests by cursor that follow it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sightings {
    /// Oldest second seen.
    pub oldest: Option<i64>,
    /// Distinct records known of that second, and how many of them this sequence has shown.
    pub oldest_known: usize,
    pub oldest_shown: usize,
    /// Ids that this sequence was the first to show.
    pub new_in_sequence: usize,
    /// A cursor other than the last record was used in this sequence, so its end proves nothing.
    pub is_patched_sequence: bool,
    seen: HashSet<u64>,
    seen_in_sequence: HashSet<u64>,
    /// Last ids of the oldest second, oldest in the list last.
    tie_ids: Vec<String>,
}

/// What a page showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageSeen {
    /// Asked by cursor, it repeats what came before that cursor.
    pub is_repeat: bool,
    /// Ids that it is the first to show.
    pub new: usize,
    /// It reaches a second older than any before.
    pub is_older: bool,
    /// It is newest first, and not newer than what came before its cursor unless it repeats that.
    pub is_in_order: bool,
}

impl Sightings {
    pub(super) fn start_sequence(&mut self) {
        self.seen_in_sequence.clear();
        self.new_in_sequence = 0;
        self.oldest_shown = 0;
        self.is_patched_sequence = false;
    }

    /// Repeats of what was seen before are expected from here on.
    pub(super) fn patch_sequence(&mut self) {
        self.seen_in_sequence.clear();
        self.is_patched_sequence = true;
    }

    /// Takes a page: `(id, created second)` in the list's order.
    pub(super) fn page(&mut self, rows: &[(&str, i64)], by_cursor: bool) -> PageSeen {
        let mut page = PageSeen { is_in_order: true, ..PageSeen::default() };
        let oldest_before = self.oldest;
        for (index, (id, second)) in rows.iter().enumerate() {
            let hash = xxh3_64(id.as_bytes());
            page.is_repeat |= by_cursor && self.seen_in_sequence.contains(&hash);
            page.is_in_order &= index == 0 || rows[index - 1].1 >= *second;
            let is_new = self.seen.insert(hash);
            page.new += usize::from(is_new);
            self.new_in_sequence += usize::from(is_new);
            self.note_oldest(id, *second, is_new);
        }
        self.seen_in_sequence.extend(rows.iter().map(|row| xxh3_64(row.0.as_bytes())));
        let is_newer = rows.first().zip(oldest_before).is_some_and(|(first, oldest)| first.1 > oldest);
        page.is_in_order &= !(by_cursor && is_newer && !page.is_repeat);
        page.is_older = self.oldest != oldest_before;
        page
    }

    /// The id to try as the `nth` cursor in place of the last one, counted from 1.
    pub(super) fn other_cursor(&self, nth: usize) -> Option<&str> {
        self.tie_ids.len().checked_sub(1 + nth).map(|at| self.tie_ids[at].as_str())
    }

    fn note_oldest(&mut self, id: &str, second: i64, is_new: bool) {
        if self.oldest.is_none_or(|oldest| second < oldest) {
            self.oldest = Some(second);
            self.tie_ids.clear();
            (self.oldest_known, self.oldest_shown) = (0, 0);
        }
        if self.oldest != Some(second) {
            return;
        }
        self.oldest_known += usize::from(is_new);
        self.oldest_shown += 1;
        if self.tie_ids.last().is_none_or(|last| last != id) {
            self.tie_ids.push(id.to_owned());
            if self.tie_ids.len() > TIE_IDS_MAX {
                self.tie_ids.remove(0);
            }
        }
    }
}
