//! `recon.toml`: what is accepted, and the one clear line for what is not.

use recon::config::{Accounts, Basis, Locale, Settings, Side, Unusable, parse};
use recon::findings::Kind;
use recon::record::{EffectKind, Status};
use std::path::Path;
use std::time::Duration;

const PROVIDER: &str = "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n";

fn read(text: &str) -> Result<Settings, Unusable> {
    let environment = |name: &str| (name == "KEY").then(|| "rk_some_key".to_owned());
    parse(text, Path::new("/etc/recon/recon.toml"), &environment)
}

/// Settings of a text in which `rest` follows one minimal provider.
fn with(rest: &str) -> Result<Settings, Unusable> {
    read(&format!("{PROVIDER}{rest}"))
}

#[track_caller]
fn refused(text: &str, message: &str, hint: &str) {
    let error = read(text).unwrap_err();
    assert_eq!(error.message, message);
    assert!(error.hint.contains(hint), "hint: {}", error.hint);
}

#[test]
fn everything_but_name_and_key_has_a_default() {
    let settings = with("").unwrap();
    let provider = &settings.providers[0];
    assert_eq!(&*settings.store_url, "sqlite:/etc/recon/recon.db");
    assert_eq!(settings.report.dir, Path::new("/etc/recon/reports/out"));
    assert_eq!(settings.report.time_zone, chrono_tz::Tz::UTC);
    assert_eq!((settings.report.locale, settings.report.spreadsheet), (Locale::En, false));
    assert_eq!(settings.report.basis, Basis::Created);
    assert_eq!(provider.base_url, "https://api.stripe.com");
    assert_eq!(provider.api_key.reveal(), "rk_some_key");
    assert_eq!(provider.accounts, Accounts::Named(vec![String::new()]));
    assert_eq!(provider.mode, "live");
    assert_eq!((provider.requests_per_second, provider.account_requests_per_second), (20, 80));
    assert_eq!(provider.settle_delay, Duration::from_mins(5));
    assert_eq!(provider.effects.len(), 4);
    assert!(!provider.effects.contains(&EffectKind::Fee));
    assert_eq!((provider.event_types.as_ref(), provider.intent.as_ref()), (None, None));
    assert_eq!((&settings.inbox, &settings.local.side), (&Side::Store, &Side::Store));
    assert_eq!(settings.local.queries, Path::new("/etc/recon/queries/local"));
    assert!(settings.corrections.auto.is_empty());
    assert_eq!(settings.corrections.count_max, 500);
    assert_eq!(settings.compare.memory_bytes_max, 256 << 20);
    assert!(settings.compare.threads >= 1);
    assert_eq!(settings.limits.run_budget, Duration::from_hours(2));
    assert_eq!((settings.limits.ask_count_max, settings.limits.attempts_max), (2_000, 6));
}

#[test]
fn a_sandbox_has_the_sandbox_limit() {
    let settings = with("mode = \"test\"").unwrap();
    assert_eq!(
        (settings.providers[0].requests_per_second, settings.providers[0].account_requests_per_second),
        (20, 20)
    );
}

