//! The store is away, locked, full, or refuses something: nothing is answered with 2xx that is not kept, and
//! what is kept comes into the store.

use super::{Answer, BOTH, Receiver, Site, event};
use crate::postgres::{Cluster, Place};
use recon::store::Database;
use sqlx::{AnyConnection, Connection, Executor};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

const SPILL: &str = "spill_dir = \"spill\"";

/// A store that can go away and come back.
enum Away {
    /// A folder with the file is renamed: whoever opens it again finds nothing to open.
    File(Site),
    Server(Site, Arc<Cluster>),
}

impl Away {
    fn new(database: Database) -> Self {
        let site = Site::new(database);
        if database == Database::Sqlite {
            return Self::File(site);
        }
        let cluster = Cluster::own();
        let site = Site {
            place: Place::Server { cluster: Arc::clone(&cluster), database: "postgres".into() },
            ..site
        };
        Self::Server(site, cluster)
    }

    fn site(&self) -> &Site {
        match self {
            Self::File(site) | Self::Server(site, _) => site,
        }
    }

    fn configure(&self, receive: &str) {
        match self {
            Self::File(site) => {
                let url = format!("sqlite:{}/there/recon.db", site.folder.path().display());
                site.configure_on(&url, receive, "");
            }
            Self::Server(site, _) => site.configure(receive, ""),
        }
    }

    fn leave(&self) {
        match self {
            Self::File(site) => {
                std::fs::remove_dir_all(site.folder.path().join("there")).ok();
            }
            Self::Server(_, cluster) => cluster.stop(),
        }
    }

    fn come_back(&self) {
        match self {
            Self::File(site) => std::fs::create_dir(site.folder.path().join("there")).unwrap(),
            Self::Server(_, cluster) => cluster.start_again(),
        }
    }

    async fn ids(&self) -> Vec<String> {
        const SQL: &str = "select event_id from inbox_event order by event_id";
        let Self::File(site) = self else { return self.site().ids().await };
        let url = format!("sqlite:{}/there/recon.db", site.folder.path().display());
        let store = recon::store::Store::open(&url, recon::store::Access::ReadWrite).await.unwrap();
        let rows = sqlx::query(SQL).fetch_all(store.pool()).await.unwrap();
        rows.iter().map(|row| sqlx::Row::get(row, 0)).collect()
    }
}

