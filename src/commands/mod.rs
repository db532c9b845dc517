//! Commands: one file per subcommand. A command answers with an [`Outcome`]; only `main` turns that
//! into an exit code.

pub mod apply;
pub mod completions;
pub mod init;
pub mod man;
pub mod run;
pub mod status;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything ties out.
    Clean,
    /// There are findings.
    Findings,
    /// The work could not be finished: nothing may be concluded from it.
    Incomplete,
    /// Another run holds the lease.
    Locked,
    /// The configuration or the local schema is unusable; nothing was written.
    Config,
}

impl Outcome {
    /// The word in `outcome=…`.
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

    /// The process's exit code; 75 and 78 are `EX_TEMPFAIL` and `EX_CONFIG` of sysexits(3).
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
