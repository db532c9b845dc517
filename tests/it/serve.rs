//! The receiver as a process of its own, over real HTTP, on both databases.

mod again;
mod chaos;
mod hostile;
mod once;
mod outage;
mod paypal;
mod refused;
mod slow;
mod unusable;
mod watching;

use crate::postgres::Place;
use crate::receive::{Kind, Sample, T, URL, kind};
use recon::store::{Access, Database, Store};
use sqlx::Row;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub const BOTH: [Database; 2] = [Database::Sqlite, Database::Postgres];
/// Longer than any limit of the receiver: whoever waits so long has found a fault.
const PATIENCE: Duration = Duration::from_secs(40);

/// A store, a configuration, and what the receivers on it said.
pub struct Site {
    pub folder: TempDir,
    pub place: Place,
    pub secrets: Vec<(String, String)>,
}

impl Site {
    /// A Stripe endpoint on a new store.
    pub fn new(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let site = Self { folder, place, secrets: vec![("SECRET".into(), stripe().secret)] };
        site.configure("", "");
        site
    }

    /// Writes the configuration, with further settings of `[receive]` and further providers.
    pub fn configure(&self, receive: &str, providers: &str) {
        self.configure_on(&self.place.url(), receive, providers);
    }

    pub fn configure_on(&self, store_url: &str, receive: &str, providers: &str) {
        let text = format!(
            "[store]\nurl = \"{store_url}\"\n[receive]\nlisten = \"127.0.0.1:0\"\n{receive}\n[[provider]]\n\
             name = \"stripe\"\napi_key = {{ env = \"KEY\" }}\nwebhook_secrets = [{{ env = \"SECRET\" }}]\n{providers}"
        );
        std::fs::write(self.config(), text).unwrap();
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("recon.toml")
    }

    pub fn command(&self) -> Command {
        self.command_of(&["serve"])
    }

    pub fn command_of(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.arg("--config").arg(self.config()).args(arguments);
        self.dress(&mut command);
        command
    }

    pub fn dress(&self, command: &mut Command) {
        command.env_clear().env("RECON_NOW", T.to_string()).env("RECON_LOG", "trace");
        command.envs(self.secrets.iter().map(|(name, value)| (name, value)));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Everything that receivers on this site logged.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    pub fn start(&self) -> Receiver {
        Receiver::start(&mut self.command()).unwrap_or_else(|said| panic!("it said {said:?}\n{}", self.log()))
    }

    pub async fn store(&self) -> Store {
        Store::open(&self.place.url(), Access::ReadWrite).await.unwrap()
    }

    /// The first column of every row, as text.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        let store = self.store().await;
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(store.pool()).await.unwrap();
        let texts = rows.iter().map(|row| row.get::<String, _>(0)).collect();
        store.close().await;
        texts
    }

    /// Ids in the inbox, in order.
    pub async fn ids(&self) -> Vec<String> {
        self.rows("select event_id from inbox_event order by event_id").await
    }

    pub fn spill_folder(&self) -> PathBuf {
        self.folder.path().join("spill")
    }

    /// Names of files in the spill folder.
    pub fn spilled(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.spill_folder()) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// No receiver panicked or said anything that is nobody's business.
    pub fn said_nothing_of(&self, secrets: &[&str]) {
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
        for secret in secrets.iter().copied().chain(self.secrets.iter().map(|(_, value)| value.as_str())) {
            assert!(!log.contains(secret), "the log holds {secret}");
        }
    }
}

/// A running `recon serve`.
pub struct Receiver {
    pub child: Child,
    pub address: SocketAddr,
}

