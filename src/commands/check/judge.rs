//! What a described table says of its key: the lines of `recon check` about it. Pure.

use super::faults::{Fault, ID_CHARS_MAX, ID_CHARS_SEEN, left_out, merging, nearest};
use super::fixes;
use super::keys::{Key, Of};
use super::lines::{Grade, Line};
use super::stories::tell;
use crate::gather::Facts;
use crate::gather::table::{Dbms, Holds, Index, Relation, Table, TableColumn};

/// Judges a table as the place where an event or an effect exists once.
#[must_use]
pub fn judge(table: &Table, key: &Key, facts: &Facts) -> Vec<Line> {
    let check = key.of.setting();
    if table.relation == Relation::Other {
        let says = format!("{}: {table} is no table, so it has no key of its own", key.of.file());
        let hint = format!("name the table that is inserted into: {}", key.of.example());
        return vec![Line::new(Grade::NotChecked, check, says).hinted(hint)];
    }
    let unknown: Vec<&str> = key.names().into_iter().filter(|name| table.column(name).is_none()).collect();
    if !unknown.is_empty() {
        let says = format!("[check] {check}: {table} has no column {}", unknown.join(", "));
        let known: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let line = Line::new(Grade::Failing, "key_unknown", says);
        return vec![line.hinted(format!("its columns are {}", known.join(", ")))];
    }
    let (index, mut faults) = nearest(table, key);
    // On SQLite a table is made again from what it was before: an index is made after that.
    faults.sort_by_key(|fault| fixes::change(table, fault).is_none());
    let mut lines: Vec<Line> = faults.iter().map(|fault| of_fault(table, key, index, fault)).collect();
    make_again(table, key, &faults, &mut lines);
    for (other, fault) in merging(table, key, index) {
        // The same column, found by both indexes, is put right once.
        if faults.contains(&fault) {
            continue;
        }
        let mut line = of_fault(table, key, Some(other), &fault);
        if fault == Fault::Expression {
            // What it makes alike is not known, and `on conflict` has another one to go by.
            line.status = Grade::Warning;
            line.fix = fixes::dropped(table, other);
        }
        lines.push(line);
    }
    lines.extend(index.and_then(|index| narrow(table, key, index)));
    for id in key.ids() {
        lines.extend(table.column(id).into_iter().flat_map(|column| of_id(table, column, facts)));
    }
    lines.extend(of_table(table));
    let is_sound = lines.iter().all(|line| line.status <= Grade::Warning);
    if let Some(index) = index.filter(|_| is_sound) {
        let columns: Vec<&str> = index.columns().collect();
        let says = format!("{table}: ({}) is unique by {}", columns.join(", "), index.name);
        lines.insert(0, Line::new(Grade::Ok, check, says));
    }
    lines
}

/// Gives the statements for all that takes making the table again to the first of those lines.
fn make_again(table: &Table, key: &Key, faults: &[Fault], lines: &mut [Line]) {
    let statements = fixes::made_again(table, key, faults);
    let changing = faults.iter().zip(lines).filter(|(fault, _)| fixes::change(table, fault).is_some());
    for (number, (_, line)) in changing.enumerate() {
        if statements.is_empty() {
            "SQLite changes no column: make the table again (https://sqlite.org/lang_altertable.html#otheralter)."
                .clone_into(&mut line.hint);
        } else if number == 0 {
            line.fix.clone_from(&statements);
        } else {
            "The statements of the line above put this right as well.".clone_into(&mut line.hint);
        }
    }
}

fn of_fault(table: &Table, key: &Key, index: Option<&Index>, fault: &Fault) -> Line {
    let name = index.map_or("", |index| index.name.as_str());
    let told = tell(table, key, name, fault);
    let grade = match fault {
        Fault::IgnoresBlanks(..) => Grade::Warning,
        Fault::PerhapsTooWide(_) | Fault::OtherKey(..) => Grade::NotChecked,
        _ => Grade::Failing,
    };
    let mut line = Line::new(grade, told.check, told.says).told(told.story);
    line.fix = fixes::fix(table, key, index, fault);
    let is_new_index = matches!(
        fault,
        Fault::NoKey | Fault::Condition(_) | Fault::Expression | Fault::TooWide(_) | Fault::Invalid
    );
    if is_new_index && !line.fix.is_empty() {
        line.first = fixes::doubled(table, key);
    }
    if let Fault::Nullable(column) = fault {
        line.first = fixes::nulls(table, key, column);
    }
    line.hint = hint(table, key, index, fault, line.fix.is_empty());
    line
}

