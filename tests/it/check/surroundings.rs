//! What `recon check` says of everything but tables: configuration, store, provider, clock.

use super::Checked;
use crate::stage::Stage;
use recon::commands::Outcome;
use recon::commands::check::lines::CODES;
use recon::demo::emulator::{Endpoints, Faults};
use recon::demo::faults::Mix;
use recon::demo::world::Stream;
use recon::store::Database;
use serde_json::Value;
use std::path::Path;

async fn stage(faults: Faults) -> Stage {
    Stage::on(Database::Sqlite, 3, 200, &Mix::default(), faults).await
}

fn says(line: &Value) -> &str {
    line["says"].as_str().unwrap()
}

#[tokio::test]
async fn a_good_configuration_is_good_and_nothing_is_written() {
    let stage = stage(Faults::default()).await;
    let before = stage.business_rows().await;
    let found = Checked::of(&stage.config()).await;
    assert_eq!(found.outcome, Outcome::Clean, "{:#?}", found.lines);
    for status in ["failing", "unreachable", "not_checked"] {
        assert_eq!(found.codes(status), Vec::<&str>::new(), "{:#?}", found.with(status));
    }
    for check in ["configuration", "store", "inbox", "books", "provider", "clock", "key_mode"] {
        assert_eq!(found.line(check)["status"], "ok");
    }
    assert_eq!(stage.business_rows().await, before);
    assert_eq!(stage.emulator.counters.writes(), 0);
    // Nine lists and two beside them, each once.
    assert_eq!(stage.emulator.counters.total(), 11);
}

#[tokio::test]
async fn a_list_that_the_key_may_not_read_is_named_with_its_permission() {
    let faults = Faults {
        forbidden: vec![Stream::BalanceTransactions, Stream::Disputes],
        endpoints: Endpoints::Forbidden,
        ..Faults::default()
    };
    let stage = stage(faults).await;
    let found = Checked::of(&stage.config()).await;
    assert_eq!(found.outcome, Outcome::Config);
    let hints: Vec<&str> = found.with("failing").iter().map(|line| line["hint"].as_str().unwrap()).collect();
    assert_eq!(hints.len(), 2, "{:#?}", found.lines);
    assert!(hints[0].contains("Read on \"Disputes\""), "{}", hints[0]);
    assert!(hints[1].contains("Read on \"Balance transaction sources\""), "{}", hints[1]);
    assert!(found.with("warning")[0]["hint"].as_str().unwrap().contains("\"Webhook Endpoints\""));
}

#[tokio::test]
async fn a_refused_key_and_a_provider_that_is_not_there() {
    let stage = stage(Faults::default()).await;
    std::fs::write(stage.folder.path().join("other.key"), "not-the-key").unwrap();
    stage.configure("stripe.key", "other.key");
    let found = Checked::of(&stage.config()).await;
    assert_eq!(found.codes("failing"), ["key_refused"], "{:#?}", found.lines);
    assert!(!format!("{:?}", found.lines).contains("not-the-key"));
    // Nobody listens there: the same command may say more later.
    stage.configure(&stage.emulator.base_url, "http://127.0.0.1:9");
    let found = Checked::of(&stage.config()).await;
    assert_eq!((found.outcome, found.codes("unreachable")), (Outcome::Incomplete, vec!["provider"]));
}

#[tokio::test]
async fn an_account_that_the_key_may_not_act_for_is_named() {
    let stage = stage(Faults::default()).await;
    stage.configure("mode = \"live\"", "mode = \"live\"\naccounts = [\"\", \"acct_other\"]");
    let found = Checked::of(&stage.config()).await;
    assert_eq!(found.codes("failing"), ["connected_account"], "{:#?}", found.lines);
    assert!(says(found.line("connected_account")).contains("acct_other"));
}

