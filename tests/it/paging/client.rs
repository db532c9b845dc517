//! One request: what it carries, what is tried again, and the one clear error that is left.

use super::server::{Fault, in_order, row};
use super::*;
use recon::provider::FetchError;

async fn get(server: &Server) -> (Result<Vec<u8>, FetchError>, usize) {
    let bench = Bench::new(&server.url).await;
    let result = bench.client.get("things", "/v1/things?limit=2", "").await;
    (result, server.asked().len())
}

async fn always(fault: fn() -> Fault) -> (FetchError, usize) {
    let server = Server::scripted(vec![row("a", 1)], move |_, _| Some(fault())).await;
    let (result, requests) = get(&server).await;
    (result.unwrap_err(), requests)
}

#[tokio::test]
async fn a_request_carries_version_key_and_account() {
    let server = Server::start(vec![row("a", 1)]).await;
    let bench = Bench::new(&server.url).await;
    bench.client.get("things", "/v1/things", "").await.unwrap();
    bench.client.get("things", "/v1/things", "acct_1").await.unwrap();
    let asked = server.asked();
    let header = |at: usize, name: &str| asked[at].headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(header(0, "stripe-version"), Some(recon::provider::stripe::API_VERSION));
    assert_eq!(header(0, "authorization"), Some("Bearer sk_test_never_shown"));
    assert_eq!(header(0, "stripe-account"), None);
    assert_eq!(header(1, "stripe-account"), Some("acct_1"));
    assert!(!format!("{:?}", bench.client).contains("never_shown"));
}

#[tokio::test]
async fn each_failure_has_its_own_error_and_hint() {
    let unauthorized = always(|| Fault::error(401, "", "")).await;
    assert!(matches!(unauthorized, (FetchError::Unauthorized { .. }, 1)), "{unauthorized:?}");
    let forbidden = always(|| Fault::error(403, "", "")).await;
    assert!(matches!(forbidden, (FetchError::Forbidden { .. }, 1)), "{forbidden:?}");
    let missing = always(|| Fault::error(404, "resource_missing", "id")).await;
    assert!(matches!(missing, (FetchError::NotFound { .. }, 1)), "{missing:?}");
    let cursor = always(Fault::lost).await;
    assert!(matches!(cursor, (FetchError::CursorLost { .. }, 1)), "{cursor:?}");
    let refused = always(|| Fault::error(400, "parameter_unknown", "creatd")).await;
    assert!(matches!(refused, (FetchError::Refused { status: 400, .. }, 1)), "{refused:?}");
    assert!(refused.0.to_string().contains("creatd"));
    let echoed = always(|| Fault::error(400, "sk_test_never_shown", "a key sk_test_never_shown")).await;
    let text = format!("{} {:?}", echoed.0, echoed.0);
    assert!(text.contains("[not shown]") && !text.contains("never_shown"), "{text}");
    let broken = always(|| Fault::error(503, "", "")).await;
    assert!(matches!(broken, (FetchError::Server { status: 503, .. }, 4)), "{broken:?}");
    let html = always(|| Fault::Html).await;
    assert!(matches!(html, (FetchError::NotJson { found: "HTML", .. }, 1)), "{html:?}");
    let cut_off = always(|| Fault::CutOff).await;
    assert!(matches!(cut_off, (FetchError::Truncated { .. }, 4)), "{cut_off:?}");
    let half = always(|| Fault::HalfJson).await;
    assert!(matches!(half, (FetchError::Truncated { .. }, 4)), "{half:?}");
    let damaged = always(|| Fault::Status(200, vec![], "{\"data\": [nothing]}".to_owned())).await;
    assert!(matches!(damaged, (FetchError::Damaged { .. }, 4)), "{damaged:?}");
    let moved =
        always(|| Fault::Status(302, vec![("location", "https://example.com/".to_owned())], String::new()));
    let moved = moved.await;
    assert!(matches!(moved, (FetchError::Redirected { status: 302, .. }, 1)), "{moved:?}");
    let limited = always(|| Fault::refused(vec![])).await;
    assert!(matches!(limited, (FetchError::RateLimited { .. }, 16)), "{limited:?}");
    for error in [unauthorized.0, forbidden.0, broken.0, html.0, cut_off.0, damaged.0, moved.0, limited.0] {
        let text = error.to_string();
        assert!(text.starts_with("fetch things: GET /v1/things?limit=2: "), "{text}");
        assert!(!text.contains("never_shown") && !error.hint().is_empty());
    }
}

#[tokio::test]
async fn tls_failure_and_unreachable_are_told_apart() {
    let server = Server::start(vec![]).await;
    let plain = server.url.replace("http://", "https://");
    let bench = Bench::new(&plain).await;
    let error = bench.client.get("things", "/v1/things", "").await.unwrap_err();
    assert!(matches!(error, FetchError::Tls { .. }), "{error:?}");
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let bench = Bench::new(&url).await;
    let error = bench.client.get("things", "/v1/things", "").await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { attempts: 4, .. }), "{error:?}");
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let faults = vec![Fault::error(500, "", ""), Fault::CutOff, Fault::error(409, "", "")];
    let server = Server::scripted(vec![row("a", 1)], in_order(faults, |_| true)).await;
    let (result, requests) = get(&server).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(requests, 4);
    let no = vec![Fault::Status(500, vec![("stripe-should-retry", "false".to_owned())], "{}".to_owned())];
    let server = Server::scripted(vec![row("a", 1)], in_order(no, |_| true)).await;
    let (result, requests) = get(&server).await;
    assert!(matches!(result, Err(FetchError::Server { status: 500, .. })), "{result:?}");
    assert_eq!(requests, 1);
    let yes = vec![Fault::Status(400, vec![("stripe-should-retry", "true".to_owned())], "{}".to_owned())];
    let server = Server::scripted(vec![row("a", 1)], in_order(yes, |_| true)).await;
    assert!(get(&server).await.0.is_ok());
}

#[tokio::test]
async fn a_storm_of_refusals_is_survived_without_a_storm_of_requests() {
    let list: Vec<Row> = (0..3000).map(|n| row(&format!("ev_{n}"), 10_000 - n)).collect();
    let mut requests = 0;
    let server = Server::scripted(list.clone(), move |_, _| {
        requests += 1;
        (10..25).contains(&requests).then(|| match requests % 3 {
            0 => Fault::refused(vec![]),
            1 => Fault::refused(vec![("retry-after", "2".to_owned())]),
            _ => Fault::refused(vec![("stripe-rate-limited-reason", "global-rate".to_owned())]),
        })
    })
    .await;
    let bench = Bench::new(&server.url).await;
    let paged = bench.page(&run("r1"), 0, 20_000).await.unwrap();
    assert!(is_covered(&paged), "{:?}", paged.coverage);
    check(&bench, &list, &paged, window(0, 20_000)).await;
    assert_eq!(bench.client.refusals(), 15);
}
