//! What is not taken is counted and told by its reason, in few lines, with nothing of what was sent; and who has sent
//! all and says so is answered all the same.

use super::{Answer, BOTH, Receiver, Site, connect, event, request, send, stripe};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

/// A request as raw bytes, and whether the writing half is shut down after it.
fn exchange(receiver: &Receiver, bytes: &[u8], shuts_down: bool) -> Answer {
    let mut stream = connect(receiver.address).unwrap();
    stream.write_all(bytes).unwrap();
    if shuts_down {
        stream.shutdown(Shutdown::Write).unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    Answer::of(&answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reason_is_counted_and_told_once_with_nothing_of_what_was_sent() {
    let site = Site::new(BOTH[0]);
    site.configure("timeout = \"1s\"", "");
    let receiver = Receiver::start(site.command().env("RECON_LOG", "warn")).unwrap();
    let signed = stripe().sign(event("evt_carol"));
    for _ in 0..3 {
        let wrong = stripe().sign_with("whsec_mallory", event("evt_carol"), crate::receive::T);
        assert_eq!(receiver.deliver("stripe", &wrong).unwrap().status, 401);
    }
    let head = "POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\nx-carol: carol\r\nconnection: close\r\n";
    let raw = |rest: &str| format!("{head}{rest}").into_bytes();
    let many = "x-more: carol\r\n".repeat(200);
    let get =
        |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").into_bytes();
    for (bytes, shuts_down, status, provider, reason) in [
        (raw("content-length: 99999999\r\n\r\ncarol"), false, 413, "stripe", "too_large"),
        (
            raw("content-encoding: gzip\r\ncontent-length: 5\r\n\r\ncarol"),
            false,
            415,
            "stripe",
            "encoded_body",
        ),
        (raw("content-length: 50\r\n\r\ncarol"), false, 408, "stripe", "too_slow"),
        (raw("content-length: 50\r\n\r\ncarol"), true, 400, "stripe", "unreadable_body"),
        (raw("content-length: 5\r\n\r\ncarol"), false, 401, "stripe", "missing_signature"),
        (request("/webhooks/carol", &signed.headers, &signed.body), false, 404, "", "unknown_provider"),
        (request("/hooks/carol", &signed.headers, &signed.body), false, 404, "", "not_found"),
        (get("/webhooks/stripe"), false, 405, "stripe", "wrong_method"),
        (b"carol\r\n\r\n".to_vec(), false, 400, "", "malformed_request"),
        (raw(&format!("{many}\r\n")), false, 431, "", "headers_too_large"),
    ] {
        let answer = exchange(&receiver, &bytes, shuts_down);
        assert_eq!(answer.status, status, "{reason}: {answer:?}");
        receiver.wait_for(&format!("recon_refused_total{{provider=\"{provider}\",reason=\"{reason}\"}} 1"));
        let log = site.log();
        let told: Vec<&str> = log.lines().filter(|line| line.contains(&format!(": {reason}, "))).collect();
        assert_eq!(told.len(), 1, "{reason}:\n{log}");
        assert!(told[0].contains("WARN"), "{}", told[0]);
    }
    let quiet = receiver.get("/favicon.ico");
    assert_eq!(quiet.status, 404);
    receiver.wait_for("recon_refused_total{provider=\"stripe\",reason=\"wrong_signature\"} 3");
    assert_eq!(receiver.end(), Some(0));
    let log = site.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("wrong_signature")).collect();
    assert!(
        matches!(&told[..], [first, rest] if first.contains("1 delivery was not taken at `stripe`")
        && rest.contains("2 more deliveries were not taken at `stripe`")),
        "{log}"
    );
    assert!(!log.contains("favicon"), "{log}");
    site.said_nothing_of(&["carol", "mallory"]);
    let counted =
        site.rows("select provider || ' ' || reason from refused_delivery where provider <> 'stripe'").await;
    assert!(counted.is_empty(), "the store counts what came to an endpoint: {counted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_to_come_again_is_told_in_the_log_as_well() {
    let site = Site::new(BOTH[0]);
    site.configure_on("postgres://nobody@127.0.0.1:1/nothing", "", "");
    let receiver = Receiver::start(site.command().env("RECON_LOG", "warn")).unwrap();
    for _ in 0..4 {
        receiver.stripe(&event("evt_1")).unwrap().is_come_again();
    }
    receiver.wait_for("recon_deliveries_total{provider=\"stripe\",became=\"unavailable\"} 4");
    assert_eq!(receiver.end(), Some(0));
    let log = site.log();
    let told = log.lines().filter(|line| line.contains(": store_unavailable, the store is away")).count();
    assert_eq!(told, 2, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_shuts_down_its_writing_half_is_answered() {
    for database in BOTH {
        let site = Site::new(database);
        site.configure("timeout = \"20s\"", "");
        let receiver = site.start();
        assert!(receiver.stripe(&event("evt_0")).unwrap().is_taken());
        let store = site.store().await;
        let lock = store.begin_write().await.unwrap();
        let sample = stripe().sign(event("evt_1"));
        let mut stream = connect(receiver.address).unwrap();
        stream.write_all(&request("/webhooks/stripe", &sample.headers, &sample.body)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        if database == BOTH[0] {
            // The answer waits for the lock. A receiver that takes the end of the request for the end of the
            // connection closes it meanwhile.
            stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let read = stream.read(&mut [0; 16]).map_err(|error| error.kind());
            assert!(matches!(read, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{read:?}");
            stream.set_read_timeout(Some(super::PATIENCE)).unwrap();
        }
        lock.rollback().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(Answer::of(&answer).status, 200, "{}", String::from_utf8_lossy(&answer));
        store.close().await;
        // Half a head and no more, and nothing at all: nobody waits for the rest.
        for bytes in [&b"POST /webhooks/stripe HT"[..], b""] {
            assert_eq!(exchange(&receiver, bytes, true).status, 0);
        }
        let plain = send(receiver.address, b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(plain.unwrap().status, 200);
        assert_eq!(receiver.end(), Some(0));
        assert_eq!(site.ids().await, ["evt_0", "evt_1"]);
    }
}
