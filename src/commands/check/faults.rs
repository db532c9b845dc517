//! What keeps a unique index from being the guarantee that an event or an effect exists once. Pure.

use super::keys::{Key, Role, may_be_scope};
use crate::gather::table::{Comparison, Holds, Index, IndexPart, Table, TableColumn};
use std::collections::BTreeSet;

/// The longest id of a provider (Stripe's "can contain up to 255 characters", <https://docs.stripe.com/upgrades>).
pub const ID_CHARS_MAX: u32 = 255;
/// Ids that are out there: a Checkout session's has 66.
pub const ID_CHARS_SEEN: u32 = 70;

/// One thing that is wrong with an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    NoKey,
    /// There is none, and another one may be what keeps rows single: its name and columns.
    OtherKey(String, Vec<String>),
    /// It covers only some rows.
    Condition(String),
    /// It was never finished.
    Invalid,
    /// It is checked at the end of a transaction.
    Deferrable,
    /// It is made of an expression.
    Expression,
    /// It has columns that are no part of the key.
    TooWide(Vec<String>),
    /// It has columns of which nobody said whether they are a part of the key.
    PerhapsTooWide(Vec<String>),
    /// A column of it may be null.
    Nullable(String),
    /// Only the beginning of a column is compared.
    Prefix(String, u32),
    /// Different ids are the same to it; what does that.
    Folds(String, String),
    /// Blanks at the end do not count; what does that.
    IgnoresBlanks(String, String),
}

impl Fault {
    /// How bad it is: 0 for what happens to no id that is out there.
    #[must_use]
    pub const fn weight(&self) -> u32 {
        match self {
            Self::IgnoresBlanks(..) => 0,
            Self::PerhapsTooWide(_) | Self::OtherKey(..) => 1,
            Self::NoKey => 100,
            _ => 10,
        }
    }
}

/// What is wrong with an index as the guarantee of a key.
#[must_use]
pub fn faults(table: &Table, key: &Key, index: &Index) -> Vec<Fault> {
    let mut found = Vec::new();
    found.extend(index.condition.clone().map(Fault::Condition));
    if !index.is_valid {
        found.push(Fault::Invalid);
    }
    if index.is_deferrable {
        found.push(Fault::Deferrable);
    }
    if index.expression.is_some() {
        found.push(Fault::Expression);
    }
    let further = || index.columns().filter(|column| !key.has(column)).map(str::to_owned);
    let (perhaps, wide): (Vec<_>, Vec<_>) = further().partition(|column| may_be_scope(key, column));
    if !wide.is_empty() {
        found.push(Fault::TooWide(wide));
    } else if !perhaps.is_empty() {
        found.push(Fault::PerhapsTooWide(perhaps));
    }
    found.extend(index.parts.iter().flat_map(|part| of_part(table, key, index, part)));
    found
}

fn of_part(table: &Table, key: &Key, index: &Index, part: &IndexPart) -> Vec<Fault> {
    let is_part = |name: &&str| key.has(name) || may_be_scope(key, name);
    let Some(name) = part.column.as_deref().filter(is_part) else { return Vec::new() };
    let Some(column) = table.column(name) else { return Vec::new() };
    let mut found = Vec::new();
    if column.is_nullable && !index.are_nulls_alike {
        found.push(Fault::Nullable(name.to_owned()));
    }
    let is_id = key.ids().any(|id| id.eq_ignore_ascii_case(name));
    if is_id {
        found.extend(part.prefix.map(|length| Fault::Prefix(name.to_owned(), length)));
        // An exact index does not help a handler that looks first: that compares as the column does.
        let by_index = of_comparison(column, &part.comparison);
        found.extend(by_index.or_else(|| of_comparison(column, &column.comparison)));
    }
    found
}

fn of_comparison(column: &TableColumn, comparison: &Comparison) -> Option<Fault> {
    let is_text = matches!(column.holds, Holds::Text(_) | Holds::Other | Holds::Bytes(_));
    match comparison {
        Comparison::Folded(by) if is_text => Some(Fault::Folds(column.name.clone(), by.clone())),
        Comparison::Padded(by) if is_text => Some(Fault::IgnoresBlanks(column.name.clone(), by.clone())),
        _ => None,
    }
}

