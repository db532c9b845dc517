//! The stage: a store in a folder, a provider and a team on loopback, and the two processes that are killed.

use super::Point;
use super::check::{Check, Sent, has_ended};
use super::hold::{self, Hold};
use super::process::Process;
use super::show::Cast;
use super::snapshot::Snapshot;
use super::team::Team;
use crate::clock;
use crate::config::FILE_NAME;
use crate::demo::emulator::{Emulator, Faults};
use crate::demo::world::{Event, WANTED_TYPES, World};
use crate::demo::{PROVIDER, folder};
use crate::record::{SECOND_US, format_instant, hex};
use crate::store::Store;
use crate::work::Caller;
use anyhow::{Context, Result, bail};
use chrono_tz::Tz;
use ring::hmac;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// Longer than anything here takes: whoever waits so long has found a fault.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// Everything that is there.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    world: World,
    emulator: Emulator,
    team: Team,
    store: Store,
    /// What the provider signs with.
    secret: String,
    receiver: Option<(Process, String)>,
    worker: Option<Process>,
    is_kept: bool,
}

/// Looks until it is so; false where it did not come.
async fn until(mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<bool> {
    let end = Instant::now() + PATIENCE;
    while !is_so().await? {
        if Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(true)
}

impl Stage {
    /// Builds it in a folder of a demonstration, with an empty store. Nothing is received yet.
    ///
    /// # Errors
    /// When the folder cannot be used or nothing can be listened on.
    pub async fn set(folder: PathBuf, seed: u64, now_us: i64) -> Result<Self> {
        let world = World::paid(seed, Point::ALL.len(), now_us);
        let emulator = Emulator::start(&world, Faults::default()).await?;
        let team = Team::open().await?;
        let secret = format!("whsec_demo{seed:016x}");
        folder::tidy(&folder)?;
        folder::write(&folder, FILE_NAME, &configuration(&emulator.base_url, &team.url, seed))?;
        folder::write(&folder, "stripe.key", &emulator.key)?;
        folder::write(&folder, "webhook.secret", &secret)?;
        let store = folder::open_empty(&folder).await?;
        hold::prepare(&store).await?;
        Ok(Self { folder, world, emulator, team, store, secret, receiver: None, worker: None, is_kept: true })
    }

    /// Whether the folder is still there afterwards; without it, only what went wrong stays.
    #[must_use]
    pub fn kept(self, is_kept: bool) -> Self {
        Self { is_kept, ..self }
    }

    /// Who plays.
    #[must_use]
    pub fn cast(&self) -> Cast {
        Cast {
            seed: self.world.seed,
            provider: self.emulator.base_url.clone(),
            team: self.team.url.clone(),
            folder: self.folder.display().to_string(),
            is_kept: self.is_kept,
        }
    }

    /// Ends every process and leaves the store as the product alone would have it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn end(mut self) -> Result<()> {
        self.worker = None;
        self.receiver = None;
        hold::clear(&self.store).await?;
        self.store.close().await;
        self.emulator.stop();
        Ok(())
    }

    /// The delivery that is under way when a process is killed at the point: each its own payment.
    pub(super) fn delivery_of(&self, point: Point) -> Result<Sent> {
        let index = Point::ALL.iter().position(|other| *other == point).context("a point")?;
        let payment = &self.world.payments[index];
        let charge = payment.charge.as_ref().context("a payment that was paid has a charge")?;
        let is_its = |event: &&Event| event.payment == Some(index) && event.kind == "charge.succeeded";
        let event = self.world.events.iter().find(is_its).context("a charge has an event")?;
        Ok(Sent {
            event_id: event.id.clone(),
            event_type: event.kind.to_owned(),
            charge_id: charge.id.clone(),
            amount_minor: charge.captured_minor,
            currency: payment.currency.to_owned(),
            point,
        })
    }

    /// What is there now.
    pub(super) async fn look(&self) -> Result<Snapshot> {
        Snapshot::of(&self.store, self.team.heard()).await
    }

    /// Brings a process to the point and kills it there.
    pub(super) async fn kill_at(&mut self, point: Point, sent: &Sent) -> Result<Vec<Check>> {
        match point {
            Point::Receipt => self.kill_receiver(sent).await,
            Point::Accepted => self.kill_while_asking(sent).await,
            Point::Change | Point::Result => self.kill_while_writing(point, sent).await,
        }
    }

    async fn kill_receiver(&mut self, sent: &Sent) -> Result<Vec<Check>> {
        let (mut receiver, url) = Process::receiver(&self.folder).await?;
        let hold = Hold::place(&self.store, Point::Receipt, &self.log()).await?;
        let event = self.event(&sent.event_id)?;
        let (caller, signature) = (Caller::new(&url, PATIENCE)?, self.signature(&event.body));
        let body = event.body.as_bytes().to_vec();
        let posting = tokio::spawn(async move { post(&caller, &signature, body).await });
        let is_held = until(async || Ok(hold.is_held())).await?;
        let killed = killed(&mut receiver, is_held, Point::Receipt)?;
        hold.release(&self.store).await?;
        let answer = posting.await.context("wait for the provider's call")?;
        let text = match &answer {
            Ok(status) => format!("the provider was answered {status}"),
            Err(_) => "the provider got no answer".to_owned(),
        };
        Ok(vec![killed, Check::new(answer.is_err(), text)])
    }

    async fn kill_while_asking(&mut self, sent: &Sent) -> Result<Vec<Check>> {
        self.emulator.hold(true);
        let asked = self.emulator.counters.total();
        let taken = self.deliver(&sent.event_id).await?;
        let counters = &self.emulator.counters;
        let is_asking = until(async || Ok(counters.total() > asked)).await?;
        let killed = self.kill_worker(Point::Accepted, is_asking)?;
        self.emulator.hold(false);
        Ok(vec![taken, killed])
    }

    async fn kill_while_writing(&mut self, point: Point, sent: &Sent) -> Result<Vec<Check>> {
        let hold = Hold::place(&self.store, point, &self.log()).await?;
        let taken = self.deliver(&sent.event_id).await?;
        let key = sent.idempotency_key();
        let is_held = until(async || Ok(hold.is_held() && hold.has_written(&key))).await?;
        let killed = self.kill_worker(point, is_held)?;
        hold.release(&self.store).await?;
        let mut checks = vec![taken, killed];
        if point == Point::Change {
            let text = "its ledger entry stands on the disk, uncommitted";
            checks.push(Check::new(is_held, text));
        }
        Ok(checks)
    }

    fn kill_worker(&mut self, point: Point, is_there: bool) -> Result<Check> {
        let mut worker = self.worker.take().context("a worker")?;
        killed(&mut worker, is_there, point)
    }

    /// Starts what was killed. What the provider has no 2xx for, it sends again.
    pub(super) async fn start_again(&mut self, point: Point, sent: &Sent) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        if point == Point::Receipt {
            self.receiver = Some(Process::receiver(&self.folder).await?);
            checks.push(self.deliver(&sent.event_id).await?);
        }
        self.worker = Some(Process::worker(&self.folder)?);
        Ok(checks)
    }

    pub(super) async fn wait_for_the_end(&self, sent: &Sent) -> Result<Check> {
        let has_ended = until(async || Ok(has_ended(sent, &self.look().await?))).await?;
        Ok(Check::new(has_ended, "the event is applied and its message sent"))
    }

    /// Ids of every event of every payment that the endpoint listens to.
    pub(super) fn every_event(&self) -> Vec<String> {
        let wanted = self.world.events.iter().filter(|event| WANTED_TYPES.contains(&event.kind));
        wanted.map(|event| event.id.clone()).collect()
    }

    /// Every event of every payment, also those that were not needed so far, as a provider may at any time.
    pub(super) async fn send_everything_again(&mut self) -> Result<Vec<Check>> {
        self.worker = None;
        let ids = self.every_event();
        let mut taken = 0;
        for id in &ids {
            taken += usize::from(self.deliver(id).await?.is_right);
        }
        let text = format!("{taken} of {} deliveries were answered 2xx", ids.len());
        let (code, said) = Process::run(&self.folder, &["work", "--drain"])?;
        Ok(vec![
            Check::new(taken == ids.len(), text),
            Check::new(code == Some(0), format!("recon work --drain: {said}")),
        ])
    }

    /// The other half of the product as witness: it asks the provider's lists and compares. Its window ends now, so
    /// that what was just booked lies in it.
    pub(super) fn reconcile(&self) -> Result<Check> {
        let since = format_instant(self.world.from_us, Tz::UTC);
        let (code, said) = Process::run(&self.folder, &["--since", &since])?;
        let outcome: String = said.split(' ').take(3).collect::<Vec<_>>().join(" ");
        Ok(Check::new(code == Some(0), format!("against the provider's lists: {outcome}")))
    }

    /// Sends an event to the receiver until it is answered 2xx.
    async fn deliver(&self, event_id: &str) -> Result<Check> {
        let (_, url) = self.receiver.as_ref().context("a receiver")?;
        let body = &self.event(event_id)?.body;
        let caller = Caller::new(url, PATIENCE)?;
        let is_taken = until(async || {
            let answer = post(&caller, &self.signature(body), body.as_bytes().to_vec()).await;
            Ok(matches!(answer, Ok(200..=299)))
        });
        Ok(Check::new(is_taken.await?, "the provider sends it and is answered 2xx"))
    }

    fn event(&self, event_id: &str) -> Result<&Event> {
        self.world.events.iter().find(|event| event.id == event_id).context("an event of this world")
    }

    /// As the provider signs: `t` is now, `v1` over time and body with the whole secret.
    fn signature(&self, body: &str) -> String {
        let seconds = clock::now_us().div_euclid(SECOND_US);
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let signed = hmac::sign(&key, format!("{seconds}.{body}").as_bytes());
        format!("t={seconds},v1={}", hex(signed.as_ref()))
    }

    fn log(&self) -> PathBuf {
        self.folder.join("recon.db-wal")
    }
}

