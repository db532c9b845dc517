//! Local books and inbox, read through statements that a team wrote.

use crate::books::{
    AT_US, EFFECTS, INBOX, Kind, Team, WINDOW, at_once, keep_effect, keep_event, on_each, scope, unusable,
};
use recon::config::parse;
use recon::gather::{Dialect, Inbox, LocalBooks, Moment};
use recon::record::{Fact, InboxStatus, Scope, Status, Window};
use recon::store::known_as;
use recon::store::{Access, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

on_each!(
    c42_decimal_text_is_read_digit_by_digit,
    c42_a_third_decimal_is_an_error_that_names_file_row_and_column,
    c39_c41_decimals_are_those_of_the_currency,
    any_alias_leads_to_the_payment_and_an_anchor_stays_itself,
    the_window_is_half_open_and_many_rows_come_in_batches,
    rows_that_break_the_contract_are_named,
    a_statement_that_breaks_the_contract_is_named_before_anything_is_read,
    statuses_are_mapped_and_all_unknown_words_are_listed,
    the_inbox_is_read_and_one_body_on_demand,
    the_inbox_tells_types_apart_byte_for_byte_and_names_a_row_that_is_wrong,
);

fn credit(id: i64, object: &str, amount: &str) -> String {
    format!(
        "insert into payments (id, ext, word, amount_text, currency) values ({id}, '{object}', 'credit', '{amount}', 'USD');"
    )
}

async fn c42_decimal_text_is_read_digit_by_digit(kind: Kind) {
    let rows = [credit(1, "ch_1", "19.99"), credit(2, "ch_2", "8.20"), credit(3, "ch_3", "0.56")].concat();
    let effects = Team::new(kind, &rows).await.effects().await.unwrap();
    let read: Vec<_> = effects
        .iter()
        .map(|effect| (effect.effect_id.as_str(), effect.amount_minor, &*effect.currency))
        .collect();
    assert_eq!(read, [("1", 1_999, "usd"), ("2", 820, "usd"), ("3", 56, "usd")]);
}

async fn c42_a_third_decimal_is_an_error_that_names_file_row_and_column(kind: Kind) {
    let team = Team::new(kind, &[credit(1, "ch_1", "19.99"), credit(7, "ch_7", "2.675")].concat()).await;
    let error = unusable(team.effects().await);
    assert!(error.message.contains("queries/local/effects.sql: row effect_id=7: column amount"), "{error}");
    assert!(error.message.contains("`2.675` has more than 2 decimals"), "{error}");
}

#[tokio::test]
async fn c42_a_binary_float_is_refused_and_a_whole_number_is_exact() {
    let team = Team::new(
        Kind::Sqlite,
        "insert into payments (id, ext, word, value, currency) values (1, 'ch_1', 'credit', '20.00', 'usd');",
    )
    .await;
    team.write_query("effects.sql", &EFFECTS.replace("amount_text as amount", "value as amount"));
    assert_eq!(team.effects().await.unwrap()[0].amount_minor, 2_000);
    team.run_sql(
        "insert into payments (id, ext, word, value, currency) values (2, 'ch_2', 'credit', '19.99', 'usd');",
    )
    .await;
    let error = unusable(team.effects().await);
    assert!(error.message.contains("row effect_id=2: column amount is a floating-point number"), "{error}");
    team.write_query("effects.sql", &EFFECTS.replace("amount_text as amount", "value as amount_minor"));
    assert!(unusable(team.effects().await).message.contains("column amount_minor must be a whole number"));
}

async fn c39_c41_decimals_are_those_of_the_currency(kind: Kind) {
    let rows = "insert into payments (id, ext, word, amount_text, currency) values
        (1, 'ch_1', 'credit', '500', 'JPY'), (2, 'ch_2', 'credit', '1.234', 'KWD');";
    let effects = Team::new(kind, rows).await.effects().await.unwrap();
    assert_eq!(effects.iter().map(|effect| effect.amount_minor).collect::<Vec<_>>(), [500, 1_234]);
}

async fn any_alias_leads_to_the_payment_and_an_anchor_stays_itself(kind: Kind) {
    let rows = "insert into payments (id, ext, word, amount_text, currency, event, undoes) values
        (1, 'cs_1', 'credit', '1.00', 'usd', 'evt_1', null), (2, 'ch_1', 'credit', '1.00', 'usd', null, null),
        (3, 're_1', 'refund', '1.00', 'usd', '', null), (4, 'ch_1', 'refund', '1.00', 'usd', null, null),
        (5, 'ch_9', 'credit', '1.00', 'usd', null, null), (6, 'ch_9', 'credit', '-1.00', 'usd', null, 5);";
    let team = Team::new(kind, rows).await;
    for (alias, root, is_part) in
        [("cs_1", "in_1", 0), ("in_1", "ch_1", 0), ("ch_1", "pi_1", 0), ("re_1", "ch_1", 1)]
    {
        team.alias(alias, root, is_part).await;
    }
    let effects = team.effects().await.unwrap();
    let read: Vec<_> = effects.iter().map(|effect| (&*effect.root_id, &*effect.object_id)).collect();
    assert_eq!(
        read,
        [
            ("pi_1", "pi_1"),
            ("pi_1", "ch_1"),
            ("pi_1", "re_1"),
            ("pi_1", "pi_1"),
            ("ch_9", "ch_9"),
            ("ch_9", "ch_9")
        ]
    );
    assert_eq!((&*effects[0].event_id, &*effects[1].event_id, &*effects[2].event_id), ("evt_1", "", ""));
    assert_eq!((effects[5].amount_minor, &*effects[5].corrects_effect_id), (-100, "5"));

    // Asked for by the refund, the row that carries the checkout session is found too, over all time.
    let books = team.local().await.unwrap();
    let ids = BTreeSet::from(["re_1".to_owned()]);
    assert_eq!(known_as(&team.store, &scope(), &ids).await.unwrap().len(), 5);
    let mut found = Vec::new();
    let mut moment = Moment::begin(Some(&books), None).await.unwrap();
    let mut keep = |fact| keep_effect(&mut found, fact);
    let count = moment.effects_of(&scope(), &ids, &mut keep).await.unwrap();
    assert_eq!((count, found.len()), (4, 4));
    let events = BTreeSet::from(["evt_1".to_owned()]);
    let mut found = Vec::new();
    let mut keep = |fact| keep_effect(&mut found, fact);
    moment.effects_of_events(&scope(), &events, &mut keep).await.unwrap();
    assert_eq!(found[0].effect_id, "1");
    let other = Scope::new("stripe", "acct_1", "live");
    let ids = BTreeSet::from(["ch_9".to_owned()]);
    assert_eq!(moment.effects_of(&other, &ids, &mut |_| Ok(())).await.unwrap(), 0);
    assert_eq!(moment.events(WINDOW, &mut |_| Ok(())).await.unwrap(), 0, "it has no inbox");
    moment.end().await.unwrap();
}

async fn the_window_is_half_open_and_many_rows_come_in_batches(kind: Kind) {
    let rows: String = (0..1_203).map(|id| credit(id - 100, &format!("ch_{id}"), "1.00")).collect();
    let team = Team::new(kind, &format!("begin; {rows} commit;")).await;
    let books = team.local().await.unwrap();
    let mut found = Vec::new();
    let window = Window { from_us: AT_US, until_us: AT_US + 1_102 };
    let count = at_once::effects(&books, window, &mut |fact| keep_effect(&mut found, fact)).await.unwrap();
    assert_eq!((count, found.len()), (1_102, 1_102));
    assert_eq!(found.iter().filter(|effect| effect.in_window).count(), 1_000);
    let ids: BTreeSet<String> = (0..1_203).map(|id| format!("ch_{id}")).collect();
    let mut moment = Moment::begin(Some(&books), None).await.unwrap();
    let count = moment.effects_of(&scope(), &ids, &mut |_| Ok(())).await.unwrap();
    assert_eq!(count, 1_203);
    moment.end().await.unwrap();
}

async fn rows_that_break_the_contract_are_named(kind: Kind) {
    let cases = [
        ("word = 'credits'", "column kind is `credits`"),
        ("ext = ''", "column object_id is empty or null"),
        ("ext = null", "column object_id is empty or null"),
        ("currency = 'dollar'", "column currency must be a code"),
        ("currency = null", "column currency must be a code"),
        ("amount_text = null", "column amount is null"),
        ("amount_text = '1,00'", "column amount cannot be taken"),
        ("amount_text = '-1.00'", "is negative, and the row undoes no other"),
        ("amount_text = '10000000000000.01'", "column amount is 1000000000000001 minor units, and more than"),
        ("amount_text = '-46116860184273879.04'", "column amount is -4611686018427387904 minor units"),
    ];
    for (change, message) in cases {
        let team =
            Team::new(kind, &format!("{} update payments set {change};", credit(5, "ch_5", "1.00"))).await;
        let error = unusable(team.effects().await);
        assert!(
            error.message.contains("row effect_id=5") && error.message.contains(message),
            "{change}: {error}"
        );
    }
    let team = Team::new(kind, &credit(5, "ch_5", "10000000000000.00")).await;
    assert_eq!(team.effects().await.unwrap()[0].amount_minor, 1_000_000_000_000_000, "the bound itself");
    let team = Team::new(kind, &credit(5, "ch_5", "1.00")).await;
    for (from, to, message) in [
        (
            "amount_text as amount",
            "4611686018427387904 as amount_minor",
            "column amount_minor is 4611686018427387904",
        ),
        ("'' as account", "null as account", "column account is null"),
        ("'live' as mode", "'prod' as mode", "column mode must be live or test"),
        ("1769913000000000 + id as applied", "1769913000 + id as applied", "no count of microseconds"),
    ] {
        team.write_query("effects.sql", &EFFECTS.replacen(from, to, 1));
        let error = unusable(team.effects().await);
        assert!(error.message.contains("row effect_id=5") && error.message.contains(message), "{error}");
    }
}

async fn a_statement_that_breaks_the_contract_is_named_before_anything_is_read(kind: Kind) {
    let team = Team::new(kind, "").await;
    let no_table = kind.pick(
        "refuses it: no such table: payment",
        "refuses it: relation \"payment\" does not exist",
        ".payment' doesn't exist",
    );
    for (text, message) in [
        (EFFECTS.replace(" as object_id", " as object"), "effects.sql: the column object_id is missing"),
        (
            EFFECTS.replace("amount_text as amount", "amount_text"),
            "the column amount_minor or amount is missing",
        ),
        (EFFECTS.replace("'a column more' as extra", "1 as kind"), "gives the column kind twice"),
        (EFFECTS.replace("from payments", "from payment"), no_table),
        (EFFECTS.replace(":from_us", ":from"), "unknown bind :from"),
        (format!("{EFFECTS}\n; drop table payments"), "more than one statement"),
        (String::new(), "holds no statement"),
    ] {
        team.write_query("effects.sql", &text);
        let error = unusable(team.effects().await);
        assert!(error.message.contains(message), "{error}");
    }
    team.write_query("effects.sql", "delete from payments returning 1 as effect_id");
    assert!(team.local().await.is_err());
    std::fs::remove_file(team.dir.path().join("queries/local/effects.sql")).unwrap();
    assert!(unusable(team.effects().await).message.ends_with("effects.sql is missing"));
    if kind != Kind::Sqlite {
        return;
    }
    team.write_query("effects.sql", EFFECTS);
    std::fs::remove_file(team.dir.path().join("books.db")).unwrap();
    assert!(unusable(team.effects().await).message.contains("there is no such file"));
}

async fn statuses_are_mapped_and_all_unknown_words_are_listed(kind: Kind) {
    let rows = "insert into payments (id, ext, word, cents) values (1, 'pi_1', 'done', 5), (2, 'pi_2', 'refunded', null);";
    let team = Team::new(kind, rows).await;
    let states = team.states().await.unwrap();
    let read: Vec<_> = states.iter().map(|state| (state.status, state.refunded_minor)).collect();
    assert_eq!(read, [(Status::Paid, Some(5)), (Status::Refunded, None)]);
    team.run_sql("update payments set cents = 4611686018427387904 where id = 1;").await;
    let error = unusable(team.states().await);
    assert!(
        error.message.contains("row object_id=pi_1: column refunded_minor is 4611686018427387904"),
        "{error}"
    );
    team.run_sql("update payments set cents = 5 where id = 1;").await;
    team.run_sql("insert into payments (id, ext, word) values (3, 'pi_3', 'won'), (4, 'pi_4', 'authorised'), (5, 'x', 'won');")
        .await;
    let error = unusable(team.states().await);
    assert!(error.message.ends_with("states.sql: no status is known for `authorised`, `won`"), "{error}");
    assert!(error.hint.contains("[local.status_map]"), "{}", error.hint);
}

async fn the_inbox_is_read_and_one_body_on_demand(kind: Kind) {
    let rows = format!(
        "insert into deliveries values ('evt_1', 'charge.succeeded', {AT_US}, 'processed', {}),
         ('evt_2', 'charge.refunded', {AT_US}, 'FAILED', null), ('evt_3', 'x', {}, 'new', null);",
        kind.bytes("7b7d"),
        AT_US + 1_000
    );
    let team = Team::new(kind, &rows).await;
    let events = team.inbox().await.unwrap();
    let read: Vec<_> = events.iter().map(|event| (&*event.event_id, event.status)).collect();
    assert_eq!(read, [("evt_1", InboxStatus::Applied), ("evt_2", InboxStatus::Dead)]);
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    assert_eq!(inbox.body(&scope(), "evt_1").await.unwrap(), Some(b"{}".to_vec()));
    assert_eq!(inbox.body(&scope(), "evt_2").await.unwrap(), None);
    assert_eq!(inbox.body(&scope(), "evt_9").await.unwrap(), None);
    let mut found = Vec::new();
    let ids = BTreeSet::from(["evt_3".to_owned()]);
    at_once::events_of(&inbox, &scope(), &ids, &mut |fact| keep_event(&mut found, fact)).await.unwrap();
    assert_eq!(found[0].event_id, "evt_3");
    team.run_sql("update deliveries set state = 'odd'").await;
    let error = unusable(team.inbox().await);
    assert!(error.message.contains("no processing status is known for `odd`"), "{error}");
}

async fn the_inbox_tells_types_apart_byte_for_byte_and_names_a_row_that_is_wrong(kind: Kind) {
    let rows = format!(
        "insert into deliveries values ('evt_1', 'charge.succeeded', {AT_US}, 'processed', null),
         ('evt_2', 'charge.succeeded', {}, 'new', null), ('evt_3', 'Charge.Succeeded', {AT_US}, 'FAILED', null),
         ('evt_4', null, {AT_US}, 'new', null), ('evt_5', 'late', {}, 'new', null);",
        AT_US + 1,
        AT_US + 1_000
    );
    let team = Team::new(kind, &rows).await;
    if matches!(kind, Kind::Sqlite) {
        team.write_query("inbox.sql", &INBOX.replace("type as", "type collate nocase as"));
    }
    let received = async || {
        let inbox = Inbox::open(&team.settings).await?;
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        let mut note = |of: Scope, kind: &str, at_us: i64| {
            assert_eq!(of, scope());
            let last_us = found.entry(kind.to_owned()).or_insert(at_us);
            *last_us = at_us.max(*last_us);
        };
        let mut moment = Moment::begin(None, inbox.as_ref()).await?;
        moment.received(WINDOW, &mut note).await?;
        moment.end().await?;
        anyhow::Ok(found)
    };
    let expected = [("", AT_US), ("Charge.Succeeded", AT_US), ("charge.succeeded", AT_US + 1)];
    let expected: BTreeMap<String, i64> = expected.map(|(kind, at_us)| (kind.to_owned(), at_us)).into();
    assert_eq!(received().await.unwrap(), expected);
    team.run_sql("update deliveries set state = 'odd' where event_id = 'evt_3'").await;
    let error = unusable(received().await);
    assert!(error.message.contains("no processing status is known for `odd`"), "{error}");
    team.run_sql("update deliveries set state = 'new', event_id = null where event_id = 'evt_3'").await;
    let error = unusable(received().await);
    assert!(error.message.contains("column event_id is empty or null"), "{error}");
}

#[tokio::test]
async fn the_default_statements_read_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n";
    let settings = parse(text, &dir.path().join("recon.toml"), &|_| Some("key".to_owned())).unwrap();
    let store = Store::open(&settings.store_url, Access::ReadWrite).await.unwrap();
    let insert = format!(
        "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor,
            currency, occurred_at_us, applied_at_us) values ('e1', 'stripe', '', 'live', 'credit:ch_1', 'ch_1',
            'credit', 100, 'usd', {AT_US}, {AT_US});
         insert into object_state values ('stripe', '', 'live', 'pi_1', 'paid', null, {AT_US}, {AT_US}, 'operator');
         insert into inbox_event (provider, account, mode, event_id, event_type, body_sha256, received_at_us,
            last_delivery_at_us, status) values ('stripe', '', 'live', 'evt_1', 'x', 'AB', {AT_US}, {AT_US}, 'parked')"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(insert)).execute(store.pool()).await.unwrap();
    assert!(!Path::new(&settings.local.queries).exists());
    let books = LocalBooks::open(&settings, &store, Dialect::PLAIN, WINDOW).await.unwrap().unwrap();
    let mut facts = Vec::new();
    let mut keep = |fact| {
        facts.push(fact);
        Ok(())
    };
    at_once::effects(&books, WINDOW, &mut keep).await.unwrap();
    at_once::states(&books, WINDOW, &mut keep).await.unwrap();
    at_once::events(&Inbox::open(&settings).await.unwrap().unwrap(), WINDOW, &mut keep).await.unwrap();
    assert!(
        matches!(&facts[0], Fact::LocalEffect(effect) if effect.amount_minor == 100 && effect.event_id.is_empty())
    );
    assert!(matches!(&facts[1], Fact::LocalState(state) if state.changed_by == "operator"));
    assert!(matches!(&facts[2], Fact::InboxEvent(event) if event.body_sha256 == "ab"));
}

/// Reading must be usable from a spawned task; that it compiles is the test.
#[expect(dead_code, reason = "only compiled")]
fn reading_can_move_between_threads(books: &LocalBooks, inbox: &Inbox) {
    fn is_send<T: Send>(_: T) {}
    is_send(at_once::effects(books, WINDOW, &mut |_| Ok(())));
    is_send(at_once::events(inbox, WINDOW, &mut |_| Ok(())));
}
