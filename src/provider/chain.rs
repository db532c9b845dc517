//! One slice of a list, read newest first to its lower bound. Pure: what to ask, and what an answer means.
//!
//! Times are whole Unix seconds, as the provider's filters are. A chain goes on by cursor while cursors are
//! honoured, and by time (`created < oldest seen + 1`, repeats dropped by id) where they are not. Each
//! request reaches down to the stream's lower bound, not the slice's: a record older than the slice is the
//! proof that the slice was read to its end. The one thing to get right: `has_more = false` alone is no
//! such proof after the first page; it is asked again by time.

use super::sightings::{PageSeen, Sightings};

/// Records of a page.
pub(super) const PAGE_RECORDS: i64 = 100;
/// A chain with fewer pages left than this is not worth splitting.
const SPLIT_PAGES_MIN: i64 = 3;
/// After this many cursors that were not honoured, cursors are used only inside one second.
const CURSOR_TROUBLES_MAX: u32 = 2;
/// Empty pages with `has_more` that are asked again before the range is given up.
const EMPTY_PAGES_MAX: u32 = 3;
/// Ends that show less than is known and are asked again. More of them mean that records were deleted, if they
/// are answers by time, and that the list cannot be relied upon, if they are answers by cursor.
const SHORT_ENDS_MAX: u32 = 2;

/// A request: records created in `[from, until)`, after a record of the list where a cursor is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub from: i64,
    pub until: i64,
    pub after: Option<String>,
}

/// A part of a chain's range, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub from: i64,
    pub until: i64,
    pub state: PartState,
}

/// What is known of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartState {
    Open,
    Closed,
    Gap(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// By time; `until` is exclusive.
    Time { until: i64 },
    /// By cursor, within the same bound.
    After { id: String, until: i64 },
    /// Read to the lower bound, or given up.
    End,
}

/// One slice being read.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// Lower bound of the slice; a split raises it.
    pub from: i64,
    /// Upper bound, exclusive.
    pub until: i64,
    /// Pages read.
    pub pages: u64,
    /// Records kept.
    pub records: u64,
    /// The stream's lower bound.
    floor: i64,
    /// `[done_from, until)` is complete but for `gaps`.
    done_from: i64,
    /// Ranges given up, newest first, with their cause.
    gaps: Vec<(i64, i64, &'static str)>,
    next: Next,
    is_sorted: bool,
    by_time: bool,
    seen: Sightings,
    /// Cursors tried in place of lost ones in the oldest second.
    tie_cursors: usize,
    cursor_troubles: u32,
    /// Where the list last said to be over: oldest second and records known of it.
    end_said: Option<(i64, usize)>,
    /// Ends that showed fewer records of the oldest second than were known.
    short_ends: u32,
    empty_pages: u32,
    seconds_per_page: Option<i64>,
    /// Where the list ended by its own word: nothing is older, it claims.
    ended_at: Option<i64>,
}

impl Chain {
    /// A chain over `[from, until)` of a stream that is read down to `floor`.
    pub(super) fn new(from: i64, until: i64, floor: i64) -> Self {
        assert!(floor <= from && from < until, "slice [{from}, {until}) above {floor}");
        Self {
            from,
            until,
            pages: 0,
            records: 0,
            floor,
            done_from: until,
            gaps: Vec::new(),
            next: Next::Time { until },
            is_sorted: true,
            by_time: false,
            seen: Sightings::default(),
            tie_cursors: 0,
            cursor_troubles: 0,
            end_said: None,
            short_ends: 0,
            empty_pages: 0,
            seconds_per_page: None,
            ended_at: None,
        }
    }

    /// A slice that an earlier, killed run of the same window had closed.
    pub(super) fn closed(from: i64, until: i64, floor: i64, pages: u64, records: u64) -> Self {
        let mut chain = Self::new(from, until, floor);
        chain.finish();
        Self { pages, records, ..chain }
    }

    /// What to ask next; `None` at the end.
    pub(super) fn ask(&self) -> Option<Ask> {
        let from = if self.is_sorted { self.floor } else { self.from };
        match &self.next {
            Next::Time { until } => Some(Ask { from, until: *until, after: None }),
            Next::After { id, until } => Some(Ask { from, until: *until, after: Some(id.clone()) }),
            Next::End => None,
        }
    }

