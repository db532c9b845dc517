//! The fuzz targets over their kept inputs and over seeded mutations of these: what a machine without the fuzzer runs.
//!
//! The fuzzer proper (`fuzz/README.md`) is guided by coverage and asserts the same, by the same functions.

#[path = "../../fuzz/src/checks/mod.rs"]
mod checks;

use crate::random::Random;
use checks::{Outcome, Target};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Mutations of each target.
const MUTATIONS: u64 = 400;
/// Bytes of an input at most, here as for the fuzzer.
const INPUT_BYTES_MAX: usize = 65_536;
/// What the longest input may take. It takes milliseconds, and much longer where the machine is busy; a reader that goes
/// over it again for each of its bytes takes minutes, for each input is read several times.
const LONGEST_TAKES_MAX: Duration = Duration::from_secs(30);
/// Bytes of all kept inputs together at most.
const CORPUS_BYTES_MAX: usize = 500_000;
/// What readers look for.
const WORDS: [&str; 24] = [
    "{signature}",
    "\n\n",
    "\n",
    ": ",
    ",",
    "=",
    ";",
    ".",
    "\"",
    "\\u0000",
    "\\ud800",
    "null",
    "{",
    "}",
    "[",
    "]",
    "true",
    "-1",
    "9223372036854775808",
    "1e999",
    "\0",
    "\u{7f}",
    "&",
    "%00",
];

fn corpus(target: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

/// Checks an input; a failure says which, so that it can be kept.
fn check(target: &Target, name: &str, what: &str, data: &[u8]) -> Outcome {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target.check(data)));
    checked.unwrap_or_else(|_| panic!("{name}, {what}: {}", data.escape_ascii()))
}

#[test]
fn every_kept_input_holds() {
    let mut total = 0;
    for name in Target::names() {
        let target = Target::named(name).unwrap();
        let mut outcomes: BTreeMap<Outcome, usize> = BTreeMap::new();
        for (file, data) in corpus(name) {
            *outcomes.entry(check(&target, name, &file, &data)).or_default() += 1;
            assert!(data.len() <= INPUT_BYTES_MAX, "{name}/{file} is longer than the fuzzer's inputs");
            total += data.len();
        }
        let count = |outcome| outcomes.get(&outcome).copied().unwrap_or(0);
        let (accepted, refused) = (count(Outcome::Accepted), count(Outcome::Refused));
        assert!(
            accepted >= 1 && refused >= 3,
            "{name}: {accepted} accepted and {refused} refused show little"
        );
    }
    assert!(total <= CORPUS_BYTES_MAX, "the kept inputs have {total} bytes");
}

#[test]
fn seeded_mutations_of_kept_inputs_hold() {
    for (at, name) in Target::names().enumerate() {
        let target = Target::named(name).unwrap();
        let kept: Vec<Vec<u8>> = corpus(name).into_values().collect();
        let mut random = Random::new(at as u64);
        let mut accepted = 0;
        for _ in 0..MUTATIONS {
            let data = mutated(&mut random, &kept);
            accepted += u32::from(check(&target, name, "mutated", &data) == Outcome::Accepted);
        }
        // PayPal's signature cannot be made anew for a mutated body.
        assert!(accepted > 0 || name == "paypal", "{name}: no mutation was read to its end");
    }
}

fn mutated(random: &mut Random, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut data = random.pick(kept).clone();
    for _ in 0..=random.below(3) {
        let at = usize::try_from(random.below(data.len() as u64 + 1)).unwrap();
        let byte = random.next().to_le_bytes()[0];
        match random.below(7) {
            0 if at < data.len() => data[at] ^= 1 << (byte % 8),
            1 if at < data.len() => data[at] = byte,
            2 if at < data.len() => {
                let end = (at + usize::from(byte % 16) + 1).min(data.len());
                data.drain(at..end);
            }
            3 => {
                let word = random.pick(&WORDS).as_bytes();
                data.splice(at..at, word.iter().copied());
            }
            4 => {
                let other = random.pick(kept);
                let from = usize::try_from(random.below(other.len() as u64 + 1)).unwrap();
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
            5 => {
                let end = (at + usize::from(byte)).min(data.len());
                let again = data[at..end].to_vec();
                data.splice(at..at, again);
            }
            _ => data.insert(at, byte),
        }
    }
    data.truncate(INPUT_BYTES_MAX);
    data
}

/// The longest inputs, of the kinds that cost a careless reader a square of their length.
#[test]
fn the_longest_inputs_take_no_square_of_their_length() {
    for name in Target::names() {
        let target = Target::named(name).unwrap();
        let kept = corpus(name);
        let head = kept.values().find_map(|data| {
            let at = data.windows(2).position(|pair| pair == b"\n\n")?;
            (check(&target, name, "head", data) == Outcome::Accepted).then(|| data[..at + 2].to_vec())
        });
        let head = head.unwrap_or_default();
        for part in ["[", "{\"a\":", "a=1&", "\"", "\\", "%", " ", "\n", "a: b\n", "v1=00,", "\"\n", ",", "é"]
        {
            let count = (INPUT_BYTES_MAX - head.len()) / part.len();
            let long = part.repeat(count);
            let started = Instant::now();
            check(&target, name, "long body", &[head.as_slice(), long.as_bytes()].concat());
            check(&target, name, "long head", long.as_bytes());
            let took = started.elapsed();
            assert!(took < LONGEST_TAKES_MAX, "{name}: {took:?} for {INPUT_BYTES_MAX} bytes of {part:?}");
        }
    }
}
