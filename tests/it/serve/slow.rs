//! Those who come slowly, in crowds, or faster than can be written: cut off or told to come again, while
//! genuine deliveries are taken.

use super::{Answer, Receiver, Site, connect, deliver, event, stripe};
use recon::store::Database;
use std::io::{Read, Write};
use std::net::TcpStream;

fn on(receive: &str) -> (Site, Receiver) {
    let site = Site::new(Database::Sqlite);
    site.configure(receive, "");
    let receiver = site.start();
    receiver.wait_for("recon_store_up 1");
    (site, receiver)
}

/// What a connection that sends no more gets in the end; `None` when it is cut off.
fn last_word(mut stream: TcpStream) -> Option<Answer> {
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    (!answer.is_empty()).then(|| Answer::of(&answer))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_idle_clients_are_cut_off() {
    let (site, receiver) = on("timeout = \"1s\"");
    let half_a_head = b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\nstripe-sig".as_slice();
    let half_a_body = b"POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n{\"id\":";
    let mut streams = Vec::new();
    for start in [b"".as_slice(), half_a_head, half_a_body] {
        for _ in 0..50 {
            let mut stream = connect(receiver.address).unwrap();
            stream.write_all(start).unwrap();
            streams.push(stream);
        }
    }
    assert_eq!(receiver.stripe(&event("evt_1")).unwrap().status, 200);
    for stream in streams {
        // Reading ends because the other side ends it.
        let answer = last_word(stream);
        assert!(answer.is_none_or(|answer| answer.status == 408), "another answer");
    }
    // A byte now and then does not keep a connection open.
    let mut stream = connect(receiver.address).unwrap();
    stream.write_all(half_a_body).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let mut answer = [0; 512];
    let mut read = 0;
    for _ in 0..600 {
        drop(stream.write_all(b" "));
        match stream.read(&mut answer[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert_eq!(Answer::of(&answer[..read]).status, 408);
    assert_eq!(receiver.end(), Some(0));
    site.said_nothing_of(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_idle_connections_keeps_nobody_out() {
    let (site, receiver) = on("timeout = \"1s\"");
    let (before, _) = receiver.memory_kib();
    let mut crowd = Vec::new();
    for _ in 0..10_000 {
        match connect(receiver.address) {
            Ok(stream) => crowd.push(stream),
            // This process has no files left.
            Err(error) if error.raw_os_error() == Some(24) => break,
            Err(_) => {}
        }
    }
    assert!(crowd.len() > 500, "only {} connections", crowd.len());
    drop(crowd.split_off(crowd.len() - 100));
    assert_eq!(receiver.stripe(&event("evt_1")).unwrap().status, 200);
    let (_, peak) = receiver.memory_kib();
    assert!(peak < before + 300_000, "{before} KiB before, {peak} KiB at most, {} connections", crowd.len());
    drop(crowd);
    assert_eq!(receiver.stripe(&event("evt_2")).unwrap().status, 200);
    assert_eq!(receiver.end(), Some(0));
    site.said_nothing_of(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_may_wait_are_told_to_come_again() {
    let (site, receiver) = on("waiting_max = 3\ntimeout = \"10s\"");
    let store = site.store().await;
    let lock = store.begin_write().await.unwrap();
    let address = receiver.address;
    let (told, told_one) = std::sync::mpsc::channel();
    let handle = tokio::runtime::Handle::current();
    let mut lock = Some(lock);
    let answers: Vec<(String, Answer)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..30)
            .map(|at| {
                let told = told.clone();
                scope.spawn(move || {
                    let id = format!("evt_{at:02}");
                    let answer = deliver(address, "stripe", &stripe().sign(event(&id))).unwrap();
                    told.send(()).unwrap();
                    (id, answer)
                })
            })
            .collect();
        // As long as the lock is held nobody is taken: one commit is under way, three wait, the rest is told.
        for _ in 0..20 {
            told_one.recv().unwrap();
        }
        tokio::task::block_in_place(|| handle.block_on(lock.take().unwrap().rollback())).unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let taken: Vec<String> =
        answers.iter().filter(|(_, answer)| answer.is_taken()).map(|(id, _)| id.clone()).collect();
    for (_, answer) in answers.iter().filter(|(_, answer)| !answer.is_taken()) {
        answer.is_come_again();
        assert_eq!(answer.body, "busy");
    }
    assert!(!taken.is_empty() && taken.len() <= 10, "{} were taken", taken.len());
    store.close().await;
    assert_eq!(site.ids().await, taken);
}
