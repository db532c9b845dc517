//! Reports: one file per output; bytes only.
