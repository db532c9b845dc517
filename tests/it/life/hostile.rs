//! Names, reasons and ids that mean harm: to a terminal, to a spreadsheet, to the list.

use super::{by, ends, execute, rows, run};
use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};

#[tokio::test(flavor = "multi_thread")]
async fn c56_what_a_person_typed_is_no_formula_in_a_spreadsheet() {
    let stage = Stage::new(9, 160, &Mix::only(Fault::AmountOther), Faults::default()).await;
    ends(&run(&stage, 0), 1);
    let id = rows(&stage)[0][0].to_owned();
    ends(&by(&stage, "ana", 1, &["findings", "assign", &id, "--to", "=1+1"]), 0);
    let reason = "--reason==HYPERLINK(\"http://x\")";
    ends(&by(&stage, "=ana", 1, &["findings", "accept", &id, "--until", "2030-01-01", reason]), 0);
    let arguments = stage.run_arguments(&["--spreadsheet"]);
    ends(&by(&stage, "", 2, &arguments.iter().map(String::as_str).collect::<Vec<_>>()), 0);
    let row = &rows(&stage)[0];
    assert_eq!(&row[20], "'=1+1", "guarded");
    assert!(row[22].starts_with("accepted by =ana until 2030-01-02T00:00:00+00:00: =HYPERLINK("), "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_no_list_can_show_are_refused_and_nothing_is_kept() {
    let stage = Stage::new(9, 160, &Mix::only(Fault::AmountOther), Faults::default()).await;
    ends(&run(&stage, 0), 1);
    let id = rows(&stage)[0][0].to_owned();
    let long = "x".repeat(2_000);
    let until = "2030-01-01";
    let accept = |reason: &'static str, name: &'static str| {
        vec!["findings", "accept", "ID", "--until", until, "--reason", reason, "--by", name]
    };
    let refused: Vec<(Vec<&str>, &str)> = vec![
        (accept("", "ana"), "--reason is empty"),
        (accept(" \n\t", "ana"), "--reason is empty"),
        (accept("a\u{1b}[31mb", "ana"), "cannot be shown"),
        (accept("a\u{202e}b", "ana"), "cannot be shown"),
        (accept("why", "an\na"), "cannot be shown"),
        (accept("why", " "), "--by is empty"),
        (
            vec!["findings", "accept", "ID", "--until", until, "--reason", &long, "--by", "a"],
            "longer than 1000",
        ),
        (vec!["findings", "accept", "ID", "--until", until, "--reason", "why"], "nobody's name is known"),
        (vec!["findings", "accept", "ID", "--reason", "why", "--by", "a"], "--until"),
        (
            vec!["findings", "accept", "ID", "--until", "2020-01-01", "--reason", "w", "--by", "a"],
            "over already",
        ),
        (vec!["findings", "accept", "ID", "--until", "soon", "--reason", "w", "--by", "a"], "--until"),
        (vec!["findings", "close", "ID", "--by", "a", "--unconfirmed"], "--reason"),
        (vec!["findings", "assign", "ID", "--to", &long], "longer than 100"),
        (vec!["findings", "assign", "ID", "--to", "\u{7}"], "cannot be shown"),
        (vec!["findings", "assign", "ID", "ffffffffff", "--to", "bo"], "no run of this store has a finding"),
        (vec!["findings", "show", "1' or '1'='1"], "no run of this store has a finding"),
        (vec!["findings", "show", "%"], "no run of this store has a finding"),
        (vec!["findings", "show", "\u{1b}[2J"], "no run of this store has a finding"),
        (vec!["show", "ch_'; drop table finding; --"], "no run of this store has a finding on"),
        (vec!["show", &long], "no run of this store has a finding on"),
        (vec!["findings", "list", "--kind", "missed"], "is no kind of finding"),
        (vec!["findings", "list", "--status", "gone"], "must be one of new, open"),
        (vec!["findings", "list", "--older-than=-1d"], "--older-than"),
    ];
    for (words, told) in refused {
        let words: Vec<&str> = words.iter().map(|word| if *word == "ID" { &*id } else { word }).collect();
        let ended = by(&stage, "", 1, &words);
        ends(&ended, 78);
        assert!(ended.stderr.contains(told), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.errors().len(), 1, "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout.lines().last(), Some("outcome=config findings=0"));
        let steers = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        assert!(!steers(&ended.stdout) && !steers(&ended.stderr), "{words:?}: {:?}", ended.stderr);
    }
    assert_eq!(stage.ask("select cast(count(*) as text) from finding_action").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_the_books_cannot_steer_whoever_lists_it() {
    let stage = Stage::new(6, 160, &Mix(Vec::new()), Faults::default()).await;
    let sql = "insert into ledger_entry select 'x|1', provider, account, mode, 'long', 'ch_' || $1, kind, \
        amount_minor, currency, occurred_at_us, applied_at_us, '', '', '', 'by hand' from ledger_entry \
        where kind = 'credit' limit 1";
    let store = stage.store().await;
    let id = "\u{1b}[31m\u{202e}|,\"=1";
    sqlx::query(sql).bind(id).execute(store.pool()).await.unwrap();
    store.close().await;
    ends(&run(&stage, 0), 1);
    let found = rows(&stage);
    let row = found.iter().find(|row| row[7].ends_with(id)).unwrap();
    for words in [
        &["findings", "list"][..],
        &["findings", "list", "--json"],
        &["findings", "show", &row[0]],
        &["show", &row[0]],
    ] {
        let ended = by(&stage, "", 1, words);
        ends(&ended, 0);
        let is_steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        let is_json = words.contains(&"--json");
        let steering = ended.stdout.chars().filter(|c| is_steering(*c) && !(is_json && *c == '\u{202e}'));
        assert_eq!(steering.count(), 0, "{words:?}: {:?}", ended.stdout);
        assert!(ended.stdout.contains("orphan_effect"), "{}", ended.stdout);
    }
    assert_eq!(execute(&stage, "delete from ledger_entry where entry_id = 'x|1'").await, 1);
    ends(&run(&stage, 2), 0);
}
