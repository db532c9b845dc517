//! A provider: does it answer, is its clock ours, and may the key read every list that a run reads? One GET of one
//! record for each list, at the pace of a run.
//!
//! What cannot be known is whether the key may write: nobody tries.

use super::lines::{Grade, Line};
use crate::config::{Accounts, LimitSettings, ProviderSettings};
use crate::provider::stripe::{SIDE_LISTS, STREAMS, permission_of};
use crate::provider::{Client, FetchError, read_page};
use crate::record::SECOND_US;
use serde::Deserialize;
use std::time::Duration;

/// How long one answer is waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// How long a provider is asked in all.
const BUDGET: Duration = Duration::from_mins(3);
/// Requests for one list.
const ATTEMPTS: u32 = 2;
/// Connected accounts that are asked.
const ACCOUNTS_MAX: usize = 10;
/// A clock that differs more is told.
const SKEW_MAX_US: i64 = 30 * SECOND_US;

/// What one list said.
enum Said {
    /// It may be read; the newest record says whether it is live.
    Listed(Option<bool>),
    Forbidden,
    Failed(FetchError),
}

/// Asks a provider.
pub(super) async fn check(
    provider: &ProviderSettings,
    limits: &LimitSettings,
    tolerance: Duration,
) -> Vec<Line> {
    let mut lines = key_kind(provider).into_iter().collect::<Vec<_>>();
    let limits = LimitSettings {
        attempts_max: limits.attempts_max.min(ATTEMPTS),
        run_budget: limits.run_budget.min(BUDGET),
        ..limits.clone()
    };
    let client = match Client::new(provider, &limits) {
        Ok(client) => client.answered_within(ANSWER_WAIT),
        Err(error) => {
            lines.push(Line::new(Grade::Unreachable, "provider", format!("{}: {error:#}", provider.name)));
            return lines;
        }
    };
    let (accounts, left_out) = match &provider.accounts {
        Accounts::Named(accounts) => {
            let asked = accounts.iter().take(ACCOUNTS_MAX).cloned().collect::<Vec<_>>();
            let left_out = accounts.len() - asked.len();
            (asked, (left_out > 0).then(|| format!("{left_out} more accounts are configured")))
        }
        Accounts::All => {
            (vec![String::new()], Some("accounts = [\"*\"]: the run asks those that the inbox names".into()))
        }
    };
    for account in accounts {
        let (told, is_answered) = check_account(provider, &client, &account).await;
        lines.extend(told);
        if !is_answered {
            return lines;
        }
    }
    if let Some(left_out) = left_out {
        let says = format!("{}: {left_out}, which were not asked here", provider.name);
        lines.push(Line::new(Grade::NotChecked, "connected_account", says));
    }
    let ahead_us = client.clock_ahead_us();
    lines.push(clock(provider, ahead_us, tolerance));
    lines
}

/// Asks for every list of an account; `false` once nobody is answered.
async fn check_account(provider: &ProviderSettings, client: &Client, account: &str) -> (Vec<Line>, bool) {
    let name =
        if account.is_empty() { provider.name.clone() } else { format!("{} {account}", provider.name) };
    let mut lines = Vec::new();
    let (mut listed, mut forbidden) = (Vec::new(), Vec::new());
    let mut modes = Vec::new();
    for stream in STREAMS {
        match ask(client, stream.name, &stream.newest_path(), account).await {
            Said::Listed(mode) => {
                listed.push(stream.name);
                modes.extend(mode);
            }
            Said::Forbidden => forbidden.push(stream.name),
            Said::Failed(error) => {
                let is_over = error.concerns_all()
                    || matches!(error, FetchError::Unauthorized { .. } | FetchError::Budget { .. });
                lines.push(failed(&name, &error));
                if is_over {
                    return (lines, false);
                }
            }
        }
    }
    if !account.is_empty() && listed.is_empty() && !forbidden.is_empty() {
        lines.push(no_account(&name, account));
        return (lines, true);
    }
    if !listed.is_empty() {
        let says = format!("{name}: {} answers", provider.base_url);
        lines.push(Line::new(Grade::Ok, "provider", says));
        let says = format!("{name}: the key may list {}", listed.join(", "));
        lines.push(Line::new(Grade::Ok, "list_permission", says));
    }
    lines.extend(forbidden.iter().map(|list| not_allowed(&name, list)));
    lines.push(key_mode(provider, &name, &modes));
    for (list, path) in SIDE_LISTS {
        match ask(client, list, path, account).await {
            Said::Listed(_) => {
                lines.push(Line::new(
                    Grade::Ok,
                    "list_permission",
                    format!("{name}: the key may list {list}"),
                ));
            }
            // An older API does not have it.
            Said::Failed(FetchError::NotFound { .. } | FetchError::Refused { .. }) => {}
            Said::Forbidden => lines.push(not_allowed_beside(&name, list)),
            Said::Failed(error) => lines.push(failed(&name, &error)),
        }
    }
    (lines, true)
}

#[derive(Deserialize)]
struct Newest {
    data: Vec<Mode>,
}

#[derive(Deserialize)]
struct Mode {
    livemode: Option<bool>,
}