#[test]
fn the_example_of_the_design_is_read() {
    let text = r#"
[store]
url = "sqlite:recon.db"
[report]
dir = "reports/out"
time_zone = "America/Sao_Paulo"
locale = "pt-BR"
spreadsheet = true
basis = "available"
[[provider]]
name = "stripe"
kind = "stripe"
base_url = "http://127.0.0.1:8080/"
api_key = { env = "KEY" }
webhook_secrets = [{ env = "NOT_SET_HERE" }]
accounts = ["", "acct_1"]
mode = "live"
requests_per_second = 15
account_requests_per_second = 60
settle_delay = "10m"
effects = ["credit", "refund", "fee"]
event_types = ["charge.succeeded", "charge.refunded"]
intent = "metadata.order_id"
[inbox]
url = "none"
[local]
url = "sqlite:../books.db"
queries = "/srv/queries"
[local.status_map]
completed = "paid"
[corrections]
auto = ["missed_event"]
count_max = 10
minor_max = { USD = 100000, brl = 5 }
[owners]
duplicate_effect = "finance"
[compare]
memory = "64MiB"
threads = 3
[limits]
run_budget = "90m"
ask_count_max = 7
attempts_max = 2
"#;
    let settings = read(text).unwrap();
    let provider = &settings.providers[0];
    assert_eq!(settings.report.time_zone, chrono_tz::Tz::America__Sao_Paulo);
    assert_eq!((settings.report.locale, settings.report.spreadsheet), (Locale::PtBr, true));
    assert_eq!(settings.report.basis, Basis::Available);
    assert_eq!(provider.base_url, "http://127.0.0.1:8080");
    assert_eq!(provider.accounts, Accounts::Named(vec![String::new(), "acct_1".to_owned()]));
    assert_eq!(provider.event_types.as_ref().unwrap().len(), 2);
    assert_eq!(provider.intent.as_deref(), Some("metadata.order_id"));
    assert_eq!(settings.inbox, Side::Absent);
    assert!(
        matches!(&settings.local.side, Side::Database(url) if url.reveal() == "sqlite:/etc/recon/../books.db")
    );
    assert_eq!(settings.local.queries, Path::new("/srv/queries"));
    assert_eq!(settings.local.status_map["completed"], Status::Paid);
    assert!(settings.corrections.auto.contains(&Kind::MissedEvent));
    assert_eq!(settings.corrections.minor_max["usd"], 100_000);
    assert_eq!(settings.owners[&Kind::DuplicateEffect], "finance");
    assert_eq!((settings.compare.memory_bytes_max, settings.compare.threads), (64 << 20, 3));
    assert_eq!(settings.limits.run_budget, Duration::from_mins(90));
}

#[test]
fn what_init_writes_is_read() {
    let environment = |name: &str| (name == "STRIPE_API_KEY").then(|| "key".to_owned());
    parse(recon::commands::init::CONFIGURATION, Path::new("recon.toml"), &environment).unwrap();
}

#[test]
fn an_unknown_setting_names_its_line_and_the_nearest_known_one() {
    refused(
        &format!("{PROVIDER}request_per_second = 5\n"),
        "/etc/recon/recon.toml:4: unknown setting `request_per_second` in [[provider]]",
        "did you mean `requests_per_second`?",
    );
    refused("\n[reports]\n", "/etc/recon/recon.toml:2: unknown setting `reports`", "did you mean `report`?");
    refused(
        &format!("{PROVIDER}[owners]\nduplicate_efect = \"x\""),
        "/etc/recon/recon.toml:5: unknown setting `duplicate_efect` in [owners]",
        "did you mean `duplicate_effect`?",
    );
}

#[test]
fn c82_a_secret_written_out_is_refused_and_never_repeated() {
    for form in ["sk_live_", "rk_live_", "whsec_", "plain"] {
        let secret = format!("{form}{}", "x".repeat(24));
        let texts = [
            format!("[[provider]]\nname = \"stripe\"\napi_key = \"{secret}\"\n"),
            format!("{PROVIDER}webhook_secrets = [\"{secret}\"]\n"),
            format!("{PROVIDER}[local]\nurl = \"postgres://user:{secret}@host/db\"\n"),
            format!("{PROVIDER}base_url = \"https://user:{secret}@host\"\n"),
        ];
        for text in texts {
            let error = read(&text).unwrap_err();
            let shown = format!("{error:?}");
            assert!(!shown.contains(&secret), "{shown}");
        }
    }
    for place in ["mode = ", "kind = ", "name2 = ", "[report]\ntime_zone = ", "[limits]\nrun_budget = "] {
        let secret = format!("sk_live_{}", "x".repeat(24));
        let error = with(&format!("{place}\"{secret}\"\n")).unwrap_err();
        assert!(!format!("{error:?}").contains(&secret), "{error:?}");
    }
    refused(
        "[[provider]]\nname = \"stripe\"\napi_key = \"abc\"\n",
        "/etc/recon/recon.toml:3: [[provider]] api_key holds a secret written out, which is refused",
        "write { env = \"NAME\" } or { file = \"PATH\" }",
    );
    let settings = with("").unwrap();
    assert!(!format!("{settings:?}").contains("rk_some_key"));
}

#[test]
fn c80_a_missing_variable_is_named() {
    refused(
        "[[provider]]\nname = \"stripe\"\napi_key = { env = \"STRIPE_API_KEY\" }\n",
        "/etc/recon/recon.toml:3: [[provider]] api_key needs the environment variable STRIPE_API_KEY, which is not set",
        "cron starts with a bare environment",
    );
}

