//! What reading a value may need besides the value: the folder of the file, the environment, and which secrets
//! a command needs. Secrets and URLs are read here and nowhere else.

use super::document::Section;
use super::load::{Environment, Needs};
use super::unusable::Unusable;
use super::values::{beside, check_called_url, check_mysql_url, check_postgres_url, shown};
use super::{Secret, Side};
use std::path::{Path, PathBuf};
use toml::de::DeValue;

/// What reading a value may need besides the value.
pub(super) struct Context<'a> {
    pub(super) folder: PathBuf,
    pub(super) environment: Environment<'a>,
    pub(super) needs: Needs,
}

impl Context<'_> {
    /// A provider's key: `{ env = "NAME" }` or `{ file = "PATH" }`, never the key itself.
    pub fn secret(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        let Some(value) = section.raw(key) else { return Ok(None) };
        if !self.needs.api_keys {
            secret_source(section, key, value.get_ref())?;
            return Ok(Some(Secret::new(String::new())));
        }
        self.secret_value(section, key, value.get_ref()).map(Some)
    }

    /// The secrets that sign an endpoint's deliveries.
    pub fn secrets(&self, section: &Section<'_>, key: &str) -> Result<Vec<Secret>, Unusable> {
        let mut secrets = Vec::new();
        for item in section.items(key)?.unwrap_or_default() {
            if self.needs.webhook_secrets {
                secrets.push(self.signing_secret(section, key, item.get_ref())?);
            } else {
                secret_source(section, key, item.get_ref())?;
            }
        }
        Ok(secrets)
    }

    /// A URL of the team's own, as text or where a secret stands; empty where that is not read, as by a command that tells
    /// nobody. Numbers and pings may go over plain HTTP inside of a network (`must_be_private` is false), texts may not.
    pub fn called_url(
        &self,
        section: &Section<'_>,
        key: &str,
        must_be_private: bool,
    ) -> Result<Option<Secret>, Unusable> {
        let Some(url) = self.name(section, key)? else { return Ok(None) };
        let is_secret = section.raw(key).is_some_and(|value| value.get_ref().is_table());
        if self.needs.api_keys || !is_secret {
            check_called_url(url.reveal(), must_be_private).map_err(|why| section.bad(key, &why, ""))?;
        }
        Ok(Some(url))
    }

    /// A text that may stand in the file or where a secret stands. Empty where secrets are not read.
    pub fn name(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        match section.raw(key).map(toml::Spanned::get_ref) {
            None => Ok(None),
            Some(value) if value.is_table() => self.secret(section, key),
            Some(_) => Ok(Some(Secret::new(section.text(key)?.unwrap_or_default().trim().to_owned()))),
        }
    }

    /// A password that somebody chose freely, spaces and all.
    pub fn password(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        let Some(value) = section.raw(key) else { return Ok(None) };
        if !self.needs.api_keys {
            secret_source(section, key, value.get_ref())?;
            return Ok(Some(Secret::new(String::new())));
        }
        self.signing_secret(section, key, value.get_ref()).map(Some)
    }

    /// The database that corrections are written to; empty where the command applies nothing, so that whoever only
    /// reports need not hold the right to write.
    pub fn target_url(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        let Some(value) = section.raw(key).map(toml::Spanned::get_ref) else { return Ok(None) };
        if value.is_table() && !self.needs.target {
            secret_source(section, key, value)?;
            return Ok(Some(Secret::new(String::new())));
        }
        match self.side(section, key)? {
            Side::Database(url) if url.reveal() != super::file_tables::URL => Ok(Some(url)),
            _ => Err(section.bad(
                key,
                "must name a database",
                "write it as sqlite:books.db, postgres://user@host/database or mysql://user@host/database",
            )),
        }
    }

    /// The handler that events are delivered to again; empty where the command applies nothing.
    pub fn handler_url(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        if let Some(value) = section.raw(key).filter(|value| !self.needs.target && value.get_ref().is_table())
        {
            secret_source(section, key, value.get_ref())?;
            return Ok(Some(Secret::new(String::new())));
        }
        self.called_url(section, key, true)
    }

    /// What deliveries to that handler are signed with; empty where the command applies nothing.
    pub fn handler_secret(&self, section: &Section<'_>, key: &str) -> Result<Option<Secret>, Unusable> {
        let Some(value) = section.raw(key) else { return Ok(None) };
        if !self.needs.target {
            secret_source(section, key, value.get_ref())?;
            return Ok(Some(Secret::new(String::new())));
        }
        self.signing_secret(section, key, value.get_ref()).map(Some)
    }

    /// Relative paths are beside the configuration file.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A secret that somebody chose freely: only the line break at its end is not part of it. Two lines are not one
    /// secret: whoever changes secrets lists both.
    fn signing_secret(
        &self,
        section: &Section<'_>,
        key: &str,
        value: &DeValue<'_>,
    ) -> Result<Secret, Unusable> {
        const LINE_ENDS: [char; 2] = ['\r', '\n'];
        let text = self.outside_text(section, key, value)?;
        let text = text.trim_matches(LINE_ENDS);
        if text.trim().is_empty() {
            return Err(empty(section, key, value));
        }
        if text.contains(LINE_ENDS) {
            return Err(section.bad(
                key,
                "holds several lines where it is read",
                "give each secret its own { env = … } or { file = … } in the list, the current one first",
            ));
        }
        if text.trim() != text {
            tracing::warn!("a secret of {key} begins or ends with a space, which is taken as a part of it");
        }
        Ok(Secret::new(text.to_owned()))
    }

    fn secret_value(
        &self,
        section: &Section<'_>,
        key: &str,
        value: &DeValue<'_>,
    ) -> Result<Secret, Unusable> {
        let text = self.outside_text(section, key, value)?;
        let text = text.trim();
        if text.is_empty() {
            return Err(empty(section, key, value));
        }
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err(section.bad(
                key,
                "holds spaces or line breaks where it is read",
                "give one line, the key alone, without quotes or a name before it",
            ));
        }
        Ok(Secret::new(text.to_owned()))
    }

    /// What stands in the environment or the file that the value names.
    fn outside_text(
        &self,
        section: &Section<'_>,
        key: &str,
        value: &DeValue<'_>,
    ) -> Result<String, Unusable> {
        let text = match secret_source(section, key, value)? {
            SecretSource::Env(name) => (self.environment)(name).ok_or_else(|| {
                section.bad(
                    key,
                    &format!("needs the environment variable {name}, which is not set"),
                    format!(
                        "`export {name}=…` in this shell; cron starts with a bare environment, so there set it \
                         in the crontab or use {{ file = \"…\" }}"
                    ),
                )
            })?,
            SecretSource::File(name) => {
                let path = beside(&self.folder, name);
                std::fs::read_to_string(&path).map_err(|error| {
                    section.bad(
                        key,
                        &format!("cannot be read from {}: {error}", path.display()),
                        "put the secret alone (the key, the password or the URL) into that file, readable by the user that runs recon",
                    )
                })?
            }
        };
        Ok(text)
    }

    /// Where a side is read: `store`, `none`, or a database.
    pub fn side(&self, section: &Section<'_>, key: &str) -> Result<Side, Unusable> {
        let Some(url) = self.url(section, key)? else { return Ok(Side::Store) };
        match url.text.as_str() {
            "store" => Ok(Side::Store),
            "none" => Ok(Side::Absent),
            "files" => Ok(Side::Database(Secret::new(super::file_tables::URL.to_owned()))),
            _ => {
                const HINT: &str = "write it as sqlite:books.db, postgres://user@host/database or mysql://user@host/database, or \"store\" for recon's own tables";
                let text = match url.text.split_once(':') {
                    Some((scheme, rest)) if is_mysql(scheme) => mysql(section, key, &url, rest)?,
                    _ => self.database(section, key, &url, HINT)?,
                };
                Ok(Side::Database(Secret::new(text)))
            }
        }
    }

    /// A URL as it stands in the file, or where the file says to read it.
    pub fn url(&self, section: &Section<'_>, key: &str) -> Result<Option<Url>, Unusable> {
        let Some(value) = section.raw(key).map(toml::Spanned::get_ref) else { return Ok(None) };
        if value.is_table() {
            let text = self.secret_value(section, key, value)?.reveal().to_owned();
            return Ok(Some(Url { text, is_secret: true }));
        }
        let text = section.text(key)?.unwrap_or_default().trim().to_owned();
        Ok(Some(Url { text, is_secret: false }))
    }

    /// `sqlite:PATH` with the path made relative to the configuration file, or a `postgres://` URL.
    pub fn database(
        &self,
        section: &Section<'_>,
        key: &str,
        url: &Url,
        hint: &'static str,
    ) -> Result<String, Unusable> {
        // The URL may hold a password, so only its scheme is ever shown.
        let Some((scheme, rest)) = url.text.split_once(':') else {
            return Err(section.bad(key, "is no database URL", hint));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "sqlite" => self.sqlite_path(section, key, rest),
            "postgres" | "postgresql" => {
                let text = format!("postgres:{rest}");
                check_postgres_url(&text, url.is_secret).map_err(|why| {
                    section.bad(
                        key,
                        why,
                        "write it as postgres://user@host/database; one with a password is read from \
                         { env = \"NAME\" } or { file = \"PATH\" }, or the password alone from PGPASSFILE",
                    )
                })?;
                Ok(text)
            }
            scheme if is_mysql(scheme) => Err(section.bad(
                key,
                &format!("has the scheme `{scheme}`, and the store is no MySQL or MariaDB"),
                hint,
            )),
            _ => {
                let why = format!(
                    "has the scheme {}, which is none of sqlite:, postgres:, mysql: and mariadb:",
                    shown(scheme)
                );
                Err(section.bad(key, &why, hint))
            }
        }
    }

    fn sqlite_path(&self, section: &Section<'_>, key: &str, path: &str) -> Result<String, Unusable> {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains(['?', '#', '%']) {
            return Err(section.bad(key, "must be sqlite: and a plain path", ""));
        }
        if path == ":memory:" {
            return Err(section.bad(key, "must be a file; one in memory is gone after the run", ""));
        }
        Ok(format!("sqlite:{}", beside(&self.folder, path).display()))
    }
}

