//! Commands: one file per subcommand.

pub mod apply;
pub mod status;

/// How a command ended; only `main` turns it into an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Tied out, or everything done.
    Clean,
    /// Something is left for a person.
    Findings,
    /// The work could not be done, or not all of it.
    Incomplete,
    /// Another run holds the lease.
    Locked,
    /// Configuration, schema or plan unusable; nothing was written.
    Config,
}

impl Outcome {
    /// The contract's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::Incomplete => "incomplete",
            Self::Locked => "locked",
            Self::Config => "config",
        }
    }

    /// The contract's exit code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Incomplete => 2,
            Self::Locked => 75,
            Self::Config => 78,
        }
    }
}