/// A provider that answers this to everything, and what is said of it.
async fn said_of(date: &'static str, record: &'static str, key: &str) -> Checked {
    let answer = move || async move {
        let date = axum::http::HeaderValue::from_static(date);
        let body = format!(r#"{{"object":"list","data":[{record}],"has_more":false}}"#);
        ([(axum::http::header::DATE, date)], body)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(answer);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("key"), key).unwrap();
    let text = format!(
        "[[provider]]\nname = \"stripe\"\nbase_url = \"{url}\"\napi_key = {{ file = \"key\" }}\n\
         [inbox]\nurl = \"none\"\n[local]\nurl = \"none\"\n"
    );
    std::fs::write(dir.path().join("recon.toml"), text).unwrap();
    let found = Checked::of(&dir.path().join("recon.toml")).await;
    server.abort();
    found
}

#[tokio::test]
async fn a_clock_that_differs_is_told() {
    for (date, direction) in
        [("Thu, 01 Jan 2026 00:00:00 GMT", "ahead of"), ("Fri, 01 Jan 2100 00:00:00 GMT", "behind")]
    {
        let found = said_of(date, "", "rk_live_x").await;
        let line = found.line("clock");
        assert_eq!((found.outcome, line["status"].as_str()), (Outcome::Clean, Some("warning")), "{line}");
        assert!(says(line).contains(&format!(" s {direction} the provider's")), "{line}");
        assert!(line["story"].as_str().unwrap().contains("refuses deliveries"), "{line}");
    }
    assert_eq!(said_of("yesterday", "", "rk_live_x").await.line("clock")["status"], "not_checked");
}

#[tokio::test]
async fn a_key_of_the_other_mode_is_known_by_what_it_reads() {
    let record = r#"{"id":"ch_1","created":1,"livemode":false}"#;
    for (record, key, expected) in
        [(record, "sort-of-key", "failing"), ("", "sort-of-key", "not_checked"), ("", "rk_live_x", "ok")]
    {
        let found = said_of("Thu, 01 Jan 2026 00:00:00 GMT", record, key).await;
        assert_eq!(found.line("key_mode")["status"], expected, "{:#?}", found.lines);
    }
    let found = said_of("Thu, 01 Jan 2026 00:00:00 GMT", "", "sk_live_x").await;
    assert_eq!(found.line("key_kind")["status"], "warning");
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("recon.toml");
    let found = Checked::of(&config).await;
    assert_eq!((found.outcome, found.codes("failing")), (Outcome::Config, vec!["configuration"]));
    let provider =
        "[[provider]]\nname = \"gh\"\nkind = \"github\"\nwebhook_secrets = [{ env = \"RECON_NOT_SET\" }]\n";
    let rest = "[inbox]\nurl = \"none\"\n[local]\nurl = \"none\"\n";
    std::fs::write(&config, format!("{provider}{rest}")).unwrap();
    let found = Checked::of(&config).await;
    assert_eq!((found.outcome, found.codes("warning")), (Outcome::Clean, vec!["webhook_secrets"]));
    assert!(says(found.line("webhook_secrets")).contains("RECON_NOT_SET"));
    let no_folder = format!("[store]\nurl = \"sqlite:not/there/recon.db\"\n{provider}{rest}");
    std::fs::write(&config, no_folder).unwrap();
    assert_eq!(Checked::of(&config).await.codes("failing"), ["store"]);
}

/// recon's own tables lost a key, as a copy of them may.
#[tokio::test]
async fn a_store_without_its_keys_is_refused() {
    let stage = stage(Faults::default()).await;
    let store = stage.store().await;
    let mut connection = store.pool().acquire().await.unwrap();
    for sql in [
        "create table copied as select * from ledger_entry",
        "drop table ledger_entry",
        "alter table copied rename to ledger_entry",
    ] {
        sqlx::query(sql).execute(&mut *connection).await.unwrap();
    }
    drop(connection);
    store.close().await;
    let found = Checked::of(&stage.config()).await;
    assert_eq!(found.outcome, Outcome::Config);
    let failing = found.codes("failing");
    assert!(failing.contains(&"no_key"), "{:#?}", found.lines);
}

#[test]
fn the_page_tells_each_line() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/check.md")).unwrap();
    for code in CODES {
        assert!(page.contains(&format!("| `{code}` |")), "docs/check.md does not tell `{code}`");
    }
}
