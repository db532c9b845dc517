//! The message by mail, over SMTP. The only user of the mail library.
//!
//! The one thing to get right: what a server answers may repeat addresses, so only its code is ever shown.

use crate::config::{MailSettings, MailTls};
use anyhow::{Context, Result};
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::time::Duration;

/// How long the server may take for one step.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long all steps may take.
const ALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a mail was not taken, and whether another attempt may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTaken {
    /// Why, without addresses.
    pub why: String,
    /// Whether to try again.
    pub may_pass: bool,
}

/// A mail server, ready to be spoken to.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    settings: MailSettings,
}

impl Mailer {
    /// Prepares to speak to the server.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read, or the host's name is none.
    pub fn new(settings: &MailSettings) -> Result<Self> {
        let secure =
            || TlsParameters::new_rustls(settings.host.clone()).context("prepare secure connections");
        let tls = match settings.tls {
            MailTls::StartTls => Tls::Required(secure()?),
            MailTls::Implicit => Tls::Wrapper(secure()?),
            MailTls::None => Tls::None,
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&*settings.host)
            .port(settings.port)
            .tls(tls)
            .timeout(Some(STEP_TIMEOUT));
        if let Some((user, password)) = &settings.login {
            builder =
                builder.credentials(Credentials::new(user.reveal().to_owned(), password.reveal().to_owned()));
        }
        Ok(Self { transport: builder.build(), settings: settings.clone() })
    }

    /// Sends one mail to everybody, once.
    ///
    /// # Errors
    /// When it was not taken.
    pub async fn send(&self, subject: &str, body: &str) -> Result<(), NotTaken> {
        let mut builder = Message::builder()
            .from(self.settings.from.clone())
            .subject(subject)
            .header(ContentType::TEXT_PLAIN);
        for to in &self.settings.to {
            builder = builder.to(to.clone());
        }
        let mail = builder.body(body.to_owned()).map_err(|error| NotTaken {
            why: format!("no mail can be made of it: {error}"),
            may_pass: false,
        })?;
        match tokio::time::timeout(ALL_TIMEOUT, self.transport.send(mail)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(refused(&error)),
            Err(_) => Err(NotTaken { why: "no answer in time".to_owned(), may_pass: true }),
        }
    }
}

fn refused(error: &lettre::transport::smtp::Error) -> NotTaken {
    if let Some(code) = error.status() {
        return NotTaken { why: format!("answered {code}"), may_pass: !error.is_permanent() };
    }
    // Without an answer there is nothing in it but what the system or the encryption says.
    let mut why = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !why.contains(&text) {
            why = format!("{why}: {text}");
        }
        cause = inner.source();
    }
    NotTaken { why, may_pass: !error.is_client() }
}
