//! Nights that did not happen: the next one covers them.

use crate::stage::{Ended, Stage};
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use recon::store::lease::{Lease, RUN};

const DAY_S: i64 = 86_400;
const DAY_US: i64 = DAY_S * 1_000_000;
/// How far before its watermark a run begins.
const OVERLAP_US: i64 = 3 * DAY_US;
const SETTLE_US: i64 = 5 * 60 * 1_000_000;
const WINDOWS: &str = "select from_us || ' ' || until_us || ' ' || outcome from run order by started_at_us";

fn at(stage: &Stage, now_us: i64, more: &[&str]) -> Ended {
    let mut command = stage.command(more);
    command.env("RECON_NOW", (now_us / 1_000_000).to_string());
    Ended::of(&command.output().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c80_three_missed_nights_are_one_window() {
    let stage = Stage::new(31, 400, &Mix::each(2), Faults::default()).await;
    let last_us = stage.world.now_us - stage.world.now_us % 1_000_000;
    // The scheduler was dead for three nights.
    let first_us = last_us - 4 * DAY_US;
    let since = recon::record::format_instant(first_us - 6 * DAY_US, chrono_tz::Tz::UTC);
    let first = at(&stage, first_us, &["--since", &since]);
    assert!(matches!(first.code, Some(0 | 1)), "{}{}", first.stdout, first.stderr);
    let mark_us = first_us - SETTLE_US;
    let last = at(&stage, last_us, &[]);
    assert!(matches!(last.code, Some(0 | 1)), "{}{}", last.stdout, last.stderr);
    let windows = stage.rows(WINDOWS).await;
    assert_eq!(windows.len(), 2, "{windows:?}");
    let (from_us, until_us) = (mark_us - OVERLAP_US, last_us - SETTLE_US);
    assert!(
        windows[1].starts_with(&format!("{from_us} {until_us} ")),
        "{windows:?}, not {from_us} {until_us}"
    );
    // What was planted in those nights is there: the same as in a run that asks for that window by name.
    let missed = stage.latest("findings.csv");
    let in_the_gap = missed.lines().skip(1).filter(|line| line.contains(",new,")).count();
    assert!(in_the_gap > 0, "{missed}");
    let other = Stage::new(31, 400, &Mix::each(2), Faults::default()).await;
    let instant = |at_us: i64| recon::record::format_instant(at_us, chrono_tz::Tz::UTC);
    let named = at(&other, last_us, &["--since", &instant(from_us), "--until", &instant(until_us)]);
    assert!(matches!(named.code, Some(0 | 1)), "{}{}", named.stdout, named.stderr);
    let keys = |text: &str| -> Vec<String> {
        text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&missed), keys(&other.latest("findings.csv")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c77_a_second_run_exits_75_and_leaves_no_trace() {
    let stage = Stage::new(32, 120, &Mix::each(1), Faults::default()).await;
    let store = stage.store().await;
    let held = Lease::acquire_now(&store, RUN).await.unwrap().unwrap();
    let before = stage.business_rows().await;
    let ended = stage.run(&["--apply"]);
    assert_eq!(ended.code, Some(75), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout.lines().last(), Some("outcome=locked findings=0"));
    assert_eq!(stage.ask("select cast(count(*) as text) from run").await, "0");
    assert!(stage.reports().is_empty());
    assert_eq!(stage.business_rows().await, before);
    assert_eq!(stage.emulator.counters.total(), 0, "it asked nobody");
    held.release().await.unwrap();
    assert_eq!(stage.run(&[]).code, Some(1));
}
