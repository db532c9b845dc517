//! The command line's entry: the only place that turns an outcome into an exit code.

use clap::Parser;
use recon::cli::{self, Cli, Command, RunArgs, RunRequest, UsageError};
use recon::clock::now_us;
use recon::commands::{self, Outcome};
use recon::config::{self, Settings, Unusable};
use recon::provider::hint_of;
use recon::store::NoStore;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    recon::telemetry::start();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(dispatch(cli)));
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => fail(&error),
    }
}

async fn dispatch(cli: Cli) -> anyhow::Result<Outcome> {
    let config = cli.config.as_deref();
    let Some(command) = cli.command else {
        let asks_nobody = cli.run.offline;
        let mut settings =
            if asks_nobody { config::load_without_keys(config)? } else { config::load(config)? };
        return start_run(&cli.run, &mut settings).await;
    };
    if cli.run != RunArgs::default() {
        return Err(UsageError::new(
            "arguments of a run stand before a subcommand, which does not take them",
            "leave out the one or the other",
        )
        .into());
    }
    if let (Some(_), Some(name)) = (config, asks_no_configuration(&command)) {
        return Err(UsageError::new(
            format!("recon {name} reads no configuration, so --config would change nothing"),
            format!("leave out --config; `recon {name} --help` shows what it takes"),
        )
        .into());
    }
    match command {
        Command::Init(args) => commands::init::init(&args, &mut std::io::stdout()).await,
        Command::Completions { shell } => print(|out| commands::completions::completions(shell, out)),
        Command::Man => print(|out| commands::man::man(out)),
        Command::Apply(args) => {
            let args = commands::apply::ApplyArgs { plan: args.plan };
            commands::apply::apply(&config::load(config)?, &args, recon::clock::now_us()).await
        }
        Command::Status(args) => {
            let args = commands::status::StatusArgs { max_age: args.max_age };
            let settings = config::load_without_keys(config)?;
            commands::status::status(&settings, &args, recon::clock::now_us()).await
        }
        Command::Serve(args) => {
            let needs = config::Needs { api_keys: args.work, webhook_secrets: true };
            let settings = config::load_for(config, needs)?;
            let mut out = std::io::stdout();
            if args.work {
                commands::serve::serve_and_work(&settings, asked_to_end(), &mut out).await
            } else {
                commands::serve::serve(&settings, asked_to_end(), &mut out).await
            }
        }
        Command::Work(args) => {
            let args = commands::work::WorkArgs { drain: args.drain };
            commands::work::work(&config::load(config)?, args, asked_to_end(), &mut std::io::stdout()).await
        }
        Command::Inbox(command) => {
            let settings = config::load_without_keys(config)?;
            let args = commands::inbox::InboxArgs::from(command);
            commands::inbox::inbox(&settings, &args, recon::clock::now_us(), &mut std::io::stdout()).await
        }
        Command::Outbox(command) => {
            let settings = config::load_without_keys(config)?;
            let args = commands::outbox::OutboxArgs::from(command);
            commands::outbox::outbox(&settings, &args, recon::clock::now_us(), &mut std::io::stdout()).await
        }
        Command::Replay(args) => {
            let needs = config::Needs { api_keys: false, webhook_secrets: args.to.is_some() };
            let settings = config::load_for(config, needs)?;
            let args = commands::replay::ReplayArgs::from(args);
            commands::replay::replay(&settings, &args, recon::clock::now_us(), &mut std::io::stdout()).await
        }
        Command::Prune => {
            let settings = config::load_without_keys(config)?;
            commands::prune::prune(&settings, recon::clock::now_us(), &mut std::io::stdout()).await
        }
        Command::Demo(args) => {
            let is_exact = commands::demo::demo(&args).await?;
            Ok(if is_exact { Outcome::Clean } else { Outcome::Findings })
        }
        Command::Findings(command) => {
            let settings = config::load_without_keys(config)?;
            commands::findings::findings(&settings, &command, now_us(), &mut std::io::stdout()).await
        }
        Command::Show(args) => {
            let settings = config::load_without_keys(config)?;
            commands::show::show(&settings, &args.finding, now_us(), &mut std::io::stdout()).await
        }
        Command::Compare(args) => {
            commands::compare::compare(&cli::CompareRequest::new(*args)?, &mut std::io::stdout().lock())
        }
    }
}

/// The name of a subcommand that reads no configuration.
const fn asks_no_configuration(command: &Command) -> Option<&'static str> {
    match command {
        Command::Init(_) => Some("init"),
        Command::Completions { .. } => Some("completions"),
        Command::Man => Some("man"),
        Command::Demo(_) => Some("demo"),
        Command::Compare(_) => Some("compare"),
        _ => None,
    }
}

/// A secret key can move money; what this program does needs one that reads.
fn advise_on_keys(settings: &Settings) {
    for provider in settings.providers.iter().filter(|provider| provider.api_key.reveal().starts_with("sk_"))
    {
        tracing::warn!(
            "the api_key of `{}` is a secret key (sk_…); a restricted key (rk_…) that reads is enough",
            provider.name
        );
    }
}

