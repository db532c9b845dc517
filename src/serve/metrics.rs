//! Counters of this process and their text for Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). Labels are names from the configuration
//! and fixed words, never anything that a sender chose.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Refused deliveries by (provider, reason, first µs of the UTC day).
pub(super) type RefusedToday = BTreeMap<(String, &'static str, i64), u64>;

const DAY_US: i64 = 86_400_000_000;

/// Upper bounds of the buckets of a [`Histogram`], milliseconds.
const BOUNDS_MS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000, 3_600_000];

/// How often something took how long.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_MS.len()],
    count: AtomicU64,
    sum_ms: AtomicU64,
}

impl Histogram {
    /// Counts one duration, µs.
    pub fn observe_us(&self, duration_us: i64) {
        let ms = u64::try_from(duration_us / 1_000).unwrap_or(0);
        if let Some(place) = BOUNDS_MS.iter().position(|bound| ms <= *bound) {
            self.buckets[place].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn write(&self, text: &mut String, name: &str, help: &str) {
        head(text, name, help, "histogram");
        let mut below = 0;
        for (bound, bucket) in BOUNDS_MS.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            line(text, &format!("{name}_bucket{{le=\"{}\"}}", seconds(*bound)), &below.to_string());
        }
        let count = self.count.load(Ordering::Relaxed).to_string();
        line(text, &format!("{name}_bucket{{le=\"+Inf\"}}"), &count);
        line(text, &format!("{name}_sum"), &seconds(self.sum_ms.load(Ordering::Relaxed)));
        line(text, &format!("{name}_count"), &count);
    }
}

/// Milliseconds as a decimal number of seconds.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// Everything that is counted. Counters begin at 0 with the process, as Prometheus expects.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Deliveries by (provider, what became of them).
    deliveries: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// Refused deliveries by (provider, reason).
    refused: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// Events that the worker ended, by status.
    ended: Mutex<BTreeMap<&'static str, u64>>,
    /// Refused deliveries that the store does not count yet.
    refused_today: Mutex<RefusedToday>,
    spilled: AtomicU64,
    brought_back: AtomicU64,
    store_up: AtomicBool,
    /// Whether there is a spill folder that takes what the store does not.
    spill_usable: AtomicBool,
    spill_files: AtomicU64,
    spill_unreadable: AtomicU64,
    /// From receipt to the answer.
    pub answer: Histogram,
    /// From receipt to the end of processing.
    pub completion: Histogram,
}

impl Metrics {
    /// Counts a delivery by what became of it: `new`, `duplicate`, `conflicting` or `unavailable`.
    pub fn delivery(&self, provider: &str, became: &'static str) {
        count(&self.deliveries, (provider.to_owned(), became));
    }

    /// Counts a delivery that was refused at `at_us` (Unix µs).
    pub fn refused(&self, provider: &str, reason: &'static str, at_us: i64) {
        count(&self.refused, (provider.to_owned(), reason));
        let day_us = at_us - at_us.rem_euclid(DAY_US);
        count(&self.refused_today, (provider.to_owned(), reason, day_us));
    }

    /// Counts a request that was turned away and is no delivery to an endpoint: the store counts none of these.
    pub fn turned_away(&self, provider: &str, reason: &'static str) {
        count(&self.refused, (provider.to_owned(), reason));
    }

    /// What was refused since it was asked before.
    pub(super) fn take_refused(&self) -> RefusedToday {
        std::mem::take(&mut *lock(&self.refused_today))
    }

    /// Gives back what [`Self::take_refused`] gave and could not be written down.
    pub(super) fn put_back_refused(&self, counted: RefusedToday) {
        let mut refused = lock(&self.refused_today);
        for (key, count) in counted {
            *refused.entry(key).or_default() += count;
        }
    }

    /// Says whether the store takes deliveries.
    pub(super) fn set_store_up(&self, is_up: bool) {
        self.store_up.store(is_up, Ordering::Relaxed);
    }

    /// Says whether the spill folder takes deliveries.
    pub(super) fn set_spill_usable(&self, is_usable: bool) {
        self.spill_usable.store(is_usable, Ordering::Relaxed);
    }

