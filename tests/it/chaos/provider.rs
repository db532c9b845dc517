//! A provider that delivers: what got no 2xx comes again, some of it comes twice, some in the wrong order, and
//! now and then it does not wait for the answer.

use crate::random::Random;
use crate::receive::Kind;
use crate::serve::{Answer, connect, deliver, request};
use recon::demo::PROVIDER;
use recon::demo::world::Event;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a provider waits before it delivers again, in small.
const AGAIN_AFTER: Duration = Duration::from_millis(3);

#[derive(Default)]
struct State {
    /// Where receivers listen; an empty place is one that is not running.
    receivers: Vec<Option<SocketAddr>>,
    /// Events to deliver.
    waiting: VecDeque<usize>,
    under_way: usize,
    /// Deliveries tried, answered or not.
    tried: u64,
    /// 2xx answers by event.
    taken: BTreeMap<usize, u64>,
    /// Answers that no receiver may give.
    wrong: Vec<Answer>,
    is_over: bool,
}

pub struct Provider<'w> {
    events: &'w [Event],
    kind: Kind,
    secret: &'static str,
    signed_at_s: i64,
    state: Mutex<State>,
    changed: Condvar,
}

impl<'w> Provider<'w> {
    pub fn new(events: &'w [Event], kind: Kind, secret: &'static str, signed_at_s: i64) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { events, kind, secret, signed_at_s, state, changed }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever fails while it looks must still be able to end the clients.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn listens(&self, place: usize, address: Option<SocketAddr>) {
        let mut state = self.state();
        if state.receivers.len() <= place {
            state.receivers.resize(place + 1, None);
        }
        state.receivers[place] = address;
        self.changed.notify_all();
    }

    /// Has these delivered, in this order as far as several clients keep one.
    pub fn release(&self, events: impl IntoIterator<Item = usize>) {
        self.state().waiting.extend(events);
        self.changed.notify_all();
    }

    pub fn tried(&self) -> u64 {
        self.state().tried
    }

    /// 2xx answers by event.
    pub fn taken(&self) -> BTreeMap<usize, u64> {
        self.state().taken.clone()
    }

    /// Waits until so many more were tried, or for so long.
    pub fn pass(&self, more: u64, at_most: Duration) {
        let until = self.tried() + more;
        let waited = self.changed.wait_timeout_while(self.state(), at_most, |state| state.tried < until);
        drop(waited.unwrap());
    }

    /// Waits until every delivery got its 2xx.
    pub fn settle(&self, patience: Duration) {
        let is_busy = |state: &mut State| !state.waiting.is_empty() || state.under_way > 0;
        let (state, timeout) = self.changed.wait_timeout_while(self.state(), patience, is_busy).unwrap();
        assert!(!timeout.timed_out(), "{} deliveries were never taken", state.waiting.len());
        // No receiver may answer anything but 2xx and 503.
        assert!(state.wrong.is_empty(), "{:?}", state.wrong);
    }

    pub fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// One of several clients, until it is over.
    pub fn deliver(&self, mut random: Random) {
        while let Some((index, address)) = self.next(&mut random) {
            let hangs_up = random.chance(4);
            let answer = self.post(index, address, hangs_up);
            let mut state = self.state();
            state.tried += 1;
            state.under_way -= 1;
            let status = answer.as_ref().map_or(0, |answer| answer.status);
            match answer {
                Some(answer) if answer.is_taken() => *state.taken.entry(index).or_default() += 1,
                Some(answer) if status != 503 && status != 0 => state.wrong.push(answer),
                _ => state.waiting.push_back(index),
            }
            if random.chance(15) {
                state.waiting.push_back(index);
            }
            self.changed.notify_all();
            if status == 0 || status == 503 {
                let over = self.changed.wait_timeout_while(state, AGAIN_AFTER, |state| !state.is_over);
                drop(over.unwrap());
            }
        }
    }

    fn next(&self, random: &mut Random) -> Option<(usize, SocketAddr)> {
        let has_nothing = |state: &mut State| {
            !state.is_over && (state.waiting.is_empty() || state.receivers.iter().all(Option::is_none))
        };
        let mut state = self.changed.wait_while(self.state(), has_nothing).unwrap();
        if state.is_over {
            return None;
        }
        let listening: Vec<SocketAddr> = state.receivers.iter().flatten().copied().collect();
        let index = state.waiting.pop_front()?;
        state.under_way += 1;
        Some((index, *random.pick(&listening)))
    }

    /// The answer, where there was one.
    fn post(&self, index: usize, address: SocketAddr, hangs_up: bool) -> Option<Answer> {
        let body = &*self.events[index].body;
        let sample = self.kind.sign_with(self.secret, body, self.signed_at_s);
        if hangs_up {
            let mut stream = connect(address).ok()?;
            stream
                .write_all(&request(&format!("/webhooks/{PROVIDER}"), &sample.headers, &sample.body))
                .ok()?;
            return None;
        }
        deliver(address, PROVIDER, &sample).ok()
    }
}

/// Waits for something that no notice is given of; false when it did not come in time.
pub fn until(at_most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < at_most {
        if is_so() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}