/// What the provider would answer with 401, or with another mode's data, is told before it is asked.
#[test]
fn c82_a_key_of_the_wrong_sort_is_named_by_its_sort_only() {
    for (key, mode, why, hint) in [
        ("pk_live_", "live", "is a publishable key (pk_…)", "restricted key that reads (rk_…)"),
        ("whsec_", "live", "is the signing secret of a webhook endpoint", "restricted key that reads (rk_…)"),
        (
            "rk_test_",
            "live",
            "is a key of test mode (rk_test_…), and `mode` is \"live\"",
            "write mode = \"test\"",
        ),
        (
            "sk_live_",
            "test",
            "is a key of live mode (sk_live_…), and `mode` is \"test\"",
            "begins with sk_test_",
        ),
    ] {
        let secret = format!("{key}{}", "x".repeat(24));
        let text = format!("{PROVIDER}mode = \"{mode}\"\n");
        let error = parse(&text, Path::new("/etc/recon/recon.toml"), &|_| Some(secret.clone())).unwrap_err();
        assert!(error.message.contains(why) && error.hint.contains(hint), "{error:?}");
        assert!(!format!("{error:?}").contains("xx"), "{error:?}");
    }
    for (key, mode) in
        [("rk_live_1", "live"), ("sk_test_1", "test"), ("rk_1", "test"), ("key", "live"), ("ключ_1", "live")]
    {
        let text = format!("{PROVIDER}mode = \"{mode}\"\n");
        parse(&text, Path::new("/etc/recon/recon.toml"), &|_| Some(key.to_owned())).unwrap();
    }
}

#[test]
fn a_secret_that_is_not_there_says_where_it_was_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[[provider]]\nname = \"stripe\"\napi_key = { file = \"key\" }\n";
    let hint = || parse(text, &dir.path().join("recon.toml"), &|_| None).unwrap_err().hint;
    assert!(hint().contains("put the secret alone"), "{}", hint());
    std::fs::write(dir.path().join("key"), "\n").unwrap();
    assert_eq!(hint(), "the file key is empty: give the key there");
    let error = parse(PROVIDER, Path::new("recon.toml"), &|_| Some(String::new())).unwrap_err();
    assert_eq!(error.hint, "the environment variable KEY is set to nothing: give the key there");
}

#[test]
fn a_secret_comes_from_a_file_beside_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("key"), "rk_from_file\n").unwrap();
    let text = "[[provider]]\nname = \"stripe\"\napi_key = { file = \"key\" }\n";
    let settings = parse(text, &dir.path().join("recon.toml"), &|_| None).unwrap();
    assert_eq!(settings.providers[0].api_key.reveal(), "rk_from_file");
}

#[test]
fn bad_values_say_what_is_allowed() {
    let bad = |rest: &str| with(rest).unwrap_err().message;
    let line4 = "/etc/recon/recon.toml:4: [[provider]]";
    assert_eq!(bad("requests_per_second = 0"), format!("{line4} requests_per_second must be at least 1"));
    assert_eq!(bad("requests_per_second = -3"), format!("{line4} requests_per_second must be at least 1"));
    assert_eq!(
        bad("requests_per_second = \"20\""),
        format!("{line4} requests_per_second must be a whole number, and is a string")
    );
    assert_eq!(bad("mode = \"production\""), format!("{line4} mode must be \"live\" or \"test\""));
    assert!(bad("settle_delay = \"5 minutes\"").contains("write it as 90s, 5m, 26h or 3d"));
    assert!(bad("base_url = \"http://api.stripe.com\"").contains("must be https"));
    assert!(bad("effects = [\"credits\"]").contains("`credits`, which is no kind of effect"));
    assert!(bad("accounts = [\"*\", \"\"]").contains("alone"));
    assert!(bad("kind = \"mystripe\"").contains("`mystripe` is not known"));
    assert!(bad("[report]\ntime_zone = \"Brasilia\"").contains("IANA"));
    assert!(bad("[local.status_map]\ndone = \"payed\"").contains("`payed`, which is no status"));
    assert!(bad("[corrections]\nauto = [\"orphan_effect\"]").contains("only a person can put right"));
    assert!(bad("[corrections]\nminor_max = { dollar = 1 }").contains("no currency code"));
    assert!(bad("[store]\nurl = \"mysql://h/d\"").contains("scheme `mysql`, and the store is no MySQL"));
    assert!(bad("[local]\nurl = \"mysql://u:p@h/d\"").contains("holds a password written out"));
    assert!(bad("[local]\nurl = \"mongodb://h/d\"").contains("scheme `mongodb`, which is none of sqlite:"));
    assert!(bad("[limits]\nstatement_timeout = \"0s\"").contains("between 1s and 7d"));
    assert!(bad("[compare]\nmemory = \"1MiB\"").contains("at least 16MiB"));
    assert!(bad(PROVIDER).contains("is the name of two providers"));
    assert!(bad("[report\n").starts_with("/etc/recon/recon.toml:4: not readable as TOML"));
    assert!(read("").unwrap_err().message.contains("[[provider]] is missing"));
}

