//! The two databases that a store may be, and how each one's address is shown.

use sqlx::AnyConnection;

/// Which database a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file, one writer at a time.
    Sqlite,
    /// A server, or several behind one address.
    Postgres,
}

impl Database {
    /// Which one a connection leads to.
    #[must_use]
    pub fn of(connection: &AnyConnection) -> Self {
        if connection.backend_name() == "PostgreSQL" { Self::Postgres } else { Self::Sqlite }
    }

    /// Which one a URL names, by its scheme; `None` for any other.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }
}

/// A database's address as errors show it: host and database of a server, the path of a file; never a
/// user, a password or a parameter. What cannot be told apart for certain is left out.
#[must_use]
pub fn shown_url(url: &str) -> String {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return path.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return "the database".to_owned() };
    let (scheme, name) = match scheme {
        "mysql" => ("mysql", "MySQL"),
        "mariadb" => ("mariadb", "MariaDB"),
        _ => ("postgres", "PostgreSQL"),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let tail = &rest[authority.len()..];
    if tail.contains('@') {
        // A password with a letter that should have been escaped.
        return format!("the {name} database");
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c82_no_password_of_a_database_url_is_ever_shown() {
        assert_eq!(shown_url("sqlite:/var/recon.db"), "/var/recon.db");
        assert_eq!(shown_url("postgres://u:hunter2@db:5432/books?sslmode=x"), "postgres://db:5432/books");
        assert_eq!(shown_url("mariadb://u:hunter2@db/books"), "mariadb://db/books");
        assert_eq!(shown_url("postgres:///books?host=/run&password=hunter2"), "postgres:///books");
        assert_eq!(shown_url("mysql://u:hunter2@db:3306/shop?ssl-ca=x"), "mysql://db:3306/shop");
        for url in [
            "mysql://u:a/hunter2@db/shop",
            "postgres://u:hunter2@db/books",
            "postgres://u:hun@hunter2@db/books",
            "postgres://u:a/hunter2@db/books",
            "postgres://u:a?hunter2@db/books",
            "postgres://u:a#hunter2@db/books",
            "postgres://db/books?password=hunter2",
            "postgres://db/books?password=a@hunter2",
            "postgresql://u:hunter2@db",
        ] {
            assert!(!shown_url(url).contains("hunter2"), "{}", shown_url(url));
        }
    }
}
