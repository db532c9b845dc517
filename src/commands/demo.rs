//! `recon demo`: a seeded month of a Stripe-shaped account with planted faults, reconciled before the
//! reader's eyes.
//!
//! Make the month and plant faults; serve it on loopback; deliver it to a shop with an honest and a
//! naive handler; reconcile; show planted against found, where planted is counted by the storyteller and
//! found is read from `findings.csv`; apply the plan and reconcile again, so that only what a person must
//! decide is left; say where the report lies.
//!
//! With `--recovery` it tells another story: four kills, and what is left of each.
//! With `--practice` it stops before reconciling, and serves the month while the reader does the rest by hand.

use super::{Outcome, Output, apply, program, run};
use crate::cli::{RunRequest, WindowSpec};
use crate::clock;
use crate::config::{self, FILE_NAME};
use crate::demo::emulator::{Emulator, Faults};
use crate::demo::faults::{Mix, Planted, plant};
use crate::demo::folder::{MARK, open_empty, refuse_another_owner, tidy, write};
use crate::demo::handlers::Books;
use crate::demo::recovery;
use crate::demo::show::{self, Opening, Paint};
use crate::demo::verdict::{self, FoundRow};
use crate::demo::world::{WANTED_TYPES, World};
use crate::demo::{PROVIDER, deliver};
use crate::provider::Cancel;
use crate::record::format_instant;
use crate::report::next_steps::shell_word;
use anyhow::{Context, Result, bail};
use chrono_tz::Tz;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// Arguments of `recon demo`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DemoArgs {
    /// Seed of the month; the same seed tells the same story. Default: by chance, and printed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// About how many events the month has. Default: 10000, or 2000 to practise on.
    #[arg(long)]
    pub events: Option<u64>,
    /// Folder to keep with the databases and the configuration, new or of an earlier demonstration.
    /// Default: only the report stays.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Do it yourself: write the folder (default: practice), correct nothing, and be the provider until
    /// Ctrl-C, while you run and apply in another terminal.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "practice", conflicts_with = "keep")]
    pub practice: Option<PathBuf>,
    /// Another story: four payments on their way through `recon serve` and `recon work`, which are killed at the
    /// worst moments; inbox, ledger, outbox and calls before and after. Exit 1 when anything is lost or doubled.
    /// Without --keep nothing stays.
    #[arg(long, conflicts_with_all = ["practice", "events"])]
    pub recovery: bool,
}

/// Events of a month that is shown, and of one to practise on.
const EVENTS: u64 = 10_000;
const PRACTICE_EVENTS: u64 = 2_000;
/// Scenes of each fault for so many events; smaller months have one.
const SCENES_PER_EVENTS: u64 = 5_000;
const SCENES_MAX: u32 = 5;

/// The month, the shop that received it, and the provider that answers for it.
struct Staged {
    folder: PathBuf,
    world: World,
    planted: Vec<Planted>,
    books: Books,
    emulator: Emulator,
}

impl Staged {
    /// Makes the month, serves it and delivers it to a shop in `folder`.
    async fn new(folder: PathBuf, seed: u64, events: u64, mix: &Mix, now_us: i64) -> Result<Self> {
        refuse_another_owner(&folder)?;
        std::fs::create_dir_all(&folder).with_context(|| format!("make the folder {}", folder.display()))?;
        let mut world = World::new(seed, usize::try_from(events).unwrap_or(usize::MAX), now_us);
        let planted = plant(&mut world, seed, mix);
        let emulator = Emulator::start(&world, Faults::default()).await?;
        configure(&folder, &emulator, &world)?;
        let store = open_empty(&folder).await?;
        let books = deliver(&store, &world, &planted, seed).await?;
        store.close().await;
        Ok(Self { folder, world, planted, books, emulator })
    }

    fn opening(&self) -> Opening<'_> {
        let Self { world, planted, books, emulator, .. } = self;
        Opening { world, planted, books, base_url: &emulator.base_url }
    }
}

