//! Arguments as typed, for clap.

use super::findings::{FindingsCommand, ShowArgs};
use super::operating::{InboxCommand, OutboxCommand, ReplayArgs};
use crate::config::{Locale, parse_duration, parse_size};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  recon                                     from three days before the end of the last finished run (for cron)
  recon --since 2024-05-01                  from that day until five minutes ago (the settle delay)
  recon --month 2024-05                     one month, for the month-end close
  recon --since 2024-05-01 --until 2024-05-03 --no-grace
                                            an incident: three whole days, nothing counted as in flight
  recon apply reports/out/RUN/plan.csv      carry out a reviewed plan
  recon demo                                see it work, without any account

Dates:
  Whole days in the finance time zone ([report] time_zone); the time zone of this machine never
  matters. Instants need an offset: 2024-05-01T03:00:00-03:00. A window never ends later than now
  minus the settle delay (5 minutes), with --no-grace as well: younger records may still be
  invisible. With --offline a bound that is not given is where the last finished run ended.

Exit codes:
  0   everything ties out
  1   findings
  2   incomplete or failed: nothing may be concluded, the next run starts at the same place
  75  another run is going
  78  the arguments, the configuration or the local schema cannot be used; nothing was written
  The last line on stdout begins outcome=<clean|findings|incomplete|locked|config> findings=<n>. Only
  serve, demo, init, completions, man and inbox show --body print none, except after an error.

Environment:
  RECON_LOG          log filter on stderr: warn (default), info, debug, recon=debug
  RECON_LOG_FORMAT   json writes one object a line
  RECON_NOW          Unix seconds to take as now, for demonstrations and tests
  NO_COLOR           no colours
";

const COMPARE_HELP: &str = "\
Examples:
  recon compare provider.csv books.csv --key charge_id --amount amount --currency currency
  recon compare 'stripe/*.csv.gz' books.jsonl --key id --amount amount --currency currency \\
        --left units=minor --right key=charge,amount=gross --out differences.csv
  recon compare a.csv b.csv --key order,line --amount total --currency-is brl --numbers comma

Names for --left and --right:
  key, amount, currency, currency-is, status, units, numbers, delimiter, encoding: as the option of
  that name, for one side only. A comma in a column's name is written \\,

Exit codes:
  0   both sides have the same rows
  1   differences
  2   not compared: a file changed or ends early, or something failed
  78  arguments or files that cannot be used as they are; nothing was written
";

/// Reconciles what a payment provider says, what was received and what was booked
///
/// Without a subcommand it runs: it reads the provider's lists, the inbox of received events and the
/// local books for one window, says for each disagreement which side is missing and how much money it
/// is, and writes a report and a plan. Only `recon apply`, `recon --apply` and `recon work` (also inside of
/// `recon serve --work`) write to the books.
#[derive(Clone, Debug, Parser)]
#[command(name = "recon", version, after_help = AFTER_HELP, verbatim_doc_comment)]
pub struct Cli {
    /// Configuration file; default: recon.toml in the working directory.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Something else than a run.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Arguments of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub struct RunArgs {
    /// First day (2024-05-01) or instant (2024-05-01T03:00:00-03:00); default: three days before the end of the last finished run, or one day where there is none.
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Last day, whole, or the instant at which the window ends; needs --since. Default: now minus the settle delay.
    #[arg(long, value_name = "DATE", requires = "since")]
    pub until: Option<String>,
    /// One calendar month, such as 2024-05.
    #[arg(long, value_name = "YYYY-MM", conflicts_with_all = ["since", "until"])]
    pub month: Option<String>,
    /// Only this provider of the configuration; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub provider: Vec<String>,
    /// Folder of run folders, instead of `[report] dir`.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Carry out the corrections of the kinds that `[corrections] auto` names, without a reviewed plan.
    #[arg(long)]
    pub apply: bool,
    /// Requests per second for each endpoint, instead of the configured ones.
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<u32>,
    /// Ask nobody: compare again with what is stored. Without --until it ends where the last finished run did.
    #[arg(long)]
    pub offline: bool,
    /// For an incident: count nothing as in flight; what is not booked now is a finding.
    #[arg(long)]
    pub no_grace: bool,
    /// The summary on stdout as one line of JSON, before the last line, which stays outcome=...
    #[arg(long)]
    pub json: bool,
    /// Threads that compare, instead of `[compare] threads`. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub threads: Option<u16>,
    /// Memory for comparing, such as 256MiB, instead of `[compare] memory`. The result is the same for any size.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<usize>,
    /// Files for spreadsheets: ids as text, decimal amounts, a guard against formulas.
    #[arg(long)]
    pub spreadsheet: bool,
    /// Spelling of spreadsheet files: en, or pt-BR (`;` and decimal comma). Implies --spreadsheet.
    #[arg(long, value_name = "LOCALE", value_parser = locale)]
    pub locale: Option<Locale>,
}