async fn ask(client: &Client, list: &str, path: &str, account: &str) -> Said {
    match client.get(list, path, account).await {
        Err(FetchError::Forbidden { .. }) => Said::Forbidden,
        Err(error) => Said::Failed(error),
        Ok(body) => match (read_page(&body), serde_json::from_slice::<Newest>(&body)) {
            (_, Ok(newest)) => Said::Listed(newest.data.first().and_then(|newest| newest.livemode)),
            (Err(problem), _) => Said::Failed(FetchError::Shape { what: format!("list {list}"), problem }),
            (Ok(_), Err(_)) => Said::Listed(None),
        },
    }
}

fn failed(name: &str, error: &FetchError) -> Line {
    let says = format!("{name}: {error}");
    let line = match error {
        FetchError::Unauthorized { .. } => Line::new(Grade::Failing, "key_refused", says).told(
            "Every night asks once, is refused, and ends as incomplete. Nothing is compared, and what is missing stays \
             missing.",
        ),
        _ => Line::new(Grade::Unreachable, "provider", says),
    };
    line.hinted(error.hint())
}

fn not_allowed(name: &str, list: &str) -> Line {
    let permission = permission_of(list);
    Line::new(Grade::Failing, "list_permission", format!("{name}: the key may not list {list}"))
        .told(format!(
            "Every night ends as incomplete (GAP {list} no_permission, exit 2): what only {list} show is never \
             compared. A real gap looks the same from then on, and nobody sees it."
        ))
        .hinted(format!(
            "Give the restricted key the permission Read on \"{permission}\"; for a connected account in the Connect \
             column."
        ))
}

fn not_allowed_beside(name: &str, list: &str) -> Line {
    let story = if list == "webhook_endpoints" {
        "A run cannot know which event types you subscribed to, and takes those that the inbox has received. Nor does \
         it notice that the provider has switched the endpoint off after days of failures."
    } else {
        "A payment that was booked on an invoice of before the window looks as if it were not booked. Its finding \
         stands with a note that nobody could ask."
    };
    Line::new(Grade::Warning, "list_permission", format!("{name}: the key may not list {list}"))
        .told(story)
        .hinted(format!("Give the restricted key the permission Read on \"{}\".", permission_of(list)))
}

fn no_account(name: &str, account: &str) -> Line {
    Line::new(Grade::Failing, "connected_account", format!("{name}: the key may not act for this account"))
        .told(
            "No list of it can be read, so every night ends as incomplete. What happens to the payments of that \
             account is seen by nobody.",
        )
        .hinted(format!(
            "Connect {account} to the platform of this key again and give the key its Connect permissions, or take it \
             out of `accounts`."
        ))
}

/// By its own prefix a key of the other mode is refused with the configuration; these are keys that do not say it.
fn key_mode(provider: &ProviderSettings, name: &str, modes: &[bool]) -> Line {
    let mode = &provider.mode;
    let word = |is_live: bool| if is_live { "live" } else { "test" };
    match modes.iter().find(|is_live| word(**is_live) != mode) {
        Some(is_live) => {
            let found = word(*is_live);
            let says = format!("{name}: the key reads {found} records, and mode is \"{mode}\"");
            Line::new(Grade::Failing, "key_mode", says)
                .told(format!(
                    "Each payment of {mode} mode that is booked is called an orphan, since the {found} lists do not \
                     have it. A correction would take it back."
                ))
                .hinted(format!("Write mode = \"{found}\", or give a key of {mode} mode."))
        }
        None if !modes.is_empty() || provider.api_key.reveal().contains(&format!("_{mode}_")) => {
            Line::new(Grade::Ok, "key_mode", format!("{name}: the key is one of {mode} mode"))
        }
        None => {
            let says =
                format!("{name}: no list has a record yet that says whether the key is one of {mode} mode");
            Line::new(Grade::NotChecked, "key_mode", says)
        }
    }
}

fn key_kind(provider: &ProviderSettings) -> Option<Line> {
    let is_secret = provider.api_key.reveal().starts_with("sk_");
    let says = format!("{}: the api_key is a secret key (sk_…), which may do anything", provider.name);
    is_secret.then(|| {
        Line::new(Grade::Warning, "key_kind", says)
            .told(
                "Whoever reads that key on this machine can refund and pay out. recon only lists, and needs a key that \
                 only reads.",
            )
            .hinted("Give a restricted key (rk_…) with Read on the lists below.")
    })
}

fn clock(provider: &ProviderSettings, ahead_us: Option<i64>, tolerance: Duration) -> Line {
    let name = &provider.name;
    let Some(ahead_us) = ahead_us else {
        let says = format!("{name}: its answers have no date, so that nothing is known of our clock");
        return Line::new(Grade::NotChecked, "clock", says);
    };
    let seconds = ahead_us.abs() / SECOND_US;
    let direction = if ahead_us > 0 { "ahead of" } else { "behind" };
    if ahead_us.abs() <= SKEW_MAX_US {
        let says = format!("{name}: our clock and the provider's differ by {seconds} s at most");
        return Line::new(Grade::Ok, "clock", says);
    }
    let story = if ahead_us > 0 {
        "A run judges what the provider may not show yet, so that payments which are on their way look missing. "
    } else {
        "A run ends its window too early, and the last payments wait for the next night. "
    };
    let story = format!(
        "{story}`recon serve` refuses deliveries whose signed time differs by more than {} s, and the provider switches \
         the endpoint off after days of refusals.",
        tolerance.as_secs()
    );
    Line::new(Grade::Warning, "clock", format!("{name}: our clock is {seconds} s {direction} the provider's"))
        .told(story)
        .hinted("Let the system keep its clock: `timedatectl set-ntp true`, or chrony; then `timedatectl` shows it.")
}
