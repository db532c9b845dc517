//! Bad input and failing surroundings: one clear error line and a hint, exit 2 or 78, nothing lost and
//! the watermark unmoved; and whatever happens, at any log level, no secret and nothing personal is
//! said (C61, C82).

use crate::stage::{Ended, Stage};
use recon::demo::emulator::{Endpoints, Faults, RateLimit, RetryAfter};
use recon::demo::faults::Mix;
use recon::demo::world::Stream;
use recon::gather::endpoints;
use recon::record::Scope;
use recon::store::{Access, PageRecord, Store};
use std::process::Command;

const WATERMARKS: &str = "select cast(count(*) as text) from watermark";

fn webhook_secret() -> String {
    format!("whsec_{}", "x".repeat(24))
}

/// A stage whose failures come quickly, and whose configuration names a webhook secret.
pub async fn stage_with(faults: Faults) -> Stage {
    let stage = Stage::new(7, 120, &Mix::random(7, 4), faults).await;
    stage.configure("mode = \"live\"\n", "mode = \"live\"\nwebhook_secrets = [{ env = \"HOOK\" }]\n");
    let text = std::fs::read_to_string(stage.config()).unwrap();
    std::fs::write(stage.config(), format!("{text}[limits]\nattempts_max = 2\n")).unwrap();
    stage
}

pub async fn stage() -> Stage {
    stage_with(Faults::default()).await
}

pub fn loudly(command: &mut Command) -> &mut Command {
    command.env("RECON_LOG", "debug").env("HOOK", webhook_secret())
}

pub fn run(stage: &Stage, more: &[&str]) -> Ended {
    Ended::of(&loudly(&mut stage.run_command(more)).output().unwrap())
}

fn run_with(stage: &Stage, arguments: &[&str]) -> Ended {
    Ended::of(&loudly(&mut stage.command(arguments)).output().unwrap())
}

/// Whatever the binary said and wrote has no secret and nothing personal in it.
async fn tells_nothing_private(stage: &Stage, ended: &Ended) {
    let mut said = vec![("stdout", ended.stdout.clone()), ("stderr", ended.stderr.clone())];
    for dir in stage.reports() {
        for entry in std::fs::read_dir(dir).unwrap() {
            said.push(("a report", std::fs::read_to_string(entry.unwrap().path()).unwrap()));
        }
    }
    if let Ok(bytes) = std::fs::read(stage.folder.path().join("recon.db"))
        && bytes.starts_with(b"SQLite format 3")
    {
        for sql in [
            "select cause from slice",
            "select last_error || reason from inbox_event",
            "select report_dir from run",
            "select error from run",
            "select reason from planned_correction",
            "select reason from ledger_entry",
        ] {
            said.push(("a column of errors", stage.rows(sql).await.join("\n")));
        }
    }
    let key = std::fs::read_to_string(stage.folder.path().join("stripe.key")).unwrap();
    let mut private = vec![key, stage.emulator.key.clone(), webhook_secret(), "xxxxxxxxxxxx".to_owned()];
    private.extend(["@example.com", "5550-0100", "Xt5EWLLDS7FJjR1c", "last4", "Bearer"].map(str::to_owned));
    private.extend(stage.world.payments.iter().map(|payment| payment.customer_name.clone()));
    for (place, text) in said {
        for secret in &private {
            if let Some(at) = text.find(secret.as_str()) {
                let line = text[..at].lines().count();
                let whole = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
                panic!("{place} says {secret:?} in its line {line}: {whole}");
            }
        }
    }
}

