//! Outages in small: the worker waits for a store that is not there, and no event pays for one that is in trouble.

use super::provider::{Provider, until};
use super::site::{NOW_S, SECRET, Site};
use super::{Form, LATER, PATIENCE, Plan};
use crate::postgres::Cluster;
use crate::random::Random;
use crate::serve::stripe;
use recon::store::Database;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Handle;

fn plan(form: Form, spills: bool) -> Plan {
    Plan {
        seed: 5,
        database: Database::Postgres,
        form,
        events: 40,
        batch: 500,
        mishaps: 0,
        spills,
        is_fetched: true,
        has_outbox: false,
        has_faults: false,
        is_lax: false,
    }
}

/// Runs every process while clients deliver every event of the site.
fn with_everything_running(site: &mut Site, act: impl FnOnce(&mut Site, &Provider<'_>)) {
    let events = site.world.events.clone();
    let provider = Provider::new(&events, stripe(), SECRET, NOW_S);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let _over = super::Over(&provider);
            scope.spawn(|| provider.deliver(Random::new(1)));
            for place in 0..site.places() {
                site.start(place, &provider);
            }
            provider.release(0..events.len());
            act(site, &provider);
        });
        site.end();
    });
}

/// A machine boots, and the database is the last to come up.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn who_starts_before_the_database_waits_for_it() {
    let cluster = Cluster::own();
    for form in [Form::Apart, Form::Together] {
        let mut site = Site::new(&plan(form, true), &cluster).await;
        cluster.stop();
        with_everything_running(&mut site, |site, provider| {
            // Every delivery is taken meanwhile.
            provider.settle(PATIENCE);
            assert!(!site.spilled().is_empty());
            assert!(until(PATIENCE, || site.log().contains("the store cannot be reached")));
            site.is_alive();
            cluster.start_again();
            let booked = "select count(*) from ledger_entry";
            let is_booked =
                || Handle::current().block_on(site.try_number(booked)).is_some_and(|count| count > 0);
            assert!(until(PATIENCE, is_booked), "{form:?}: nothing was applied\n{}", site.log());
            site.is_alive();
        });
    }
}

/// A worker that is asked to end while it waits ends.
#[test]
fn a_worker_that_waits_for_its_store_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let provider = "[[provider]]\nname = \"stripe\"\napi_key = { file = \"key\" }\n";
    let text = format!("[store]\nurl = \"sqlite:{}\"\n{provider}", path("nowhere/recon.db").display());
    std::fs::write(path("recon.toml"), text).unwrap();
    std::fs::write(path("key"), "rk_live_1234567890abcdef").unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(folder.path()).args(arguments).env_clear().env("RECON_LOG", "info");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(path("log")).unwrap());
        command
    };
    let end = |mut child: Child| {
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        child.wait().unwrap().code()
    };
    let log = || std::fs::read_to_string(path("log")).unwrap();
    let waiting = command(&["work"]).spawn().unwrap();
    assert!(until(PATIENCE, || log().contains("the store cannot be reached")), "{}", log());
    assert_eq!(end(waiting), Some(0), "{}", log());
    // With an end of its own it does not wait.
    assert_eq!(command(&["work", "--drain"]).status().unwrap().code(), Some(2), "{}", log());
    // It goes on once the store is there.
    let waiting = command(&["work"]).spawn().unwrap();
    assert!(until(PATIENCE, || log().contains("the store cannot be reached")), "{}", log());
    std::fs::create_dir(path("nowhere")).unwrap();
    assert!(until(PATIENCE, || path("nowhere/recon.db").exists()), "{}", log());
    assert_eq!(end(waiting), Some(0), "{}", log());
}

/// The server goes away in the middle of a transaction, again and again, and says so: that is nobody's attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_outage_buries_no_event() {
    const TROUBLE: &str = "create function trouble() returns trigger language plpgsql as \
         $$ begin raise exception 'terminating connection' using errcode = '57P01'; end $$; \
         create trigger trouble before insert on ledger_entry execute function trouble()";
    let mut site = Site::new(&plan(Form::Apart, false), &Cluster::shared()).await;
    let prepared = site.command(&["work", "--drain"], Duration::ZERO).output().unwrap();
    assert!(prepared.status.success(), "{}", site.log());
    site.execute(TROUBLE).await;
    with_everything_running(&mut site, |site, provider| {
        provider.settle(PATIENCE);
        site.is_alive();
    });
    let mut later = Duration::ZERO;
    for _ in 0..7 {
        later += LATER;
        let output = site.command(&["work", "--drain"], later).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", site.log());
    }
    assert_eq!(site.number("select count(*) from inbox_event where status = 'dead'").await, 0);
    assert!(site.number("select max(attempts) from inbox_event where status = 'received'").await > 5);
    site.execute("drop trigger trouble on ledger_entry").await;
    let output = site.command(&["work", "--drain"], later + LATER).output().unwrap();
    assert!(output.status.success(), "{}", site.log());
    assert_eq!(site.number("select count(*) from inbox_event where status in ('dead', 'received')").await, 0);
    assert!(site.number("select count(*) from ledger_entry").await > 0);
}
