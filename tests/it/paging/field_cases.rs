//! Cases from the field, by their ids.

use super::server::{Fault, in_order, row};
use super::*;
use recon::provider::{Failing, FetchError, hint_of};
use recon::record::{NoteKind, Scope};

fn rows(count: i64, newest: i64) -> Vec<Row> {
    (0..count).map(|n| row(&format!("ev_{n}"), newest - n)).collect()
}

fn is_next_page(asked: &server::Asked) -> bool {
    asked.query.contains_key("starting_after")
}

#[tokio::test]
async fn c17_cursor_object_vanished() {
    let list = rows(250, 1000);
    let server = Server::scripted(list.clone(), in_order(vec![Fault::lost()], is_next_page)).await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 2000).await.unwrap();
    assert!(is_covered(&paged), "{:?}", paged.coverage);
    check(&bench, &list, &paged, window(0, 2000)).await;
}

#[tokio::test]
async fn c17_cursor_object_vanished_for_good_and_was_the_last() {
    let list = rows(100, 1000);
    let oldest = list[99].clone();
    let server = Server::scripted(list, move |asked, rows| {
        if asked.number("created[lt]") < Some(2000) || is_next_page(asked) {
            rows.retain(|row| *row != oldest);
        }
        asked.query.get("starting_after").filter(|id| **id == oldest.id).map(|_| Fault::lost())
    })
    .await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 2000).await.unwrap();
    assert!(is_covered(&paged), "{:?}", paged.coverage);
    assert_eq!(bench.stored().await.len(), 100);
}

#[tokio::test]
async fn c17_every_cursor_is_lost_inside_a_second_larger_than_a_page() {
    let mut list: Vec<Row> = (0..250).map(|n| row(&format!("tie_{n}"), 500)).collect();
    list.extend(rows(150, 400));
    let server = Server::scripted(list.clone(), |asked, _| is_next_page(asked).then(Fault::lost)).await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 2000).await.unwrap();
    let gaps: Vec<_> = paged.coverage.iter().filter(|range| range.status == CoverageStatus::Gap).collect();
    assert_eq!(gaps.len(), 1, "{:?}", paged.coverage);
    assert_eq!((gaps[0].from_us, gaps[0].until_us), (500 * SECOND_US, 501 * SECOND_US));
    assert_eq!(gaps[0].cause, "cursor_lost");
    check(&bench, &list, &paged, window(0, 2000)).await;
}

#[tokio::test]
async fn c19_window_edge_counted_once() {
    let list = vec![row("a", 999), row("b", 1000), row("c", 1000), row("d", 1001), row("e", 1002)];
    let server = Server::start(list.clone()).await;
    for (from, until, ids) in [(990, 1000, vec!["a"]), (1000, 1010, vec!["b", "c", "d", "e"])] {
        let bench = Bench::new(&server.url).await;
        let paged = bench.page(&run("r1"), from, until).await.unwrap();
        check(&bench, &list, &paged, window(from, until)).await;
        assert_eq!(bench.stored().await.into_keys().collect::<Vec<_>>(), ids);
    }
    let bench = Bench::new(&server.url).await;
    let halves = Window { from_us: 999 * SECOND_US + 1, until_us: 1000 * SECOND_US + 1 };
    let streams = [THINGS];
    let paged =
        page(&bench.store, &bench.client, &bench.settings, &streams, halves, &run("r1")).await.unwrap();
    check(&bench, &list, &paged, halves).await;
    assert_eq!(bench.stored().await.into_keys().collect::<Vec<_>>(), ["b", "c"]);
}

#[tokio::test]
async fn c21_rows_inserted_while_paging_by_offset() {
    let list = rows(900, 1000);
    let mut inserted = 0;
    let server = Server::scripted(list.clone(), move |asked, rows| {
        if is_next_page(asked) && inserted < 4 {
            inserted += 1;
            // Beyond the frozen bound: the next run's.
            rows.push(row(&format!("late_{inserted}"), 1500));
        }
        None
    })
    .await;
    server.page_by_offset();
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 1001).await.unwrap();
    assert!(is_covered(&paged));
    check(&bench, &list, &paged, window(0, 1001)).await;
    let paged = bench.page(&run("r2"), 1001, 2000).await.unwrap();
    assert!(is_covered(&paged));
    assert_eq!(bench.stored().await.len(), 904);
}

