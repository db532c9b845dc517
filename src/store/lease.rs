//! The lease that keeps two runs from working on one store at once.
//!
//! It ends by itself: when its time is over, or at once when the process that holds it is seen to be
//! gone from this very machine. It is a courtesy, not the guard: effects stay single without it,
//! because the unique keys see to that. Its clock is the machine's own, never `RECON_NOW`.

use super::Store;
use anyhow::{Context, Result};
use sqlx::Row;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a lease lasts after it was last renewed.
pub const LEASE_MS: u64 = 60_000;
/// How often its holder renews it.
pub const RENEW_MS: u64 = 20_000;
/// The lease of everything that judges or writes: `run` and `apply`.
pub const RUN: &str = "run";

/// A held lease. Dropped without [`Lease::release`], it ends when its time is over.
#[derive(Debug)]
pub struct Lease {
    store: Store,
    name: &'static str,
    holder: String,
    is_lost: Arc<AtomicBool>,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Takes the lease and keeps renewing it; `None` when another holder has it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn acquire(
        store: &Store,
        name: &'static str,
        now_us: impl Fn() -> i64 + Send + 'static,
    ) -> Result<Option<Self>> {
        let holder = holder::this_process();
        if !take(store, name, &holder, now_us()).await? {
            return Ok(None);
        }
        let is_lost = Arc::new(AtomicBool::new(false));
        let renewal = tokio::spawn(keep(store.clone(), name, holder.clone(), Arc::clone(&is_lost), now_us));
        Ok(Some(Self { store: store.clone(), name, holder, is_lost, renewal }))
    }

    /// Whether somebody else took it, for example because this machine slept. Work must stop.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Gives it back.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(self) -> Result<()> {
        const SQL: &str = include_str!("../../queries/store/lease_release.sql");
        self.renewal.abort();
        let mut tx = self.store.begin_write().await?;
        let query = sqlx::query(SQL).bind(self.name).bind(&*self.holder);
        query.fetch_optional(&mut *tx).await.context("give back the lease")?;
        tx.commit().await.context("give back the lease")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Takes the lease for `holder` at `now_us`, if it is free, over, or held by a process that is gone.
///
/// # Errors
/// When the store cannot be written.
pub async fn take(store: &Store, name: &str, holder: &str, now_us: i64) -> Result<bool> {
    const READ: &str = include_str!("../../queries/store/lease_read.sql");
    const ACQUIRE: &str = include_str!("../../queries/store/lease_acquire.sql");
    let context = || format!("take the lease `{name}`");
    let mut tx = store.begin_write().await.with_context(context)?;
    let row = sqlx::query(READ).bind(name).fetch_optional(&mut *tx).await.with_context(context)?;
    let held_by = row.map(|row| row.try_get::<String, _>("holder")).transpose()?;
    let gone = held_by.filter(|other| holder::is_gone(other)).unwrap_or_else(|| holder.to_owned());
    let expires_at_us =
        now_us.saturating_add(i64::try_from(LEASE_MS).unwrap_or(i64::MAX).saturating_mul(1_000));
    let query = sqlx::query(ACQUIRE).bind(name).bind(holder).bind(expires_at_us).bind(gone).bind(now_us);
    let taken = query.fetch_optional(&mut *tx).await.with_context(context)?.is_some();
    tx.commit().await.with_context(context)?;
    Ok(taken)
}

/// Moves the end of a held lease; false when somebody else has it by now.
///
/// # Errors
/// When the store cannot be written.
pub async fn renew(store: &Store, name: &str, holder: &str, now_us: i64) -> Result<bool> {
    const SQL: &str = include_str!("../../queries/store/lease_renew.sql");
    let expires_at_us =
        now_us.saturating_add(i64::try_from(LEASE_MS).unwrap_or(i64::MAX).saturating_mul(1_000));
    let mut tx = store.begin_write().await?;
    let query = sqlx::query(SQL).bind(expires_at_us).bind(name).bind(holder);
    let renewed = query.fetch_optional(&mut *tx).await.context("renew the lease")?.is_some();
    tx.commit().await.context("renew the lease")?;
    Ok(renewed)
}

async fn keep(
    store: Store,
    name: &'static str,
    holder: String,
    is_lost: Arc<AtomicBool>,
    now_us: impl Fn() -> i64 + Send + 'static,
) {
    let mut renewed_at_us = now_us();
    loop {
        tokio::time::sleep(Duration::from_millis(RENEW_MS)).await;
        let now = now_us();
        match renew(&store, name, &holder, now).await {
            Ok(true) => renewed_at_us = now,
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(lease = name, "the lease {name} could not be renewed: {error:#}");
                let age_us = u64::try_from(now_us().saturating_sub(renewed_at_us)).unwrap_or(0);
                if age_us >= LEASE_MS * 1_000 {
                    break;
                }
            }
        }
    }
    is_lost.store(true, Ordering::Release);
    tracing::warn!(lease = name, "the lease {name} is lost");
}

/// Holder names: which process of which machine, so that its end can be seen.
pub mod holder {
    use super::{AtomicU64, Ordering};

    static COUNT: AtomicU64 = AtomicU64::new(1);

    /// A name for one more holder in this process.
    #[must_use]
    pub fn this_process() -> String {
        let pid = std::process::id();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let start = start_of(pid).unwrap_or_default();
        format!("{pid} {start} {number} {}", place().unwrap_or_default())
    }

    /// Whether the process is certainly gone: same machine since the same boot, same process
    /// namespace, same user, and no such process. Any doubt answers false; then time decides.
    #[must_use]
    pub fn is_gone(name: &str) -> bool {
        let mut words = name.splitn(4, ' ');
        let (Some(pid), Some(start), Some(_), Some(there)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        let (Ok(pid), Some(here)) = (pid.parse::<u32>(), place()) else { return false };
        here == there && !start.is_empty() && start_of(pid).as_deref() != Some(start)
    }

    /// Boot id, process namespace and user. `None` where the system does not tell (not Linux).
    fn place() -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let user = std::fs::metadata("/proc/self").ok()?.uid();
        Some(format!("{} {} {user}", boot.trim(), namespace.display()))
    }

    /// Start time of a process in clock ticks since boot: field 22 of `/proc/PID/stat`, proc(5). A
    /// process that has ended but was not waited for (state Z or X) is gone.
    fn start_of(pid: u32) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = fields.next()?;
        if matches!(state, "Z" | "X") { None } else { fields.nth(18).map(str::to_owned) }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_a_process_that_is_certainly_gone_is_gone() {
            let mine = this_process();
            assert!(!is_gone(&mine));
            let here = place().unwrap();
            assert!(is_gone(&format!("4194999 77 1 {here}")), "no such process");
            let pid = std::process::id();
            assert!(is_gone(&format!("{pid} 1 1 {here}")), "the number was given to another process");
            assert!(!is_gone("4194999 77 1 another-boot pid:[1] 0"), "another machine cannot be judged");
            assert!(!is_gone("someone"));
        }
    }
}
