//! The lease behind a pooler that gives each transaction another connection (`PgBouncer`, `pool_mode = transaction`).

use crate::postgres::{Cluster, Place, as_server_user};
use recon::store::lease::{self, Lease, RUN};
use recon::store::{Access, Store};
use sqlx::Row;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HINT: &str = "this test starts a pooler: install it (Debian: `apt-get install pgbouncer`)";

/// A pooler over a cluster's socket, with a socket of its own; dropping it ends it.
struct Pooler {
    child: Child,
    folder: tempfile::TempDir,
}

impl Pooler {
    fn over(cluster: &Cluster) -> Self {
        let folder = tempfile::Builder::new().prefix("recon-pb-").tempdir_in("/tmp").unwrap();
        let here = folder.path().display();
        let settings = format!(
            "[databases]\n* = host={} user=recon\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {here}\n\
             listen_port = 6432\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n\
             ignore_startup_parameters = extra_float_digits\nlogfile = {here}/log\npidfile = {here}/pid\n",
            cluster.folder().display()
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        open_to_all(folder.path());
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(Path::new);
        let program = program.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("{HINT}"));
        let mut command = as_server_user(program);
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; {HINT}"));
        let mut pooler = Self { child, folder };
        let socket = pooler.folder.path().join(".s.PGSQL.6432");
        while !socket.exists() {
            if let Some(ended) = pooler.child.try_wait().unwrap() {
                let log = std::fs::read_to_string(pooler.folder.path().join("log")).unwrap_or_default();
                panic!("the pooler ended with {ended}: {log}");
            }
            std::thread::yield_now();
        }
        pooler
    }

    fn url(&self, database: &str) -> String {
        let here = self.folder.path().display();
        format!("postgres:///{database}?host={here}&port=6432&user=recon")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The pooler does not run as root, and its folder is ours.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c77_the_lease_holds_behind_a_transaction_pooler() {
    let cluster = Cluster::shared();
    let place = Place::on(Arc::clone(&cluster));
    let Place::Server { database, .. } = &place else { unreachable!("a server") };
    let direct = Store::open(&place.url(), Access::ReadWrite).await.unwrap();
    let pooler = Pooler::over(&cluster);
    let url = pooler.url(database);
    let mut stores = Vec::new();
    for _ in 0..2 {
        stores.push(Store::open(&url, Access::ReadWrite).await.unwrap());
    }
    // Others keep the connections going round.
    let is_over = Arc::new(AtomicBool::new(false));
    let mut others = Vec::new();
    for _ in 0..3 {
        let (store, is_over) = (Store::open(&url, Access::ReadWrite).await.unwrap(), Arc::clone(&is_over));
        others.push(tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let mut tx = store.begin().await.unwrap();
                let sql = "select count(*) from finding";
                sqlx::query(sql).persistent(false).fetch_one(&mut *tx).await.unwrap();
                tx.commit().await.unwrap();
            }
        }));
    }
    for round in 0..25 {
        let (a, b) = tokio::join!(Lease::acquire_now(&stores[0], RUN), Lease::acquire_now(&stores[1], RUN));
        let held: Vec<Lease> = [a.unwrap(), b.unwrap()].into_iter().flatten().collect();
        assert_eq!(held.len(), 1, "round {round}");
        for lease in held {
            assert!(!lease.is_lost());
            lease.release().await.unwrap();
        }
    }
    assert!(lease::take(&stores[0], RUN, "crashed elsewhere", 0).await.unwrap());
    let next = Lease::acquire_now(&stores[1], RUN).await.unwrap().expect("the crashed holder's time is over");
    assert!(!lease::renew(&stores[0], RUN, "crashed elsewhere", 1).await.unwrap());
    next.release().await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    for other in others {
        other.await.unwrap();
    }
    let sql = "select cast(count(*) as bigint) as locks from pg_locks where locktype = 'advisory' \
               and database = (select oid from pg_database where datname = current_database())";
    let row = sqlx::query(sql).fetch_one(direct.pool()).await.unwrap();
    assert_eq!(row.get::<i64, _>("locks"), 0, "no lock stays on a connection that somebody else gets");
}