/// Subcommands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Carry out a reviewed plan: exactly its rows, each once, however often it is run
    ///
    /// Rows may have been deleted from the plan; any other edit is refused. Each correction reads again
    /// what it is about to change and is skipped with `state_moved` if that has moved. Caps on rows and on
    /// money (`count_max` and `minor_max` of `[corrections]`) stop a plan before its first write. Nothing is
    /// sent to customers.
    #[command(verbatim_doc_comment, after_help = "Example:\n  recon apply reports/out/RUN/plan.csv")]
    Apply(ApplyArgs),
    /// Look at everything that a night relies on, before the first one
    ///
    /// The configuration with every secret that it names; whether the store, each provider, the inbox and the books answer;
    /// which lists the key may read; the clock; the local statements with a few of their rows; and whether your own tables
    /// can hold what a correction relies on. Each failing line tells what would go wrong and what puts it right. Reads only.
    /// Exit 0: nothing stands in the way (warnings may). 2: something did not answer. 78: something must be put right first.
    #[command(verbatim_doc_comment, after_help = "Example:\n  recon check")]
    Check(CheckArgs),
    /// Say when the last successful run ended; fails when that is too long ago
    ///
    /// For the monitoring that notices a job that never ran: exit 0 when the last successful run (one that
    /// saw everything, whatever it found) is young enough, 2 when it is older or there is none. Then the last
    /// line says outcome=incomplete, else what that run ended as: outcome=clean or outcome=findings. Runs that
    /// failed are listed with why.
    #[command(
        verbatim_doc_comment,
        after_help = "Example:\n  out=$(recon status --max-age 26h) || echo \"$out\" | page-somebody"
    )]
    Status(StatusArgs),
    /// Take webhook deliveries: verify, store, answer
    ///
    /// Listens on `[receive] listen` for POST /webhooks/NAME, one for each `[[provider]]` with `webhook_secrets`, and says
    /// which. An answer of 2xx means that the event is committed in the store, or in a synced file of `[receive] spill_dir`.
    /// Put your TLS proxy before it. Also answers /healthz and /metrics. Applies nothing without --work. Ends on Ctrl-C or
    /// SIGTERM after what was accepted is written.
    #[command(verbatim_doc_comment, after_help = "Examples:\n  recon serve\n  recon serve --work")]
    Serve(ServeArgs),
    /// Apply received events, each once
    ///
    /// Claims what is due in the inbox, asks the provider for the objects, and books effects and statuses in recon's own
    /// tables, in one transaction with the end of each event. Any number of workers may run side by side. Ends on
    /// Ctrl-C or SIGTERM after the batch at hand.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  recon work\n  recon work --drain      until nothing is due, for cron\n\nExit codes of --drain:\n  0   nothing is due; parked events may be left, they wait for what is to come\n  1   events became dead letters in it: `recon inbox dead`\n  2   events that failed in it are due again, it was asked to end, or the store failed"
    )]
    Work(WorkArgs),
    /// Look at what was received, and decide about what could not be applied
    #[command(
        subcommand,
        after_help = "Examples:\n  recon inbox dead\n  recon inbox retry evt_1 --reason \"handler fixed\""
    )]
    Inbox(InboxCommand),
    /// Look at the messages that applied effects have written, and try again what was given up
    ///
    /// Bodies are never printed. A message that corrections and replays have written is kept and not sent: `suppressed`.
    #[command(
        subcommand,
        verbatim_doc_comment,
        after_help = "Examples:\n  recon outbox list --status dead\n  recon outbox retry stripe//live/credit:ch_1 --reason \"receiver fixed\""
    )]
    Outbox(OutboxCommand),
    /// Apply events once more, or send them to a handler of your own
    ///
    /// Events go through the same door under the same keys: what is right already stays, what is missing is booked at its own
    /// time, and no message is sent. With --to they are signed anew and posted to a URL of yours instead: a handler must
    /// answer 2xx each time and take effect once.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  recon replay evt_1 --reason \"restored from backup\"\n  recon replay --since 2024-05-01 --until 2024-05-02 --reason outage\n  recon replay evt_1 --to http://127.0.0.1:3000/webhooks/stripe --times 10"
    )]
    Replay(ReplayArgs),
    /// Drop raw bodies older than `[receive] retention`; keys are kept for ever
    ///
    /// Events that wait and dead letters keep theirs, however old. What was dropped can no longer be replayed or shown.
    #[command(verbatim_doc_comment, after_help = "Example:\n  recon prune      from cron, once a day")]
    Prune,
    /// Write a commented recon.toml and the local queries to begin with; overwrites nothing
    ///
    /// With --from it looks at a database's tables (its catalogue, and a few words of status columns; read only), recognises
    /// those of the pay gem, dj-stripe, Laravel Cashier, stripe-sync-engine and plain tables of events and payments, and
    /// writes statements for them. What it takes for granted and what cannot be checked is printed and stands in their
    /// opening comments. Exit 2 where it recognises nothing that can be compared.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  recon init ops/recon && cd ops/recon && $EDITOR recon.toml\n  recon init --from sqlite:books.db\n  recon init --from-env DATABASE_URL       a URL with a password stays out of the shell's history"
    )]
    Init(InitArgs),
    /// See it work without any account: a Stripe-shaped provider on this machine with planted faults.
    #[command(
        after_help = "Examples:\n  recon demo --seed 7\n  recon demo --recovery\n  recon demo --practice"
    )]
    Demo(crate::commands::demo::DemoArgs),
    /// Print completions for a shell.
    #[command(after_help = "Example:\n  recon completions bash > /etc/bash_completion.d/recon")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    #[command(after_help = "Example:\n  recon man > /usr/local/share/man/man1/recon.1")]
    Man,
    /// Look after findings: list them by age, give them to somebody, live with them until a day, close them
    ///
    /// A finding keeps its id from run to run: new, open, cleared once a run over it no longer finds it, reopened when it is
    /// back. What persons decide is kept with who and why, and never changed.
    #[command(
        subcommand,
        verbatim_doc_comment,
        after_help = "Examples:\n  recon findings list --older-than 7d --owner finance\n  recon findings assign 9203273f --to ana\n  recon findings accept 9203273f --until 2024-06-30 --reason \"refund agreed, ticket 42\"\n  recon findings close 9203273f --reason \"booked by hand\""
    )]
    Findings(FindingsCommand),
    /// Tell the whole story of a finding's payment, in time
    ///
    /// What the provider's records say, what was received and applied, what was booked, what runs and persons did, in one
    /// list; what was booked twice or in the wrong order is marked `!!`. Asks the local side, never the provider; writes
    /// nothing. No body is printed.
    #[command(verbatim_doc_comment, after_help = "Examples:\n  recon show 9203273f\n  recon show ch_3PB")]
    Show(ShowArgs),
    /// Compare two files row by row, with no configuration: who lacks, doubles or changes which row
    ///
    /// CSV or JSON Lines, plain, gzip or zstd; each side may be a glob. A key may repeat: equal rows are paired first, and
    /// every row that is left over is named with its file and line. Both sides' totals are shown per currency with what
    /// explains their difference. Nothing is guessed and no row is ever left out: what cannot be read ends it.
    #[command(verbatim_doc_comment, after_help = COMPARE_HELP)]
    Compare(Box<super::CompareArgs>),
}

