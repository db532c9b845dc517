//! The command line's entry: the only place that turns an outcome into an exit code.

use clap::Parser;
use recon::cli::{self, Cli, Command, RunArgs, RunRequest, UsageError};
use recon::clock::now_us;
use recon::commands::trouble::{self, Left};
use recon::commands::{self, Outcome, Output};
use recon::config::{self, Settings};
use recon::telemetry;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    telemetry::start();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let left = Left::by(cli.command.as_ref());
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(dispatch(cli)));
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => fail(&error, left),
    }
}

async fn dispatch(cli: Cli) -> anyhow::Result<Outcome> {
    let config = cli.config.as_deref();
    let Some(command) = cli.command else {
        let asks_nobody = cli.run.offline;
        let needs =
            config::Needs { api_keys: !asks_nobody, target: cli.run.apply, ..config::Needs::default() };
        let mut settings = config::load_for(config, needs)?;
        return start_run(&cli.run, &mut settings).await;
    };
    if cli.run != RunArgs::default() {
        return Err(UsageError::new(
            "arguments of a run stand before a subcommand, which does not take them",
            "leave out the one or the other",
        )
        .into());
    }
    if let (Some(_), Some(name)) = (config, command.without_configuration()) {
        return Err(UsageError::new(
            format!("recon {name} reads no configuration, so --config would change nothing"),
            format!("leave out --config; `recon {name} --help` shows what it takes"),
        )
        .into());
    }
    match command {
        Command::Init(args) => commands::init::init(&args, &mut Output).await,
        Command::Completions { shell } => {
            commands::completions::completions(shell, &mut Output).map(|()| Outcome::Clean)
        }
        Command::Man => commands::man::man(&mut Output).map(|()| Outcome::Clean),
        Command::Apply(args) => {
            let args = commands::apply::ApplyArgs { plan: args.plan };
            let mut settings = config::load_to_apply(config)?;
            // Only the targets read a side again.
            let _files = if settings.targets.chosen.is_empty() {
                None
            } else {
                Some(recon::gather::prepare(&mut settings).await?)
            };
            commands::apply::apply(&settings, &args, recon::clock::now_us()).await
        }
        Command::Check(args) => check(config, args.json).await,
        Command::Status(args) => {
            let args = commands::status::StatusArgs { max_age: args.max_age };
            let settings = config::load_without_keys(config)?;
            commands::status::status(&settings, &args, recon::clock::now_us()).await
        }
        Command::Serve(args) => {
            let needs = config::Needs { api_keys: args.work, webhook_secrets: true, ..Default::default() };
            let settings = config::load_for(config, needs)?;
            let mut out = Output;
            if args.work {
                commands::serve::serve_and_work(&settings, asked_to_end(), &mut out).await
            } else {
                commands::serve::serve(&settings, asked_to_end(), &mut out).await
            }
        }
        Command::Work(args) => {
            let args = commands::work::WorkArgs { drain: args.drain };
            commands::work::work(&config::load(config)?, args, asked_to_end(), &mut Output).await
        }
        Command::Inbox(command) => {
            let settings = config::load_without_keys(config)?;
            let args = commands::inbox::InboxArgs::from(command);
            commands::inbox::inbox(&settings, &args, recon::clock::now_us(), &mut Output).await
        }
        Command::Outbox(command) => {
            let settings = config::load_without_keys(config)?;
            let args = commands::outbox::OutboxArgs::from(command);
            commands::outbox::outbox(&settings, &args, recon::clock::now_us(), &mut Output).await
        }
        Command::Replay(args) => {
            let needs = config::Needs { webhook_secrets: args.to.is_some(), ..Default::default() };
            let settings = config::load_for(config, needs)?;
            let args = commands::replay::ReplayArgs::from(args);
            commands::replay::replay(&settings, &args, recon::clock::now_us(), &mut Output).await
        }
        Command::Prune => {
            let settings = config::load_without_keys(config)?;
            commands::prune::prune(&settings, recon::clock::now_us(), &mut Output).await
        }
        Command::Demo(args) => {
            let is_exact = Box::pin(commands::demo::demo(&args)).await?;
            Ok(if is_exact { Outcome::Clean } else { Outcome::Findings })
        }
        Command::Findings(command) => {
            let settings = config::load_without_keys(config)?;
            commands::findings::findings(&settings, &command, now_us(), &mut Output).await
        }
        Command::Show(args) => {
            let settings = config::load_without_keys(config)?;
            commands::show::show(&settings, &args.finding, now_us(), &mut Output).await
        }
        Command::Compare(args) => commands::compare::compare(&cli::CompareRequest::new(*args)?, &mut Output),
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
    if args.apply {
        commands::apply::check_auto(settings)?;
    }
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

/// Looks at everything that a run relies on; the worst line is the error.
async fn check(config: Option<&Path>, json: bool) -> anyhow::Result<Outcome> {
    let ended = commands::check::check(config, commands::check::CheckArgs { json }, &mut Output).await?;
    if let Some(error) = &ended.error {
        tell_error(&error.message, &error.hint);
    }
    Ok(ended.outcome)
}

/// Resolves on Ctrl-C and on SIGTERM, which is how service managers ask. Both are listened for from the call on.
fn asked_to_end() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn arrived(listened: std::io::Result<Signal>) {
        match listened {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    }
    let terminate = arrived(signal(SignalKind::terminate()));
    let interrupt = arrived(signal(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = terminate => {}
            () = interrupt => {}
        }
    }
}

/// Arguments that clap does not accept, or its help and version.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        return fail(&cli::usage_error(error, commands::arguments()).into(), Left::by(None));
    }
    match error.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// One error line, a hint, and the outcome as the last line of stdout. `left`: what the command has left.
fn fail(error: &anyhow::Error, left: Left) -> ExitCode {
    let (outcome, hint) = trouble::explain(error, left);
    tell_error(&telemetry::told(error), &hint);
    finish(outcome)
}

fn tell_error(message: &str, hint: &str) {
    let lines = telemetry::error_text(&telemetry::one_line(message), &telemetry::one_line(hint));
    // Nobody is left to tell when stderr is closed.
    drop(std::io::stderr().write_all(lines.as_bytes()));
}

fn finish(outcome: Outcome) -> ExitCode {
    let line = format!("outcome={} findings=0\n", outcome.as_str());
    // The exit code still says it when stdout is closed.
    drop(Output.write_all(line.as_bytes()));
    ExitCode::from(outcome.exit_code())
}