/// The index that comes nearest to the guarantee, and what is wrong with it; without any index what would be wrong with
/// one over the columns as they are.
#[must_use]
pub fn nearest<'a>(table: &'a Table, key: &Key) -> (Option<&'a Index>, Vec<Fault>) {
    let is_candidate = |index: &&Index| {
        let has =
            |id: &str| index.columns().any(|column| column.eq_ignore_ascii_case(id)) || index.mentions(id);
        key.ids().all(has)
    };
    let judged = table.indexes.iter().filter(is_candidate).map(|index| (index, faults(table, key, index)));
    let weight = |faults: &[Fault]| faults.iter().map(Fault::weight).sum::<u32>();
    let best = judged.min_by_key(|(index, faults)| (weight(faults), index.parts.len()));
    if let Some((index, faults)) = best {
        return (Some(index), faults);
    }
    if let Some(index) = other_key(table, key) {
        let columns = index.columns().map(str::to_owned).collect();
        return (None, vec![Fault::OtherKey(index.name.clone(), columns)]);
    }
    if key.has_reversals {
        // Another column will be the key.
        return (None, vec![Fault::NoKey]);
    }
    let part = |(name, _): &(String, Role)| IndexPart {
        column: Some(name.clone()),
        prefix: None,
        comparison: table.column(name).map(|column| column.comparison.clone()).unwrap_or_default(),
    };
    let wanted = Index { parts: key.columns.iter().map(part).collect(), ..Index::plain("", &[]) };
    let mut found = vec![Fault::NoKey];
    found.extend(faults(table, key, &wanted));
    (None, found)
}

/// A unique index whose name for its column says that it is there to keep rows single, as `effect_key` does.
fn other_key<'a>(table: &'a Table, key: &Key) -> Option<&'a Index> {
    const WORDS: [&str; 7] = ["key", "effect", "idempotency", "idempotent", "dedup", "dedupe", "fingerprint"];
    let is_named = |column: &str| column.to_lowercase().split('_').any(|part| WORDS.contains(&part));
    let is_whole = |index: &&Index| index.condition.is_none() && index.is_valid && index.expression.is_none();
    let found = table.indexes.iter().filter(is_whole).find(|index| index.columns().any(is_named));
    found.filter(|_| !key.is_stated)
}

/// Other unique indexes that take two different keys for one, or that no `on conflict` can pass by (PostgreSQL takes all
/// indexes over the named columns, and refuses a deferrable one among them), however good the chosen one is.
#[must_use]
pub fn merging<'a>(table: &'a Table, key: &Key, chosen: Option<&Index>) -> Vec<(&'a Index, Fault)> {
    let mut found = Vec::new();
    for index in table.indexes.iter().filter(|index| chosen.is_none_or(|chosen| chosen.name != index.name)) {
        if !index.columns().all(|column| key.has(column)) {
            continue;
        }
        if index.expression.is_some() {
            // What it makes of other columns is nobody's business here.
            let fault = key.ids().any(|id| index.mentions(id)).then_some(Fault::Expression);
            found.extend(fault.map(|fault| (index, fault)));
            continue;
        }
        let is_twin = chosen.is_some_and(|chosen| {
            let sorted = |index: &Index| index.columns().map(str::to_lowercase).collect::<BTreeSet<_>>();
            sorted(chosen) == sorted(index)
        });
        let does_harm = |fault: &Fault| match fault {
            Fault::Folds(..) | Fault::Prefix(..) => true,
            Fault::Deferrable => is_twin,
            _ => false,
        };
        found.extend(faults(table, key, index).into_iter().find(does_harm).map(|fault| (index, fault)));
    }
    found
}