/// Posts until one is taken, and gives its answer.
fn until_taken(receiver: &Receiver, body: &str) -> Answer {
    for _ in 0..100_000 {
        let answer = receiver.stripe(body).unwrap();
        if answer.is_taken() {
            return answer;
        }
        answer.is_come_again();
    }
    panic!("the store never came back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_store_the_provider_is_told_to_come_again() {
    for database in BOTH {
        let away = Away::new(database);
        away.configure("");
        away.leave();
        let receiver = away.site().start();
        receiver.get("/healthz").is_come_again();
        for _ in 0..5 {
            receiver.stripe(&event("evt_1")).unwrap().is_come_again();
        }
        away.come_back();
        // No restart is needed.
        assert_eq!(until_taken(&receiver, &event("evt_2")).status, 200);
        assert_eq!(receiver.get("/healthz").status, 200);
        assert_eq!(away.ids().await, ["evt_2"]);
        receiver.wait_for("recon_store_up 1");
        away.site().said_nothing_of(&["pi_1"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_goes_away_under_load_loses_nothing_and_comes_back() {
    let away = Away::new(Database::Postgres);
    away.configure(SPILL);
    let receiver = away.site().start();
    let mut expected = BTreeSet::new();
    let mut post = |count: usize| {
        for _ in 0..count {
            let id = format!("evt_{:03}", expected.len());
            let answer = receiver.stripe(&event(&id)).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            expected.insert(id);
        }
    };
    post(10);
    away.leave();
    post(40);
    assert!(!away.site().spilled().is_empty());
    assert_eq!(receiver.get("/healthz").status, 200);
    away.come_back();
    post(10);
    receiver.wait_for("recon_spill_files 0");
    assert_eq!(away.ids().await, Vec::from_iter(expected));
    assert_eq!(away.site().spilled(), [""; 0]);
    away.site().said_nothing_of(&["pi_1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spilled_events_survive_a_kill_and_come_into_the_store() {
    for database in BOTH {
        let away = Away::new(database);
        away.configure(SPILL);
        away.leave();
        let receiver = away.site().start();
        let ids: Vec<String> = (0..30).map(|at| format!("evt_{at:02}")).collect();
        std::thread::scope(|scope| {
            for id in &ids {
                let receiver = &receiver;
                scope.spawn(move || assert_eq!(receiver.stripe(&event(id)).unwrap().status, 200));
            }
        });
        receiver.kill();
        let files = away.site().spilled();
        assert!(
            files.iter().all(|name| name.split('.').next_back() == Some("spill")) && !files.is_empty(),
            "{files:?}"
        );
        away.come_back();
        let receiver = away.site().start();
        receiver.wait_for("recon_spill_files 0");
        assert_eq!(away.ids().await, ids);
        // A file that is brought back twice only counts deliveries again.
        receiver.kill();
        assert_eq!(away.site().spilled(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spilled_file_that_cannot_be_read_stands_in_nobodys_way() {
    let away = Away::new(Database::Sqlite);
    away.configure(SPILL);
    away.leave();
    let receiver = away.site().start();
    assert_eq!(receiver.stripe(&event("evt_1")).unwrap().status, 200);
    receiver.kill();
    let broken = away.site().spill_folder().join("0.spill");
    std::fs::write(&broken, "{\"provider\":\"whsec_secret_text\"").unwrap();
    away.come_back();
    let receiver = away.site().start();
    receiver.wait_for("recon_spill_files 0");
    assert_eq!(away.ids().await, ["evt_1"]);
    assert_eq!(away.site().spilled(), ["0.spill.unreadable"]);
    assert_eq!(receiver.end(), Some(0));
    away.site().said_nothing_of(&["whsec_secret_text"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_line_costs_only_itself() {
    let away = Away::new(Database::Sqlite);
    away.configure(SPILL);
    away.leave();
    let receiver = away.site().start();
    assert_eq!(receiver.stripe(&event("evt_1")).unwrap().status, 200);
    receiver.kill();
    let folder = away.site().spill_folder();
    let [name] = &away.site().spilled()[..] else { panic!("one file") };
    let good = std::fs::read(folder.join(name)).unwrap();
    let damaged = b"{\"provider\":\"whsec_secret_\xff\"}\n";
    let torn = &good[..good.len() / 2];
    std::fs::write(folder.join(name), [damaged, &good[..], torn].concat()).unwrap();
    away.come_back();
    let receiver = away.site().start();
    receiver.wait_for("recon_spill_files 0");
    receiver.wait_for("recon_spill_unreadable 1");
    assert_eq!(away.ids().await, ["evt_1"]);
    let aside = format!("{name}.unreadable");
    assert_eq!(away.site().spilled(), std::slice::from_ref(&aside));
    assert_eq!(std::fs::read(folder.join(aside)).unwrap(), [damaged, torn].concat());
    assert_eq!(receiver.end(), Some(0));
    away.site().said_nothing_of(&["whsec_secret_"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_store_refuses_costs_only_itself() {
    const TRIGGER: &str = "create trigger poison before insert on inbox_event when new.event_id = 'evt_poison' \
         begin select raise(abort, 'poison'); end";
    let site = Site::new(Database::Sqlite);
    site.configure("spill_dir = \"spill\"", "");
    let store = site.store().await;
    store.pool().execute(TRIGGER).await.unwrap();
    let receiver = site.start();
    receiver.wait_for("recon_store_up 1");
    // While somebody else holds the lock, deliveries gather into one commit.
    let lock = store.begin_write().await.unwrap();
    let ids: Vec<String> = (0..40).map(|at| format!("evt_{at:02}")).collect();
    let statuses: BTreeSet<u16> = std::thread::scope(|scope| {
        let post = |id: String| receiver.stripe(&event(&id)).unwrap().status;
        let poison = scope.spawn(move || post("evt_poison".into()));
        let others: Vec<_> = ids.iter().map(|id| scope.spawn(move || post(id.clone()))).collect();
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(lock.rollback())).unwrap();
        assert_eq!(poison.join().unwrap(), 503);
        others.into_iter().map(|other| other.join().unwrap()).collect()
    });
    assert_eq!(statuses, BTreeSet::from([200]));
    assert_eq!(site.ids().await, ids);
    // The store is not taken for down because of it.
    receiver.wait_for("recon_store_up 1");
    assert_eq!(site.spilled(), [""; 0]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spilled_event_that_the_store_refuses_is_set_aside() {
    let site = Site::new(Database::Sqlite);
    let broken = format!("sqlite:{}/nowhere/recon.db", site.folder.path().display());
    site.configure_on(&broken, SPILL, "");
    let receiver = site.start();
    for id in ["evt_1", "evt_poison", "evt_2"] {
        assert_eq!(receiver.stripe(&event(id)).unwrap().status, 200);
    }
    receiver.kill();
    let trigger = "create trigger poison before insert on inbox_event when new.event_id = 'evt_poison' \
         begin select raise(abort, 'poison'); end";
    let store = site.store().await;
    store.pool().execute(trigger).await.unwrap();
    store.close().await;
    site.configure(SPILL, "");
    let receiver = site.start();
    receiver.wait_for("recon_spill_files 0");
    assert_eq!(site.ids().await, ["evt_1", "evt_2"]);
    let left = site.spilled();
    assert!(left.len() == 1 && left[0].ends_with(".refused"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c71_a_lock_that_cannot_be_had_in_time_is_never_a_2xx() {
    for database in BOTH {
        let site = Site::new(database);
        site.configure("timeout = \"1s\"", "");
        let receiver = site.start();
        receiver.wait_for("recon_store_up 1");
        let store = site.store().await;
        let mut lock = store.begin_write().await.unwrap();
        if database == Database::Postgres {
            // There the receiver needs no lock of the whole store.
            lock.execute("lock table inbox_event in access exclusive mode").await.unwrap();
        }
        std::thread::scope(|scope| {
            for at in 0..20 {
                let receiver = &receiver;
                scope.spawn(move || receiver.stripe(&event(&format!("evt_a{at}"))).unwrap().is_come_again());
            }
        });
        lock.rollback().await.unwrap();
        store.close().await;
        assert_eq!(until_taken(&receiver, &event("evt_b")).status, 200);
        assert!(site.ids().await.contains(&"evt_b".to_owned()));
        site.said_nothing_of(&[]);
    }
}

/// Two receivers and a reader that holds its read: all are written, none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c71_two_processes_and_a_long_read_lose_nothing() {
    for database in BOTH {
        let site = Site::new(database);
        let receivers = [site.start(), site.start()];
        for receiver in &receivers {
            receiver.wait_for("recon_store_up 1");
        }
        sqlx::any::install_default_drivers();
        let mut reader = AnyConnection::connect(&site.place.url()).await.unwrap();
        reader.execute("begin").await.unwrap();
        sqlx::query("select count(*) from inbox_event").fetch_one(&mut reader).await.unwrap();
        std::thread::scope(|scope| {
            for (which, receiver) in receivers.iter().enumerate() {
                for part in 0..4 {
                    scope.spawn(move || {
                        for at in 0..25 {
                            let id = format!("evt_{which}_{part}_{at}");
                            assert_eq!(receiver.stripe(&event(&id)).unwrap().status, 200);
                        }
                    });
                }
            }
        });
        assert_eq!(site.ids().await.len(), 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c81_a_full_disk_is_never_a_2xx() {
    let site = Site::new(Database::Sqlite);
    let mut command = Command::new("sh");
    // Blocks of 512 or 1,024 bytes; the signal would kill before the error could be told.
    command.args(["-c", "trap '' XFSZ; ulimit -f 4000; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_recon"));
    command.arg("--config").arg(site.config()).arg("serve");
    site.dress(&mut command);
    // The log is no part of the disk.
    command.env("RECON_LOG", "error").stderr(std::process::Stdio::null());
    let receiver = Receiver::start(&mut command).unwrap();
    receiver.wait_for("recon_store_up 1");
    let padding = "x".repeat(4_000);
    let (mut taken, mut refused) = (Vec::new(), 0);
    for at in 0..5_000 {
        let id = format!("evt_{at:04}");
        let answer = receiver.stripe(&event(&id).replace("pi_1", &padding)).unwrap();
        if answer.is_taken() {
            taken.push(id);
        } else {
            answer.is_come_again();
            refused += 1;
        }
        if refused == 50 {
            break;
        }
    }
    assert!(refused == 50 && taken.len() > 10, "{} taken, {refused} refused", taken.len());
    receiver.kill();
    assert_eq!(site.ids().await, taken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_asked_to_end_writes_what_it_took() {
    for database in BOTH {
        let site = Site::new(database);
        let receiver = site.start();
        let address = receiver.address;
        let mut taken: Vec<String> = std::thread::scope(|scope| {
            let post = |part: usize| {
                let ids = (0..).map(move |at| format!("evt_{part}_{at:05}"));
                let is_taken = |id: &String| {
                    let answer = super::deliver(address, "stripe", &super::stripe().sign(event(id)));
                    answer.is_ok_and(|answer| answer.is_taken())
                };
                ids.take_while(is_taken).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|part| scope.spawn(move || post(part))).collect();
            receiver.wait_for("recon_store_up 1");
            receiver.stripe(&event("evt_x")).unwrap();
            assert_eq!(receiver.end(), Some(0));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        taken.push("evt_x".into());
        let stored: BTreeSet<String> = site.ids().await.into_iter().collect();
        let lost: Vec<&String> = taken.iter().filter(|id| !stored.contains(*id)).collect();
        assert!(lost.is_empty() && !taken.is_empty(), "lost: {lost:?}");
    }
}
