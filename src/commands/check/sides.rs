//! The store, the inbox and the books: do they answer, do the statements keep their contract, and would the tables hold
//! what a correction relies on?

use super::judge::judge;
use super::keys::{Key, Of, shown, stated};
use super::left_out::left_out;
use super::lines::{Grade, Line};
use crate::commands::counted;
use crate::config::{NamedKey, Settings, Side, Unusable};
use crate::gather::table::Dbms;
use crate::gather::{Dialect, Facts, Look, Looked, Rows, TableName, Which};
use crate::provider::stripe;
use crate::store::{Access, NoStore, Store, shown_url};
use anyhow::Result;

/// recon's own tables, and the columns under which a row of each exists once.
const OWN: [(&str, Of, &[&str]); 3] = [
    ("inbox_event", Of::Event, &["provider", "account", "mode", "event_id"]),
    ("applied_event", Of::Event, &["provider", "account", "mode", "event_id"]),
    ("ledger_entry", Of::Effect, &["provider", "account", "mode", "effect_key"]),
];

/// Whether corrections rely on the keys of a side's own tables, so that a fault there is failing.
///
/// What `recon apply` books goes into recon's own ledger. Corrections of a team's own books are carried out by the
/// team's system from `plan.csv`, and events come to it again by the provider and by `recon replay --to`: all of that
/// goes through the keys of their tables. Where a target is chosen that writes there, nobody may be lenient.
fn is_relied_on(settings: &Settings, side: &Side) -> bool {
    match side {
        Side::Store => true,
        Side::Database(_) => !settings.check.is_lenient || settings.targets.reaches_their_tables(),
        Side::Absent => false,
    }
}

/// A line about an error: what cannot be used is failing, what did not answer may do so later.
pub(super) fn failed(check: &'static str, error: &anyhow::Error) -> Line {
    let unusable = error.chain().find_map(|cause| cause.downcast_ref::<Unusable>());
    let grade = if unusable.is_some() { Grade::Failing } else { Grade::Unreachable };
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let hint = unusable.map(|unusable| unusable.hint.as_str()).or_else(|| crate::gather::hint_of(error));
    Line::new(grade, check, chain.join(": ")).hinted(hint.unwrap_or_default())
}

/// Looks at recon's store; `true` where its tables are there.
pub(super) async fn store(settings: &Settings, lines: &mut Vec<Line>) -> bool {
    let place = shown_url(&settings.store_url);
    match Store::open(&settings.store_url, Access::ReadOnly).await {
        Ok(store) => store.close().await,
        Err(error) if error.chain().any(<dyn std::error::Error>::is::<NoStore>) => {
            lines.push(no_store(settings, &place));
            return false;
        }
        Err(error) => {
            let line = failed("store", &error);
            lines.push(if is_standing(&error) { Line { status: Grade::Failing, ..line } } else { line });
            return false;
        }
    }
    match own_tables(settings).await {
        Ok(found) if found.is_empty() => {
            let names = OWN.map(|(name, ..)| name).join(", ");
            lines.push(Line::new(Grade::Ok, "store", format!("{place}: the keys of {names} hold")));
        }
        Ok(found) => lines.extend(found),
        Err(error) => lines.push(failed("store", &error)),
    }
    true
}

/// Whether the store will say the same tomorrow: nobody gets in so (PostgreSQL's classes 28, 3D and 42, SQLite's 14 and
/// 26, <https://sqlite.org/rescode.html>), or it is no store.
fn is_standing(error: &anyhow::Error) -> bool {
    let of_database = error.chain().find_map(|cause| cause.downcast_ref::<sqlx::Error>());
    let Some(error) = of_database else { return true };
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default();
    matches!(&*code, "14" | "26") || code.len() == 5 && ["28", "3D", "42"].contains(&&code[..2])
}

/// A store that the first run makes: where it is a file, its folder must be there.
fn no_store(settings: &Settings, place: &str) -> Line {
    let path = settings.store_url.strip_prefix("sqlite:").map(std::path::Path::new);
    let folder = path.and_then(std::path::Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let says = format!("[store] url: there is no folder {} for it", folder.display());
        return Line::new(Grade::Failing, "store", says)
            .told("The first night cannot make its tables and ends at once. Nothing is compared.")
            .hinted("Make the folder, and let the user of the night write there.");
    }
    let says =
        format!("{place}: no tables yet; the first run makes them, and so do `recon serve` and `recon work`");
    Line::new(Grade::Ok, "store", says)
}

