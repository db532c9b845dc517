//! Under which columns of which table an event or an effect exists once: as the statement shows it, or as `[check]`
//! says it. Pure.

use crate::config::NamedKey;
use crate::gather::{Origin, TableName};
use std::collections::BTreeMap;

/// What exists once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// An event, under the provider's event id.
    Event,
    /// An effect, under the object that it belongs to.
    Effect,
}

impl Of {
    /// The setting that names its key.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Event => "event_key",
            Self::Effect => "effect_key",
        }
    }

    /// The statement whose columns show it.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Event => "inbox.sql",
            Self::Effect => "effects.sql",
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Event => "event_id",
            Self::Effect => "object_id",
        }
    }

    /// What to write so that it can be checked.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::Event => "[check] event_key = \"webhook_events (provider, event_id)\"",
            Self::Effect => "[check] effect_key = \"payments (kind, charge_id)\"",
        }
    }
}

/// What a column is in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Provider, account or mode.
    Scope,
    /// What kind of effect it is.
    Kind,
    /// The id.
    Id,
}

/// The columns under which something exists once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// What exists once.
    pub of: Of,
    /// Column names, ids last.
    pub columns: Vec<(String, Role)>,
    /// The statement makes a part of the scope of something: a further column of an index may be that.
    pub is_open: bool,
    /// `[check]` says so.
    pub is_stated: bool,
    /// The table has rows that undo others, and those have the same object.
    pub has_reversals: bool,
}

impl Key {
    /// Whether a column is part of it, whatever the case of its name.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|(name, _)| name.eq_ignore_ascii_case(column))
    }

    /// Its ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|(_, role)| *role == Role::Id).map(|(name, _)| name.as_str())
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// The key that a statement's columns show; `None` where the database does not say where the id comes from.
#[must_use]
pub fn shown(of: Of, origins: &BTreeMap<String, Origin>) -> Option<(TableName, Key)> {
    let id = origins.get(of.id())?;
    let kinds: &[(&str, Role)] = match of {
        Of::Event => &[],
        Of::Effect => &[("kind", Role::Kind)],
    };
    let scope = ["provider", "account", "mode"].map(|name| (name, Role::Scope));
    let mut key = Key { of, columns: Vec::new(), is_open: false, is_stated: false, has_reversals: false };
    let undone = origins.get("corrects_effect_id").filter(|_| of == Of::Effect);
    key.has_reversals = undone.is_some_and(|origin| origin.table == id.table);
    for (name, role) in scope.iter().chain(kinds) {
        match origins.get(*name).filter(|origin| origin.table == id.table) {
            Some(origin) if origin.column == id.column || key.has(&origin.column) => {}
            Some(origin) => key.columns.push((origin.column.clone(), *role)),
            None => key.is_open = true,
        }
    }
    key.columns.push((id.column.clone(), Role::Id));
    Some((id.table.clone(), key))
}

/// The key that `[check]` names.
#[must_use]
pub fn stated(of: Of, named: &NamedKey) -> (TableName, Key) {
    let table = match named.table.rsplit_once('.') {
        Some((schema, name)) => TableName { schema: schema.to_owned(), name: name.to_owned() },
        None => TableName { schema: String::new(), name: named.table.clone() },
    };
    let last = named.columns.len().saturating_sub(1);
    let role = |at| if at == last { Role::Id } else { Role::Scope };
    let columns = named.columns.iter().enumerate().map(|(at, name)| (name.clone(), role(at))).collect();
    (table, Key { of, columns, is_open: false, is_stated: true, has_reversals: false })
}

/// Words of names by which a table says whose a row is, or of what kind.
const SCOPE_WORDS: [&str; 29] = [
    "provider",
    "account",
    "mode",
    "livemode",
    "live",
    "tenant",
    "merchant",
    "source",
    "gateway",
    "psp",
    "processor",
    "environment",
    "env",
    "shop",
    "store",
    "endpoint",
    "organization",
    "organisation",
    "org",
    "company",
    "team",
    "connect",
    "service",
    "customer",
    "user",
    "owner",
    "payer",
    "client",
    "member",
];
const KIND_WORDS: [&str; 6] = ["kind", "type", "direction", "effect", "category", "operation"];

/// Whether a further column of an index may be a part of the scope (or the kind) that the statement does not show as
/// such.
#[must_use]
pub fn may_be_scope(key: &Key, column: &str) -> bool {
    let column = column.to_lowercase();
    let has = |words: &[&str]| column.split('_').any(|part| words.contains(&part));
    key.is_open && (has(&SCOPE_WORDS) || key.of == Of::Effect && has(&KIND_WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(table: &str, column: &str) -> Origin {
        let table = TableName { schema: String::new(), name: table.to_owned() };
        Origin { table, column: column.to_owned() }
    }

    #[test]
    fn a_statement_shows_its_key() {
        let mut origins = BTreeMap::from([
            ("provider".to_owned(), origin("events", "source")),
            ("account".to_owned(), origin("accounts", "id")),
            ("mode".to_owned(), origin("events", "mode")),
            ("event_id".to_owned(), origin("events", "external_id")),
        ]);
        let (table, key) = shown(Of::Event, &origins).unwrap();
        assert_eq!((&*table.name, key.names()), ("events", vec!["source", "mode", "external_id"]));
        assert!(key.is_open, "an account of another table");
        assert!(may_be_scope(&key, "account_id") && may_be_scope(&key, "customer_id"));
        assert!(!may_be_scope(&key, "received_at"));
        assert!(
            !may_be_scope(&key, "event_type") && !may_be_scope(&Key { is_open: false, ..key }, "account_id")
        );
        origins.remove("event_id");
        assert_eq!(shown(Of::Event, &origins), None);
    }

    #[test]
    fn a_setting_names_its_key() {
        let named = NamedKey {
            table: "shop.events".to_owned(),
            columns: vec!["source".to_owned(), "event_id".to_owned()],
        };
        let (table, key) = stated(Of::Event, &named);
        assert_eq!((&*table.schema, &*table.name), ("shop", "events"));
        assert_eq!(key.ids().collect::<Vec<_>>(), ["event_id"]);
    }
}