/// Tells the story. True where found is planted exactly, before and after applying; and where there was
/// nothing to compare, because the reader does it.
///
/// # Errors
/// When the folder to keep holds files of somebody else, it cannot be written, the emulator cannot start, or a run cannot be done.
pub async fn demo(args: &DemoArgs) -> Result<bool> {
    let now_us = clock::now_us();
    // Chance needs no more than a number that differs from one demonstration to the next.
    let seed = args.seed.unwrap_or_else(|| now_us.unsigned_abs() % 1_000_000);
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let paint = Paint { is_on: std::io::stdout().is_terminal() && !is_unwanted };
    if let Some(folder) = &args.practice {
        practise(args, folder, seed, now_us, paint).await?;
        return Ok(true);
    }
    let folder = match &args.keep {
        Some(folder) => folder.clone(),
        None => std::env::temp_dir().join(format!("recon-demo-{seed}-{}", std::process::id())),
    };
    if args.recovery {
        return recover(args, folder, seed, now_us, paint).await;
    }
    let events = args.events.unwrap_or(EVENTS);
    let staged = Staged::new(folder, seed, events, &Mix::each(scenes(events)), now_us).await?;
    say(&show::opening(paint, &staged.opening()))?;

    let Staged { folder, world, planted, emulator, .. } = staged;
    let before = reconcile(&folder, &world).await?;
    let found = read(&before)?;
    let first = verdict::judge(&planted, &found, false);
    say(&show::comparison(paint, &first))?;
    say(&show::money(paint, &planted, &found))?;

    apply(&folder, &before.join("plan.csv"), now_us).await?;
    let after = reconcile(&folder, &world).await?;
    let second = verdict::judge(&planted, &read(&after)?, true);
    say(&show::ending(paint, &second, emulator.counters.writes()))?;
    emulator.stop();
    if args.keep.is_none() {
        tidy(&folder)?;
    }
    say(&farewell(args, seed, events, &before, &world))?;
    Ok(first.is_exact() && second.is_exact())
}

/// Kills and starts again; true where nothing was lost or doubled. A folder in which something was stays.
async fn recover(args: &DemoArgs, folder: PathBuf, seed: u64, now_us: i64, paint: Paint) -> Result<bool> {
    refuse_another_owner(&folder)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("make the folder {}", folder.display()))?;
    let mut stage = recovery::Stage::set(folder.clone(), seed, now_us).await?.kept(args.keep.is_some());
    let mut terminate = signal(SignalKind::terminate()).context("listen for signals")?;
    // Whoever stops it stops the processes as well: they end with the stage.
    let is_right = tokio::select! {
        told = recovery::tell(&mut stage, paint, say) => told?,
        _ = tokio::signal::ctrl_c() => bail!("stopped; {} stays", folder.display()),
        _ = terminate.recv() => bail!("stopped; {} stays", folder.display()),
    };
    stage.end().await?;
    let again = format!("{} demo --recovery --seed {seed}", program());
    let mut lines = vec![("Again", again.clone())];
    if args.keep.is_none() && is_right {
        std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
        lines.push(("Keep", format!("{again} --keep demo")));
    } else {
        let config = shell_word(&folder.join(FILE_NAME).display().to_string());
        lines.push(("Look", format!("{} --config {config} inbox list", program())));
    }
    say(&named(&lines))?;
    Ok(is_right)
}

fn scenes(events: u64) -> u32 {
    u32::try_from(events / SCENES_PER_EVENTS).unwrap_or(SCENES_MAX).clamp(1, SCENES_MAX)
}

/// Serves a month whose faults a plan can all put right, so that the reader can bring it to `clean`.
async fn practise(args: &DemoArgs, folder: &Path, seed: u64, now_us: i64, paint: Paint) -> Result<()> {
    let events = args.events.unwrap_or(PRACTICE_EVENTS);
    let mix = Mix::correctable(scenes(events));
    refuse_another_owner(folder)?;
    // They are of a month that is not there any more, and their plans fit no store.
    match std::fs::remove_dir_all(folder.join("reports")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("remove the old reports in {}", folder.display()));
        }
        _ => {}
    }
    let staged = Staged::new(folder.to_owned(), seed, events, &mix, now_us).await?;
    let here = std::env::current_dir().context("read the working directory")?;
    let config = shell_word(&folder.join(FILE_NAME).display().to_string());
    let day: String = format_instant(staged.world.from_us, Tz::UTC).chars().take(10).collect();
    let commands = [
        format!("cd {}", shell_word(&here.display().to_string())),
        format!("{} --config {config} --since {day}", program()),
    ];
    say(&show::practice(paint, &staged.opening(), &folder.display().to_string(), &commands))?;
    tokio::signal::ctrl_c().await.context("wait for Ctrl-C")?;
    staged.emulator.stop();
    say("\n  The provider is gone; the folder stays, and --offline runs still work in it.\n")
}

