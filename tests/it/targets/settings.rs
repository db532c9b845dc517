//! What `recon.toml` may say of targets, and who needs their secrets.

use recon::config::{Needs, Target, Unusable, load_for, parse};
use recon::findings::Kind;
use std::path::Path;

fn read(text: &str) -> Result<recon::config::Settings, Unusable> {
    let text = format!("[[provider]]\nname = \"stripe\"\napi_key = {{ env = \"KEY\" }}\n{text}");
    parse(&text, Path::new("recon.toml"), &|name| (name == "KEY").then(|| "rk_1".to_owned()))
}

const TEAM: &str = "[local]\nurl = \"sqlite:books.db\"\n[target]\nurl = { env = \"NOT_SET\" }\n\
     [corrections.http]\nurl = { env = \"NOT_SET\" }\nsecret = { env = \"NOT_SET\" }\n[corrections.target]\n";

#[test]
fn each_kind_has_its_target() {
    let ours = read("").unwrap();
    assert!(Kind::ALL.into_iter().all(|kind| ours.target_of(kind) == Some(Target::Ledger)));
    let team = read(&format!("{TEAM}missed_event = \"http\"\nstale_state = \"sql\"\n")).unwrap();
    assert_eq!(team.target_of(Kind::MissedEvent), Some(Target::Http));
    assert_eq!(team.target_of(Kind::StaleState), Some(Target::Sql));
    assert_eq!(team.target_of(Kind::DuplicateEffect), None, "the books are a team's, and nobody chose");
    let primary = "[local]\nurl = \"postgres://r@replica/shop\"\n[target]\nurl = \"postgres://w@primary:5433/shop?sslmode=require\"";
    read(primary).unwrap();
    let mixed = "[corrections.http]\nurl = \"http://127.0.0.1:1/hook\"\nsecret = { env = \"NOT_SET\" }\n\
         [corrections.target]\nmissed_event = \"http\"\n";
    let mixed = read(mixed).unwrap();
    assert_eq!(mixed.target_of(Kind::MissedEvent), Some(Target::Http));
    assert_eq!(mixed.target_of(Kind::StaleState), Some(Target::Ledger));
}

#[test]
fn a_choice_that_cannot_work_is_refused() {
    for (text, message) in [
        (format!("{TEAM}missed_event = \"ledger\""), "own ledger is not what `[local]` reads"),
        (format!("{TEAM}missed_event = \"htp\""), "none of ledger, sql and http"),
        (format!("{TEAM}mised_event = \"http\""), "is no kind of finding that a plan corrects"),
        (format!("{TEAM}orphan_effect = \"sql\""), "is no kind of finding that a plan corrects"),
        (format!("{TEAM}duplicate_effect = \"http\""), "no event that could be delivered again"),
        ("[corrections.target]\nmissed_event = \"sql\"".to_owned(), "would never see what was written"),
        (
            "[local]\nurl = \"sqlite:b.db\"\n[corrections.target]\nmissed_event = \"sql\"".to_owned(),
            "there is no [target] url",
        ),
        ("[corrections.target]\nmissed_event = \"http\"".to_owned(), "there is no [corrections.http] url"),
        (
            "[local]\nurl = \"none\"\n[target]\nurl = \"sqlite:b.db\"\n[corrections.target]\nmissed_event = \"sql\""
                .to_owned(),
            "has nothing to read again",
        ),
        ("[target]\nurl = \"store\"".to_owned(), "must name a database"),
        (
            "[local]\nurl = \"sqlite:books.db\"\n[target]\nurl = \"sqlite:copy.db\"".to_owned(),
            "copy.db`, and [local] url reads the SQLite database",
        ),
        (
            "[local]\nurl = \"postgres://r@replica/shop\"\n[target]\nurl = \"postgres://w@primary/staging\"".to_owned(),
            "names the PostgreSQL database `staging`, and [local] url reads the PostgreSQL database `shop`",
        ),
        (
            "[local]\nurl = \"postgres://r@replica/shop\"\n[target]\nurl = \"mysql://w@primary/shop\"".to_owned(),
            "names the MySQL database",
        ),
        ("[target]\nurl = \"postgres://u:hunter2@db/books\"".to_owned(), "password"),
        ("[corrections.http]\nurl = \"http://shop.example/hook\"\nsecret = { env = \"A\" }".to_owned(), "url"),
        ("[corrections.http]\nurl = \"https://shop.example/hook\"".to_owned(), "secret is missing"),
        (
            "[corrections.http]\nurl = \"https://shop.example/hook\"\nsecret = \"whsec_1\"".to_owned(),
            "written out",
        ),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {}", error.message);
        assert!(!format!("{}{}", error.message, error.hint).contains("hunter2"));
    }
}

#[test]
fn only_what_applies_needs_the_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("recon.toml");
    std::fs::write(folder.path().join("key"), "rk_1").unwrap();
    let text = format!(
        "[[provider]]\nname = \"stripe\"\napi_key = {{ file = \"key\" }}\n{TEAM}missed_event = \"http\"\n"
    );
    std::fs::write(&config, text).unwrap();
    recon::config::load(Some(&config)).unwrap();
    recon::config::load_without_keys(Some(&config)).unwrap();
    let error =
        load_for(Some(&config), Needs { api_keys: true, target: true, ..Needs::default() }).unwrap_err();
    assert!(
        error.message.contains("[target] url needs the environment variable NOT_SET"),
        "{}",
        error.message
    );
}