/// Checks everything that can be checked without asking anybody, then runs.
async fn start_run(args: &RunArgs, settings: &mut Settings) -> anyhow::Result<Outcome> {
    advise_on_keys(settings);
    let (canceller, flag) = recon::provider::Cancel::new();
    let request = RunRequest::new(args, settings, recon::clock::now_us(), flag)?;
    let settle_delay = settings.settle_delay(&request.providers);
    // The run resolves the window again once it knows the watermark; a mistyped one ends here.
    cli::resolve_window(&request.window, settings.report.time_zone, request.now_us, settle_delay, None)?;
    let _files = recon::gather::prepare(settings).await?;
    tokio::spawn(async move {
        asked_to_end().await;
        tracing::warn!("stopping; the next run goes on from here (again to stop at once)");
        canceller.cancel();
        asked_to_end().await;
        std::process::exit(i32::from(Outcome::Incomplete.exit_code()));
    });
    commands::run::run(settings, &request).await
}

/// Resolves on Ctrl-C and on SIGTERM, which is how service managers ask.
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// Data on stdout, nothing else; a reader that closed the pipe has what it wanted.
fn print(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<Outcome> {
    let mut text = Vec::new();
    write(&mut text)?;
    match std::io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Outcome::Clean),
    }
}

/// Arguments that clap does not accept, or its help and version.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        return fail(&usage_error(error).into());
    }
    let is_printed = error.print().is_ok();
    if is_printed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// clap's account of a refusal, in our form: one error line and a hint.
fn usage_error(error: &clap::Error) -> UsageError {
    let text = error.render().to_string();
    let told = text.split("\n\nUsage:").next().unwrap_or_default();
    let told = told.split("\n\nFor more information").next().unwrap_or_default();
    let (message, tips) = told.split_once("\n\n").unwrap_or((told, ""));
    let message = message.trim_start_matches("error: ");
    // clap says that something is missing, and not for what.
    if error.kind() == clap::error::ErrorKind::MissingRequiredArgument && message.contains("--since <DATE>") {
        let hint = "such as --since 2024-05-01 --until 2024-05-03; both days are in the window";
        return UsageError::new("--until needs --since", hint);
    }
    // clap takes it for a slip of `prune`.
    if error.kind() == clap::error::ErrorKind::InvalidSubcommand && message.contains("'run'") {
        let hint = "a run is recon without a subcommand: `recon`, or `recon --since 2024-05-01`";
        return UsageError::new(message, hint);
    }
    let tip = tips.trim().trim_start_matches("tip: ");
    let hint = if tip.is_empty() { "`recon --help` shows every argument with examples" } else { tip };
    UsageError::new(message, hint)
}

/// One error line, a hint where there is one, and the outcome as the last line of stdout.
fn fail(error: &anyhow::Error) -> ExitCode {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let (outcome, hint) = explain(error);
    let lines = recon::telemetry::error_text(&one_line(&chain.join(": ")), &one_line(hint));
    // Nobody is left to tell when stderr is closed.
    drop(std::io::stderr().write_all(lines.as_bytes()));
    finish(outcome)
}

/// What an error ends as, and what to do about it.
fn explain(error: &anyhow::Error) -> (Outcome, &str) {
    let unusable = error.chain().find_map(|cause| cause.downcast_ref::<Unusable>());
    let usage = error.chain().find_map(|cause| cause.downcast_ref::<UsageError>());
    match (
        unusable,
        usage,
        hint_of(error).or_else(|| recon::gather::hint_of(error)).or_else(|| store_hint(error)),
    ) {
        (Some(unusable), ..) => (Outcome::Config, &unusable.hint),
        // Running it again as it stands cannot help either.
        (None, Some(usage), _) => (Outcome::Config, &usage.hint),
        (None, None, Some(hint)) => (Outcome::Incomplete, hint),
        (None, None, None) => {
            (Outcome::Incomplete, "nothing was half-written; the same command goes on from here")
        }
    }
}

/// What to do where there is no store, or a disk refuses: full, over a quota, or not to be written.
fn store_hint(error: &anyhow::Error) -> Option<&'static str> {
    use std::io::ErrorKind;
    error.chain().find_map(|cause| {
        if cause.is::<NoStore>() {
            return Some(NoStore::HINT);
        }
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let text = cause.to_string();
        match kind {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) => {
                Some("make room; nothing was half-written, the same command goes on from here")
            }
            Some(ErrorKind::AddrInUse) => {
                Some("another process listens there: end it, or set another `[receive] listen`")
            }
            Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                Some("let this user write there, or name another place in the configuration")
            }
            // SQLite's own words, https://sqlite.org/rescode.html
            _ if text.contains("readonly database") => {
                Some("let this user write the store's file and its folder")
            }
            // PostgreSQL's own words.
            _ if text.contains("permission denied for ") => {
                Some("grant the role of the store's URL select, insert, update and delete on recon's tables")
            }
            _ if text.contains("database or disk is full") || text.contains("disk I/O error") => {
                Some("make room where the store lies; the same command goes on from here")
            }
            _ => None,
        }
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn finish(outcome: Outcome) -> ExitCode {
    let line = format!("outcome={} findings=0\n", outcome.as_str());
    // The exit code still says it when stdout is closed.
    drop(std::io::stdout().write_all(line.as_bytes()));
    ExitCode::from(outcome.exit_code())
}
