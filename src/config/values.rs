//! Texts of single settings: durations, sizes, URLs, paths. Pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reads `90s`, `5m`, `26h`, `3d`, or several parts of falling size such as `1h30m`.
///
/// # Errors
/// One sentence that says why the text is no duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{} is not a duration; write it as 90s, 5m, 26h or 3d", shown(text));
    let mut seconds: u64 = 0;
    let mut number = String::new();
    let mut unit_before = u64::MAX;
    for letter in text.trim().chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(bad()),
        };
        let count: u64 = number.parse().map_err(|_| bad())?;
        if unit >= unit_before {
            return Err(bad());
        }
        seconds = count.checked_mul(unit).and_then(|part| seconds.checked_add(part)).ok_or_else(bad)?;
        unit_before = unit;
        number.clear();
    }
    let within_a_century = seconds <= 36_525 * 86_400;
    if !number.is_empty() || unit_before == u64::MAX || !within_a_century {
        return Err(bad());
    }
    Ok(Duration::from_secs(seconds))
}

/// Reads `256MiB`, `1GiB`, `512KiB` or plain bytes; `MB` and `M` mean the same powers of 1,024.
///
/// # Errors
/// One sentence that says why the text is no size.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let bad = || format!("{} is not a size; write it as 256MiB or 1GiB", shown(text));
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let count: usize = trimmed[..digits].parse().map_err(|_| bad())?;
    let unit: usize = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(bad()),
    };
    count.checked_mul(unit).ok_or_else(bad)
}

/// Checks a provider's API root and takes a trailing slash off.
///
/// # Errors
/// When it is neither `https://` nor `http://` to this machine, or carries credentials, a query or
/// a fragment. The URL itself is not repeated: it may hold a secret.
pub fn parse_base_url(text: &str) -> Result<String, String> {
    let url = text.trim().trim_end_matches('/');
    if url.split_once("://").is_some_and(|(_, rest)| rest.contains('@')) {
        return Err("must not carry a user name or password".to_owned());
    }
    if url.contains(['?', '#']) || url.chars().any(char::is_whitespace) {
        return Err("must be a plain address without query, fragment or spaces".to_owned());
    }
    check_host(url, true)?;
    Ok(url.to_owned())
}

/// Checks a URL of the team's own that is called exactly as it is given, with its query and its last slash.
///
/// # Errors
/// As [`parse_base_url`], but that it may carry a query, and that plain HTTP may go anywhere where nothing private is sent
/// (`must_be_private` is false).
pub fn check_called_url(url: &str, must_be_private: bool) -> Result<(), String> {
    if url.contains('#') || url.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err("must be a plain address without fragment or spaces".to_owned());
    }
    check_host(url, must_be_private)
}

/// Whether a URL leads to a host, and to where secrets may be sent if it must.
fn check_host(url: &str, must_be_private: bool) -> Result<(), String> {
    let (is_https, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err("must begin with https://".to_owned()),
    };
    // A backslash ends the host for some readers of URLs, and not for others.
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains(['@', '\\']) {
        return Err("must not carry a user name or password".to_owned());
    }
    let host = match authority.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() {
        return Err("names no host".to_owned());
    }
    if must_be_private && !is_https && !matches!(host, "127.0.0.1" | "localhost" | "::1") {
        return Err("must be https; plain http is allowed to 127.0.0.1, localhost and [::1] only".to_owned());
    }
    Ok(())
}

/// The parts of a database's URL, `scheme://[user[:password]@]host[:port]/database[?…]`.
struct DatabaseUrl<'a> {
    user: &'a str,
    host: &'a str,
    database: &'a str,
    /// `name=value` each.
    parameters: Vec<&'a str>,
}