    /// Takes a page: `(id, created second)` in the list's order. Says which of them belong to this slice.
    pub(super) fn on_page(&mut self, rows: &[(&str, i64)], has_more: bool) -> Vec<bool> {
        self.pages += 1;
        let kept: Vec<bool> = rows.iter().map(|row| self.from <= row.1 && row.1 < self.until).collect();
        self.records += u64::try_from(kept.iter().filter(|is_kept| **is_kept).count()).unwrap_or(u64::MAX);
        let asked = std::mem::replace(&mut self.next, Next::End);
        let by_cursor = matches!(asked, Next::After { .. });
        let until = match asked {
            Next::Time { until } | Next::After { until, .. } => until,
            Next::End => unreachable!("a page came for [{}, {}), which is read", self.from, self.until),
        };
        if !by_cursor {
            self.seen.start_sequence();
        }
        let page = self.look_at(rows, by_cursor);
        if let Some(last) = rows.last() {
            let span = rows[0].1 - last.1 + 1;
            let count = i64::try_from(rows.len()).unwrap_or(PAGE_RECORDS);
            self.seconds_per_page = Some((span.max(1) * PAGE_RECORDS / count).max(1));
        }
        self.next = self.decide(rows, has_more, by_cursor, until, page);
        self.note_done();
        if self.next == Next::End {
            self.finish();
        }
        kept
    }

    /// The object that the cursor names is gone.
    pub(super) fn on_cursor_lost(&mut self) {
        let (Next::After { until, .. } | Next::Time { until }) = self.next else { return };
        self.pages += 1;
        self.next = self.without_cursor(until);
        if self.next == Next::End {
            self.finish();
        }
    }

