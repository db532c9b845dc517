//! Commands: one file per subcommand.