fn is_mysql(scheme: &str) -> bool {
    matches!(scheme.to_ascii_lowercase().as_str(), "mysql" | "mariadb")
}

/// A `mysql:` or `mariadb:` URL, checked; the rest of the program knows it by the first name.
fn mysql(section: &Section<'_>, key: &str, url: &Url, rest: &str) -> Result<String, Unusable> {
    let text = format!("mysql:{rest}");
    check_mysql_url(&text, url.is_secret).map_err(|why| {
        section.bad(
            key,
            why,
            "write it as mysql://user@host/database; one with a password is read from { env = \"NAME\" } or \
             { file = \"PATH\" }",
        )
    })?;
    Ok(text)
}

/// The refusal of a secret that is not there.
fn empty(section: &Section<'_>, key: &str, value: &DeValue<'_>) -> Unusable {
    let place = match secret_source(section, key, value) {
        Ok(SecretSource::Env(name)) => format!("the environment variable {name} is set to nothing"),
        Ok(SecretSource::File(name)) => format!("the file {name} is empty"),
        Err(unusable) => return unusable,
    };
    section.bad(
        key,
        "is empty where the configuration says to read it",
        format!("{place}: give the key there"),
    )
}

/// A URL and whether it was read from outside of the configuration file.
pub(super) struct Url {
    pub(super) text: String,
    pub(super) is_secret: bool,
}

enum SecretSource<'a> {
    Env(&'a str),
    File(&'a str),
}

/// Reads the form of a secret without reading the secret.
fn secret_source<'a>(
    section: &Section<'_>,
    key: &str,
    value: &'a DeValue<'a>,
) -> Result<SecretSource<'a>, Unusable> {
    const HINT: &str = "write { env = \"NAME\" } or { file = \"PATH\" }; secrets stay out of the file";
    let Some(table) = value.as_table() else {
        let why =
            if value.is_str() { "holds a secret written out, which is refused" } else { "is no secret" };
        return Err(section.bad(key, why, HINT));
    };
    let mut entries = table.iter().map(|(name, value)| (name.get_ref().as_ref(), value.get_ref().as_str()));
    match (entries.next(), entries.next()) {
        (Some(("env", Some(name))), None) if !name.is_empty() => Ok(SecretSource::Env(name)),
        (Some(("file", Some(name))), None) if !name.is_empty() => Ok(SecretSource::File(name)),
        _ => Err(section.bad(key, "must be exactly one of env and file", HINT)),
    }
}
