//! What a stranger can make the receiver fetch by naming a certificate: shown by a proxy that is asked for
//! every connection and gives none. And that `PayPal`'s is fetched over TLS and used: shown by one that is `api.paypal.com`
//! to whoever trusts the root of this test (`tests/receive/paypal/tls_*.pem`, valid to 2036; the root's key was thrown away).

use super::{Receiver, Site};
use crate::receive::Sample;
use crate::receive::paypal::{WEBHOOK, sample};
use recon::store::Database;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receive/paypal").join(name)
}

/// A proxy that answers for `api.paypal.com` itself, with the chain that signs the samples; the paths that it was asked.
fn paypal() -> (String, Told<String>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_file(file("tls_leaf.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("tls_key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let secured = ServerConnection::new(Arc::clone(&config)).unwrap();
            if let Some(path) = answer(stream, secured)
                && tell.send(path).is_err()
            {
                return;
            }
        }
    });
    (format!("http://{address}"), told)
}

/// One tunnel with one request in it; `None` when the other side does not like the certificate.
fn answer(mut stream: TcpStream, secured: ServerConnection) -> Option<String> {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let asked = lines.next()?.ok()?;
    assert_eq!(asked, "CONNECT api.paypal.com:443 HTTP/1.1");
    lines.find(|line| line.as_ref().is_ok_and(String::is_empty))?.ok()?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let mut inside = StreamOwned::new(secured, stream);
    let mut first = String::new();
    let mut reader = BufReader::new(&mut inside);
    reader.read_line(&mut first).ok()?;
    reader.lines().find(|line| line.as_ref().is_ok_and(String::is_empty))?.ok()?;
    let pem = std::fs::read(file("chain.pem")).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", pem.len());
    inside.write_all(&[head.as_bytes(), &pem].concat()).ok()?;
    inside.flush().ok()?;
    first.split(' ').nth(1).map(str::to_owned)
}

fn receiver(site: &Site, proxy: &str) -> Receiver {
    Receiver::start(&mut command(site, proxy)).unwrap()
}

fn command(site: &Site, proxy: &str) -> std::process::Command {
    let root = file("root.pem");
    let provider = format!(
        "[[provider]]\nname = \"paypal\"\nkind = \"paypal\"\n[provider.signature]\nwebhook_id = \"{WEBHOOK}\"\n\
         roots = \"{}\"\n",
        root.display()
    );
    site.configure("", &provider);
    let mut command = site.command();
    command.env("HTTPS_PROXY", proxy).env("ALL_PROXY", proxy);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_is_fetched_over_tls_once_and_deliveries_are_taken() {
    let site = Site::new(Database::Sqlite);
    let (proxy, told) = paypal();
    // Not trusted: whoever stands between gets nowhere.
    let wary = receiver(&site, &proxy);
    wary.deliver("paypal", &sample()).unwrap().is_come_again();
    assert_eq!(wary.end(), Some(0));
    let receiver =
        Receiver::start(command(&site, &proxy).env("SSL_CERT_FILE", file("tls_root.pem"))).unwrap();
    for _ in 0..3 {
        assert_eq!(receiver.deliver("paypal", &sample()).unwrap().status, 200);
    }
    let mut changed = sample();
    changed.body[20] ^= 1;
    assert_eq!(receiver.deliver("paypal", &changed).unwrap().status, 401);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["/v1/notifications/certs/CERT-360caa42"]);
    assert_eq!(site.ids().await, ["WH-7MU294299R542214K-4N1831857K851783H"]);
    site.said_nothing_of(&["CERT-360caa42"]);
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