impl<'a> DatabaseUrl<'a> {
    fn new(url: &'a str, no_scheme: &'static str) -> Result<Self, &'static str> {
        let rest = url.split_once("://").map(|(_, rest)| rest).ok_or(no_scheme)?;
        if rest.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err("must not hold spaces or line breaks");
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let tail = &rest[authority.len()..];
        if tail.contains('@') || tail.contains('#') || authority.matches('@').count() > 1 {
            return Err(
                "holds a user or password with letters that must be escaped: `/` is %2F, `@` is %40, `#` is %23",
            );
        }
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let parameters = query.split('&').filter(|pair| !pair.is_empty()).collect();
        Ok(Self { user, host, database: path.trim_matches('/'), parameters })
    }

    fn names(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|pair| pair.split('=').next() == Some(parameter))
    }
}

const PASSWORD_WRITTEN_OUT: &str = "holds a password written out, which is refused";

/// Checks the URL of a PostgreSQL database; the host may be given as `?host=/folder/of/the/socket`.
/// `may_hold_password` is false for a URL that stands in the configuration file itself.
///
/// # Errors
/// What is wrong with it. The URL itself is not repeated: it may hold a secret.
pub fn check_postgres_url(url: &str, may_hold_password: bool) -> Result<(), &'static str> {
    let url = DatabaseUrl::new(url, "must begin with postgres://")?;
    if (url.user.contains(':') || url.names("password")) && !may_hold_password {
        return Err(PASSWORD_WRITTEN_OUT);
    }
    if url.host.is_empty() && !url.names("host") && !url.names("hostaddr") {
        return Err("names no host");
    }
    if url.database.is_empty() && !url.names("dbname") {
        return Err("names no database");
    }
    Ok(())
}

/// Parameters of a MySQL URL that are read. The session's time zone, character set and modes are not among them.
const MYSQL_PARAMETERS: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

/// Checks the URL of a MySQL or MariaDB database, as [`check_postgres_url`] does.
///
/// # Errors
/// What is wrong with it. The URL itself is not repeated: it may hold a secret.
pub fn check_mysql_url(url: &str, may_hold_password: bool) -> Result<(), &'static str> {
    let url = DatabaseUrl::new(url, "must begin with mysql:// or mariadb://")?;
    if url.user.contains(':') && !may_hold_password {
        return Err(PASSWORD_WRITTEN_OUT);
    }
    if url.host.is_empty() {
        return Err("names no host; with a socket write localhost");
    }
    if url.user.is_empty() || url.user.starts_with(':') {
        return Err("names no user");
    }
    if url.database.is_empty() {
        return Err("names no database");
    }
    let mut names = url.parameters.iter().map(|pair| pair.split('=').next().unwrap_or_default());
    if names.any(|name| !MYSQL_PARAMETERS.contains(&name)) {
        return Err("has a parameter that is none of ssl-mode, ssl-ca, ssl-cert, ssl-key and socket");
    }
    Ok(())
}

/// A path of the configuration file: relative ones are beside the file.
#[must_use]
pub fn beside(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}