/// Arguments of `recon apply`.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// A plan.csv that a run wrote.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
}

/// Arguments of `recon check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The lines on stdout as one line of JSON, before the last line, which stays outcome=...
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `recon status`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// How old the last successful run may be, such as 26h; not given, any age will do.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    pub max_age: Option<Duration>,
}

/// Arguments of `recon serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Apply received events as well, in the same process: `recon work` inside of it.
    #[arg(long)]
    pub work: bool,
}

/// Arguments of `recon work`.
#[derive(Clone, Debug, Args)]
pub struct WorkArgs {
    /// End when nothing is due.
    #[arg(long)]
    pub drain: bool,
}

/// Arguments of `recon init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// Folder to write to.
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Propose statements for the tables of this database: sqlite:PATH, postgres://… or mysql://…
    #[arg(long, value_name = "URL", conflicts_with = "from_env")]
    pub from: Option<String>,
    /// The same, with the URL in this environment variable.
    #[arg(long, value_name = "NAME")]
    pub from_env: Option<String>,
}

fn memory(text: &str) -> Result<usize, String> {
    const BYTES_MIN: usize = 16 << 20;
    let bytes = parse_size(text)?;
    if bytes < BYTES_MIN { Err("must be at least 16MiB".to_owned()) } else { Ok(bytes) }
}

fn rate(text: &str) -> Result<u32, String> {
    const RATE_MAX: u32 = 100_000;
    let rate = text.parse().ok().filter(|rate| (1..=RATE_MAX).contains(rate));
    rate.ok_or_else(|| format!("must be a whole number from 1 to {RATE_MAX}"))
}

fn locale(text: &str) -> Result<Locale, String> {
    Locale::parse(text).ok_or_else(|| "must be en or pt-BR".to_owned())
}
