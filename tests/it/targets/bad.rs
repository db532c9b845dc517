//! What goes wrong with a target is one clear line each, and nothing is half-done.

use super::handler::Manner;
use super::shop::{Shop, To, now};
use crate::books::{Kind, on_each};
use crate::mariadb::PASSWORD;
use recon::commands::Outcome;
use recon::config::Unusable;
use recon::demo::faults::{Fault, Mix};
use std::path::{Path, PathBuf};

on_each!(
    statements_that_cannot_be_used_stop_before_the_first_write,
    a_statement_that_does_something_else_leaves_nothing,
    what_a_person_did_meanwhile_is_left_alone,
    the_key_table_is_never_made_silently,
);

async fn planned(kind: Kind, to: To, faults: &[Fault]) -> (Shop, PathBuf) {
    let mix = Mix(faults.iter().map(|fault| (*fault, 1)).collect());
    let shop = Shop::new(kind, to, 31, 60, &mix).await;
    let (outcome, dir) = shop.stage.reconcile().await;
    assert_eq!(outcome, Outcome::Findings);
    (shop, dir.join("plan.csv"))
}

/// The settings or statements cannot be used: exit 78, and nothing shows a password.
async fn unusable(shop: &Shop, plan: &Path) -> Unusable {
    let before = shop.rows().await;
    let error = shop.apply(plan).await.unwrap_err();
    assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
    assert_eq!(shop.rows().await, before, "{error:?}");
    let found = error.chain().find_map(|cause| cause.downcast_ref::<Unusable>()).cloned();
    found.unwrap_or_else(|| panic!("{error:?}"))
}

const APPLY: &str = "apply_effect.sql";

async fn statements_that_cannot_be_used_stop_before_the_first_write(kind: Kind) {
    let (shop, plan) = planned(kind, To::Sql, &[Fault::MissedPayment]).await;
    let path = shop.stage.folder.path().join("target").join(APPLY);
    let good = std::fs::read_to_string(&path).unwrap();
    for (text, message) in [
        (good.replace(":amount_minor", ":amont_minor"), "unknown bind :amont_minor"),
        (good.replace("shop_booking", "shop_bookings"), "the database refuses it"),
        (good.replace("cents", "centz"), "the database refuses it"),
        (format!("{good}; delete from shop_booking"), "more than one statement"),
        (format!("-- rows: some\n{good}"), "how many rows it touches cannot be read"),
    ] {
        shop.statement(APPLY, &text);
        let said = unusable(&shop, &plan).await;
        assert!(said.message.contains(message) && said.message.contains(APPLY), "{kind:?}: {}", said.message);
    }
    std::fs::remove_file(&path).unwrap();
    let said = unusable(&shop, &plan).await;
    assert!(said.message.ends_with("apply_effect.sql is missing, and the plan needs it"), "{}", said.message);
    std::fs::write(path, good).unwrap();
    assert_eq!(shop.apply(&plan).await.unwrap().0, Outcome::Clean);
}

