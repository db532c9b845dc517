//! Whatever a stranger sends: an answer below 500, nothing stored, nothing of it in the log, and the next
//! genuine delivery is taken. Bodies and headers that the genuine provider signs badly are strange, too.

use super::{Answer, BOTH, Receiver, Site, connect, event, request, send, stripe};
use crate::receive::Sample;
use recon::store::Database;
use std::io::{Read, Write};

/// Stands in everything that is sent, and must never be seen again.
const MARK: &str = "s3cr3t-mark";

struct Bench {
    site: Site,
    receiver: Receiver,
}

impl Bench {
    fn new(database: Database) -> Self {
        let site = Site::new(database);
        let receiver = site.start();
        receiver.wait_for("recon_store_up 1");
        Self { site, receiver }
    }

    fn send(&self, bytes: &[u8]) -> Answer {
        send(self.receiver.address, bytes).unwrap()
    }

    /// The status of a body that Stripe itself would have signed.
    fn signed(&self, body: impl AsRef<[u8]>) -> u16 {
        self.receiver.deliver("stripe", &stripe().sign(body)).unwrap().status
    }

    /// Nothing is stored, nothing was said, and the receiver works.
    async fn unharmed(self) {
        assert_eq!(self.site.ids().await, [""; 0]);
        assert_eq!(self.signed(event("evt_good")), 200);
        assert_eq!(self.site.ids().await, ["evt_good"]);
        assert_eq!(self.receiver.end(), Some(0));
        self.site.said_nothing_of(&[MARK, "evt_good"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_are_cut_off_and_take_no_memory() {
    let bench = Bench::new(Database::Sqlite);
    let (before, _) = bench.receiver.memory_kib();
    let ten_megabytes = vec![b'x'; 10_000_000];
    let headers = [("stripe-signature".to_owned(), b"t=1767225600,v1=00".to_vec())];
    assert_eq!(bench.send(&request("/webhooks/stripe", &headers, &ten_megabytes)).status, 413);
    // Ten gigabytes are announced, and a part of them is sent.
    let head = "POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000000\r\n\r\n";
    assert_eq!(bench.send(&[head.as_bytes(), &ten_megabytes].concat()).status, 413);
    let head =
        "POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999999\r\n\r\n";
    assert!((400..500).contains(&bench.send(head.as_bytes()).status));
    // Ten gigabytes in chunks that nobody announced, from eight clients: cut off at the first megabyte.
    let sent = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| chunks(&bench.receiver, 10_000))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    });
    assert!(sent < 100_000_000, "{sent} bytes were read");
    let (_, peak) = bench.receiver.memory_kib();
    assert!(peak < before + 100_000, "{before} KiB before, {peak} KiB at most");
    bench.unharmed().await;
}

/// Sends megabytes in chunks until the other side has had enough; how many bytes that took.
fn chunks(receiver: &Receiver, count: usize) -> usize {
    let mut stream = connect(receiver.address).unwrap();
    stream
        .write_all(b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = [b"f4240\r\n".as_slice(), &vec![b'x'; 1_000_000], b"\r\n"].concat();
    let sent = (0..count).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    let mut answer = Vec::new();
    // The answer may be lost when the connection is cut off.
    drop(stream.read_to_end(&mut answer));
    assert!(answer.is_empty() || Answer::of(&answer).status == 413, "{:?}", Answer::of(&answer));
    sent * chunk.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packed_bodies_are_not_unpacked() {
    let bench = Bench::new(Database::Sqlite);
    for encoding in ["gzip", "br", "deflate", "gzip, gzip", "zstd", "x"] {
        let sample = stripe().sign(event("evt_1")).header("Content-Encoding", encoding);
        assert_eq!(bench.receiver.deliver("stripe", &sample).unwrap().status, 415, "{encoding}");
    }
    // A bomb that does not say what it is, is a body that nobody signed.
    let bomb = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0; 1_000]].concat();
    let headers = [("stripe-signature".to_owned(), b"t=1767225600,v1=00".to_vec())];
    assert_eq!(bench.send(&request("/webhooks/stripe", &headers, &bomb)).status, 401);
    assert_eq!(bench.signed(&bomb), 400);
    bench.unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_no_reader_likes_are_refused() {
    for database in BOTH {
        let bench = Bench::new(database);
        let deep = format!("{{\"id\":\"evt_1\",\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        let long = "x".repeat(300);
        let bodies: [Vec<u8>; 14] = [
            b"".to_vec(),
            b"{".to_vec(),
            b"[]".to_vec(),
            b"null".to_vec(),
            b"\xff\xfe{}".to_vec(),
            b"{\"id\":\"evt_\xff\"}".to_vec(),
            b"{\"id\":\"evt_\\u0000\"}".to_vec(),
            b"{\"id\":\"evt_\0\"}".to_vec(),
            b"{\"id\":null}".to_vec(),
            b"{\"id\":{\"a\":1}}".to_vec(),
            b"{\"id\":\"\"}".to_vec(),
            deep.into_bytes(),
            format!("{{\"id\":\"{long}\"}}").into_bytes(),
            format!("{{\"id\":\"{MARK}\\n\"}}").into_bytes(),
        ];
        for body in bodies {
            let status = bench.signed(&body);
            assert_eq!(status, 400, "{}", String::from_utf8_lossy(&body[..body.len().min(80)]));
        }
        bench.unharmed().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strange_texts_inside_a_genuine_event_are_kept_as_they_are() {
    for database in BOTH {
        let bench = Bench::new(database);
        let long = "x".repeat(255);
        for body in [
            format!("{{\"id\":\"{long}\",\"type\":\"a\\u0020b\"}}"),
            "{\"id\":\"evt_'; drop table inbox_event; --\"}".to_owned(),
            "{\"id\":\"evt_\u{1f600}\",\"data\":\"\\u0000\"}".to_owned(),
            "{\"id\":\"evt_2\",\"id\":\"evt_2\"}".to_owned(),
        ] {
            let status = bench.signed(&body);
            assert!(status == 200 || status == 400, "{body}: {status}");
        }
        assert!(bench.site.ids().await.len() >= 3);
        bench.site.said_nothing_of(&["drop table"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_are_missing_doubled_or_no_text_are_refused() {
    let bench = Bench::new(Database::Sqlite);
    let good = stripe().sign(event("evt_1"));
    let signature = good.headers[0].1.clone();
    let with = |values: &[&[u8]]| {
        let sample = good.clone().without("stripe-signature");
        values.iter().fold(sample, |sample, value| sample.header("Stripe-Signature", value))
    };
    let samples: [Sample; 8] = [
        with(&[]),
        with(&[b""]),
        with(&[&signature, &signature]),
        with(&[b"t=0,v1=00", &signature]),
        with(&[b"\xff\xfe"]),
        with(&[MARK.as_bytes()]),
        with(&["v1=00,".repeat(1_000).as_bytes()]),
        good.clone().without("stripe-signature").header("Authorization", format!("Bearer {MARK}")),
    ];
    for sample in samples {
        let answer = bench.receiver.deliver("stripe", &sample).unwrap();
        assert!((400..500).contains(&answer.status), "{answer:?}");
        assert!(!answer.body.contains(MARK), "{answer:?}");
    }
    // Too many, and too large for any provider.
    let many = (0..500).fold(good.clone(), |sample, at| sample.header(&format!("x-{at}"), MARK));
    let large = good.clone().header("x-large", MARK.repeat(10_000));
    for sample in [many, large] {
        let answer = bench.receiver.deliver("stripe", &sample).unwrap();
        assert_eq!(answer.status, 431, "{answer:?}");
    }
    bench.unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_very_path_of_an_endpoint_is_one() {
    let bench = Bench::new(Database::Sqlite);
    let good = stripe().sign(event("evt_1"));
    for path in [
        "/",
        "/webhooks",
        "/webhooks/",
        "//webhooks/stripe",
        "/webhooks//stripe",
        "/webhooks/stripe/",
        "/webhooks/./stripe",
        "/webhooks/x/../stripe",
        "/webhooks/../webhooks/stripe",
        "/webhooks/%2e%2e/stripe",
        "/webhooks/strip%65",
        "/webhooks/stripe%00",
        "/webhooks/stripe%2f",
        "/webhooks/Stripe",
        "/webhooks/%ff%fe",
        "/webhooks/stripe;x",
        "/webhooks/github",
        "/webhooks/s3cr3t-mark",
        "/etc/passwd",
        "/metrics/",
    ] {
        let answer = bench.send(&request(path, &good.headers, &good.body));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(!answer.body.contains(MARK));
    }
    for (method, path, status) in [
        ("GET", "/webhooks/stripe", 405),
        ("PUT", "/webhooks/stripe", 405),
        ("DELETE", "/webhooks/stripe", 405),
        ("POST", "/metrics", 405),
        ("OPTIONS", "*", 404),
        ("CONNECT", "example.org:443", 404),
        ("HEAD", "/healthz", 200),
    ] {
        let answer = bench
            .send(format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes());
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
    bench.unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_no_http_are_answered_or_cut_off() {
    let bench = Bench::new(Database::Sqlite);
    for bytes in [
        b"\r\n\r\n".as_slice(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"POST /webhooks/stripe HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzzz\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\nx: a\r\n b\0c\r\n\r\n",
        b"POST /webhooks/\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let mut stream = connect(bench.receiver.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let status = Answer::of(&answer).status;
        assert!(status == 0 || (400..=505).contains(&status) && status != 500, "{status} for {bytes:?}");
    }
    // More and less than was announced.
    let good = stripe().sign(event("evt_1"));
    for length in [good.body.len() - 1, 0] {
        let whole = String::from_utf8(request("/webhooks/stripe", &good.headers, &good.body)).unwrap();
        let lying = whole.replace(&format!("length: {}", good.body.len()), &format!("length: {length}"));
        let answer = bench.send(lying.as_bytes());
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    bench.unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_their_order() {
    let bench = Bench::new(Database::Sqlite);
    let mut bytes = Vec::new();
    for at in 0..200 {
        let good = stripe().sign(event(&format!("evt_{at:03}")));
        let one =
            request(if at % 2 == 0 { "/webhooks/stripe" } else { "/webhooks/x" }, &good.headers, &good.body);
        let text = String::from_utf8(one).unwrap();
        let text = if at < 199 { text.replace("connection: close\r\n", "") } else { text };
        // What nobody reads would end the connection, as it should; here it is small enough to be skipped.
        bytes.extend_from_slice(text.as_bytes());
    }
    let mut stream = connect(bench.receiver.address).unwrap();
    drop(stream.write_all(&bytes));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let text = String::from_utf8_lossy(&answer).into_owned();
    let statuses: Vec<&str> =
        text.split("HTTP/1.1 ").skip(1).map(|rest| rest.split(' ').next().unwrap()).collect();
    assert!(!statuses.is_empty(), "{text}");
    for (at, status) in statuses.iter().enumerate() {
        assert_eq!(*status, if at % 2 == 0 { "200" } else { "404" }, "{at}");
    }
    // Every answer has its event, and there is none without.
    assert_eq!(bench.site.ids().await.len(), statuses.iter().filter(|status| **status == "200").count());
    bench.site.said_nothing_of(&[]);
}
