//! The rules' cases: each folder `tests/cases/rules/<kind>/<case>/` is one. `input.toml` has the facts in short
//! form, `expected.csv` what is found, what is only counted and what is in flight. A new case is a new folder.
//!
//! `RECON_BLESS=1` writes what is found now into every `expected.csv`; read the difference before it is kept.

mod input;

use crate::rules::sqlite_lines;
use crate::world::{CONTEXT, World, is_in_sql};
use input::Input;
use recon::findings::{Context, Counted, Finding, Kind, coverage_gaps, wrong_scope};
use recon::record::{EffectKind, Scope, Status};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const HEADER: &str = "kind,cause,severity,object_id,effect,currency,expected_minor,found_minor,difference_minor,\
    expected_state,found_state,event_ids,effect_ids,correction";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/rules")
}

/// Kind and case of every folder.
fn cases() -> Vec<(String, String)> {
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries =
            std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let of_kind = |kind: String| {
        let cases = names(&folder().join(&kind)).into_iter();
        cases.map(move |case| (kind.clone(), case)).collect::<Vec<_>>()
    };
    names(&folder()).into_iter().flat_map(of_kind).collect()
}

fn read(kind: &str, case: &str) -> Input {
    let path = folder().join(kind).join(case).join("input.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the rules say of a case, as the text of `expected.csv`.
fn found(input: &Input) -> String {
    let world = input.world();
    let context = Context {
        has_event_leg: !input.without_events,
        pending_since_us: input.pending_since.unwrap_or(CONTEXT.pending_since_us),
        ..CONTEXT
    };
    let (judged, others) = world.judge(&context);
    let mut findings: Vec<Finding> = others.into_iter().filter(|_| context.has_event_leg).collect();
    findings.extend(coverage_gaps(&input.gaps()));
    findings.extend(input.strays().iter().map(wrong_scope));
    let mut counted = Counted::default();
    let mut counts = Vec::new();
    for (_, judgement) in judged {
        counted.add(judgement.counted);
        findings.extend(judgement.findings);
        let flight = judgement.in_flight.iter();
        counts.extend(
            flight.map(|flight| format!("# in flight: {} {} {}", flight.kind, flight.minor, flight.currency)),
        );
    }
    findings.sort_by_cached_key(Finding::sort_key);
    let mut lines = vec![HEADER.to_owned()];
    lines.extend(findings.iter().map(line));
    let numbers = [
        ("in_flight", counted.in_flight),
        ("missed_without_consequence", counted.missed_without_consequence),
        ("harmless_out_of_order", counted.harmless_out_of_order),
        ("not_judged", counted.not_judged),
    ];
    lines.extend(counts);
    lines.extend(
        numbers.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("# {name}: {count}")),
    );
    lines.join("\n") + "\n"
}

fn line(finding: &Finding) -> String {
    let number = |minor: Option<i64>| minor.map(|minor| minor.to_string()).unwrap_or_default();
    let state = |status: Option<Status>| status.map_or("", Status::as_str);
    [
        finding.kind.as_str(),
        &finding.cause,
        &finding.severity.to_string(),
        &finding.object_id,
        finding.effect.map_or("", EffectKind::as_str),
        &finding.currency,
        &number(finding.expected_minor),
        &number(finding.found_minor),
        &number(finding.difference_minor()),
        state(finding.expected_state),
        state(finding.found_state),
        &finding.event_ids.join("|"),
        &finding.effect_ids.join("|"),
        finding.action.as_str(),
    ]
    .join(",")
}

fn check(kind: &str, case: &str) -> Result<(), String> {
    let found = found(&read(kind, case));
    let path = folder().join(kind).join(case).join("expected.csv");
    if std::env::var_os("RECON_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if found == expected {
        Ok(())
    } else {
        Err(format!("{kind}/{case}\nexpected:\n{expected}found:\n{found}"))
    }
}

#[test]
fn every_case_is_found_as_expected() {
    let wrong: Vec<String> = cases().iter().filter_map(|(kind, case)| check(kind, case).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A case that fires, a near miss that does not and one on the boundary, for every kind.
#[test]
fn every_kind_has_cases_that_fire_and_cases_that_do_not() {
    let cases = cases();
    let mut wrong = Vec::new();
    for kind in Kind::ALL.map(Kind::as_str) {
        let of_kind: Vec<&(String, String)> = cases.iter().filter(|(folder, _)| folder == kind).collect();
        let fires = |case: &&&(String, String)| {
            let found = found(&read(&case.0, &case.1));
            found.lines().any(|line| line.starts_with(&format!("{kind},")))
        };
        let firing = of_kind.iter().filter(fires).count();
        if of_kind.len() < 3 || firing == 0 || firing == of_kind.len() {
            wrong.push(format!("{kind}: {firing} of {} cases fire", of_kind.len()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let strange: Vec<_> =
        cases.iter().filter(|(kind, _)| !Kind::ALL.iter().any(|known| known.as_str() == kind)).collect();
    assert!(strange.is_empty(), "folders of no kind: {strange:?}");
}

/// Each case says in a sentence what it shows.
#[test]
fn every_case_says_what_it_shows() {
    for (kind, case) in cases() {
        assert!(read(&kind, &case).about.len() > 20, "{kind}/{case} does not say what it shows");
    }
}

/// The specification finds in a case what the engine finds. Only cases with an event leg and without a moment of
/// patience: the rules in SQL have both.
#[tokio::test]
async fn the_specification_says_the_same_of_every_case() {
    let mut world = World::default();
    let mut expected = BTreeSet::new();
    for (number, (kind, case)) in cases().iter().enumerate() {
        let input = read(kind, case);
        if input.without_events || input.pending_since.is_some() {
            continue;
        }
        let mut of_case = input.world();
        of_case.rename_provider(&format!("case{number:03} {kind} {case}"));
        let (judged, others) = of_case.judge(&CONTEXT);
        let findings = judged.iter().flat_map(|(_, judgement)| &judgement.findings).chain(&others);
        expected.extend(findings.filter(|finding| is_in_sql(finding.kind)).map(Into::into));
        world.extend(of_case);
    }
    assert_eq!(sqlite_lines(&world.normalised()).await, expected);
}

impl World {
    /// Moves everything to scopes of another provider, so that many cases fit into one database.
    fn rename_provider(&mut self, name: &str) {
        let renamed = |scope: &mut Scope| *scope = Scope::new(name, &scope.account, &scope.mode);
        self.provider_events.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        self.inbox_events.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        self.provider_effects.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        self.local_effects.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        self.provider_states.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        self.local_states.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        self.notes.iter_mut().for_each(|fact| renamed(&mut fact.scope));
        let parts = std::mem::take(&mut self.parts);
        self.parts = parts
            .into_iter()
            .map(|((scope, root_id), parts)| {
                ((Scope::new(name, &scope.account, &scope.mode), root_id), parts)
            })
            .collect();
    }
}