#[tokio::test]
async fn c21_offsets_drift_inside_the_window() {
    let list = rows(900, 1000);
    let mut inserted = 0;
    let server = Server::scripted(list.clone(), move |asked, rows| {
        if is_next_page(asked) && inserted < 3 {
            inserted += 1;
            rows.push(row(&format!("late_{inserted}"), 1000));
        }
        None
    })
    .await;
    server.page_by_offset();
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 1001).await.unwrap();
    let stored = bench.stored().await;
    assert!(is_covered(&paged));
    assert!(list.iter().all(|row| stored.contains_key(&row.id)), "{} of 900", stored.len());
}

#[tokio::test]
async fn c21_an_unknown_cursor_that_restarts_the_list_is_noticed() {
    let list = rows(450, 1000);
    let server =
        Server::scripted(list.clone(), |asked, _| is_next_page(asked).then_some(Fault::Restart)).await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 2000).await.unwrap();
    assert!(is_covered(&paged));
    check(&bench, &list, &paged, window(0, 2000)).await;
    assert!(server.asked().len() < 40, "{} requests", server.asked().len());
}

#[tokio::test]
async fn c25_a_record_from_the_future_is_shown_and_moves_nothing() {
    let mut list = rows(5, 1000);
    list.push(row("evt_2100", 4_102_444_800));
    let server = Server::start(list.clone()).await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 1001).await.unwrap();
    assert_eq!(paged.notes.len(), 1);
    let note = &paged.notes[0];
    assert_eq!((note.object_id.as_str(), note.cause.as_str()), ("evt_2100", "future_timestamp"));
    assert_eq!(note.kind, NoteKind::NeedsReview);
    assert!(paged.coverage.iter().all(|range| range.until_us <= 1001 * SECOND_US));
    check(&bench, &list, &paged, window(0, 1001)).await;
}

#[tokio::test]
async fn c30_retry_after_in_both_forms() {
    for (header, seconds) in [("Thu, 01 Jan 2026 00:01:00 GMT", 60), ("7", 7)] {
        let faults = vec![Fault::refused(vec![("retry-after", header.to_owned())])];
        let server = Server::scripted(rows(3, 1000), in_order(faults, |_| true)).await;
        let bench = Bench::new(&server.url).await;
        bench.client.get("things", "/v1/things", "").await.unwrap();
        let waits = bench.waits.at_least(Duration::from_millis(200));
        assert!(waits.len() == 1 && waits[0] <= Duration::from_secs(seconds), "{header}: {waits:?}");
        assert!(waits[0] + Duration::from_millis(5) > Duration::from_secs(seconds), "{header}: {waits:?}");
    }
    for header in ["Wed, 31 Dec 2025 23:59:59 GMT", "soon", "0"] {
        let faults = vec![Fault::refused(vec![("retry-after", header.to_owned())])];
        let server = Server::scripted(rows(3, 1000), in_order(faults, |_| true)).await;
        let bench = Bench::new(&server.url).await;
        bench.client.get("things", "/v1/things", "").await.unwrap();
        let waits = bench.waits.at_least(Duration::from_millis(200));
        assert!(waits.len() == 1 && waits[0] <= Duration::from_millis(500), "{header}: {waits:?}");
    }
}

