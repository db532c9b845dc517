//! The official SDKs as witnesses: what they sign is accepted here, and what they accept or refuse is accepted or
//! refused here, sample by sample. `PyPI`'s run in the witness's virtual environment, npm's in a folder beside it.
//!
//! Named differences, all on the strict side: stripe-python accepts timestamps from the future; Paddle's SDK for Node
//! too, and nothing older than 5 s; Mercado Pago's looks at no time unless it is told to.

use crate::receive::{Kind, Sample, T, kind};
use crate::witness::venv;
use recon::record::hex;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PYPI: [&str; 7] = ["stripe", "slack", "standard", "twilio_form", "twilio_json", "adyen", "square"];
const NPM: [&str; 4] = ["github", "shopify", "paddle", "mercado_pago"];

/// A sample with the secret that it is checked with.
struct Case {
    scheme: &'static str,
    what: String,
    secret: String,
    sample: Sample,
    /// What the SDK is known to do otherwise.
    is_excused: bool,
}

fn ask(action: &str, scheme: &str, secret: &str, sample: &Sample) -> Value {
    let headers: serde_json::Map<String, Value> = sample
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(String::from_utf8_lossy(value))))
        .collect();
    json!({
        "do": action, "scheme": scheme, "secret": secret, "url": sample.url, "headers": headers,
        "body": hex(&sample.body), "at_s": sample.at_us / 1_000_000,
    })
}

fn cases(kind: &Kind) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |what: String, secret: &str, sample: Sample, is_excused| {
        cases.push(Case { scheme: kind.name, what, secret: secret.to_owned(), sample, is_excused });
    };
    add("as signed".into(), &kind.secret, kind.sample(), false);
    let other = kind.secret.replace(['2', 'e', 'h', 'V'], "3");
    assert_ne!(other, kind.secret);
    add("another secret".into(), &other, kind.sample(), false);
    let body = kind.sample().body;
    for (at, body) in crate::receive::every_bit(&body).enumerate().filter(|(at, _)| at % 5 == 0) {
        add(format!("bit {at} of the body"), &kind.secret, Sample { body, ..kind.sample() }, false);
    }
    if !kind.signature_header.is_empty() {
        let sample = kind.sample();
        let is_signature = |(name, _): &(String, Vec<u8>)| name.eq_ignore_ascii_case(kind.signature_header);
        let place = sample.headers.iter().position(is_signature).unwrap();
        let value = String::from_utf8(sample.headers[place].1.clone()).unwrap();
        let marks = ["v1=", "h1=", "v0=", "sha256=", "v1,"];
        let start = marks.iter().find_map(|mark| Some(value.find(mark)? + mark.len())).unwrap_or(0);
        for at in start..value.len().min(start + 20) {
            let mut changed = sample.clone();
            let byte = &mut changed.headers[place].1[at];
            *byte = if *byte == b'a' { b'b' } else { b'a' };
            add(format!("place {at} of the signature"), &kind.secret, changed, false);
        }
        add("no signature".into(), &kind.secret, sample.without(kind.signature_header), false);
    }
    for seconds in [300, 301, -300, -301, 86_400, 4] {
        let is_paddle_late = kind.name == "paddle" && (6..=300).contains(&seconds);
        let is_future_taken = ["stripe", "paddle"].contains(&kind.name) && seconds == -301;
        let sample = kind.sample().at_s(T + seconds);
        add(format!("{seconds} s later"), &kind.secret, sample, is_paddle_late || is_future_taken);
    }
    if ["stripe", "standard"].contains(&kind.name) {
        let (separator, before) = if kind.name == "stripe" { (",", "v1=00") } else { (" ", "v1,AAAA") };
        let mut several = kind.sample();
        let place = several.headers.len() - 1;
        let value = String::from_utf8(several.headers[place].1.clone()).unwrap();
        several.headers[place].1 = format!("{value}{separator}{before}").into_bytes();
        add("a second signature".into(), &kind.secret, several, false);
    }
    cases
}

