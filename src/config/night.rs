//! What is told after a run: `[notify]` beside what the worker reads of it, `[notify.mail]` and `[metrics]`.
//!
//! The one thing to get right: what is told is read only for a command that tells. `recon status` in cron's bare
//! environment must not fail over a password that it does not need.

use super::context::Context;
use super::document::Section;
use super::unusable::Unusable;
use super::values::beside;
use super::{NotifySettings, Secret};
use lettre::message::Mailbox;
use std::path::PathBuf;

/// Keys of `[notify]`.
pub(super) const NOTIFY_KEYS: [&str; 8] =
    ["url", "waiting_age", "duplicates_per_hour", "run", "run_url", "every_run", "mail", "dead_man_url"];
const MAIL_KEYS: [&str; 7] = ["host", "port", "tls", "user", "password", "from", "to"];

/// Who is told of a run, and where its numbers go.
#[derive(Clone, Debug, Default)]
pub struct NightSettings {
    /// A webhook that takes `{"text": …}`, as Slack's do.
    pub run_url: Option<Secret>,
    /// Whether runs that found nothing new are told as well.
    pub every_run: bool,
    /// `[notify.mail]`.
    pub mail: Option<MailSettings>,
    /// Fetched when a run saw everything.
    pub dead_man_url: Option<Secret>,
    /// A file for Prometheus' node exporter.
    pub textfile: Option<PathBuf>,
    /// A group of a Pushgateway.
    pub push_url: Option<Secret>,
}

impl NightSettings {
    /// Whether nobody is to be told of anything.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.run_url.is_none()
            && self.mail.is_none()
            && self.dead_man_url.is_none()
            && self.textfile.is_none()
            && self.push_url.is_none()
    }
}

/// How a mail server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// In the clear at first, encrypted before anything is said (RFC 3207).
    StartTls,
    /// Encrypted from the first byte (RFC 8314).
    Implicit,
    /// In the clear: to this machine only.
    None,
}

/// `[notify.mail]`.
#[derive(Clone, Debug)]
pub struct MailSettings {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How it is spoken to.
    pub tls: MailTls,
    /// User and password, where it asks for them.
    pub login: Option<(Secret, Secret)>,
    /// The sender.
    pub from: Mailbox,
    /// Who gets it, at least one.
    pub to: Vec<Mailbox>,
}

/// `[notify]`, `[notify.mail]` and `[metrics]` as a run needs them.
pub(super) fn read_night(
    root: &Section<'_>,
    context: &Context<'_>,
    worker: &NotifySettings,
) -> Result<NightSettings, Unusable> {
    let notify = root.section("notify", &NOTIFY_KEYS)?;
    let metrics = root.section("metrics", &["textfile", "push_url"])?;
    let wants_url = notify.flag("run")?;
    let run_url = context.called_url(&notify, "run_url", true)?;
    if wants_url == Some(true) && run_url.is_none() && worker.url.is_none() {
        let hint = "set [notify] url, or run_url for runs alone; [notify.mail] needs no `run`";
        return Err(notify.bad("run", "needs an address to tell", hint));
    }
    let shared = worker.url.clone().filter(|_| wants_url == Some(true));
    Ok(NightSettings {
        run_url: if wants_url == Some(false) { None } else { run_url.or(shared) },
        every_run: notify.flag("every_run")?.unwrap_or(false),
        mail: read_mail(&notify, context)?,
        dead_man_url: context.called_url(&notify, "dead_man_url", false)?,
        textfile: metrics.text("textfile")?.map(|path| beside(context.folder(), path)),
        push_url: context.called_url(&metrics, "push_url", false)?,
    })
}

fn read_mail(notify: &Section<'_>, context: &Context<'_>) -> Result<Option<MailSettings>, Unusable> {
    if notify.raw("mail").is_none() {
        return Ok(None);
    }
    let mail = notify.section("mail", &MAIL_KEYS)?;
    let host = mail.text("host")?.unwrap_or_default().trim().to_owned();
    if host.is_empty() || host.contains([':', '/', ' ']) {
        return Err(mail.bad(
            "host",
            "must be the name of a mail server",
            "such as smtp.example.com; the port is `port`",
        ));
    }
    let tls = match mail.text("tls")?.unwrap_or("starttls") {
        "starttls" => MailTls::StartTls,
        "tls" => MailTls::Implicit,
        "none" if matches!(&*host, "localhost" | "127.0.0.1" | "::1") => MailTls::None,
        "none" => return Err(mail.bad("tls", "may be \"none\" only for a mail server on this machine", "")),
        _ => return Err(mail.bad("tls", "must be \"starttls\", \"tls\" or \"none\"", "")),
    };
    let usual = match tls {
        MailTls::StartTls => 587,
        MailTls::Implicit => 465,
        MailTls::None => 25,
    };
    let port = mail.integer("port", 1, i64::from(u16::MAX))?.unwrap_or(usual);
    let login = match (context.name(&mail, "user")?, context.password(&mail, "password")?) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        (Some(_), None) => return Err(mail.bad("password", "is missing beside `user`", "")),
        (None, Some(_)) => return Err(mail.bad("user", "is missing beside `password`", "")),
    };
    let to = mail.texts("to")?.unwrap_or_default();
    if to.is_empty() {
        return Err(mail.bad("to", "must name at least one address", "to = [\"finance@example.com\"]"));
    }
    Ok(Some(MailSettings {
        host,
        port: u16::try_from(port).unwrap_or(587),
        tls,
        login,
        from: address(&mail, "from", mail.text("from")?.unwrap_or_default())?,
        to: to.into_iter().map(|text| address(&mail, "to", text)).collect::<Result<_, _>>()?,
    }))
}

fn address(mail: &Section<'_>, key: &str, text: &str) -> Result<Mailbox, Unusable> {
    text.parse().map_err(|_| {
        mail.bad(key, "holds no mail address", "write it as finance@example.com or Recon <recon@example.com>")
    })
}