fn hint(table: &Table, key: &Key, index: Option<&Index>, fault: &Fault, is_by_hand: bool) -> String {
    let setting = key.of.setting();
    let other_key = || {
        format!(
            "If something else keeps them apart, say what: [check] {setting} = \"{table} (column, column)\", the id last."
        )
    };
    match fault {
        Fault::OtherKey(_, columns) => format!(
            "If that is what keeps it single: [check] {setting} = \"{table} ({})\", the id last.",
            columns.join(", ")
        ),
        _ if is_by_hand && key.has_reversals => format!(
            "Rows that undo others have the same object, so that its columns cannot be unique. Give each row a text of \
             its own, as `credit:ch_1` and `reverse:` with the id of the row that it undoes, make that unique, and name \
             it: [check] {setting} = \"{table} (effect_key)\"."
        ),
        Fault::PerhapsTooWide(_) => {
            let columns: Vec<&str> = index.into_iter().flat_map(Index::columns).collect();
            format!("If it does: [check] {setting} = \"{table} ({})\", the id last.", columns.join(", "))
        }
        _ if is_by_hand && table.relation == Relation::Partitioned => {
            "A unique index of a partitioned table must have the columns of its partitions: keep the keys in a table of \
             their own, written in the same transaction, and name it in [check]."
                .to_owned()
        }
        Fault::NoKey | Fault::TooWide(_) if !key.is_stated => other_key(),
        _ => String::new(),
    }
}

fn narrow(table: &Table, key: &Key, index: &Index) -> Option<Line> {
    let left_out = left_out(key, index);
    if left_out.is_empty() {
        return None;
    }
    let list = left_out.join(", ");
    let says = format!("{table}: the unique index {} leaves out {list}", index.name);
    let story = format!(
        "An id that comes again with another {list} is taken for a repetition and dropped. {}",
        match key.of {
            Of::Event => {
                "A test event that the provider's dashboard sends with one id for everybody keeps a live one out so."
            }
            Of::Effect => "A refund that is booked on the id of its charge never gets in so.",
        }
    );
    Some(Line::new(Grade::Warning, "key_too_narrow", says).told(story))
}

fn of_id(table: &Table, column: &TableColumn, facts: &Facts) -> Vec<Line> {
    let name = &column.name;
    let mut lines = Vec::new();
    if !fixes::is_text(column) {
        let says = format!("{table}: {name} is {}, and ids are texts", column.type_name);
        let story = if table.dbms == Dbms::Sqlite {
            "An id of digits becomes a number here: 007 and 7 are one, and the second is dropped. An id with more than \
             18 digits loses its last ones."
        } else {
            "An id such as evt_1 does not fit, and the insert fails: the provider tries for days and then gives up. \
             Where the database takes it all the same it becomes 0, and every event is the same one."
        };
        // Another provider's ids may well be numbers.
        let grade = if table.dbms == Dbms::Sqlite { Grade::Warning } else { Grade::Failing };
        lines.push(Line::new(grade, "id_not_text", says).told(story).fixed_by(fixes::widened(table, name)));
        return lines;
    }
    let (Holds::Text(Some(length)) | Holds::Bytes(Some(length))) = column.holds else { return lines };
    if length >= ID_CHARS_MAX {
        return lines;
    }
    let says = format!("{table}: {name} holds {length} characters, and an id may have {ID_CHARS_MAX}");
    let fix = fixes::widened(table, name);
    if !facts.refuses_long_texts {
        let story = "The server cuts what is too long (its sql_mode is not strict): two long ids become the same short \
            one, and the second is taken for a repetition and dropped. Nobody hears of that payment.";
        lines.push(Line::new(Grade::Failing, "long_ids_are_cut", says).told(story).fixed_by(fix));
    } else if length < ID_CHARS_SEEN {
        let story = "The insert of a longer id fails (a Checkout session's has 66 characters), so the delivery is \
            answered 500 and comes again for days. Then the provider gives up, and the payment is never booked.";
        lines.push(Line::new(Grade::Failing, "id_too_short", says).told(story).fixed_by(fix));
    } else {
        let story = "Ids that are in use fit. When a provider makes longer ones, their inserts fail and those payments \
            are not booked.";
        lines.push(Line::new(Grade::Warning, "id_too_short", says).told(story).fixed_by(fix));
    }
    lines
}