async fn a_statement_that_does_something_else_leaves_nothing(kind: Kind) {
    let (shop, plan) = planned(kind, To::Sql, &[Fault::MissedPayment]).await;
    let path = shop.stage.folder.path().join("target").join(APPLY);
    let good = std::fs::read_to_string(&path).unwrap();
    let at = now(kind, shop.stage.world.now_us);
    let twice = format!(
        "{good}, (:correction_id, :account, 1, :object_id, :kind, :amount_minor, :currency, {at}, '', '', 'x')"
    );
    let none = "update shop_booking set cents = cents where number = :effect_key";
    let two = "update shop_booking set cents = cents + 1 where number in (select number from (select number from shop_booking order by number limit 2) t)";
    let before = shop.rows().await;
    for (text, message) in [
        (none.to_owned(), "apply_effect.sql: touched no row instead of 1 row"),
        (two.to_owned(), "apply_effect.sql: touched 2 rows instead of 1 row"),
        (twice.clone(), "touched 2 rows instead of 1 row"),
        (
            good.replace(":amount_minor", ":amount_minor + 1"),
            "and nothing of it is kept: effects.sql shows that",
        ),
        (good.replace(":object_id", ":run_id"), "effects.sql shows that nothing moved instead of credit"),
        (good.replace(":kind", "'refund'"), "effects.sql shows that refund"),
        (format!("-- rows: 2\n{twice}"), "effects.sql shows that credit"),
    ] {
        shop.statement(APPLY, &text);
        let (outcome, said, _) = shop.apply(&plan).await.unwrap();
        assert_eq!(outcome, Outcome::Findings, "{kind:?}: {said}");
        assert!(said.contains(message) && said.contains(" refused=1 "), "{kind:?}, {text}: {said}");
        assert_eq!(shop.rows().await, before, "{kind:?}: something of it was kept");
    }
    // The team's own constraint.
    shop.statement(APPLY, &good.replace(":event_id, '', :effect_key", ":event_id, '', 'taken'"));
    let some = "update shop_booking set k = 'taken' where number in (select number from (select number from shop_booking order by number limit 1) t)";
    shop.books.run_sql(some).await;
    let before = shop.rows().await;
    let (_, said, _) = shop.apply(&plan).await.unwrap();
    assert!(
        said.contains(" refused=1 ") && (said.contains("booking_key") || said.contains("shop_booking.k")),
        "{kind:?}: {said}"
    );
    assert_eq!(shop.rows().await, before);
    // What files the event is no place to move money.
    shop.statement(APPLY, &good);
    let file = shop.stage.folder.path().join("target").join("file_event.sql");
    let filed = std::fs::read_to_string(&file).unwrap();
    shop.statement("file_event.sql", "update shop_booking set cents = cents + 1 where ext = :object_id");
    let (_, said, _) = shop.apply(&plan).await.unwrap();
    assert!(said.contains("effects.sql shows that") && said.contains(" refused=1 "), "{kind:?}: {said}");
    assert_eq!(shop.rows().await, before, "{kind:?}: something of it was kept");
    shop.statement("file_event.sql", &filed);
    // What was refused is tried again, once the statement is right.
    let (outcome, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(outcome, Outcome::Clean, "{said}");
}

async fn what_a_person_did_meanwhile_is_left_alone(kind: Kind) {
    let faults = [Fault::MissedPayment, Fault::DuplicateDelivery, Fault::StalePending];
    let (shop, plan) = planned(kind, To::Sql, &faults).await;
    let of = |fault: Fault| shop.stage.planted.iter().find(|one| one.fault == fault).unwrap();
    let at = now(kind, shop.stage.world.now_us);
    // Booked by hand under the payment's own id; the double row undone; the status set.
    let missed = of(Fault::MissedPayment);
    let expected = &missed.expected[0];
    let (cents, money) = (expected.expected_minor.unwrap(), &expected.currency);
    let stale = &of(Fault::StalePending).root_id;
    let second = "select max(number) from shop_booking where ext in (select ext from shop_booking group by ext, what, cents having count(*) = 2 and sum(cents) > 0)";
    let second = shop.books.hand().texts(second).await[0].clone();
    shop.books
        .run_sql(&format!(
            "insert into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes)
                 values ('by hand', '', 1, '{}', 'credit', {cents}, '{money}', {at}, '', '');
             insert into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes)
                 select 'undone by hand', acct, live, ext, what, -cents, money, {at}, '', number from shop_booking b where number = '{second}';
             update shop_payment set word = 'refunded', changed = {at}, who = 'operator' where ext = '{stale}';",
            missed.root_id
        ))
        .await;
    let before = shop.rows().await;
    let (outcome, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(outcome, Outcome::Findings, "{kind:?}: {said}");
    assert!(said.contains(" applied=0 ") && said.contains(" refused=0 "), "{kind:?}: {said}");
    assert!(said.contains(" manual_override=1 "), "{kind:?}: {said}");
    assert!(said.contains("are booked on the payment by now"), "{kind:?}: {said}");
    assert!(said.contains("is undone by undone by hand"), "{kind:?}: {said}");
    assert_eq!(shop.rows().await, before, "{kind:?}: a person's change was written over");
}

async fn the_key_table_is_never_made_silently(kind: Kind) {
    let (shop, plan) = planned(kind, To::Sql, &[Fault::MissedPayment]).await;
    let hand = shop.books.hand();
    hand.run_sql("alter table recon_applied rename to kept").await;
    let error = shop.apply(&plan).await.unwrap_err();
    let said = error.chain().find_map(|cause| cause.downcast_ref::<Unusable>()).unwrap().clone();
    assert!(said.message.contains("the table recon_applied cannot be used"), "{}", said.message);
    assert!(said.hint.contains("create table recon_applied ( effect_key "), "{}", said.hint);
    // What is said can be pasted, and then it works.
    hand.run_sql(said.hint.split("owner: ").nth(1).unwrap()).await;
    assert_eq!(shop.apply(&plan).await.unwrap().0, Outcome::Clean);
    // A table that would not keep effects apart.
    hand.run_sql("drop table recon_applied").await;
    let (text, long) = (kind.pick("text", "text", "varchar(190)"), kind.pick("text", "text", "varchar(64)"));
    let key = kind.pick("", "", "primary key");
    hand.run_sql(&format!(
        "create table recon_applied (effect_key {text} not null {key}, correction_id {long}, run_id {long}, applied_at_us bigint)"
    ))
    .await;
    let said = unusable(&shop, &plan).await;
    assert!(said.message.contains("recon_applied"), "{kind:?}: {}", said.message);
    assert!(said.hint.contains("create table recon_applied"), "{kind:?}: {}", said.hint);
}

#[tokio::test]
async fn credentials_that_are_wrong_or_may_not_write_are_one_line() {
    let (shop, plan) = planned(Kind::MariaDb, To::Sql, &[Fault::MissedPayment]).await;
    let target = shop.stage.folder.path().join("target.url");
    // May read and nothing else.
    std::fs::write(&target, shop.books.url()).unwrap();
    let said = unusable(&shop, &plan).await;
    assert!(
        said.message.contains("recon_applied cannot be used") && said.message.contains("denied"),
        "{}",
        said.message
    );
    std::fs::write(&target, shop.books.url().replace(PASSWORD, "wrong")).unwrap();
    let said = unusable(&shop, &plan).await;
    assert!(
        said.message.contains("[target] url") && said.message.contains("lets nobody in"),
        "{}",
        said.message
    );
    std::fs::remove_file(&target).unwrap();
    let said = unusable(&shop, &plan).await;
    assert!(said.message.contains("[target] url cannot be read"), "{}", said.message);
    // The report needs none of it.
    assert_eq!(shop.stage.reconcile().await.0, Outcome::Findings);
}

#[tokio::test]
async fn a_postgres_role_without_the_right_to_write_is_one_line() {
    let (shop, plan) = planned(Kind::Postgres, To::Sql, &[Fault::MissedPayment]).await;
    shop.books.run_sql("do $$ begin create role looker login; exception when duplicate_object then null; end $$; grant select on all tables in schema public to looker").await;
    let url = shop.books.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let target = shop.stage.folder.path().join("target.url");
    std::fs::write(target, format!("{scheme}://looker@{rest}")).unwrap();
    let said = unusable(&shop, &plan).await;
    assert!(said.message.contains("permission denied for table recon_applied"), "{}", said.message);
}

#[tokio::test]
async fn a_word_that_two_of_the_teams_mean_is_not_guessed() {
    let (shop, plan) = planned(Kind::Sqlite, To::Sql, &[Fault::StalePending]).await;
    let before = shop.rows().await;
    shop.stage.configure(
        "[corrections.target]",
        "[local.status_map]\ndone = \"paid\"\nsettled = \"paid\"\n[corrections.target]",
    );
    let (outcome, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(outcome, Outcome::Findings, "{said}");
    assert!(said.contains("done and settled of [local.status_map] mean paid"), "{said}");
    assert_eq!(shop.rows().await, before);
    shop.stage.configure("settled = \"paid\"\n", "");
    assert_eq!(shop.apply(&plan).await.unwrap().0, Outcome::Clean);
    let words = shop.books.hand().texts("select word from shop_payment where who = 'recon'").await;
    assert_eq!(words, ["done"]);
}

#[tokio::test]
async fn what_the_handler_answers_proves_nothing() {
    let (shop, plan) = planned(Kind::Sqlite, To::Http, &[Fault::MissedPayment]).await;
    let handler = shop.handler.as_ref().unwrap();
    let before = shop.rows().await;
    for (manner, outcome, word, line) in [
        (Manner::SaysYes, Outcome::Findings, "not_verified", "the handler answered 200, and 1 s later"),
        (Manner::Answers(302), Outcome::Incomplete, "failed", "the handler failed with 302"),
        (Manner::Answers(400), Outcome::Findings, "refused", "the handler refused it with 400"),
        (Manner::Answers(429), Outcome::Incomplete, "failed", "the handler failed with 429"),
        (Manner::Answers(500), Outcome::Incomplete, "failed", "the handler failed with 500"),
        (Manner::Hangs, Outcome::Incomplete, "failed", "the handler did not answer within 2 s"),
    ] {
        handler.behave(manner);
        let (ended, said, _) = shop.apply(&plan).await.unwrap();
        assert_eq!(ended, outcome, "{manner:?}: {said}");
        assert!(said.contains(line) && said.contains(&format!(" {word}=1")), "{manner:?}: {said}");
        assert_eq!(shop.rows().await, before, "{manner:?}");
    }
    // It books and fails all the same: only the books count.
    handler.behave(Manner::WorksAndFails);
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(ended, Outcome::Clean, "{said}");
    assert!(said.contains(" applied=1 "), "{said}");
    let heard = handler.heard().len();
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert!(ended == Outcome::Clean && said.contains(" already_applied=1 "), "{said}");
    assert_eq!(handler.heard().len(), heard, "delivered what is there");
    let words = shop.stage.rows("select outcome from correction order by sequence").await;
    assert_eq!(words, ["delivering", "not_verified", "failed", "refused", "applied"]);
    // The story of the payment tells all of it.
    let settings = recon::config::load_without_keys(Some(&shop.stage.config())).unwrap();
    let object = &shop.stage.planted[0].expected[0].object_id;
    let mut story = Vec::new();
    recon::commands::show::show(&settings, object, shop.stage.world.now_us, &mut story).await.unwrap();
    let story = String::from_utf8(story).unwrap();
    for word in ["replay_event delivering by ", "replay_event not_verified by ", "replay_event applied by "] {
        assert!(story.contains(word), "{word}: {story}");
    }
}

#[tokio::test]
async fn a_handler_that_books_another_amount_is_not_believed() {
    let (shop, plan) = planned(Kind::Sqlite, To::Http, &[Fault::MissedPayment]).await;
    shop.handler.as_ref().unwrap().behave(Manner::BooksTwice);
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert!(ended == Outcome::Findings && said.contains(" not_verified=1 "), "{said}");
    assert!(said.contains("are booked for it by now, since it was delivered"), "{said}");
}

#[tokio::test]
async fn what_arrived_after_we_stopped_looking_is_not_delivered_again() {
    let (shop, plan) = planned(Kind::Sqlite, To::Http, &[Fault::MissedPayment]).await;
    let handler = shop.handler.as_ref().unwrap();
    handler.behave(Manner::SaysYes);
    assert_eq!(shop.apply(&plan).await.unwrap().0, Outcome::Findings);
    // Its queue gets to it later.
    let expected = &shop.stage.planted[0].expected[0];
    let row = format!(
        "insert into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes)
         values ('late', '', 1, '{}', 'credit', {}, '{}', {}, '', '')",
        expected.object_id,
        expected.expected_minor.unwrap(),
        expected.currency,
        shop.stage.world.now_us
    );
    shop.books.run_sql(&row).await;
    let heard = handler.heard().len();
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert!(ended == Outcome::Clean && said.contains(" applied=1 "), "{said}");
    assert_eq!(handler.heard().len(), heard);
}

#[tokio::test]
async fn a_person_who_was_faster_than_the_delivery_is_left_alone() {
    let (shop, plan) = planned(Kind::Sqlite, To::Http, &[Fault::MissedPayment]).await;
    let planted = &shop.stage.planted[0];
    let row = format!(
        "insert into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes)
         values ('by hand', '', 1, '{}', 'credit', {}, '{}', {}, '', '')",
        planted.root_id,
        planted.expected[0].expected_minor.unwrap(),
        planted.expected[0].currency,
        shop.stage.world.now_us
    );
    shop.books.run_sql(&row).await;
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert!(ended == Outcome::Findings && said.contains(" state_moved=1 "), "{said}");
    assert!(shop.handler.as_ref().unwrap().heard().is_empty(), "delivered all the same");
}

#[tokio::test]
async fn a_handler_that_is_down_is_not_asked_for_each_row() {
    let mix = Mix(vec![(Fault::MissedPayment, 12)]);
    let shop = Shop::new(Kind::Sqlite, To::Http, 31, 60, &mix).await;
    let plan = shop.stage.reconcile().await.1.join("plan.csv");
    let handler = shop.handler.as_ref().unwrap();
    handler.behave(Manner::Answers(503));
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(ended, Outcome::Incomplete, "{said}");
    assert!(said.contains(" failed=12"), "{said}");
    assert!(said.contains("not delivered, because 5 deliveries before it failed"), "{said}");
    let heard = handler.heard().len();
    assert!((5..=8).contains(&heard), "{heard} deliveries");
    // Nobody gets an answer before four ask: that many payments are delivered at a time, and no more.
    handler.behave(Manner::WaitsFor(4));
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert!(ended == Outcome::Clean && said.contains(" applied=12 "), "{said}");
    assert_eq!(handler.most_at_once(), 4);
}

#[tokio::test]
async fn a_handler_that_nobody_runs_is_told_from_one_that_is_slow() {
    let (shop, plan) = planned(Kind::Sqlite, To::Http, &[Fault::MissedPayment]).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    shop.stage.configure(&shop.handler.as_ref().unwrap().url, &nobody);
    let (ended, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(ended, Outcome::Incomplete, "{said}");
    assert!(said.contains("the handler refused the connection: nothing listens there"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_applies_what_is_allowed_or_says_before_it_begins_that_it_cannot() {
    let mix = Mix(vec![(Fault::MissedPayment, 2), (Fault::DuplicateDelivery, 1)]);
    let shop = Shop::new(Kind::Sqlite, To::Sql, 31, 60, &mix).await;
    shop.stage.configure("[corrections]\n", "[corrections]\nauto = [\"missed_event\"]\n");
    let done = shop.stage.run(&["--apply"]);
    assert_eq!(done.code, Some(1), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("  applied                  2\n"), "{}", done.stdout);
    let keys = shop.books.hand().texts("select effect_key from recon_applied").await;
    assert!(keys.len() == 2 && keys.iter().all(|key| key.contains("/credit:")), "{keys:?}");
    let asked = shop.stage.emulator.counters.total();
    shop.stage.configure("missed_event = \"sql\"\n", "");
    let done = shop.stage.run(&["--apply"]);
    assert_eq!(done.code, Some(78), "{}{}", done.stdout, done.stderr);
    assert!(
        done.stderr.contains("auto names missed_event, which has nowhere to be written"),
        "{}",
        done.stderr
    );
    assert_eq!(shop.stage.emulator.counters.total(), asked, "the provider was asked");
}

#[tokio::test]
async fn a_kind_without_a_target_stops_the_whole_plan() {
    let (shop, plan) =
        planned(Kind::Sqlite, To::Sql, &[Fault::MissedPayment, Fault::DuplicateDelivery]).await;
    shop.stage.configure("duplicate_effect = \"sql\"\n", "");
    let before = shop.rows().await;
    let (ended, _, err) = shop.apply(&plan).await.unwrap();
    assert_eq!(ended, Outcome::Config);
    assert!(err.contains("nowhere to be written") && err.contains("duplicate_effect (1)"), "{err}");
    assert_eq!(shop.rows().await, before);
}
