//! Killed at points that are seen and not waited for, a lost history, a database that goes away: key and effect are both
//! there or neither, and the same plan again ends as it does without the mishap.

use super::shop::{Shop, To};
use crate::books::{Books, Kind, on_each};
use crate::mariadb::Server;
use crate::postgres::{Cluster, Place};
use crate::stage::Ended;
use recon::commands::Outcome;
use recon::demo::faults::Mix;
use recon::store::Database;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

on_each!(killed_while_it_writes_statements, what_was_kept_there_and_not_recorded_here_is_done);

const SEED: u64 = 21;
const EVENTS: usize = 120;

/// A shop with a plan of some dozen corrections.
async fn planned(kind: Kind, to: To, own: Option<Books>) -> (Shop, PathBuf) {
    let mix = Mix::correctable(2);
    let shop = Shop::on(kind, to, (SEED, EVENTS, &mix), own).await;
    let (outcome, dir) = shop.stage.reconcile().await;
    assert_eq!(outcome, Outcome::Findings);
    (shop, dir.join("plan.csv"))
}

fn apply(shop: &Shop, plan: &Path) -> Command {
    shop.stage.command(&["apply", plan.to_str().unwrap()])
}

/// Runs it to its end, while the emulator and the handler go on in this runtime.
async fn ended(mut command: Command) -> Ended {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    Ended::of(&output)
}

/// Starts it and kills it once `is_there`. False when it had ended before.
async fn kill_when(command: &mut Command, is_there: impl AsyncFn() -> bool) -> bool {
    let mut child = command.spawn().unwrap();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if is_there().await {
            child.kill().unwrap();
            return child.wait().unwrap().signal() == Some(9);
        }
        tokio::task::yield_now().await;
    }
}

/// Keys of effects, in order.
async fn keys(shop: &Shop) -> Vec<String> {
    let bytes = shop.kind.pick("effect_key", "effect_key", "cast(effect_key as char)");
    let sql = format!("select {bytes} from recon_applied where effect_key not like '%/state:%' order by 1");
    sorted(shop.books.hand().texts(&sql).await)
}