/// What `load_for` reads of an endpoint with these files in its list.
fn signing_secrets(files: &[&[u8]]) -> Result<Vec<String>, Unusable> {
    let folder = tempfile::tempdir().unwrap();
    let mut list = Vec::new();
    for (at, bytes) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("secret{at}")), bytes).unwrap();
        list.push(format!("{{ file = \"secret{at}\" }}"));
    }
    let path = folder.path().join("recon.toml");
    let text = format!(
        "[[provider]]\nname = \"github\"\nkind = \"github\"\nwebhook_secrets = [{}]\n",
        list.join(", ")
    );
    std::fs::write(&path, text).unwrap();
    let needs = recon::config::Needs { webhook_secrets: true, ..Default::default() };
    let settings = recon::config::load_for(Some(&path), needs)?;
    Ok(settings.endpoints[0].secrets.iter().map(|secret| secret.reveal().to_owned()).collect())
}

#[test]
fn a_webhook_secret_may_be_any_line_and_several_stand_in_a_list() {
    for (bytes, expected) in [
        (&b"It's a Secret to Everybody\n"[..], "It's a Secret to Everybody"),
        (b"two  spaces\tand a tab\r\n", "two  spaces\tand a tab"),
        (b"\n\nplain\n\n", "plain"),
        (b" blanks count ", " blanks count "),
        ("geheim\u{00e4}".as_bytes(), "geheim\u{00e4}"),
    ] {
        assert_eq!(signing_secrets(&[bytes]).unwrap(), [expected]);
    }
    let both = signing_secrets(&[b"the new one\n", b"the old one\n"]).unwrap();
    assert_eq!(both, ["the new one", "the old one"]);
    for (bytes, why) in [
        (&b"the new one\nthe old one\n"[..], "webhook_secrets holds several lines where it is read"),
        (b" \n", "webhook_secrets is empty where the configuration says to read it"),
        (b"", "webhook_secrets is empty where the configuration says to read it"),
    ] {
        let error = signing_secrets(&[bytes]).unwrap_err();
        assert!(error.message.contains(why), "{}", error.message);
        assert!(!error.message.contains("the old one") && !error.hint.contains("the old one"));
    }
}

#[test]
fn what_init_says_of_fetching_is_what_is_fetched() {
    let text = recon::commands::init::CONFIGURATION;
    let at = text.find("# fetch = ").unwrap();
    let words: Vec<&str> = text[at..].lines().take(2).collect();
    let said = words.join(" ");
    let named = said.split("money, and ").nth(1).expect("what is fetched besides money");
    let named: Vec<&str> = named.split(", ").map(str::trim).collect();
    assert_eq!(named.len(), 3, "{named:?}");
    let is_named = |event_type: &str| {
        named.iter().any(|name| match name.strip_suffix('*') {
            Some(start) => event_type.starts_with(start),
            None => event_type == *name,
        })
    };
    for (event_type, tracks) in recon::provider::stripe::event_type_effects() {
        let is_money = matches!(tracks, recon::record::Tracks::Effect(_));
        let is_said = is_money || is_named(event_type);
        assert_eq!(recon::work::is_fetched(None, event_type), is_said, "{event_type}: {named:?}");
    }
    for name in named {
        let start = name.trim_end_matches('*');
        let mut types = recon::provider::stripe::event_type_effects().iter();
        assert!(types.any(|(event_type, _)| event_type.starts_with(start)), "{name} is no type");
    }
}
