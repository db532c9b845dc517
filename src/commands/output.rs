//! Stdout, whose reader may go away: `recon inbox list | head -1` has what it wanted.
//!
//! The one thing to get right: a reader that is gone changes neither what a command does nor its exit code. A run is
//! recorded, a plan is carried out to its end, a receiver goes on.

use std::io::{ErrorKind, Result, Write};

/// Stdout. What is written after its reader closed the pipe goes nowhere; any other refusal, such as a full disk, is
/// an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        unless_closed(std::io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        unless_closed(std::io::stdout().flush(), ())
    }
}

/// What was answered, or `gone` where nobody reads any more.
fn unless_closed<T>(answered: Result<T>, gone: T) -> Result<T> {
    match answered {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(gone),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_takes_everything_and_a_full_disk_is_told() {
        assert_eq!(unless_closed(Err(ErrorKind::BrokenPipe.into()), 7).unwrap(), 7);
        assert_eq!(unless_closed(Ok(3), 7).unwrap(), 3);
        let error = unless_closed(Err::<usize, _>(ErrorKind::StorageFull.into()), 7).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}