/// Both ways: what the SDK signs is accepted, and it decides as we do.
fn agree(schemes: &[&str], can_sign: &[&str], witness: impl Fn(&Value) -> Value) {
    let kinds: Vec<Kind> = schemes.iter().map(|name| kind(name)).collect();
    let signing: Vec<&Kind> = kinds.iter().filter(|kind| can_sign.contains(&kind.name)).collect();
    let cases: Vec<Case> = kinds.iter().flat_map(cases).collect();
    let asked = signing.iter().map(|kind| ask("sign", kind.name, &kind.secret, &kind.sample()));
    let asked = asked
        .chain(cases.iter().map(|case| ask("verify", case.scheme, &case.secret, &case.sample)))
        .collect();
    let answers = witness(&Value::Array(asked));
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), signing.len() + cases.len());

    for (kind, answer) in signing.iter().zip(answers) {
        let made = answer.as_str().unwrap();
        let mut sample = kind.sample();
        if kind.signature_header.is_empty() {
            sample.body = kind.body.replace("HMAC", made).into_bytes();
        } else {
            sample = sample.without(kind.signature_header).header(kind.signature_header, made);
        }
        assert_eq!(sample.slot(&kind.settings, &[&kind.secret]), Ok(1), "{} signed {made}", kind.name);
    }
    let mut accepted = std::collections::BTreeMap::new();
    for (case, answer) in cases.iter().zip(&answers[signing.len()..]) {
        let kind = kinds.iter().find(|kind| kind.name == case.scheme).unwrap();
        let ours = case.sample.slot(&kind.settings, &[&case.secret]);
        let theirs = answer.as_bool().unwrap();
        assert!(
            case.is_excused != (ours.is_ok() == theirs),
            "{}, {}: {ours:?} here, {theirs} there",
            case.scheme,
            case.what
        );
        *accepted.entry(case.scheme).or_insert(0) += u32::from(theirs);
    }
    for kind in &kinds {
        assert!(accepted[kind.name] >= 1, "{}: the SDK accepted nothing", kind.name);
    }
    println!("{} samples; accepted by the SDKs: {accepted:?}", cases.len());
}

#[test]
fn the_sdks_of_pypi_agree() {
    let can_sign = ["stripe", "slack", "standard", "twilio_form", "twilio_json", "adyen"];
    agree(&PYPI, &can_sign, |asked| venv::script(&["signatures.py"], &asked.to_string()));
}

#[test]
fn the_sdks_of_npm_agree() {
    let folder = npm();
    agree(&NPM, &["github"], |asked| {
        let mut command = Command::new("node");
        command.arg("signatures.mjs").current_dir(&folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    });
}

/// The folder with npm's SDKs and the script.
fn npm() -> PathBuf {
    let folder = packages("witness-npm", &venv::scripts().join("package.json"));
    std::fs::copy(venv::scripts().join("signatures.mjs"), folder.join("signatures.mjs")).unwrap();
    folder
}

/// A folder with npm's packages. It lies in the target folder and is made when it is not there or `package.json` has
/// changed.
pub fn packages(name: &str, package_json: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = std::fs::read_to_string(package_json).unwrap();
    let mark = folder.join("installed.json");
    if std::fs::read_to_string(&mark).ok().as_ref() != Some(&wanted) {
        std::fs::write(folder.join("package.json"), &wanted).unwrap();
        let arguments = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"];
        let output = Command::new("npm").args(arguments).current_dir(&folder).output();
        let why = match &output {
            Ok(output) if output.status.success() => String::new(),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        assert!(
            why.is_empty(),
            "this test needs packages of npm, and npm {arguments:?} failed: {why}\nhint: install nodejs 20 or later \
             with npm, let it reach the registry or a mirror, and run this test again"
        );
        std::fs::write(&mark, wanted).unwrap();
    }
    folder
}
