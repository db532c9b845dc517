//! A kept event sent to a handler once more: our own receiver, an hour later, is the handler, so that every signature
//! must be one that its scheme takes then.

use super::{Receiver, Site, other_providers, secret_of, stripe};
use crate::receive::{T, kinds};
use recon::store::Database;
use std::net::{SocketAddr, TcpListener};
use std::process::Output;

const HOUR: i64 = 3_600;
const FILED: &str = "select provider || ' ' || account || ' ' || mode || ' ' || event_id || ' ' || event_type \
     || ' ' || body_sha256 from inbox_event order by provider";

/// Every scheme's endpoint, called under its own address, which Twilio, Square and others sign.
fn handler(site: &mut Site) -> Receiver {
    let at: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut providers = other_providers(site);
    for kind in kinds() {
        let name = format!("name = \"{}\"", kind.name);
        let Some(from) = providers.find(&name) else { continue };
        let own = format!("webhook_url = \"http://{at}/webhooks/{}\"", kind.name);
        let changed =
            providers[from..].replacen(&format!("webhook_url = \"{}\"", crate::receive::URL), &own, 1);
        providers.truncate(from);
        providers += &changed;
    }
    site.configure("", &providers);
    let config = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(site.config(), config.replace("127.0.0.1:0", &at.to_string())).unwrap();
    Receiver::start(site.command().env("RECON_NOW", (T + HOUR).to_string())).unwrap()
}

fn replayed(site: &Site, id: &str, to: &str) -> Output {
    let mut command = site.command_of(&["replay", id, "--to", to, "--times", "3"]);
    command.env("RECON_NOW", (T + HOUR).to_string()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kept_event_is_taken_again_where_its_key_is_held() {
    let mut first = Site::new(Database::Sqlite);
    let providers = other_providers(&mut first);
    first.configure("", &providers);
    let receiver = first.start();
    let mut second = Site::new(Database::Sqlite);
    let handler = handler(&mut second);
    let mut refused = Vec::new();
    for kind in kinds() {
        let secret = if kind.name == "stripe" { stripe().secret } else { secret_of(&kind) };
        let sample = kind.sign_with(&secret, kind.body, T);
        assert!(receiver.deliver(kind.name, &sample).unwrap().is_taken(), "{}", kind.name);
        let (id, _, account, mode, _) = &kind.expected;
        let id = format!("{}/{account}/{mode}/{id}", kind.name);
        let output = replayed(&first, &id, &format!("http://{}/webhooks/{}", handler.address, kind.name));
        let said = String::from_utf8(output.stdout).unwrap();
        if output.status.success() {
            assert!(["200 × 3", "202 × 3", "204 × 3"].iter().any(|taken| said.contains(taken)), "{said}");
        } else {
            refused.push((kind.name, said.contains("401 × 3 (signed as it came")));
        }
        assert_eq!(
            said.contains("signed as it came"),
            kind.signature_header.contains("ed25519") || kind.name == "standard_ed25519",
            "{said}"
        );
    }
    assert_eq!(refused, [("standard_ed25519", true)], "old, and nobody here can sign anew");
    let mut filed = first.rows(FILED).await;
    filed.retain(|row| !row.starts_with("standard_ed25519"));
    assert_eq!(second.rows(FILED).await, filed, "the same keys, and byte for byte");
    first.said_nothing_of(&[]);
    second.said_nothing_of(&[]);
}