async fn own_tables(settings: &Settings) -> Result<Vec<Line>> {
    let Some(look) = Look::open(settings, Which::Store, dialect()).await? else { return Ok(Vec::new()) };
    let facts = look.facts().await?;
    let mut lines = Vec::new();
    for (table, of, columns) in OWN {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let named = NamedKey { table: table.to_owned(), columns };
        let (name, key) = stated(of, &named);
        match look.table(&name).await? {
            Some(table) => lines.extend(judge(&table, &key, &facts)),
            None => lines.push(no_table(&name, &key)),
        }
    }
    lines.retain(|line| line.status != Grade::Ok);
    Ok(lines)
}

const fn dialect() -> Dialect {
    Dialect::stripe(stripe::exponent)
}

/// Looks at the inbox or at the books.
pub(super) async fn side(settings: &Settings, which: Which, has_store: bool, lines: &mut Vec<Line>) {
    let (side, check) = match which {
        Which::Inbox => (&settings.inbox, "inbox"),
        Which::Local | Which::Store => (&settings.local.side, "books"),
    };
    match side {
        Side::Absent => {
            let says = "none (url = \"none\"), so that this side is not compared";
            lines.push(Line::new(Grade::Ok, check, says));
            return;
        }
        Side::Store if !has_store => {
            let says = "recon's own tables, which the first run makes";
            lines.push(Line::new(Grade::NotChecked, check, says).hinted(
                "Where your own tables are to be read, name their database; as it stands everything would be found missing.",
            ));
            return;
        }
        Side::Store | Side::Database(_) => {}
    }
    if let Err(error) = look_at(settings, which, side, check, lines).await {
        lines.push(failed(check, &error));
    }
}

async fn look_at(
    settings: &Settings,
    which: Which,
    side: &Side,
    check: &'static str,
    lines: &mut Vec<Line>,
) -> Result<()> {
    let Some(look) = Look::open(settings, which, dialect()).await? else { return Ok(()) };
    let facts = look.facts().await?;
    let files = match which {
        Which::Inbox => &settings.file_tables.inbox,
        Which::Local | Which::Store => &settings.file_tables.local,
    };
    if files.is_empty() {
        let says = format!("{} {} at {}", facts.dbms.as_str(), facts.version, look.place());
        lines.push(Line::new(Grade::Ok, check, says));
        lines.push(isolation(check, &facts));
    } else {
        lines.push(Line::new(
            Grade::Ok,
            check,
            format!(
                "read from files: {}",
                counted(files.len() as u64, "path or pattern", "paths or patterns")
            ),
        ));
    }
    let looked = look.statements().await;
    lines.extend(looked.iter().flat_map(statement));
    if which == Which::Local && *side != Side::Store {
        lines.extend(match look.left_out().await {
            Ok(words) => left_out(words.as_deref()),
            Err(error) => vec![failed("left_out", &error)],
        });
    }
    if files.is_empty() && *side != Side::Store {
        let mut found = keys(settings, which, &look, &looked, &facts).await?;
        if !is_relied_on(settings, side) {
            found.iter_mut().for_each(lenient);
        }
        lines.extend(found);
    }
    Ok(())
}

/// A fault that nothing relies on is told.
fn lenient(line: &mut Line) {
    if line.status == Grade::Failing && line.check != "key_unknown" {
        line.status = Grade::Warning;
    }
}

/// How others write there while a run reads.
fn isolation(check: &str, facts: &Facts) -> Line {
    if facts.dbms == Dbms::Sqlite {
        let says = format!("{check}: the journal of its file is {}", facts.journal);
        if facts.journal == "wal" {
            return Line::new(Grade::Ok, "isolation", says);
        }
        return Line::new(Grade::Warning, "isolation", says)
            .told(
                "While a run reads, whoever writes waits, and after its busy timeout fails with \"database is locked\". \
                 A handler that answers 200 all the same has lost the event.",
            )
            .hinted("With a write-ahead log both go on at once; it stays on.")
            .fixed_by(vec!["pragma journal_mode = wal".to_owned()]);
    }
    let says = format!("{check}: transactions there are {} by default", facts.isolation);
    if facts.isolation == "read uncommitted" {
        return Line::new(Grade::Warning, "isolation", says)
            .told(
                "A handler that looks for the event before it books sees one that is undone a moment later, and answers \
                 200 without booking. The provider does not try again.",
            )
            .hinted("Set `read committed` or more for the handlers' sessions.");
    }
    Line::new(Grade::Ok, "isolation", says)
}

