//! A mail server on loopback that this project did not write.

use crate::witness::venv::Server;
use std::path::Path;

/// A mail server (aiosmtpd) that wants STARTTLS and a login. What it got lies in `mail.jsonl`, its root certificate in
/// `ca.pem`.
pub fn mail_server(folder: &Path) -> Server {
    Server::start(&["smtp.py", folder.to_str().unwrap()], &folder.join("smtp.log"))
}

/// What the mail server got.
pub fn mails(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("mail.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