    /// What is known of each part of the range, newest part first.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut until = self.until;
        for (gap_from, gap_until, cause) in &self.gaps {
            if *gap_until < until {
                parts.push(Part { from: *gap_until, until, state: PartState::Closed });
            }
            parts.push(Part { from: *gap_from, until: *gap_until, state: PartState::Gap(cause) });
            until = *gap_from;
        }
        if self.done_from < until {
            parts.push(Part { from: self.done_from, until, state: PartState::Closed });
        }
        if self.from < self.done_from.min(until) {
            parts.push(Part { from: self.from, until: self.done_from.min(until), state: PartState::Open });
        }
        parts
    }

    /// Whether there is nothing left to ask.
    pub(super) fn is_finished(&self) -> bool {
        self.next == Next::End
    }

    /// Pages left by the density of the last page; 0 where nothing is known.
    pub(super) fn pages_left(&self) -> i64 {
        match self.seconds_per_page {
            Some(seconds) if !self.is_finished() && self.is_sorted => (self.done_from - self.from) / seconds,
            _ => 0,
        }
    }

    /// Seconds of the range that are not read yet.
    pub(super) fn seconds_left(&self) -> i64 {
        if self.is_finished() { 0 } else { self.done_from - self.from }
    }

    /// Gives the older half of what is left to a chain of its own, where that is worth it.
    pub(super) fn split(&mut self) -> Option<Self> {
        let middle = self.from + (self.done_from - self.from) / 2;
        if self.pages_left() < SPLIT_PAGES_MIN || middle <= self.from || middle >= self.done_from {
            return None;
        }
        let mut older = Self::new(self.from, middle, self.floor);
        older.seconds_per_page = self.seconds_per_page;
        older.by_time = self.by_time;
        older.cursor_troubles = self.cursor_troubles;
        self.from = middle;
        Some(older)
    }

    /// Called with the oldest second that any chain of the stream saw: where this one's list ended earlier by
    /// its own word, it is asked once more. True where it is.
    pub(super) fn contradicted_by(&mut self, oldest_seen: i64) -> bool {
        match self.ended_at {
            Some(ended_at) if oldest_seen < self.from && oldest_seen < ended_at => {
                self.empty_pages += 1;
                if self.empty_pages > EMPTY_PAGES_MAX {
                    self.ended_at = None;
                    self.give_up("provider_empty");
                    return false;
                }
                self.ended_at = None;
                self.done_from = ended_at.clamp(self.from, self.until);
                self.next = Next::Time { until: (ended_at + 1).min(self.until) };
                true
            }
            _ => false,
        }
    }

    /// Marks the rest as not seen.
    pub(super) fn give_up(&mut self, cause: &'static str) {
        if self.from < self.done_from {
            self.gaps.push((self.from, self.done_from, cause));
        }
        self.finish();
    }

    fn look_at(&mut self, rows: &[(&str, i64)], by_cursor: bool) -> PageSeen {
        let page = self.seen.page(rows, by_cursor);
        if page.is_older {
            (self.tie_cursors, self.short_ends) = (0, 0);
        }
        if page.new > 0 {
            self.empty_pages = 0;
        }
        if !page.is_in_order {
            self.note_disorder();
        }
        page
    }

    /// The list is not newest first: nothing above the oldest record is known to be complete before its end.
    fn note_disorder(&mut self) {
        self.is_sorted = false;
        self.done_from = self.until;
        self.gaps.clear();
    }

    fn decide(
        &mut self,
        rows: &[(&str, i64)],
        has_more: bool,
        by_cursor: bool,
        until: i64,
        page: PageSeen,
    ) -> Next {
        if self.is_sorted && rows.iter().any(|row| row.1 < self.from) {
            return Next::End;
        }
        let Some((last_id, last_second)) = rows.last().copied() else {
            return self.after_empty_page(has_more, by_cursor, until);
        };
        if by_cursor && page.is_repeat {
            return self.without_cursor(until);
        }
        if !has_more {
            return self.after_last_page(by_cursor, Some(last_id), until);
        }
        if self.by_time && self.is_sorted && last_second + 1 < until {
            return self.time(last_second + 1);
        }
        Next::After { id: last_id.to_owned(), until }
    }

    fn after_empty_page(&mut self, has_more: bool, by_cursor: bool, until: i64) -> Next {
        if !has_more {
            return self.after_last_page(by_cursor, None, until);
        }
        self.empty_pages += 1;
        if self.empty_pages > EMPTY_PAGES_MAX || !self.is_sorted {
            self.give_up("provider_empty");
            return Next::End;
        }
        self.time(self.seen.oldest.map_or(until, |oldest| until.min(oldest + 1)))
    }

    /// The list says that it is over. Believed on the only page, or when asking again by time shows what is known
    /// and nothing new.
    fn after_last_page(&mut self, by_cursor: bool, last_id: Option<&str>, until: i64) -> Next {
        let is_only_page = self.pages == 1 && !by_cursor;
        let is_short = self.seen.oldest.is_some_and(|oldest| oldest < until)
            && self.seen.oldest_shown < self.seen.oldest_known;
        self.short_ends += u32::from(is_short);
        if is_short && by_cursor && self.short_ends > SHORT_ENDS_MAX {
            self.give_up("provider_empty");
            return Next::End;
        }
        let is_reliable = !self.seen.is_patched_sequence && !is_short;
        let end = is_reliable.then_some((self.seen.oldest.unwrap_or(self.until), self.seen.oldest_known));
        let is_said_again = std::mem::replace(&mut self.end_said, end) == end && is_reliable;
        let is_settled = is_said_again || (is_short && self.short_ends > SHORT_ENDS_MAX);
        let is_proven = match (self.is_sorted, last_id) {
            (true, _) => is_only_page || (is_settled && self.seen.new_in_sequence == 0),
            (false, Some(_)) => is_only_page,
            (false, None) => true,
        };
        if is_proven {
            self.ended_at = Some(self.seen.oldest.unwrap_or(self.until));
            return Next::End;
        }
        if let Some(id) = last_id.filter(|_| !self.is_sorted) {
            return Next::After { id: id.to_owned(), until };
        }
        self.time(self.seen.oldest.map_or(until, |oldest| until.min(oldest + 1)))
    }

    /// The cursor was lost or not honoured: on by time; inside one second by another cursor; else that second
    /// is a gap and what is older goes on.
    fn without_cursor(&mut self, until: i64) -> Next {
        self.cursor_troubles += 1;
        self.by_time |= self.cursor_troubles >= CURSOR_TROUBLES_MAX;
        let Some(second) = self.seen.oldest.filter(|_| self.is_sorted) else {
            self.give_up(if self.is_sorted { "cursor_lost" } else { "unordered" });
            return Next::End;
        };
        if second + 1 < until {
            return self.time(second + 1);
        }
        if until <= second {
            // That second was given up before and the list still shows nothing older.
            self.give_up("cursor_lost");
            return Next::End;
        }
        self.tie_cursors += 1;
        if let Some(id) = self.seen.other_cursor(self.tie_cursors).map(str::to_owned) {
            self.seen.patch_sequence();
            return Next::After { id, until };
        }
        if (self.from..self.until).contains(&second) {
            self.gaps.push((second, second + 1, "cursor_lost"));
        }
        self.done_from = self.done_from.min(second.max(self.from));
        self.time(second)
    }

    fn time(&self, until: i64) -> Next {
        if until <= self.from { Next::End } else { Next::Time { until: until.min(self.until) } }
    }

    fn note_done(&mut self) {
        if let (true, Some(oldest)) = (self.is_sorted, self.seen.oldest) {
            self.done_from = self.done_from.min((oldest + 1).max(self.from));
        }
    }

    fn finish(&mut self) {
        self.next = Next::End;
        self.done_from = self.from;
        self.seen = Sightings::default();
    }
}
