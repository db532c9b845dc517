//! A process's share of a limit that several processes use: slots, reserved in the store a block at a time.
//!
//! Who asks often reserves larger blocks and the next one before the last is used up, so that the store is asked once a
//! second and never waited for; who asks seldom reserves one slot and keeps nobody waiting. The one thing to get
//! right: a slot whose time has passed is void. It may not be made up for.

use super::timing::Timing;
use crate::store::{LimitKey, Store};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A block covers no more than this much time of the limit.
const BLOCK_MAX: Duration = Duration::from_secs(1);
/// Blocks of so many slots are followed by one that is reserved ahead.
const AHEAD_SLOTS_MIN: u32 = 4;

/// Slots of one limit.
#[derive(Debug)]
pub(super) struct Share {
    store: Store,
    key: LimitKey,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    block: Block,
    ahead: Option<JoinHandle<Block>>,
}

/// Slots in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Block {
    /// The next one, by [`Timing::elapsed`].
    next: Duration,
    step: Duration,
    left: u32,
    size: u32,
    /// Slots were passed by: its owner was in no hurry.
    has_void: bool,
}

impl Block {
    /// The next slot that has not passed.
    fn take(&mut self, now: Duration) -> Option<Duration> {
        while self.left > 0 && self.next + self.step < now {
            (self.next, self.left, self.has_void) = (self.next + self.step, self.left - 1, true);
        }
        self.left = self.left.checked_sub(1)?;
        let slot = self.next;
        self.next += self.step;
        Some(slot)
    }

    /// Slots that the block after this one should have.
    fn size_after(&self, now: Duration, step: Duration) -> u32 {
        let most = u32::try_from(BLOCK_MAX.as_nanos() / step.as_nanos().max(1)).unwrap_or(u32::MAX).max(1);
        let is_busy = self.size > 0 && !self.has_void && now <= self.next + self.step;
        if is_busy { self.size.saturating_mul(2).min(most) } else { 1 }
    }
}

impl Share {
    pub(super) fn new(store: Store, key: LimitKey) -> Self {
        Self { store, key, state: Mutex::default() }
    }

    /// Waits for the next slot of a limit that has one each `step`. Called by one waiter at a time.
    pub(super) async fn slot(&self, step: Duration, timing: &Timing) {
        loop {
            let now = timing.elapsed();
            let taken = {
                let mut state = self.state();
                let taken = state.block.take(now);
                self.look_ahead(&mut state, now, step, timing);
                taken
            };
            if let Some(at) = taken {
                return timing.sleep(at.saturating_sub(now)).await;
            }
            let (ahead, size) = {
                let mut state = self.state();
                let size = state.block.size_after(now, step);
                (state.ahead.take(), size)
            };
            let block = match ahead {
                Some(ahead) => ahead.await.ok(),
                None => None,
            };
            let block = match block {
                Some(block) => block,
                None => reserve(self.store.clone(), self.key.clone(), size, step, timing.clone()).await,
            };
            self.state().block = block;
        }
    }

    /// No slot that begins within `pause` is given to anybody any more.
    pub(super) fn delay(&self, pause: Duration) {
        let mut state = self.state();
        state.block = Block::default();
        if let Some(ahead) = state.ahead.take() {
            ahead.abort();
        }
        drop(state);
        let (store, key) = (self.store.clone(), self.key.clone());
        tokio::spawn(async move {
            let pause_us = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
            if let Err(error) = store.delay_slots(&key, pause_us).await {
                tracing::debug!("others are not told to slow down: {error:#}");
            }
        });
    }

    /// Reserves the next block where the present one is half used and was used in a hurry.
    fn look_ahead(&self, state: &mut State, now: Duration, step: Duration, timing: &Timing) {
        let block = state.block;
        let is_half_used = block.left <= block.size / 2;
        if state.ahead.is_some() || block.size < AHEAD_SLOTS_MIN || !is_half_used || block.has_void {
            return;
        }
        let size = block.size_after(now, step);
        state.ahead =
            Some(tokio::spawn(reserve(self.store.clone(), self.key.clone(), size, step, timing.clone())));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block of the limit's time. Where the store does not answer, one slot from now: its trouble is told by whoever has
/// something to write there, and is no reason to be late as well.
async fn reserve(store: Store, key: LimitKey, size: u32, step: Duration, timing: Timing) -> Block {
    let length_us = i64::try_from((step * size).as_micros()).unwrap_or(i64::MAX);
    let reserved = store.take_slots(&key, length_us).await;
    let now = timing.elapsed();
    match reserved {
        Ok(reserved) => {
            let wait_us = reserved.first_at_us.saturating_sub(reserved.now_us);
            let next = now + Duration::from_micros(u64::try_from(wait_us).unwrap_or(0));
            Block { next, step, left: size, size, has_void: false }
        }
        Err(error) => {
            tracing::debug!("slots of {} are not shared: {error:#}", key.endpoint);
            Block { next: now, step, left: 1, size: 1, has_void: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    fn block(size: u32) -> Block {
        Block { next: Duration::ZERO, step: STEP, left: size, size, has_void: false }
    }

    #[test]
    fn a_slot_that_has_passed_is_void_and_a_late_timer_loses_none() {
        let mut some = block(5);
        assert_eq!(some.take(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(some.take(STEP + STEP / 2), Some(STEP), "late by half a step");
        assert_eq!(some.take(STEP * 4), Some(STEP * 3), "the third has passed");
        assert_eq!((some.take(STEP * 4), some.take(STEP * 4)), (Some(STEP * 4), None));
        assert!(some.has_void);
        assert_eq!(block(3).take(STEP * 10), None);
    }

    #[test]
    fn who_asks_often_reserves_more_and_who_asks_seldom_one() {
        let mut sizes = vec![Block::default().size_after(Duration::ZERO, STEP)];
        for _ in 0..5 {
            let mut used = block(*sizes.last().unwrap());
            while used.take(used.next).is_some() {}
            sizes.push(used.size_after(used.next, STEP));
        }
        assert_eq!(sizes, [1, 2, 4, 8, 10, 10], "no more than a second's");
        let mut used = block(8);
        while used.take(used.next).is_some() {}
        assert_eq!(used.size_after(used.next + STEP * 2, STEP), 1, "after a pause");
        let mut passed = block(8);
        while passed.take(STEP * 4).is_some() {}
        assert_eq!(passed.size_after(STEP * 8, STEP), 1, "slots were passed by");
    }
}
