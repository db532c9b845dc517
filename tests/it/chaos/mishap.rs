//! What happens to a site: something is killed or frozen, and comes back.

use super::provider::{Provider, until};
use super::site::Site;
use crate::postgres::{Cluster, Place};
use crate::random::Random;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Handle;

/// The longest that the next mishap, or the end of one, is waited for. Where all is done already, nothing more happens.
const AT_MOST: Duration = Duration::from_millis(250);

/// What became of a store for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mishap {
    /// A receiver or a worker is killed.
    Process,
    /// All of them are.
    Processes,
    /// The server itself is killed; what it started ends by itself.
    Server,
    /// One of the processes that serve connections is killed: all of them begin anew.
    Backend,
    /// It stops as after a crash.
    Immediate,
    /// It stops and tells its clients that it does.
    Fast,
    /// Every connection is ended.
    Terminate,
    /// It neither answers nor goes away.
    Freeze,
    /// Server and processes are killed at once, and come back in any order.
    Everything,
    /// Somebody else holds the lock.
    Lock,
}

const ON_SQLITE: [Mishap; 6] =
    [Mishap::Process, Mishap::Process, Mishap::Process, Mishap::Process, Mishap::Processes, Mishap::Lock];
const ON_POSTGRES: [Mishap; 12] = [
    Mishap::Process,
    Mishap::Process,
    Mishap::Process,
    Mishap::Processes,
    Mishap::Server,
    Mishap::Server,
    Mishap::Backend,
    Mishap::Immediate,
    Mishap::Fast,
    Mishap::Terminate,
    Mishap::Freeze,
    Mishap::Everything,
];

/// Waits for a point of time that the seed chooses: so many deliveries, questions to the provider or messages
/// later, or in the middle of a commit.
pub fn wait_for_point(site: &Site, provider: &Provider<'_>, random: &mut Random) {
    let more = 1 + random.below(30);
    match random.below(4) {
        0 | 1 => provider.pass(more, AT_MOST),
        2 => {
            let asked = site.emulator.counters.total();
            until(AT_MOST, || site.emulator.counters.total() >= asked + more);
        }
        _ => match (site.write_ahead_log(), &site.ear) {
            (Some(before), _) => {
                until(AT_MOST, || site.write_ahead_log().is_some_and(|now| now != before));
            }
            (None, Some(ear)) => {
                let heard = ear.heard().len();
                until(AT_MOST, || ear.heard().len() > heard);
            }
            (None, None) => provider.pass(more, AT_MOST),
        },
    }
}

/// Lets something happen and be over.
pub fn happen(site: &mut Site, provider: &Provider<'_>, random: &mut Random) -> Mishap {
    let cluster = match &site.place {
        Place::File(_) => None,
        Place::Server { cluster, .. } => Some(std::sync::Arc::clone(cluster)),
    };
    let mishap = *random.pick(if cluster.is_some() { &ON_POSTGRES[..] } else { &ON_SQLITE[..] });
    let away = 1 + random.below(25);
    match (mishap, cluster) {
        (Mishap::Process, _) => {
            let place = usize::try_from(random.below(site.places() as u64)).unwrap();
            site.kill(place, provider);
            if random.chance(30) {
                provider.pass(away, AT_MOST);
            }
            site.start(place, provider);
        }
        (Mishap::Processes, _) => restart_all(site, provider, || {}),
        (Mishap::Lock, _) => lock(site, provider, away),
        (Mishap::Everything, Some(cluster)) => {
            let is_first = random.chance(50);
            kill_all(&[&cluster.processes().0]);
            restart_all(site, provider, || {
                if is_first {
                    cluster.revive();
                }
            });
            if !is_first {
                provider.pass(away, AT_MOST);
                cluster.revive();
            }
        }
        (mishap, Some(cluster)) => outage(mishap, site, &cluster, || provider.pass(away, AT_MOST)),
        (mishap, None) => panic!("{mishap:?} needs a server"),
    }
    mishap
}

fn restart_all(site: &mut Site, provider: &Provider<'_>, between: impl FnOnce()) {
    for place in 0..site.places() {
        site.kill(place, provider);
    }
    between();
    for place in 0..site.places() {
        site.start(place, provider);
    }
}

fn outage(mishap: Mishap, site: &Site, cluster: &Cluster, meanwhile: impl FnOnce()) {
    let (server, children) = cluster.processes();
    match mishap {
        Mishap::Server => kill_all(&[&server]),
        Mishap::Immediate => cluster.stop(),
        Mishap::Fast => cluster.stop_fast(),
        Mishap::Freeze => {
            let all: Vec<&str> = [&*server].into_iter().chain(children.iter().map(|pid| &**pid)).collect();
            signal("-STOP", &all);
            meanwhile();
            signal("-CONT", &all);
            return;
        }
        Mishap::Terminate => {
            let ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                 where datname = current_database() and pid <> pg_backend_pid()";
            Handle::current().block_on(site.number(ended));
            return;
        }
        _ => {
            let serving = "select coalesce(max(pid), 0)::bigint from pg_stat_activity \
                 where datname = current_database() and pid <> pg_backend_pid()";
            let pid = Handle::current().block_on(site.number(serving));
            if pid > 0 {
                kill_all(&[&pid.to_string()]);
                until(Duration::from_secs(20), || cluster.answers());
            }
            return;
        }
    }
    meanwhile();
    cluster.revive();
}

/// Whoever is gone already needs no kill.
fn signal(signal: &str, pids: &[&str]) {
    Command::new("kill").arg(signal).args(pids).output().unwrap();
}

fn kill_all(pids: &[&str]) {
    signal("-KILL", pids);
}

/// Holds SQLite's write lock for so many deliveries.
fn lock(site: &Site, provider: &Provider<'_>, away: u64) {
    use sqlx::{Connection, Executor};
    let handle = Handle::current();
    let mut connection = handle.block_on(site.connection());
    handle.block_on(connection.execute("begin immediate")).unwrap();
    // Longer than the receiver waits for it.
    provider.pass(away, Duration::from_millis(1_500));
    handle.block_on(connection.execute("rollback")).unwrap();
    handle.block_on(connection.close()).unwrap();
}
