//! Logs: stderr only, no bodies, no secrets, no personal data.