/// POSIX.
const SIGKILL: i32 = 9;

/// Kills a process that was seen to be where it should be.
fn killed(process: &mut Process, is_there: bool, point: Point) -> Result<Check> {
    let name = point.process();
    if !is_there {
        bail!("{name} was not seen to come to the point; see {}", process.log().display());
    }
    let id = process.id();
    let signal = process.kill()?;
    let how = signal.map_or("ended by itself".to_owned(), |signal| format!("ended by signal {signal}"));
    Ok(Check::new(signal == Some(SIGKILL), format!("{name} (process {id}) {how}")))
}

async fn post(caller: &Caller, signature: &str, body: Vec<u8>) -> Result<u16> {
    let headers = [("content-type", "application/json; charset=utf-8"), ("stripe-signature", signature)];
    caller.post(&headers, body).await
}

/// No settle delay, as this provider lists at once what it has; short waits between attempts, so that nobody has to watch a clock; long ones for one request, so that it is
/// the kill that ends it.
fn configuration(provider: &str, team: &str, seed: u64) -> String {
    let types: Vec<String> = WANTED_TYPES.iter().map(|kind| format!("    \"{kind}\",\n")).collect();
    format!(
        "{mark} --recovery: four payments (seed {seed}) of an account that does not exist.\n\n\
         [store]\nurl = \"sqlite:{store}\"\n\n\
         [report]\ndir = \"reports\"\ntime_zone = \"UTC\"\n\n\
         [receive]\nlisten = \"127.0.0.1:0\"\ntimeout = \"40s\"\n\n\
         [work]\nretry_delay = \"1s\"\n\n\
         [outbox]\nurl = \"{team}\"\nretry_delay = \"1s\"\n\n\
         [[provider]]\nname = \"{PROVIDER}\"\nkind = \"stripe\"\nbase_url = \"{provider}\"\n\
         api_key = {{ file = \"stripe.key\" }}\nwebhook_secrets = [{{ file = \"webhook.secret\" }}]\nmode = \"live\"\n\
         settle_delay = \"0s\"\nrequests_per_second = 2000\naccount_requests_per_second = 8000\nevent_types = [\n{types}]\n\n\
         [inbox]\nurl = \"store\"\n\n[local]\nurl = \"store\"\n",
        mark = folder::MARK,
        store = folder::STORE,
        types = types.concat(),
    )
}