/// A mistyped text as an error may show it: short, plain, and nothing that looks like a secret.
#[must_use]
pub fn shown(text: &str) -> String {
    const PREFIXES: [&str; 9] =
        ["sk_", "rk_", "pk_", "whsec_", "sk-", "rk-", "$aact", "app_usr", "access_token"];
    let lower = text.trim().to_lowercase();
    let is_plain = text.len() <= 40 && text.chars().all(|c| !c.is_control() && c != '@');
    if is_plain && !PREFIXES.iter().any(|prefix| lower.contains(prefix)) {
        format!("`{text}`")
    } else {
        "the given text".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in
            [("5m", 300), ("26h", 93_600), ("90s", 90), ("3d", 259_200), ("1h30m", 5_400), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "5", "m", "5 minutes", "-5m", "1m1h", "5m5m", "1.5h", "99999999999999999999h", "40000d"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("256MiB", 256 << 20), ("1GiB", 1 << 30), ("64 mb", 64 << 20), ("4096", 4096)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "1.5GiB", "-1", "256Mi", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn c82_postgres_urls_and_their_passwords() {
        let refused = |url: &str| check_postgres_url(url, false).unwrap_err();
        assert_eq!(
            check_postgres_url("postgres://recon@db.internal:5432/books?sslmode=verify-full", false),
            Ok(())
        );
        assert_eq!(check_postgres_url("postgresql:///books?host=/var/run/postgresql", false), Ok(()));
        assert_eq!(check_postgres_url("postgres://recon:hunter2@db/books", true), Ok(()));
        assert!(refused("postgres://recon:hunter2@db/books").contains("refused"));
        assert!(refused("postgres://db/books?password=hunter2").contains("refused"));
        assert!(refused("postgres://recon:a@b@db/books").contains("escaped"));
        assert!(refused("postgres://recon:a/b@db/books").contains("escaped"));
        assert!(refused("postgres:///books").contains("host"));
        assert!(refused("postgres://db").contains("database"));
        assert!(refused("postgres:db").contains("postgres://"));
    }

    #[test]
    fn urls_of_the_teams_own_are_called_as_given() {
        for url in [
            "https://hooks.example.com/T0/B0/",
            "https://hooks.example.com/hook?token=a%20b&to=a@b",
            "http://127.0.0.1:3000/webhooks/stripe/",
            "http://localhost?x=1",
        ] {
            assert_eq!(check_called_url(url, true), Ok(()), "{url}");
        }
        for url in [
            "http://example.com/hook?at=127.0.0.1",
            "http://127.0.0.1@example.com/",
            "http://127.0.0.1\\@example.com/",
            "https://user:word@example.com/",
            "https://example.com/#part",
            "https://example.com/a b",
            " https://example.com/",
            "https://?x=1",
            "ftp://example.com/",
        ] {
            assert!(check_called_url(url, true).is_err(), "{url}");
        }
        let plain = "http://push.example.com:9091/metrics?job=recon";
        assert_eq!(check_called_url(plain, false), Ok(()));
        assert!(check_called_url(plain, true).is_err() && check_called_url("http://u@x/", false).is_err());
    }

    #[test]
    fn c82_mysql_urls_and_their_passwords() {
        let refused = |url: &str| check_mysql_url(url, false).unwrap_err();
        let checked = "mysql://reader@db.internal:3306/shop?ssl-mode=VERIFY_IDENTITY";
        assert_eq!(check_mysql_url(checked, false), Ok(()));
        assert_eq!(
            check_mysql_url("mariadb://reader@localhost/shop?socket=/run/mysqld/s.sock", false),
            Ok(())
        );
        assert_eq!(check_mysql_url("mysql://reader:hunter2@db/shop", true), Ok(()));
        assert!(refused("mysql://reader:hunter2@db/shop").contains("refused"));
        assert!(refused("mysql://reader:a@b@db/shop").contains("escaped"));
        assert!(refused("mysql://reader@/shop").contains("host"));
        assert!(refused("mysql://db/shop").contains("user"));
        assert!(refused("mysql://reader@db").contains("database"));
        assert!(refused("mysql://reader@db/shop?time-zone=x").contains("parameter"));
        assert!(refused("mysql:db").contains("mysql://"));
    }

    #[test]
    fn base_urls() {
        assert_eq!(parse_base_url("https://api.stripe.com/"), Ok("https://api.stripe.com".to_owned()));
        for text in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:9"] {
            assert!(parse_base_url(text).is_ok(), "{text}");
        }
        for text in [
            "http://api.stripe.com",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "ftp://x",
            "api.stripe.com",
            "https://user:password@api.stripe.com",
            "https://api.stripe.com?key=1",
            "https://",
        ] {
            assert!(parse_base_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn c82_a_secret_is_never_shown() {
        let key = format!("sk_live_{}", "x".repeat(24));
        assert_eq!(shown(&key), "the given text");
        assert_eq!(shown("weekly"), "`weekly`");
    }
}