/// One error line with these words, a hint, the outcome as the last line, no watermark, no report.
pub async fn is_refused(stage: &Stage, ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{words:?}: {}{}", ended.stdout, ended.stderr);
    let errors = ended.errors();
    assert_eq!(errors.len(), 1, "{words:?}: {}", ended.stderr);
    for word in words {
        assert!(errors[0].contains(word), "{word:?} is not in: {}", errors[0]);
    }
    let hints = ended.stderr.lines().filter(|line| line.starts_with("hint: ") && line.len() > 12).count();
    assert_eq!(hints, 1, "{words:?}: {}", ended.stderr);
    let outcome = if code == 78 { "outcome=config findings=0" } else { "outcome=incomplete findings=0" };
    assert!(ended.stdout.lines().last().is_some_and(|line| line.starts_with(outcome)), "{}", ended.stdout);
    assert_eq!(stage.ask(WATERMARKS).await, "0", "{words:?}: the watermark moved");
    if ended.stdout.starts_with("window ") {
        // Only a run that is killed leaves no trace of its end; a disk without room may keep it from that.
        let said = stage.ask("select outcome || ' ' || error from run order by rowid desc limit 1").await;
        let error = errors[0].strip_prefix("error: ").unwrap();
        let error: String = error.chars().take(400).collect();
        assert!(said == format!("incomplete {error}") || error.contains("disk"), "{words:?}: {said}");
    }
    tells_nothing_private(stage, ended).await;
}

