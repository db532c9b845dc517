//! What a stranger can make the receiver fetch by naming a certificate: shown by a proxy that is asked for
//! every connection and gives none.

use super::{Receiver, Site};
use crate::receive::Sample;
use crate::receive::paypal::{WEBHOOK, sample};
use recon::store::Database;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver as Told, channel};

/// First lines of what a proxy is asked; it refuses all of it.
fn refusing_proxy() -> (String, Told<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut line = String::new();
            drop(BufReader::new(&stream).read_line(&mut line));
            // Told before it is answered, so that whoever has an answer finds it.
            if tell.send(line).is_err() {
                return;
            }
            drop(stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"));
        }
    });
    (format!("http://{address}"), told)
}

fn receiver(site: &Site, proxy: &str) -> Receiver {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receive/paypal/root.pem");
    let provider = format!(
        "[[provider]]\nname = \"paypal\"\nkind = \"paypal\"\n[provider.signature]\nwebhook_id = \"{WEBHOOK}\"\n\
         roots = \"{}\"\n",
        root.display()
    );
    site.configure("", &provider);
    Receiver::start(site.command().env("HTTPS_PROXY", proxy).env("ALL_PROXY", proxy)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_paypal_is_asked_for_a_certificate_and_not_at_every_delivery() {
    let site = Site::new(Database::Sqlite);
    let (proxy, told) = refusing_proxy();
    let receiver = receiver(&site, &proxy);
    receiver.wait_for("recon_store_up 1");
    let with_url = |url: &str| sample().without("PAYPAL-CERT-URL").header("PAYPAL-CERT-URL", url);
    let status = |sample: &Sample| receiver.deliver("paypal", sample).unwrap().status;
    for foreign in
        ["https://evil.example/cert", "http://api.paypal.com/cert", "https://api.paypal.com@evil.example/"]
    {
        assert_eq!(status(&with_url(foreign)), 401, "{foreign}");
    }
    // Something else is wrong with it: nothing is fetched.
    assert_eq!(status(&sample().without("PAYPAL-TRANSMISSION-SIG")), 401);
    for _ in 0..3 {
        receiver.deliver("paypal", &sample()).unwrap().is_come_again();
    }
    let asked: Vec<String> = told.try_iter().collect();
    assert_eq!(asked, ["CONNECT api.paypal.com:443 HTTP/1.1\r\n"]);
    assert!(site.ids().await.is_empty());
    site.said_nothing_of(&["CERT-360caa42", "evil.example"]);
}
