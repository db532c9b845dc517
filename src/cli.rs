//! The command line: arguments as typed.
