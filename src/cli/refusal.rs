//! What clap does not accept, in our form: one error line and a hint that can be typed.

use super::{Cli, UsageError};
use clap::CommandFactory;
use clap::error::ErrorKind;

/// clap's account of a refusal of these arguments, without the program's name, as ours.
#[must_use]
pub fn usage_error(error: &clap::Error, arguments: impl IntoIterator<Item = String>) -> UsageError {
    let text = error.render().to_string();
    let asked_for = asked_for(arguments);
    let help = format!("`{asked_for} --help` shows every argument with examples");
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let words = subcommands(&text).join(", ");
        return UsageError::new(format!("`{asked_for}` needs one of: {words}"), help);
    }
    let told = text.split("\n\nUsage:").next().unwrap_or_default();
    let told = told.split("\n\nFor more information").next().unwrap_or_default();
    let (message, tips) = told.split_once("\n\n").unwrap_or((told, ""));
    let message = message.trim_start_matches("error: ");
    // clap says that something is missing, and not for what.
    if error.kind() == ErrorKind::MissingRequiredArgument && message.contains("--since <DATE>") {
        let hint = "such as --since 2024-05-01 --until 2024-05-03; both days are in the window";
        return UsageError::new("--until needs --since", hint);
    }
    // clap takes it for a slip of `prune`.
    if error.kind() == ErrorKind::InvalidSubcommand && message.contains("'run'") {
        let hint = "a run is recon without a subcommand: `recon`, or `recon --since 2024-05-01`";
        return UsageError::new(message, hint);
    }
    let tip = tips.trim().trim_start_matches("tip: ");
    UsageError::new(message, if tip.is_empty() { help } else { tip.to_owned() })
}

/// The command that was typed, such as `recon inbox retry`.
fn asked_for(arguments: impl IntoIterator<Item = String>) -> String {
    let mut command = &Cli::command();
    let mut words = vec!["recon".to_owned()];
    for argument in arguments {
        if let Some(subcommand) = command.find_subcommand(&argument) {
            command = subcommand;
            words.push(argument);
        }
    }
    words.join(" ")
}

/// The subcommands that clap's help lists, but for the help itself.
fn subcommands(text: &str) -> Vec<&str> {
    let listed = text.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = listed.lines().take_while(|line| !line.trim().is_empty());
    lines.filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn refused(line: &str) -> UsageError {
        let words = line.split(' ').map(str::to_owned);
        usage_error(&Cli::try_parse_from(words.clone()).unwrap_err(), words.skip(1))
    }

    #[test]
    fn a_refusal_names_the_command_that_was_typed() {
        let hint = |line| refused(line).hint;
        assert_eq!(
            hint("recon inbox retry"),
            "`recon inbox retry --help` shows every argument with examples"
        );
        assert_eq!(hint("recon prune x"), "`recon prune --help` shows every argument with examples");
        assert_eq!(hint("recon demo --seed x"), "`recon demo --help` shows every argument with examples");
        assert_eq!(hint("recon --rate x"), "`recon --help` shows every argument with examples");
        assert_eq!(hint("recon work --drian"), "a similar argument exists: '--drain'");
    }

    #[test]
    fn a_command_without_its_subcommand_says_which_there_are() {
        let refusal = refused("recon inbox");
        assert_eq!(refusal.message, "`recon inbox` needs one of: list, dead, show, retry, discard");
        assert_eq!(refusal.hint, "`recon inbox --help` shows every argument with examples");
    }
}