#[tokio::test]
async fn c30_longer_than_the_runs_budget_stops_the_run_and_covers_nothing() {
    let faults = vec![Fault::refused(vec![("retry-after", "86400".to_owned())])];
    let server = Server::scripted(rows(3, 1000), in_order(faults, |_| true)).await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 2000).await.unwrap();
    assert_eq!(paged.coverage.len(), 1);
    let range = &paged.coverage[0];
    assert_eq!((range.status, range.cause.as_str()), (CoverageStatus::Gap, "budget"));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn c31_a_lock_is_waited_out_and_slows_nobody() {
    let locked = || Fault::error(429, "lock_timeout", "");
    let server = Server::scripted(vec![row("pi_1", 5)], in_order(vec![locked(), locked()], |_| true)).await;
    let bench = Bench::new(&server.url).await;
    let scope = bench.settings.scope("");
    let ids = BTreeSet::from(["pi_1".to_owned(), "pi_2".to_owned(), "..".to_owned()]);
    let by_id = bench.lookup(&scope, &Cancel::never()).by_id(&ids, Failing::Together).await.unwrap();
    assert_eq!(by_id.found, BTreeSet::from(["pi_1".to_owned()]));
    assert_eq!(by_id.unknown, BTreeSet::from(["pi_2".to_owned()]));
    assert_eq!(by_id.unanswered, BTreeMap::from([("..".to_owned(), "unaskable_id")]));
    assert_eq!(bench.client.refusals(), 0);
    assert_eq!(bench.stored().await.len(), 1);
    let expand = server.asked()[0].query["expand[]"].clone();
    assert_eq!(expand, "balance_transaction");
}

#[tokio::test]
async fn c31_still_locked_is_said_and_concludes_nothing() {
    let server =
        Server::scripted(vec![row("pi_1", 5)], |_, _| Some(Fault::error(429, "lock_timeout", ""))).await;
    let bench = Bench::new(&server.url).await;
    let scope = Scope::new("stripe", "", "test");
    let ids = BTreeSet::from(["pi_1".to_owned()]);
    let by_id = bench.lookup(&scope, &Cancel::never()).by_id(&ids, Failing::Together).await.unwrap();
    assert_eq!(by_id.unanswered, BTreeMap::from([("pi_1".to_owned(), "locked")]));
    assert_eq!(server.asked().len(), 4, "as many attempts as allowed, no more");
    assert!(bench.stored().await.is_empty());
}

