//! The lease that keeps two runs from working on one store at once.
//!
//! It ends by itself: when its time is over, or at once when the process that holds it is seen to be
//! gone from this very machine. It is a courtesy, not the guard: effects stay single without it,
//! because the unique keys see to that. It is one row and nothing that stays on a connection, not even a prepared
//! statement, so a pooler between may give each transaction another one. Its clock is the database server's, which all hosts share, or this machine's for a
//! file; never `RECON_NOW`. Should that clock jump, the lease still ends: see [`STRANGE_MS`].

use super::{Database, Store};
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long a lease lasts after it was last renewed.
pub const LEASE_MS: u64 = 60_000;
/// An end that lies further ahead was written by a clock that has been set back since. Nobody can say when it would
/// come, so such a lease is over; a holder that lives on sees that it was taken, and stops.
pub const STRANGE_MS: u64 = 2 * LEASE_MS;
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
    /// Takes the lease by the store's clock and keeps renewing it; `None` when another holder has it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn acquire_now(store: &Store, name: &'static str) -> Result<Option<Self>> {
        Self::acquire_by(store, name, Clock::OfTheStore).await
    }

    /// As [`Self::acquire_now`], by another clock.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn acquire(
        store: &Store,
        name: &'static str,
        now_us: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Result<Option<Self>> {
        Self::acquire_by(store, name, Clock::Given(Box::new(now_us))).await
    }

    async fn acquire_by(store: &Store, name: &'static str, clock: Clock) -> Result<Option<Self>> {
        let holder = holder::this_process();
        if !take(store, name, &holder, clock.now_us(store).await?).await? {
            return Ok(None);
        }
        let is_lost = Arc::new(AtomicBool::new(false));
        let renewal = tokio::spawn(keep(store.clone(), name, holder.clone(), Arc::clone(&is_lost), clock));
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
        let query = sqlx::query(SQL).persistent(false).bind(self.name).bind(&*self.holder);
        query.fetch_optional(&mut *tx).await.context("give back the lease")?;
        tx.commit().await.context("give back the lease")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

const CLOCK: &str = "read the database server's clock";

/// The database server's clock, or the machine's for a file, Unix µs.
pub(super) async fn database_now_us(connection: &mut AnyConnection) -> Result<i64> {
    const SQL: &str = include_str!("../../queries/postgres/lease_now.sql");
    match Database::of(connection) {
        Database::Sqlite => Ok(crate::clock::machine_now_us()),
        Database::Postgres => {
            let row = sqlx::query(SQL).persistent(false).fetch_one(connection).await.context(CLOCK)?;
            Ok(row.try_get("now_us")?)
        }
    }
}

/// What the time is for a lease.
enum Clock {
    /// The database server's, or the machine's for a file.
    OfTheStore,
    /// Another one.
    Given(Box<dyn Fn() -> i64 + Send + Sync>),
}

impl Clock {
    async fn now_us(&self, store: &Store) -> Result<i64> {
        match (self, store.database()) {
            (Self::Given(now_us), _) => Ok(now_us()),
            (Self::OfTheStore, Database::Sqlite) => Ok(crate::clock::machine_now_us()),
            (Self::OfTheStore, Database::Postgres) => {
                // In a transaction: a pooler keeps one connection for it.
                let mut tx = store.begin().await.context(CLOCK)?;
                let now_us = database_now_us(&mut tx).await?;
                tx.commit().await.context(CLOCK)?;
                Ok(now_us)
            }
        }
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
    let row = sqlx::query(READ)
        .persistent(false)
        .bind(name)
        .fetch_optional(&mut *tx)
        .await
        .with_context(context)?;
    let held_by = row.map(|row| row.try_get::<String, _>("holder")).transpose()?;
    let gone = held_by.filter(|other| holder::is_gone(other)).unwrap_or_else(|| holder.to_owned());
    let expires_at_us = after(now_us, LEASE_MS);
    let query = sqlx::query(ACQUIRE)
        .persistent(false)
        .bind(name)
        .bind(holder)
        .bind(expires_at_us)
        .bind(gone)
        .bind(now_us);
    let query = query.bind(after(now_us, STRANGE_MS));
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
    let expires_at_us = after(now_us, LEASE_MS);
    let mut tx = store.begin_write().await?;
    let query = sqlx::query(SQL).persistent(false).bind(expires_at_us).bind(name).bind(holder);
    let renewed = query.fetch_optional(&mut *tx).await.context("renew the lease")?.is_some();
    tx.commit().await.context("renew the lease")?;
    Ok(renewed)
}

async fn keep(store: Store, name: &'static str, holder: String, is_lost: Arc<AtomicBool>, clock: Clock) {
    // Whether it can still be ours is told by a clock that nobody sets.
    let mut renewed_at = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(RENEW_MS)).await;
        let begun_at = Instant::now();
        let renewed = match clock.now_us(&store).await {
            Ok(now_us) => renew(&store, name, &holder, now_us).await,
            Err(error) => Err(error),
        };
        match renewed {
            Ok(true) => renewed_at = begun_at,
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(lease = name, "the lease {name} could not be renewed: {error:#}");
                if renewed_at.elapsed() >= Duration::from_millis(LEASE_MS) {
                    break;
                }
            }
        }
    }
    is_lost.store(true, Ordering::Release);
    tracing::warn!(lease = name, "the lease {name} is lost");
}

/// An instant this much later, Unix µs.
fn after(now_us: i64, wait_ms: u64) -> i64 {
    now_us.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX).saturating_mul(1_000))
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