fn statement(looked: &Looked) -> Vec<Line> {
    let file = looked.file;
    let rows = match &looked.found {
        Err(error) => return vec![failed("statement", error)],
        Ok((_, rows)) => rows,
    };
    let good =
        Line::new(Grade::Ok, "statement", format!("{file}: the database takes it, and it gives its columns"));
    let rows = match rows {
        Rows::Read(0) => {
            let says = format!("{file}: it gave no row, so that no value could be looked at");
            Line::new(Grade::NotChecked, "rows", says).hinted("Look again once there is one.")
        }
        Rows::Read(count) => {
            let rows = counted(*count as u64, "row is as it should be", "rows are as they should be");
            Line::new(Grade::Ok, "rows", format!("{file}: {rows}"))
        }
        Rows::Failed(error) => {
            let line = failed("rows", error);
            // The database is there: it was asked for the columns a moment ago.
            if line.status == Grade::Unreachable { Line { status: Grade::NotChecked, ..line } } else { line }
        }
    };
    vec![good, rows]
}

async fn keys(
    settings: &Settings,
    which: Which,
    look: &Look<'_>,
    looked: &[Looked],
    facts: &Facts,
) -> Result<Vec<Line>> {
    let (of, named) = match which {
        Which::Inbox => (Of::Event, &settings.check.event_key),
        Which::Local | Which::Store => (Of::Effect, &settings.check.effect_key),
    };
    let mut tables: Vec<(TableName, Key)> = named.iter().map(|named| stated(of, named)).collect();
    if tables.is_empty() {
        let found = looked.iter().find(|looked| looked.file == of.file()).map(|looked| &looked.found);
        // What is wrong with the statement is told already.
        let Some(Ok((selects, _))) = found else { return Ok(Vec::new()) };
        for origins in selects {
            let Some(found) = shown(of, origins) else { return Ok(vec![not_shown(of)]) };
            // Several selects may read one table.
            if !tables.contains(&found) {
                tables.push(found);
            }
        }
    }
    let mut lines = Vec::new();
    for (name, key) in &tables {
        match look.table(name).await? {
            Some(found) => lines.extend(judge(&found, key, facts)),
            None => lines.push(no_table(name, key)),
        }
    }
    Ok(lines)
}

/// The database does not say where the id comes from: an expression, several selects, a select in the `from`.
fn not_shown(of: Of) -> Line {
    let says = format!("{}: the database does not tell which table its id comes from", of.file());
    let hint = format!(
        "Name the table and the columns that make a row unique, the id last, with your own names as in {}; for several tables \
         a list of such texts",
        of.example()
    );
    Line::new(Grade::NotChecked, of.setting(), says).hinted(hint)
}

fn no_table(name: &TableName, key: &Key) -> Line {
    let shown =
        if name.schema.is_empty() { name.name.clone() } else { format!("{}.{}", name.schema, name.name) };
    let says = format!("there is no table {shown}, or this user may not see it");
    if key.is_stated {
        let says = format!("[check] {}: {says}", key.of.setting());
        return Line::new(Grade::Failing, "key_unknown", says)
            .hinted("Names stand as the database has them.");
    }
    Line::new(Grade::NotChecked, key.of.setting(), format!("{}: {says}", key.of.file()))
        .hinted(format!("Name the table that is inserted into: {}", key.of.example()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_may_do_meanwhile_is_told() {
        let facts = |dbms, isolation: &str, journal: &str| Facts {
            dbms,
            version: String::new(),
            isolation: isolation.to_owned(),
            journal: journal.to_owned(),
            refuses_long_texts: true,
        };
        for (facts, expected) in [
            (facts(Dbms::MySql, "read uncommitted", ""), Grade::Warning),
            (facts(Dbms::MySql, "read committed", ""), Grade::Ok),
            (facts(Dbms::Sqlite, "serializable", "delete"), Grade::Warning),
            (facts(Dbms::Sqlite, "serializable", "wal"), Grade::Ok),
        ] {
            assert_eq!(isolation("inbox", &facts).status, expected, "{facts:?}");
        }
    }
}