impl Receiver {
    /// What it said instead of where it listens, if so.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.strip_prefix("POST http://").and_then(|rest| rest.split('/').next());
        let Some(address) = address.and_then(|address| address.parse().ok()) else {
            child.wait().unwrap();
            return Err(line);
        };
        // Whoever says more must not wait for a reader.
        std::thread::spawn(move || drop(std::io::copy(&mut lines, &mut std::io::sink())));
        Ok(Self { child, address })
    }

    /// Posts a sample to an endpoint, under the path and query that it was signed for.
    pub fn deliver(&self, name: &str, sample: &Sample) -> std::io::Result<Answer> {
        deliver(self.address, name, sample)
    }

    pub fn stripe(&self, body: &str) -> std::io::Result<Answer> {
        self.deliver("stripe", &stripe().sign(body))
    }

    pub fn get(&self, path: &str) -> Answer {
        send(self.address, format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
            .unwrap()
    }

    /// Asks until the answer to `/metrics` has this line.
    pub fn wait_for(&self, line: &str) {
        let started = std::time::Instant::now();
        loop {
            let metrics = self.get("/metrics").body;
            if metrics.lines().any(|other| other == line) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "`{line}` never came:\n{metrics}");
            std::thread::yield_now();
        }
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, as a service manager does, and gives its exit code.
    pub fn end(mut self) -> Option<i32> {
        let done = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(done.success());
        self.child.wait().unwrap().code()
    }

    /// Memory that it holds now and held at most, KiB.
    pub fn memory_kib(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        (value("VmRSS:"), value("VmHWM:"))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// 0: the connection was closed without an answer.
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub fn is_taken(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Told to come again, and when.
    #[track_caller]
    pub fn is_come_again(&self) {
        assert!(self.status == 503 && self.head.contains("retry-after: "), "{self:?}");
    }
}

pub fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends bytes as they are and reads until the other side closes.
pub fn send(address: SocketAddr, bytes: &[u8]) -> std::io::Result<Answer> {
    let mut stream = connect(address)?;
    // Whoever answers early may close before all is written: the answer counts.
    let written = stream.write_all(bytes);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    if answer.is_empty() {
        written?;
        read?;
    }
    Ok(Answer::of(&answer))
}

pub fn request(path: &str, headers: &[(String, Vec<u8>)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    write!(head, "content-length: {}\r\n", body.len()).unwrap();
    let mut bytes = head.into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

pub fn deliver(address: SocketAddr, name: &str, sample: &Sample) -> std::io::Result<Answer> {
    let query = sample.url.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
    send(address, &request(&format!("/webhooks/{name}{query}"), &sample.headers, &sample.body))
}

pub fn stripe() -> Kind {
    kind("stripe")
}

/// A body of Stripe for an event.
pub fn event(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","object":"event","created":{T},"livemode":true,"type":"payment_intent.succeeded","data":{{"object":{{"id":"pi_1","amount":1000,"currency":"usd"}}}}}}"#
    )
}

/// The secret as a configuration takes it.
pub fn secret_of(kind: &Kind) -> String {
    // One that cannot stand anywhere by chance.
    kind.secret.replace("12345", "twilio-auth-token").replace("hush", "shopify-client-secret")
}

/// An endpoint of each other scheme that is signed for here, with its secret's variable.
pub fn other_providers(site: &mut Site) -> String {
    let mut text = String::new();
    for kind in crate::receive::kinds().into_iter().filter(|kind| kind.name != "stripe") {
        let variable = format!("SECRET_{}", kind.name.to_ascii_uppercase());
        let word = match kind.name {
            "twilio_form" | "twilio_json" => "twilio",
            "standard" | "standard_ed25519" => "standard_webhooks",
            other => other,
        };
        write!(
            text,
            "[[provider]]\nname = \"{}\"\nkind = \"{word}\"\nwebhook_url = \"{URL}\"\n\
             webhook_secrets = [{{ env = \"{variable}\" }}]\n",
            kind.name
        )
        .unwrap();
        if word == "hmac" {
            text += "[provider.signature]\nheader = \"X-Signature\"\nprefix = \"sha512=\"\nhash = \"sha512\"\n\
                     encoding = \"base64\"\nsecret_encoding = \"base64\"\ntimestamp_header = \"X-Time\"\n\
                     signed = \"{method}\\n{url}\\n{timestamp}\\n{body}\"\nevent_id = \"body:meta.id\"\n\
                     event_type = \"header:X-Event\"\n";
        }
        site.secrets.push((variable, secret_of(&kind)));
    }
    text
}
