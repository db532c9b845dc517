//! Arguments of `recon findings` and `recon show`, for clap.

use crate::config::parse_duration;
use crate::findings::life::Place;
use crate::findings::{Kind, Severity};
use clap::{Args, Subcommand};
use std::time::Duration;

/// Subcommands of `recon findings`.
#[derive(Clone, Debug, Subcommand)]
pub enum FindingsCommand {
    /// List findings, oldest first, with their ages
    ///
    /// Without --status: what is there, new, open, reopened and accepted; what is accepted stands apart with its reason
    /// and end, and does not count. Timing differences are listed where their kind is asked for. Exit 0 whatever is listed;
    /// the last line counts what is open.
    #[command(verbatim_doc_comment)]
    List(ListArgs),
    /// Show what is known of a finding, and what was done to it; `recon show` tells the story of its payment.
    Show {
        /// The finding's id, or its first eight digits or more.
        #[arg(value_name = "FINDING")]
        finding: String,
    },
    /// Give findings to somebody: shown as their owner in every run from now on, whatever `[owners]` says.
    Assign(AssignArgs),
    /// Live with findings until a day
    ///
    /// Until then they do not make a run exit 1, and nothing is planned for them. They count again when that day is over,
    /// when their amounts, statuses or cause change, and when they come back after they were gone.
    #[command(verbatim_doc_comment)]
    Accept(AcceptArgs),
    /// Close findings that a later run no longer found
    ///
    /// Kept is who closed it and which run confirmed it. A finding that is still there is closed with --unconfirmed only,
    /// on your own word: the next run that finds it reopens it.
    #[command(verbatim_doc_comment)]
    Close(CloseArgs),
}

/// Arguments of `recon findings list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ListArgs {
    /// Only these: new, open, reopened, accepted, cleared or closed; may be repeated.
    #[arg(long, value_name = "STATUS", value_parser = place)]
    pub status: Vec<Place>,
    /// Only this kind, such as `missed_event`.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub kind: Option<Kind>,
    /// Only what this person or team looks after; "" for what nobody does.
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Only this severity: critical, major, minor or info.
    #[arg(long, value_name = "SEVERITY", value_parser = severity)]
    pub severity: Option<Severity>,
    /// Only this account; "" for the platform's own.
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// Only what was first seen longer ago, such as 7d.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    pub older_than: Option<Duration>,
    /// One line of JSON, before the last line, which stays outcome=...
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `recon findings assign`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AssignArgs {
    /// Findings' ids, or their first eight digits or more.
    #[arg(value_name = "FINDING", required = true)]
    pub findings: Vec<String>,
    /// Who is to look after them.
    #[arg(long, value_name = "NAME")]
    pub to: String,
    /// Why.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
    /// Who says so; default: your user name.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// Arguments of `recon findings accept`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AcceptArgs {
    /// Findings' ids, or their first eight digits or more.
    #[arg(value_name = "FINDING", required = true)]
    pub findings: Vec<String>,
    /// The last day, whole, in the finance time zone, or the instant from which they count again.
    #[arg(long, value_name = "DATE")]
    pub until: String,
    /// Why; kept with your name.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Who accepts them; default: your user name.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// Arguments of `recon findings close`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CloseArgs {
    /// Findings' ids, or their first eight digits or more.
    #[arg(value_name = "FINDING", required = true)]
    pub findings: Vec<String>,
    /// Why; kept with your name.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Who closes them; default: your user name.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Close also what no run has confirmed to be gone.
    #[arg(long)]
    pub unconfirmed: bool,
}

/// Arguments of `recon show`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowArgs {
    /// A finding's id, its first eight digits or more, or the object or payment that findings are about.
    #[arg(value_name = "FINDING")]
    pub finding: String,
}

fn place(text: &str) -> Result<Place, String> {
    let found = Place::ALL.into_iter().find(|place| place.as_str() == text);
    found.ok_or_else(|| format!("must be one of {}", Place::ALL.map(Place::as_str).join(", ")))
}

fn kind(text: &str) -> Result<Kind, String> {
    let words = Kind::ALL.map(Kind::as_str);
    let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| format!("is no kind of finding; {}", crate::config::suggestion(text, &words)))
}

fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::Critical, Severity::Major, Severity::Minor, Severity::Info];
    let found = all.into_iter().find(|severity| severity.to_string() == text);
    found.ok_or_else(|| "must be one of critical, major, minor, info".to_owned())
}