fn of_table(table: &Table) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(engine) = &table.unsafe_engine {
        let says = format!("{table}: its engine {engine} knows no transactions");
        let story = "The event's row is written, the booking beside it fails, and nothing takes the row back. The retry \
            is then taken for a repetition, and the payment is never booked.";
        lines.push(
            Line::new(Grade::Failing, "no_transactions", says)
                .told(story)
                .fixed_by(fixes::with_transactions(table)),
        );
    }
    if table.is_unlogged {
        let says = format!("{table}: it is unlogged, and a crash empties it");
        let story = "After a crash no event was ever seen: what the provider delivers again is new and is booked a \
            second time. So is every replay.";
        lines.push(
            Line::new(Grade::Failing, "emptied_by_crash", says).told(story).fixed_by(fixes::logged(table)),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::keys::Role;
    use crate::gather::table::Comparison;

    fn column(name: &str, type_name: &str, holds: Holds) -> TableColumn {
        TableColumn {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            holds,
            is_nullable: false,
            comparison: Comparison::Exact,
            default: None,
        }
    }

    fn table(dbms: Dbms, id: TableColumn) -> Table {
        Table {
            dbms,
            schema: String::new(),
            name: "payments".to_owned(),
            relation: Relation::Table,
            unsafe_engine: None,
            is_unlogged: false,
            columns: vec![column("kind", "text", Holds::Text(None)), id],
            indexes: vec![Index::plain("k", &["charge_id", "kind"])],
            made_by: Vec::new(),
        }
    }

    fn key() -> Key {
        let columns = vec![("kind".to_owned(), Role::Kind), ("charge_id".to_owned(), Role::Id)];
        Key { of: Of::Effect, columns, is_open: false, is_stated: false, has_reversals: false }
    }

    fn facts(dbms: Dbms, refuses_long_texts: bool) -> Facts {
        let isolation = String::new();
        Facts { dbms, version: String::new(), isolation, refuses_long_texts, journal: String::new() }
    }

    fn said(dbms: Dbms, id: TableColumn, is_strict: bool) -> Vec<(Grade, &'static str)> {
        let lines = judge(&table(dbms, id), &key(), &facts(dbms, is_strict));
        lines.iter().map(|line| (line.status, line.check)).collect()
    }

    #[test]
    fn an_id_is_long_enough_or_told() {
        let id = |length| column("charge_id", "varchar", Holds::Text(Some(length)));
        let ok = (Grade::Ok, "effect_key");
        assert_eq!(said(Dbms::Postgres, id(255), true), [ok]);
        assert_eq!(said(Dbms::Postgres, id(254), true), [ok, (Grade::Warning, "id_too_short")]);
        assert_eq!(said(Dbms::Postgres, id(70), true), [ok, (Grade::Warning, "id_too_short")]);
        assert_eq!(said(Dbms::Postgres, id(69), true), [(Grade::Failing, "id_too_short")]);
        assert_eq!(said(Dbms::MySql, id(254), false), [(Grade::Failing, "long_ids_are_cut")]);
        let number = || column("charge_id", "bigint", Holds::Number);
        assert_eq!(said(Dbms::Postgres, number(), true), [(Grade::Failing, "id_not_text")]);
        assert_eq!(said(Dbms::Sqlite, number(), true), [ok, (Grade::Warning, "id_not_text")]);
    }

    #[test]
    fn the_kind_may_be_missing_from_an_index_and_is_told() {
        let mut table = table(Dbms::Postgres, column("charge_id", "text", Holds::Text(None)));
        table.indexes = vec![Index::plain("k", &["charge_id"])];
        let lines = judge(&table, &key(), &facts(Dbms::Postgres, true));
        assert_eq!((lines[0].status, lines[1].check), (Grade::Ok, "key_too_narrow"));
    }

    #[test]
    fn rows_that_undo_others_are_never_kept_out_by_what_is_printed() {
        let mut table = table(Dbms::Postgres, column("charge_id", "text", Holds::Text(None)));
        table.indexes.clear();
        let key = Key { has_reversals: true, ..key() };
        let lines = judge(&table, &key, &facts(Dbms::Postgres, true));
        assert_eq!((lines.len(), lines[0].check, lines[0].fix.len()), (1, "no_key", 0));
        assert!(
            lines[0].hint.contains("[check] effect_key = \"payments (effect_key)\""),
            "{}",
            lines[0].hint
        );
        assert!(lines[0].first.is_empty());
        // They have such a column already.
        table.indexes.push(Index::plain("u", &["effect_key"]));
        let lines = judge(&table, &key, &facts(Dbms::Postgres, true));
        assert_eq!((lines.len(), lines[0].check, lines[0].status), (1, "effect_key", Grade::NotChecked));
        assert!(
            lines[0].hint.contains("[check] effect_key = \"payments (effect_key)\""),
            "{}",
            lines[0].hint
        );
    }
}
