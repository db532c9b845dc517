//! What is read again, and which copy stays.

use super::server::row;
use super::*;
use recon::store::PageRecord;

#[tokio::test]
async fn a_fresh_run_reads_its_window_again_and_a_finished_one_is_not_resumed() {
    let list: Vec<Row> = (0..120).map(|n| row(&format!("ev_{n}"), 1000 - n)).collect();
    let server = Server::start(list.clone()).await;
    let bench = Bench::new(&server.url).await;
    bench.page(&run("r1"), 0, 2000).await.unwrap();
    let first = server.asked().len();
    let paged = bench.page(&run("r2"), 0, 2000).await.unwrap();
    assert_eq!(server.asked().len(), 2 * first, "the same requests again");
    check(&bench, &list, &paged, window(0, 2000)).await;
    let paged =
        bench.page(&RunContext { resume_of: Some("r2".to_owned()), ..run("r3") }, 0, 2000).await.unwrap();
    assert_eq!(server.asked().len(), 2 * first + 1, "only the look into the future");
    check(&bench, &list, &paged, window(0, 2000)).await;
}

#[tokio::test]
async fn the_copy_fetched_later_stays() {
    let bench = Bench::new("http://127.0.0.1:9").await;
    let scope = bench.settings.scope("");
    let record = |body: &str, asked_at_us| PageRecord {
        record_id: "ch_1".to_owned(),
        created_us: SECOND_US,
        asked_at_us,
        body: body.into(),
    };
    let ten_us = 600 * SECOND_US;
    for (body, asked_at_us, expected) in [
        ("first", ten_us + 100, "first"),
        ("newer", ten_us + 300, "newer"),
        ("older", ten_us + 200, "newer"),
        (
            "under a clock that is ten minutes ahead",
            2 * ten_us + 300,
            "under a clock that is ten minutes ahead",
        ),
        ("ten minutes older", ten_us + 300, "under a clock that is ten minutes ahead"),
        ("under a clock that was set right", ten_us + 299, "under a clock that was set right"),
    ] {
        bench.store.write_records(&scope, "things", &[record(body, asked_at_us)]).await.unwrap();
        assert_eq!(bench.stored().await["ch_1"].1, expected);
    }
    let other = recon::record::Scope::new("stripe", "acct_1", "test");
    bench.store.write_records(&other, "things", &[record("another account's", 50)]).await.unwrap();
    assert_eq!(bench.store.count_records(&other, "things", 0, 2 * SECOND_US).await.unwrap(), 1);
    assert_eq!(bench.store.count_records(&scope, "things", 0, SECOND_US).await.unwrap(), 0);
}

#[tokio::test]
async fn accounts_are_read_side_by_side_and_kept_apart() {
    let list: Vec<Row> = (0..150).map(|n| row(&format!("ev_{n}"), 1000 - n)).collect();
    let server = Server::start(list).await;
    let bench = Bench::new(&server.url).await;
    let both = RunContext { accounts: vec![String::new(), "acct_1".to_owned()], ..run("r1") };
    let paged = bench.page(&both, 0, 2000).await.unwrap();
    let short: Vec<_> =
        paged.coverage.iter().map(|range| (range.scope.account.as_ref(), range.records)).collect();
    assert_eq!(short, [("", 150), ("acct_1", 150)]);
    let named = |asked: &server::Asked| asked.headers.get("stripe-account").is_some();
    assert_eq!(server.asked().iter().filter(|asked| named(asked)).count() * 2, server.asked().len());
}