/// Columns of the scope, and the kind, that the table has and the index leaves out.
#[must_use]
pub fn left_out<'a>(key: &'a Key, index: &Index) -> Vec<&'a str> {
    let is_missing = |(name, role): &&(String, Role)| {
        *role != Role::Id && !index.columns().any(|column| column.eq_ignore_ascii_case(name))
    };
    key.columns.iter().filter(is_missing).map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::keys::Of;
    use crate::gather::table::{Dbms, Relation};

    fn column(name: &str) -> TableColumn {
        TableColumn {
            name: name.to_owned(),
            type_name: "text".to_owned(),
            holds: Holds::Text(None),
            is_nullable: false,
            comparison: Comparison::Exact,
            default: None,
        }
    }

    fn table(indexes: Vec<Index>) -> Table {
        Table {
            dbms: Dbms::Postgres,
            schema: "public".to_owned(),
            name: "events".to_owned(),
            relation: Relation::Table,
            unsafe_engine: None,
            is_unlogged: false,
            columns: ["provider", "event_id", "received_at"].map(column).into(),
            indexes,
            made_by: Vec::new(),
        }
    }

    fn key(is_open: bool) -> Key {
        let columns = vec![("provider".to_owned(), Role::Scope), ("event_id".to_owned(), Role::Id)];
        Key { of: Of::Event, columns, is_open, is_stated: false, has_reversals: false }
    }

    fn judged(index: Index) -> Vec<Fault> {
        nearest(&table(vec![index]), &key(true)).1
    }

    #[test]
    fn a_full_key_is_no_fault_in_any_order_and_without_the_scope() {
        for columns in
            [&["provider", "event_id"][..], &["event_id", "provider"], &["event_id"], &["EVENT_ID"]]
        {
            assert_eq!(judged(Index::plain("k", columns)), [], "{columns:?}");
        }
        assert_eq!(left_out(&key(true), &Index::plain("k", &["event_id"])), ["provider"]);
    }

    #[test]
    fn each_fault_is_named_alone() {
        let plain = || Index::plain("k", &["provider", "event_id"]);
        let wide = |columns| judged(Index::plain("k", columns));
        assert_eq!(nearest(&table(vec![]), &key(true)).1, [Fault::NoKey]);
        assert_eq!(wide(&["provider"]), [Fault::NoKey], "it says nothing of events");
        let other = Fault::OtherKey("k".to_owned(), vec!["dedup_key".to_owned()]);
        assert_eq!(wide(&["dedup_key"]), [other], "it may be made of the event's id");
        assert_eq!(wide(&["event_id", "received_at"]), [Fault::TooWide(vec!["received_at".to_owned()])]);
        assert_eq!(wide(&["event_id", "tenant_id"]), [Fault::PerhapsTooWide(vec!["tenant_id".to_owned()])]);
        assert_eq!(judged(Index { is_valid: false, ..plain() }), [Fault::Invalid]);
        assert_eq!(judged(Index { is_deferrable: true, ..plain() }), [Fault::Deferrable]);
        let some = Some("x".to_owned());
        assert_eq!(judged(Index { condition: some, ..plain() }), [Fault::Condition("x".to_owned())]);
        let mut index = plain();
        index.parts[1].prefix = Some(20);
        assert_eq!(judged(index), [Fault::Prefix("event_id".to_owned(), 20)]);
        let mut index = plain();
        index.parts[1].comparison = Comparison::Folded("x".to_owned());
        assert_eq!(judged(index.clone()), [Fault::Folds("event_id".to_owned(), "x".to_owned())]);
        let expression = Some("create unique index e on events (lower(event_id))".to_owned());
        let lower = Index { expression, parts: Vec::new(), ..plain() };
        assert_eq!(nearest(&table(vec![lower.clone()]), &key(true)).1, [Fault::Expression]);
        let beside = table(vec![plain(), Index { name: "z".to_owned(), ..lower }]);
        assert_eq!(merging(&beside, &key(true), Some(&beside.indexes[0])).len(), 1);
        // Beside a good one it still keeps an event out.
        let table = table(vec![plain(), Index { name: "z".to_owned(), ..index }]);
        let (chosen, found) = nearest(&table, &key(false));
        assert_eq!((chosen.unwrap().name.as_str(), found), ("k", vec![]));
        assert_eq!(merging(&table, &key(false), chosen).len(), 1);
    }

    #[test]
    fn null_is_no_key_unless_nulls_are_alike() {
        let mut table = table(vec![Index::plain("k", &["provider", "event_id"])]);
        table.columns[0].is_nullable = true;
        assert_eq!(nearest(&table, &key(false)).1, [Fault::Nullable("provider".to_owned())]);
        table.indexes[0].are_nulls_alike = true;
        assert_eq!(nearest(&table, &key(false)).1, []);
        table.indexes.clear();
        let expected = [Fault::NoKey, Fault::Nullable("provider".to_owned())];
        assert_eq!(nearest(&table, &key(false)).1, expected, "what the new index would have");
    }
}