    /// Says how many spill files wait.
    pub(super) fn set_spill_files(&self, files: usize) {
        self.spill_files.store(files as u64, Ordering::Relaxed);
    }

    /// Says how many files hold what could not be read.
    pub(super) fn set_spill_unreadable(&self, files: usize) {
        self.spill_unreadable.store(files as u64, Ordering::Relaxed);
    }

    /// Spill files that wait to be brought back.
    #[must_use]
    pub fn spill_files(&self) -> u64 {
        self.spill_files.load(Ordering::Relaxed)
    }

    /// Whether deliveries are taken: by the store, or by the spill folder in its stead.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.store_up.load(Ordering::Relaxed) || self.spill_usable.load(Ordering::Relaxed)
    }

    /// Counts an event that the worker ended.
    pub fn ended(&self, status: &'static str) {
        count(&self.ended, status);
    }

    /// Counts events that went into the spill folder, in one file.
    pub fn spilled(&self, events: usize) {
        self.spilled.fetch_add(events as u64, Ordering::Relaxed);
        self.spill_files.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts events that came back from it.
    pub fn brought_back(&self, events: usize) {
        self.brought_back.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Duplicates so far.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        let deliveries = lock(&self.deliveries);
        deliveries.iter().filter(|((_, became), _)| *became == "duplicate").map(|(_, count)| count).sum()
    }

    /// The counters as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let name = "recon_deliveries_total";
        head(
            &mut text,
            name,
            "Verified deliveries by what became of them; a jump in duplicates means slow answers",
            "counter",
        );
        for ((provider, became), count) in lock(&self.deliveries).iter() {
            let series = format!("{name}{{provider=\"{provider}\",became=\"{became}\"}}");
            line(&mut text, &series, &count.to_string());
        }
        let name = "recon_refused_total";
        head(&mut text, name, "Deliveries refused before anything was stored", "counter");
        for ((provider, reason), count) in lock(&self.refused).iter() {
            let series = format!("{name}{{provider=\"{provider}\",reason=\"{reason}\"}}");
            line(&mut text, &series, &count.to_string());
        }
        let name = "recon_events_ended_total";
        head(&mut text, name, "Events that this process ended, by status", "counter");
        for (status, count) in lock(&self.ended).iter() {
            line(&mut text, &format!("{name}{{status=\"{status}\"}}"), &count.to_string());
        }
        for (name, help, counter) in [
            (
                "recon_spilled_total",
                "Events kept in files while the store could not be reached",
                &self.spilled,
            ),
            ("recon_brought_back_total", "Spilled events that are in the store by now", &self.brought_back),
        ] {
            head(&mut text, name, help, "counter");
            line(&mut text, name, &counter.load(Ordering::Relaxed).to_string());
        }
        let is_up = u64::from(self.store_up.load(Ordering::Relaxed));
        gauge(&mut text, "recon_store_up", "1 while the store takes deliveries", is_up);
        gauge(&mut text, "recon_spill_files", "Spill files that wait to be brought back", self.spill_files());
        let unreadable = self.spill_unreadable.load(Ordering::Relaxed);
        gauge(&mut text, "recon_spill_unreadable", "Files of damaged deliveries, for a person", unreadable);
        self.answer.write(&mut text, "recon_answer_seconds", "From the receipt of a delivery to its answer");
        self.completion.write(
            &mut text,
            "recon_completion_seconds",
            "From the receipt of an event to the end of its processing",
        );
        text
    }
}

/// One value that goes up and down.
pub(super) fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    head(text, name, help, "gauge");
    line(text, name, &value.to_string());
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    line(text, &format!("# HELP {name}"), help);
    line(text, &format!("# TYPE {name}"), kind);
}

fn line(text: &mut String, series: &str, value: &str) {
    text.push_str(series);
    text.push(' ');
    text.push_str(value);
    text.push('\n');
}

fn count<K: Ord>(counters: &Mutex<BTreeMap<K, u64>>, key: K) {
    *lock(counters).entry(key).or_default() += 1;
}

/// A thread that panicked while it counted has left a whole map behind.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