/// Where the report lies, and commands that can be pasted: each is whole, seed and size included.
fn farewell(args: &DemoArgs, seed: u64, events: u64, report: &Path, world: &World) -> String {
    let program = program();
    let month = format!("{program} demo --seed {seed} --events {events}");
    let instant = |at_us: i64| format_instant(at_us, Tz::UTC);
    let word = |path: &Path| shell_word(&path.display().to_string());
    let mut lines = vec![("Report", word(report))];
    match &args.keep {
        None => lines.extend([("Again", month.clone()), ("Keep", format!("{month} --keep demo"))]),
        Some(folder) => {
            let config = word(&folder.join(FILE_NAME));
            let (since, until) = (instant(world.from_us), instant(world.until_us));
            lines.push(("Again", format!("{month} --keep {}", word(folder))));
            let offline = format!("{program} --config {config} --offline --since {since} --until {until}");
            lines.push(("Offline", offline));
        }
    }
    lines.push(("Practise", format!("{program} demo --practice")));
    named(&lines)
}

fn named(lines: &[(&str, String)]) -> String {
    let lines = lines.iter().map(|(name, value)| format!("\n  {name:<10}{value}"));
    lines.collect::<Vec<_>>().concat() + "\n"
}

/// Reconciles the world's window with the folder's `recon.toml`, quietly. Answers the report folder.
async fn reconcile(folder: &Path, world: &World) -> Result<PathBuf> {
    let settings = config::load(Some(&folder.join("recon.toml")))?;
    let mut said = Vec::new();
    let finished = run::reconcile(&settings, &run_request(world), &mut said).await?;
    finished.dir.context("the run wrote no report")
}

/// A run over a world's window, at its time.
#[must_use]
pub fn run_request(world: &World) -> RunRequest {
    let instant = |at_us: i64| Some(format_instant(at_us, Tz::UTC));
    RunRequest {
        window: WindowSpec { since: instant(world.from_us), until: instant(world.until_us), month: None },
        providers: vec![PROVIDER.to_owned()],
        apply: false,
        offline: false,
        no_grace: false,
        json: false,
        now_us: world.now_us,
        cancel: Cancel::never(),
    }
}

/// Carries out a plan with the folder's `recon.toml`, quietly.
async fn apply(folder: &Path, plan: &Path, now_us: i64) -> Result<()> {
    let settings = config::load(Some(&folder.join("recon.toml")))?;
    let args = apply::ApplyArgs { plan: plan.to_owned() };
    let mut said = Vec::new();
    let outcome = apply::apply_to(&settings, &args, now_us, &mut said).await?;
    if outcome != Outcome::Clean {
        bail!("applying ended as {}: {}", outcome.as_str(), String::from_utf8_lossy(&said));
    }
    Ok(())
}

/// Writes `recon.toml` and the emulator's key beside it.
fn configure(folder: &Path, emulator: &Emulator, world: &World) -> Result<()> {
    let types: Vec<String> = WANTED_TYPES.iter().map(|kind| format!("    \"{kind}\",\n")).collect();
    let text = format!(
        "{MARK}: month {seed} of an account that does not exist.\n\n\
         [store]\nurl = \"sqlite:recon.db\"\n\n\
         [report]\ndir = \"reports\"\ntime_zone = \"UTC\"\n\n\
         [[provider]]\nname = \"{PROVIDER}\"\nkind = \"stripe\"\nbase_url = \"{base_url}\"\n\
         api_key = {{ file = \"stripe.key\" }}\nmode = \"live\"\n\
         requests_per_second = 2000\naccount_requests_per_second = 8000\n\
         intent = \"metadata.order_id\"\nevent_types = [\n{types}]\n\n\
         [inbox]\nurl = \"store\"\n\n[local]\nurl = \"store\"\n\n\
         [corrections]\ncount_max = 100000\n\
         minor_max = {{ usd = 1000000000, eur = 1000000000, brl = 1000000000, jpy = 1000000000, kwd = 1000000000 }}\n",
        seed = world.seed,
        base_url = emulator.base_url,
        types = types.concat(),
    );
    write(folder, FILE_NAME, &text)?;
    write(folder, "stripe.key", &emulator.key)
}

fn read(report: &Path) -> Result<Vec<FoundRow>> {
    let path = report.join("findings.csv");
    let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    verdict::read_findings(&bytes).with_context(|| format!("read {}", path.display()))
}

fn say(text: &str) -> Result<()> {
    Ok(Output.write_all(text.as_bytes())?)
}