/// Bookings that a correction made, by their keys.
async fn corrected(shop: &Shop) -> Vec<String> {
    sorted(shop.books.hand().texts("select k from shop_booking where k is not null").await)
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// What the shop booked. Which events it filed depends on where it was killed: what is in the books already is not
/// delivered again, whichever of its events came first.
async fn booked_rows(shop: &Shop) -> String {
    shop.books.hand().dump("shop_booking").await + &shop.books.hand().dump("shop_payment").await
}

/// The shop's own rows: run ids and the times of runs are not in them.
async fn shop_rows(shop: &Shop) -> String {
    let mut all = String::new();
    for table in ["shop_event", "shop_booking", "shop_payment"] {
        all += &shop.books.hand().dump(table).await;
    }
    all
}

async fn killed_while_it_writes_statements(kind: Kind) {
    let (calm, plan) = planned(kind, To::Sql, None).await;
    let done = ended(apply(&calm, &plan)).await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let (expected, all) = (shop_rows(&calm).await, keys(&calm).await);
    assert!(all.len() > 20, "{}", all.len());
    let mut killed = 0;
    let points = if kind == Kind::Sqlite { vec![1, all.len() / 2] } else { vec![all.len() / 2] };
    for point in points {
        let (shop, plan) = planned(kind, To::Sql, None).await;
        let hand = shop.books.hand();
        let count = async || {
            let rows = hand.texts("select cast(count(*) as char(9)) from recon_applied").await;
            rows[0].trim().parse::<usize>().unwrap() >= point
        };
        killed += u32::from(kill_when(&mut apply(&shop, &plan), count).await);
        assert_eq!(
            keys(&shop).await,
            corrected(&shop).await,
            "{kind:?}, killed at {point}: one without the other"
        );
        let done = ended(apply(&shop, &plan)).await;
        assert_eq!(done.code, Some(0), "{kind:?}, killed at {point}: {}{}", done.stdout, done.stderr);
        assert!(shop_rows(&shop).await == expected, "{kind:?}, killed at {point}: other books");
        let again = ended(apply(&shop, &plan)).await;
        assert!(again.stdout.contains(" applied=0 "), "{}", again.stdout);
        assert!(shop_rows(&shop).await == expected, "{kind:?}, killed at {point}: a second apply wrote");
    }
    assert!(killed >= 1, "{kind:?}: it ended before each kill");
}

/// Their commit, and then nothing of ours: as if the machine had lost the store since the plan.
async fn what_was_kept_there_and_not_recorded_here_is_done(kind: Kind) {
    let (shop, plan) = planned(kind, To::Sql, None).await;
    let folder = shop.stage.folder.path();
    let files = ["recon.db", "recon.db-wal", "recon.db-shm"];
    let kept: Vec<Option<Vec<u8>>> = files.iter().map(|name| std::fs::read(folder.join(name)).ok()).collect();
    let (outcome, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(outcome, Outcome::Clean, "{said}");
    let before = shop.rows().await;
    for (name, bytes) in files.iter().zip(kept) {
        match bytes {
            Some(bytes) => std::fs::write(folder.join(name), bytes).unwrap(),
            None => drop(std::fs::remove_file(folder.join(name))),
        }
    }
    assert_eq!(shop.stage.ask("select cast(count(*) as text) from correction").await, "0");
    let (outcome, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(outcome, Outcome::Clean, "{said}");
    assert!(said.contains(" applied=0 ") && !said.contains(" already_applied=0 "), "{said}");
    assert_eq!(shop.rows().await, before, "{kind:?}: done twice");
    let words = shop.stage.rows("select distinct outcome from correction").await;
    assert_eq!(words, ["already_applied"]);
    let (_, said, _) = shop.apply(&plan).await.unwrap();
    assert!(said.contains(" applied=0 "), "{said}");
    assert_eq!(shop.rows().await, before);
}

#[tokio::test]
async fn killed_while_it_delivers() {
    let (calm, plan) = planned(Kind::Sqlite, To::Http, None).await;
    let done = ended(apply(&calm, &plan)).await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let expected = booked_rows(&calm).await;
    let all = calm.handler.as_ref().unwrap().heard().len();
    let mut killed = 0;
    for point in [1, all / 2] {
        let (shop, plan) = planned(Kind::Sqlite, To::Http, None).await;
        let handler = shop.handler.as_ref().unwrap();
        killed +=
            u32::from(kill_when(&mut apply(&shop, &plan), async || handler.heard().len() >= point).await);
        let done = ended(apply(&shop, &plan)).await;
        assert_eq!(done.code, Some(0), "killed at {point}: {}{}", done.stdout, done.stderr);
        assert!(booked_rows(&shop).await == expected, "killed at {point}: other books");
        let heard = handler.heard().len();
        let again = ended(apply(&shop, &plan)).await;
        assert!(again.stdout.contains(" applied=0 "), "{}", again.stdout);
        assert_eq!(handler.heard().len(), heard, "killed at {point}: delivered what is there");
        assert!(booked_rows(&shop).await == expected, "killed at {point}: a second apply wrote");
    }
    assert!(killed >= 1, "it ended before each kill");
}

/// One clear line and exit 2.
fn gone(done: &Ended) {
    assert_eq!(done.code, Some(2), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.errors().len(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("hint: ") && !done.stderr.contains("panicked"), "{}", done.stderr);
}

#[tokio::test]
async fn a_postgres_that_goes_away_leaves_key_and_effect_or_neither() {
    let cluster = Cluster::own();
    let books = Books::Cluster(Place::on(cluster.clone()));
    let (shop, plan) = planned(Kind::Postgres, To::Sql, Some(books)).await;
    // Whoever books waits, with its key taken.
    shop.books
        .run_sql(
            "create function wait() returns trigger language plpgsql as $$ begin
                 if (select count(*) from recon_applied) > 3 then perform pg_sleep(60); end if; return new; end $$;
             create trigger waits before insert on shop_booking for each row execute function wait();",
        )
        .await;
    let child = apply(&shop, &plan).spawn().unwrap();
    let hand = shop.books.hand();
    let sleeping = "select cast(count(*) as text) from pg_stat_activity where wait_event = 'PgSleep'";
    while hand.texts(sleeping).await[0] == "0" {
        tokio::task::yield_now().await;
    }
    cluster.stop();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    gone(&Ended::of(&output));
    cluster.start_again();
    shop.books.run_sql("drop trigger waits on shop_booking").await;
    let there = keys(&shop).await;
    assert!(!there.is_empty());
    assert_eq!(there, corrected(&shop).await);
    let done = ended(apply(&shop, &plan)).await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(keys(&shop).await, corrected(&shop).await);
}

#[tokio::test]
async fn a_mariadb_that_is_killed_is_one_clear_line() {
    let server = Server::own();
    let (shop, plan) = planned(Kind::MariaDb, To::Sql, Some(Books::on(server.clone()))).await;
    shop.books
        .run_sql(
            "create trigger waits before insert on shop_booking for each row
                 set new.money = if((select count(*) from recon_applied) > 3 and sleep(60) = 0, new.money, new.money)",
        )
        .await;
    let child = apply(&shop, &plan).spawn().unwrap();
    let hand = shop.books.hand();
    let sleeping = "select count(*) from information_schema.processlist where state = 'User sleep'";
    while hand.texts(sleeping).await[0] == "0" {
        tokio::task::yield_now().await;
    }
    server.kill();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    gone(&Ended::of(&output));
    assert_eq!(shop.stage.database(), Database::Sqlite);
    let recorded = shop.stage.rows("select outcome from correction").await;
    assert!(!recorded.is_empty() && recorded.iter().all(|word| word == "applied"), "{recorded:?}");
}
