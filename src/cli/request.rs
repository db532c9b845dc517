//! A checked request for a run.

use super::args::RunArgs;
use super::{UsageError, WindowSpec};
use crate::config::{Settings, suggestion};
use crate::provider::Cancel;

/// What a run is asked to do, besides the settings.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub struct RunRequest {
    /// The window as typed; see [`super::resolve_window`].
    pub window: WindowSpec,
    /// Names of the providers to reconcile, in configuration order; never empty.
    pub providers: Vec<String>,
    /// Carry out the corrections that the configuration allows without a reviewed plan.
    pub apply: bool,
    /// Ask nobody: compare with what is stored.
    pub offline: bool,
    /// Whether grace is off: nothing counts as in flight.
    pub no_grace: bool,
    /// The summary on stdout as JSON.
    pub json: bool,
    /// The run's one reading of the clock, Unix µs.
    pub now_us: i64,
    /// Set when the run should stop.
    pub cancel: Cancel,
}

impl RunRequest {
    /// Checks the arguments against the settings and lets them override what they name.
    ///
    /// # Errors
    /// When a provider is not configured.
    pub fn new(
        args: &RunArgs,
        settings: &mut Settings,
        now_us: i64,
        cancel: Cancel,
    ) -> Result<Self, UsageError> {
        let names: Vec<String> = settings.providers.iter().map(|provider| provider.name.clone()).collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(unknown) = args.provider.iter().find(|name| !names.contains(name)) {
            return Err(UsageError::new(
                format!(
                    "--provider {}: no such provider in the configuration",
                    crate::config::shown(unknown)
                ),
                suggestion(unknown, &known),
            ));
        }
        let is_chosen = |name: &String| args.provider.is_empty() || args.provider.contains(name);
        let providers = names.iter().filter(|name| is_chosen(name)).cloned().collect();
        override_settings(args, settings);
        Ok(Self {
            window: WindowSpec {
                since: args.since.clone(),
                until: args.until.clone(),
                month: args.month.clone(),
            },
            providers,
            apply: args.apply,
            offline: args.offline,
            no_grace: args.no_grace,
            json: args.json,
            now_us,
            cancel,
        })
    }
}

fn override_settings(args: &RunArgs, settings: &mut Settings) {
    if let Some(dir) = &args.out {
        settings.report.dir.clone_from(dir);
    }
    if let Some(rate) = args.rate {
        for provider in &mut settings.providers {
            provider.requests_per_second = rate;
            // A rate above the account's would otherwise be asked for and never reached.
            provider.account_requests_per_second = provider.account_requests_per_second.max(rate);
        }
    }
    if let Some(threads) = args.threads {
        settings.compare.threads = usize::from(threads);
    }
    if let Some(bytes) = args.memory {
        settings.compare.memory_bytes_max = bytes;
    }
    if let Some(locale) = args.locale {
        settings.report.locale = locale;
    }
    if args.spreadsheet || args.locale.is_some() {
        settings.report.spreadsheet = true;
    }
}