/// The same command, once what was wrong is put right.
pub async fn recovers(stage: &Stage) {
    let ended = run(stage, &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(stage.ask(WATERMARKS).await, "1");
    tells_nothing_private(stage, &ended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c82_a_wrong_key_is_told_without_the_key() {
    let stage = stage().await;
    let key = stage.folder.path().join("stripe.key");
    for prefix in ["sk_live_", "rk_live_", "org_"] {
        std::fs::write(&key, format!("{prefix}{}", "x".repeat(24))).unwrap();
        let before = stage.business_rows().await;
        let ended = run(&stage, &[]);
        is_refused(&stage, &ended, 2, &["refuses the API key (401)"]).await;
        assert!(ended.stderr.contains("hint: check the API key"), "{}", ended.stderr);
        assert_eq!(stage.business_rows().await, before);
    }
    std::fs::write(&key, &stage.emulator.key).unwrap();
    recovers(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_without_permission_is_a_gap_and_the_report_says_incomplete() {
    for stream in [Stream::Refunds, Stream::Charges, Stream::Events] {
        let stage = stage_with(Faults { forbidden: vec![stream], ..Faults::default() }).await;
        let ended = run(&stage, &[]);
        assert_eq!(ended.code, Some(2), "{stream:?}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.to_lowercase().contains("incomplete"), "{}", ended.stdout);
        assert!(ended.stdout.lines().last().unwrap().starts_with("outcome=incomplete"), "{}", ended.stdout);
        let coverage = stage.latest("coverage.csv");
        assert!(coverage.contains(",gap,no_permission,"), "{stream:?}: {coverage}");
        assert!(stage.latest("findings.csv").contains(",coverage_gap,no_permission,"), "{stream:?}");
        assert_eq!(stage.ask(WATERMARKS).await, "0");
        assert!(ended.stderr.contains("give the restricted key read permission"), "{}", ended.stderr);
        let accused = stage.latest("findings.csv");
        let accused = accused.lines().filter(|line| line.contains(",orphan_effect,"));
        assert!(
            accused.clone().all(|line| !line.contains(",critical,")),
            "{:?}",
            accused.collect::<Vec<_>>()
        );
        tells_nothing_private(&stage, &ended).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_cannot_be_talked_to_is_told() {
    let stage = stage().await;
    let good = stage.emulator.base_url.clone();
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    stage.configure(&good, &closed);
    let ended = run(&stage, &[]);
    is_refused(&stage, &ended, 2, &["unreachable after 2 attempts", "refused"]).await;
    let secure = good.replace("http://", "https://");
    stage.configure(&closed, &secure);
    let ended = run(&stage, &[]);
    is_refused(&stage, &ended, 2, &["no secure connection"]).await;
    assert!(ended.stderr.contains("root certificates"), "{}", ended.stderr);
    stage.configure(&secure, &good);
    recovers(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_whole_json_is_told() {
    let always = Faults { in_a_row_max: u32::MAX, ..Faults::default() };
    let html = stage_with(Faults { html_per_mille: 1000, ..always.clone() }).await;
    is_refused(&html, &run(&html, &[]), 2, &["the answer is HTML, not JSON"]).await;
    for faults in [
        Faults { truncated_per_mille: 1000, ..always.clone() },
        Faults { dropped_per_mille: 1000, ..always.clone() },
    ] {
        let cut = stage_with(faults).await;
        is_refused(&cut, &run(&cut, &[]), 2, &["2 attempts"]).await;
    }
    let down = stage_with(Faults { server_error_per_mille: 1000, ..always }).await;
    is_refused(&down, &run(&down, &[]), 2, &["at each of 2 attempts"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_refusals_ends_with_the_budget() {
    let limit =
        RateLimit { endpoint_per_second: 1, account_per_second: 1, retry_after: RetryAfter::Seconds(30) };
    let stage = stage_with(Faults { rate_limit: Some(limit), ..Faults::default() }).await;
    stage.configure("attempts_max = 2\n", "attempts_max = 2\nrun_budget = \"2s\"\n");
    let ended = run(&stage, &[]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.errors().len() <= 1 && ended.stderr.contains("budget"), "{}", ended.stderr);
    assert!(ended.stdout.lines().last().unwrap().starts_with("outcome=incomplete"), "{}", ended.stdout);
    assert_eq!(stage.ask(WATERMARKS).await, "0");
    tells_nothing_private(&stage, &ended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c61_local_statements_and_rows_that_do_not_fit_are_named_without_their_values() {
    let stage = stage().await;
    let queries = stage.folder.path().join("queries/local");
    std::fs::create_dir_all(&queries).unwrap();
    let file = queries.join("effects.sql");
    let effects = |amount: &str, currency: &str, table: &str| {
        format!(
            "select entry_id as effect_id, provider, account, mode, object_id, kind, {amount}, {currency}, \
             applied_at_us, event_id, corrects_entry_id as corrects_effect_id from {table} \
             where applied_at_us >= :from_us and applied_at_us < :until_us"
        )
    };
    let person = "'Ana Souza <ana@example.com> 4242'";
    for (amount, currency, table, words) in [
        ("amount_minor", "currency", "no_such_table", ["effects.sql", "no_such_table"]),
        ("amount_minor", "no_such_column", "ledger_entry", ["effects.sql", "no_such_column"]),
        ("amount_minor", "currency as money", "ledger_entry", ["effects.sql", "currency"]),
        (&format!("{person} as amount"), "currency", "ledger_entry", ["effects.sql", "column amount"]),
        (
            &format!("{person} as amount_minor"),
            "currency",
            "ledger_entry",
            ["effects.sql", "column amount_minor"],
        ),
        (
            "amount_minor",
            &format!("{person} as currency"),
            "ledger_entry",
            ["effects.sql", "column currency"],
        ),
        ("'12.345' as amount", "'usd' as currency", "ledger_entry", ["effects.sql", "column amount"]),
    ] {
        std::fs::write(&file, effects(amount, currency, table)).unwrap();
        let before = stage.emulator.counters.total();
        let ended = run(&stage, &[]);
        let is_statement = table == "no_such_table" || currency != "currency" && !currency.contains("Ana");
        is_refused(&stage, &ended, 78, &words).await;
        if is_statement && !amount.starts_with("'12") {
            assert_eq!(stage.emulator.counters.total(), before, "the provider was asked first");
        }
    }
    std::fs::remove_file(&file).unwrap();
    recovers(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_and_windows_that_cannot_be_meant_are_refused() {
    let stage = stage().await;
    for (arguments, words) in [
        (&["--since", "2199-01-01"][..], &["future"][..]),
        (&["--since", "2026-06-10T00:00:00Z", "--until", "2026-06-10T00:00:00Z"], &["empty"]),
        (&["--since", "2026-06-10", "--provider", "strip"], &["--provider `strip`"]),
    ] {
        is_refused(&stage, &run_with(&stage, arguments), 78, words).await;
    }
    stage.configure("mode = \"live\"", "mode = \"live\"\nsettle_dealy = \"5m\"");
    let ended = run(&stage, &[]);
    is_refused(&stage, &ended, 78, &["settle_dealy"]).await;
    assert!(ended.stderr.contains("settle_delay"), "{}", ended.stderr);
    stage.configure("\nsettle_dealy = \"5m\"", "");
    std::fs::remove_file(stage.folder.path().join("stripe.key")).unwrap();
    let ended = run(&stage, &[]);
    assert_eq!((ended.code, ended.errors().len()), (Some(78), 1), "{}", ended.stderr);
    std::fs::write(stage.folder.path().join("stripe.key"), &stage.emulator.key).unwrap();
    recovers(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_providers_memory_the_run_goes_on_with_objects_and_says_so() {
    let stage = stage().await;
    let ended = run_with(&stage, &["--since", "2026-04-01"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{}{}", ended.stdout, ended.stderr);
    let coverage = stage.latest("coverage.csv");
    let not_listed: Vec<&str> = coverage.lines().filter(|line| line.contains(",not_listed,")).collect();
    assert_eq!(not_listed.len(), 1, "{coverage}");
    assert!(not_listed[0].contains(",events,2026-04-01T00:00:00") && not_listed[0].contains(",retention,"));
    let told = ended.stdout.to_lowercase();
    assert!(told.contains("events") && told.contains("not listed"), "{}", ended.stdout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_local_books_the_events_are_still_reconciled() {
    let stage = stage().await;
    stage.configure("[limits]", "[local]\nurl = \"none\"\n[limits]");
    let ended = run(&stage, &[]);
    assert!(matches!(ended.code, Some(0 | 1)), "{}{}", ended.stdout, ended.stderr);
    assert!(!stage.latest("findings.csv").contains(",orphan_effect,"));
    tells_nothing_private(&stage, &ended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_is_not_the_runs_own_is_refused_whole() {
    let (stage, other) = (stage().await, Stage::new(8, 120, &Mix::each(1), Faults::default()).await);
    assert_eq!(run(&stage, &[]).code, Some(1));
    assert_eq!(other.run(&[]).code, Some(1));
    let plan = stage.latest("plan.csv");
    let rows: Vec<&str> = plan.lines().collect();
    assert!(rows.len() > 1, "nothing was planned");
    assert_eq!(run(&stage, &[]).code, Some(1));
    let second = stage.latest("plan.csv");
    let file = stage.folder.path().join("reviewed.csv");
    let edited = plan.replace(rows[1], &rows[1].replacen('_', "-", 1));
    let two_runs = plan.clone() + second.split_once('\n').unwrap().1;
    let twice = format!("{plan}{}\n", rows[1]);
    let before = stage.business_rows().await;
    for (text, words) in [
        (edited, "row 2, column action"),
        (two_runs, "of the run"),
        (twice, "the correction of row 2 again"),
        (other.latest("plan.csv"), "no run of this store planned"),
        ("customer,email\nAna Souza,ana@example.com\n".to_owned(), "it is not a plan"),
        (String::new(), "it is not a plan"),
    ] {
        std::fs::write(&file, text).unwrap();
        let ended = run_with(&stage, &["apply", "reviewed.csv"]);
        assert_eq!(ended.code, Some(78), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.errors().len() == 1 && ended.errors()[0].contains(words), "{words}: {}", ended.stderr);
        assert!(ended.errors()[0].starts_with("error: reviewed.csv: "), "{}", ended.stderr);
        assert!(!ended.stderr.contains("plan.csv"), "another file is named: {}", ended.stderr);
        assert_eq!(stage.business_rows().await, before, "{words}");
        tells_nothing_private(&stage, &ended).await;
    }
    let ended = run_with(&stage, &["apply", "no_such_plan.csv"]);
    assert_eq!((ended.code, ended.errors().len()), (Some(78), 1), "{}", ended.stderr);
    assert_eq!(stage.business_rows().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_endpoints_that_are_all_switched_off_are_a_gap() {
    let off = Endpoints::These(vec![("disabled", vec!["*"]), ("disabled", vec!["charge.succeeded"])]);
    let stage = stage_with(Faults { endpoints: off, ..Faults::default() }).await;
    // Deliveries ended in the middle of the month.
    let middle_us = stage.world.from_us.midpoint(stage.world.until_us);
    let store = stage.store().await;
    let sql = format!("delete from inbox_event where received_at_us > {middle_us}");
    sqlx::query(sqlx::AssertSqlSafe(sql)).execute(store.pool()).await.unwrap();
    store.close().await;
    let ended = run(&stage, &[]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let coverage = stage.latest("coverage.csv");
    let row = coverage.lines().find(|line| line.contains(",webhook_endpoints,")).expect("a gap");
    assert!(row.contains(",gap,endpoint_disabled,"), "{row}");
    let last_us: i64 =
        stage.ask("select cast(max(received_at_us) as text) from inbox_event").await.parse().unwrap();
    let first_missed_us = stage
        .world
        .events
        .iter()
        .filter(|event| recon::demo::world::WANTED_TYPES.contains(&event.kind))
        .map(|event| event.created_s * 1_000_000)
        .filter(|at_us| (last_us + 1..stage.world.until_us).contains(at_us))
        .min();
    let from = recon::record::format_instant(first_missed_us.unwrap(), chrono_tz::Tz::UTC);
    assert!(row.contains(&from), "{row} does not begin at {from}");
    assert!(stage.latest("findings.csv").contains(",coverage_gap,endpoint_disabled,"));
    assert_eq!(stage.ask(WATERMARKS).await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_endpoints_that_are_not_to_be_read_say_nothing() {
    for endpoints in [
        Endpoints::Forbidden,
        Endpoints::These(Vec::new()),
        Endpoints::These(vec![("disabled", vec!["*"]), ("enabled", vec!["charge.succeeded"])]),
    ] {
        let stage = stage_with(Faults { endpoints, ..Faults::default() }).await;
        assert_eq!(run(&stage, &[]).code, Some(1));
        assert!(!stage.latest("coverage.csv").contains("webhook_endpoints"));
    }
}

/// A connected account's events come through the platform's endpoints or its own.
#[tokio::test]
async fn c16_a_connected_account_is_cut_off_only_where_nothing_delivers() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("recon.db").display());
    let store = Store::open(&url, Access::ReadWrite).await.unwrap();
    let (platform, connected) = (Scope::new("stripe", "", "live"), Scope::new("stripe", "acct_1", "live"));
    let list = |statuses: &[&str]| {
        let one = |status: &&str| {
            format!(r#"{{"status":"{status}","livemode":true,"enabled_events":["charge.succeeded"]}}"#)
        };
        let data: Vec<String> = statuses.iter().map(one).collect();
        format!(r#"{{"data":[{}],"has_more":false}}"#, data.join(","))
    };
    let unread = "null".to_owned();
    for (of_platform, own, is_disabled) in [
        (list(&["disabled"]), list(&[]), Some(true)),
        (list(&["disabled"]), list(&["disabled"]), Some(true)),
        (list(&[]), list(&["disabled"]), Some(true)),
        (list(&["disabled"]), list(&["enabled"]), Some(false)),
        (list(&["disabled", "enabled"]), list(&["disabled"]), Some(false)),
        (list(&[]), list(&[]), None),
        (list(&["disabled"]), unread.clone(), None),
        (unread.clone(), list(&["disabled"]), None),
    ] {
        for (scope, body) in [(&platform, &of_platform), (&connected, &own)] {
            let record = PageRecord {
                record_id: "webhook_endpoints".to_owned(),
                created_us: 0,
                asked_at_us: 1,
                body: body.clone().into_bytes(),
            };
            store.write_records(scope, "webhook_endpoints", &[record]).await.unwrap();
        }
        let told = endpoints(&store, &connected).await.unwrap();
        assert_eq!(told.as_ref().map(|told| told.is_disabled), is_disabled, "{of_platform} {own}");
        assert!(told.is_none_or(|told| told.types.is_none()), "whose types they are is not known");
    }
}
