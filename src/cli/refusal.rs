//! What clap does not accept, in our form: one error line and a hint that can be typed.

use super::UsageError;
use clap::error::ErrorKind;

/// clap's account of a refusal as ours.
#[must_use]
pub fn usage_error(error: &clap::Error) -> UsageError {
    let text = error.render().to_string();
    let help = format!("`{} --help` shows every argument with examples", asked_for(&text));
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let words = subcommands(&text).join(", ");
        return UsageError::new(format!("`{}` needs one of: {words}", asked_for(&text)), help);
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

/// The command that was typed, such as `recon inbox retry`, as clap's usage line has it.
fn asked_for(text: &str) -> String {
    let usage = text.split("Usage: ").nth(1).unwrap_or_default();
    let words = usage.split_whitespace().skip(1);
    let words = words.take_while(|word| word.chars().all(|letter| letter.is_ascii_lowercase()));
    std::iter::once("recon").chain(words).collect::<Vec<_>>().join(" ")
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
    use crate::cli::Cli;
    use clap::Parser;

    fn refused(line: &str) -> UsageError {
        usage_error(&Cli::try_parse_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn a_refusal_names_the_command_that_was_typed() {
        let hint = |line| refused(line).hint;
        assert_eq!(
            hint("recon inbox retry"),
            "`recon inbox retry --help` shows every argument with examples"
        );
        assert_eq!(hint("recon prune x"), "`recon prune --help` shows every argument with examples");
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