/// What hangs on an object is known only by a list that was answered to its end.
#[tokio::test]
async fn an_answer_that_proves_nothing_is_no_answer() {
    async fn asked(
        fault: impl Fn() -> Fault + Send + 'static,
    ) -> (BTreeMap<String, &'static str>, usize, usize) {
        let server = Server::scripted(vec![row("re_1", 5)], move |_, _| Some(fault())).await;
        let bench = Bench::new(&server.url).await;
        let scope = bench.settings.scope("");
        let ids = BTreeSet::from(["pi_1".to_owned()]);
        let never = Cancel::never();
        let list = bench.lookup(&scope, &never).that_name("payment_intent", &ids, Failing::Together);
        let list = list.await.unwrap();
        assert!(list.unknown.is_empty(), "{list:?}");
        (list.unanswered, server.asked().len(), bench.stored().await.len())
    }
    let unanswered = |cause| BTreeMap::from([("pi_1".to_owned(), cause)]);
    let page = || {
        Fault::Status(200, vec![], format!(r#"{{"data":[{}],"has_more":true}}"#, body_of(&row("re_1", 5))))
    };
    assert_eq!(asked(page).await, (unanswered("no_progress"), 2, 0), "the same page for ever");
    assert_eq!(asked(|| Fault::Empty { has_more: true }).await, (unanswered("no_progress"), 1, 0));
    assert_eq!(asked(|| Fault::error(404, "resource_missing", "id")).await.0, unanswered("not_found"));
    assert_eq!(asked(|| Fault::error(403, "", "")).await.0, unanswered("no_permission"));
    assert!(asked(|| Fault::Empty { has_more: false }).await.0.is_empty(), "an empty list is an answer");
}

#[tokio::test]
async fn an_answer_about_another_object_is_no_answer() {
    let other = || Fault::Status(200, vec![], body_of(&row("re_other", 5)));
    let server = Server::scripted(vec![], move |_, _| Some(other())).await;
    let bench = Bench::new(&server.url).await;
    let scope = bench.settings.scope("");
    let ids = BTreeSet::from(["re_1".to_owned()]);
    let by_id = bench.lookup(&scope, &Cancel::never()).by_id(&ids, Failing::Together).await.unwrap();
    assert_eq!(by_id.unanswered, BTreeMap::from([("re_1".to_owned(), "other_object")]));
    assert!(by_id.found.is_empty() && bench.stored().await.is_empty(), "{by_id:?}");
}

#[tokio::test]
async fn an_operating_error_ends_the_run_and_keeps_what_was_read() {
    let list = rows(1000, 1000);
    let mut requests = 0;
    let server = Server::scripted(list.clone(), move |_, _| {
        requests += 1;
        (requests > 4).then(|| Fault::error(401, "", ""))
    })
    .await;
    let bench = Bench::new(&server.url).await;
    let error = bench.page(&run("r1"), 0, 2000).await.unwrap_err();
    assert!(matches!(error.downcast_ref::<FetchError>(), Some(FetchError::Unauthorized { .. })), "{error:#}");
    assert!(hint_of(&error).unwrap().contains("API key"));
    let kept = bench.stored().await.len();
    assert!((100..1000).contains(&kept), "{kept}");
}

#[tokio::test]
async fn no_permission_for_one_stream_leaves_the_others() {
    const OTHER: Stream = Stream { name: "others", path: "/v1/others", ..THINGS };
    let list = rows(10, 1000);
    let server =
        Server::scripted(list, |asked, _| (asked.path == "/v1/others").then(|| Fault::error(403, "", "")))
            .await;
    let bench = Bench::new(&server.url).await;
    let (streams, whole) = ([THINGS, OTHER], window(0, 2000));
    let paged =
        page(&bench.store, &bench.client, &bench.settings, &streams, whole, &run("r1")).await.unwrap();
    let short: Vec<_> = paged
        .coverage
        .iter()
        .map(|range| (range.stream.as_str(), range.status, range.cause.as_str()))
        .collect();
    assert_eq!(
        short,
        [("others", CoverageStatus::Gap, "no_permission"), ("things", CoverageStatus::Covered, "")]
    );
}

#[tokio::test]
async fn what_the_provider_no_longer_lists_is_not_asked_for() {
    const MONTH: Stream = Stream { memory: Some(Duration::from_hours(720)), ..THINGS };
    let now = NOW_US / SECOND_US;
    let list = vec![row("new", now - 1000), row("old", now - 40 * 86_400)];
    let server = Server::start(list).await;
    let bench = Bench::new(&server.url).await;
    let whole = window(now - 60 * 86_400, now - 300);
    let paged =
        page(&bench.store, &bench.client, &bench.settings, &[MONTH], whole, &run("r1")).await.unwrap();
    let short: Vec<_> = paged.coverage.iter().map(|range| (range.status, range.cause.as_str())).collect();
    assert_eq!(short, [(CoverageStatus::NotListed, "retention"), (CoverageStatus::Covered, "")]);
    assert!(server.asked().iter().all(|asked| asked.number("created[gte]").unwrap() > now - 30 * 86_400));
    assert_eq!(bench.stored().await.into_keys().collect::<Vec<_>>(), ["new"]);
}

#[tokio::test]
async fn a_cancelled_run_stops_cleanly_and_is_resumed() {
    let list = rows(2000, 3000);
    let (handle, cancel) = Cancel::new();
    let mut requests = 0;
    let server = Server::scripted(list.clone(), move |_, _| {
        requests += 1;
        if requests == 9 {
            handle.cancel();
        }
        None
    })
    .await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&RunContext { cancel, ..run("r1") }, 0, 4000).await.unwrap();
    assert!(paged.coverage.iter().any(|range| range.cause == "interrupted"), "{:?}", paged.coverage);
    check(&bench, &list, &paged, window(0, 4000)).await;
    let before = server.asked().len();
    let again = RunContext { resume_of: Some("r1".to_owned()), ..run("r2") };
    let paged = bench.page(&again, 0, 4000).await.unwrap();
    assert!(is_covered(&paged), "{:?}", paged.coverage);
    check(&bench, &list, &paged, window(0, 4000)).await;
    let fresh = before + 30;
    assert!(server.asked().len() < fresh, "closed slices are read again: {}", server.asked().len() - before);
    assert!(bench.folder.path().exists());
}
