//! Input that wants to do harm: refused with a word, never a panic.

use super::{Kind, Sample, T, kind, kinds};
use crate::random::Random;
use recon::receive::{BODY_DEPTH_MAX, FORM_FIELDS_MAX, Refusal, TEXT_BYTES_MAX};

fn verify(kind: &Kind, sample: &Sample) -> Result<String, Refusal> {
    let verified = sample.verify(&kind.settings, &[&kind.secret])?;
    for found in &verified.events {
        assert!(!found.event_id.is_empty() && found.event_id.len() <= TEXT_BYTES_MAX);
        for text in [&found.event_id, &found.event_type, &found.account] {
            assert!(text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control), "{}", kind.name);
        }
        assert!(["live", "test"].contains(&found.mode.as_str()), "{}", kind.name);
        assert!(found.body.start <= found.body.end && found.body.end <= sample.body.len());
    }
    Ok(verified.events.into_iter().next().map(|found| found.event_id).unwrap_or_default())
}

fn stripe(body: impl AsRef<[u8]>) -> Result<String, Refusal> {
    let kind = kind("stripe");
    verify(&kind, &kind.sign(body))
}

#[test]
fn ids_have_a_length_and_no_control_characters() {
    let id = |id: &str| stripe(format!(r#"{{"id":"{id}"}}"#));
    let longest = "x".repeat(TEXT_BYTES_MAX);
    assert_eq!(id(&longest), Ok(longest.clone()));
    assert_eq!(id(&format!("{longest}x")), Err(Refusal::UnusableIdentity));
    assert_eq!(id(&"x".repeat(300)), Err(Refusal::UnusableIdentity));
    for bad in ["a\\u0000b", "a\\nb", "a\\u007fb", "a\\u0085b"] {
        assert_eq!(id(bad), Err(Refusal::UnusableIdentity), "{bad}");
    }
    assert_eq!(id(""), Err(Refusal::NoIdentity));
    assert_eq!(id("\\ud800"), Err(Refusal::NoIdentity), "half a character is no text");
    assert_eq!(id("é%20'; drop"), Ok("é%20'; drop".to_owned()));
    let more = format!(r#"{{"id":"evt_1","type":"{}"}}"#, "x".repeat(300));
    assert_eq!(stripe(more), Err(Refusal::UnusableIdentity));
    let more = format!(r#"{{"id":"evt_1","account":"{}"}}"#, "x".repeat(300));
    assert_eq!(stripe(more), Err(Refusal::UnusableIdentity));
}

#[test]
fn bodies_that_are_no_object_are_refused() {
    for body in [
        "",
        " ",
        "null",
        "true",
        "1",
        "\"evt_1\"",
        "[]",
        "[\"evt_1\"]",
        "{",
        "{\"id\":\"evt_1\"",
        "{\"id\":\"evt_1\"}}",
        "{\"id\":\"evt_1\"} {}",
        "{\"id\":\"evt_1\",\"id\":\"evt_2\"}",
        "\u{feff}{\"id\":\"evt_1\"}",
        "{\"id\":\"evt_1\"}\0",
        "\0{\"id\":\"evt_1\"}",
        "{'id':'evt_1'}",
        "{\"id\":\"a\tb\"",
        "id=evt_1",
    ] {
        assert_eq!(stripe(body), Err(Refusal::MalformedBody), "{body:?}");
    }
    assert_eq!(stripe(b"{\"id\":\"evt_1\",\"note\":\"\xff\"}"), Err(Refusal::MalformedBody));
    assert_eq!(stripe(b"\xff\xfe{\0"), Err(Refusal::MalformedBody));
    for (body, refusal) in [
        (r#"{"id":null}"#, Refusal::NoIdentity),
        (r#"{"id":{"id":"evt_1"}}"#, Refusal::NoIdentity),
        (r#"{"id":["evt_1"]}"#, Refusal::NoIdentity),
        (r#"{"id":true}"#, Refusal::NoIdentity),
        (r#"{"id":1.5}"#, Refusal::NoIdentity),
        (r#"{"ID":"evt_1"}"#, Refusal::NoIdentity),
        ("{}", Refusal::NoIdentity),
    ] {
        assert_eq!(stripe(body), Err(refusal), "{body}");
    }
}

#[test]
fn nesting_has_a_depth() {
    let nested = |depth: usize| {
        format!(r#"{{"id":"evt_1","data":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
    };
    assert_eq!(stripe(nested(BODY_DEPTH_MAX)), Ok("evt_1".to_owned()));
    assert_eq!(stripe(nested(BODY_DEPTH_MAX + 1)), Err(Refusal::MalformedBody));
    assert_eq!(stripe(nested(1_000_000)), Err(Refusal::MalformedBody));
    // What may be stored can be read whole by an ordinary reader later.
    assert!(serde_json::from_str::<serde_json::Value>(&nested(BODY_DEPTH_MAX)).is_ok());
    // Brackets inside of texts do not nest.
    let text = format!(r#"{{"id":"evt_1","note":"\"{}\\"}}"#, "[{".repeat(1_000));
    assert_eq!(stripe(text), Ok("evt_1".to_owned()));
    for kind in kinds() {
        for open in ["[", "{\"a\":", "{\"notificationItems\":["] {
            assert!(verify(&kind, &kind.sign(open.repeat(200_000))).is_err() || kind.name == "twilio_form");
        }
    }
}

#[test]
fn forms_have_a_number_of_fields() {
    let kind = kind("twilio_form");
    let form = |count: usize| vec!["a=1"; count].join("&");
    assert!(verify(&kind, &kind.sign(form(FORM_FIELDS_MAX))).is_ok());
    assert_eq!(verify(&kind, &kind.sign(form(FORM_FIELDS_MAX + 1))), Err(Refusal::MalformedBody));
}

#[test]
fn content_types_that_the_scheme_does_not_send_are_refused() {
    for name in ["github", "slack", "twilio_form"] {
        let kind = kind(name);
        for wrong in ["text/xml", "multipart/form-data; boundary=x", "image/png", "application/jsonx"] {
            let sample = kind.sample().without("content-type").header("Content-Type", wrong);
            assert_eq!(verify(&kind, &sample), Err(Refusal::WrongContentType), "{name} {wrong}");
        }
    }
    let kind = kind("github");
    for right in ["application/JSON", "application/json; charset=utf-8", "application/vnd.github+json"] {
        let sample = kind.sample().without("content-type").header("Content-Type", right);
        assert!(verify(&kind, &sample).is_ok(), "{right}");
    }
}

#[test]
fn a_header_that_is_needed_stands_once() {
    for kind in kinds() {
        let sample = kind.sample();
        for (name, value) in sample.headers.clone() {
            let is_signature = name.eq_ignore_ascii_case(kind.signature_header);
            // The same value twice is no clearer.
            let twice = sample.clone().header(&name.to_uppercase(), &value);
            let result = verify(&kind, &twice);
            let unused = ["x-shopify-webhook-id"].contains(&name.to_lowercase().as_str());
            assert!(unused || result == Err(Refusal::MalformedHeader), "{} {name} {result:?}", kind.name);
            let missing = sample.clone().without(&name);
            let empty = missing.clone().header(&name, " ");
            if is_signature {
                assert_eq!(verify(&kind, &missing), Err(Refusal::MissingSignature), "{}", kind.name);
                assert_eq!(verify(&kind, &empty), Err(Refusal::MissingSignature), "{}", kind.name);
            }
            for bad in [&b"\xff"[..], b"a\0b", b"a\nb", "é".as_bytes()] {
                let bad = missing.clone().header(&name, bad);
                assert!(
                    unused || verify(&kind, &bad) == Err(Refusal::MalformedHeader),
                    "{} {name}",
                    kind.name
                );
            }
        }
        let named = Sample { headers: Vec::new(), ..sample.clone() };
        if !kind.signature_header.is_empty() {
            assert_eq!(verify(&kind, &named), Err(Refusal::MissingSignature), "{}", kind.name);
        }
        // Blanks around a value are HTTP's.
        let mut padded = sample;
        for (_, value) in &mut padded.headers {
            *value = [&b" \t"[..], value, b" "].concat();
        }
        assert!(verify(&kind, &padded).is_ok(), "{}", kind.name);
    }
}

#[test]
fn headers_that_do_not_have_the_form_are_refused() {
    for kind in kinds().iter().filter(|kind| !["asaas", "adyen"].contains(&kind.name)) {
        for wrong in [
            "x",
            "=",
            ",",
            ",,,,",
            "=,=",
            "v1=",
            "t=",
            "t=,v1=",
            "sha256=",
            "sha256",
            "v0=",
            "v1,",
            "v1a,",
            "ts=1;h1=",
            "t=1,t=1,v1=00",
            "ts=1;ts=1;h1=00",
            "ts=1,ts=2,v1=00",
            "sha256=0",
            "sha256=zz",
            "sha256=é",
            "AA",
            "A===",
            &"t=1,".repeat(1_000),
            &"v1,AAAA ".repeat(1_000),
            &"=".repeat(10_000),
        ] {
            let sample = kind.sample().without(kind.signature_header);
            let refusal = verify(kind, &sample.header(kind.signature_header, wrong)).unwrap_err();
            let known = [Refusal::MalformedSignature, Refusal::WrongSignature, Refusal::MalformedHeader];
            assert!(known.contains(&refusal), "{} {wrong} {refusal:?}", kind.name);
        }
    }
}

#[test]
fn only_the_first_signatures_of_a_header_are_looked_at() {
    let kind = kind("stripe");
    let header = String::from_utf8(kind.sample().headers[0].1.clone()).unwrap();
    let good = header.split(',').nth(1).unwrap();
    let with = |before: usize| {
        let zeros = format!("v1={},", "0".repeat(64)).repeat(before);
        let sample = kind.sample().without("stripe-signature");
        verify(&kind, &sample.header("Stripe-Signature", format!("t={T},{zeros}{good}")))
    };
    assert!(with(15).is_ok());
    assert_eq!(with(16), Err(Refusal::WrongSignature));
}

/// What parsers look for.
const LIKELY: &[u8] = br#"{}[]":,\0123456789abctv=;.+-/ e&%"#;

fn bytes(random: &mut Random, length_max: u64) -> Vec<u8> {
    let length = random.below(length_max + 1);
    (0..length)
        .map(|_| if random.chance(80) { *random.pick(LIKELY) } else { random.next().to_le_bytes()[0] })
        .collect()
}

fn mutated(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap();
        let byte = random.next().to_le_bytes()[0];
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] = byte,
            1 if at < bytes.len() => {
                bytes.remove(at);
            }
            2 => bytes.truncate(at),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

/// Random and mutated bytes, unsigned and signed, into every reader. A panic or an unusable key fails.
#[test]
fn seeded_noise_never_panics() {
    for kind in kinds() {
        let mut refused = 0;
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let body = if random.chance(50) {
                bytes(&mut random, 200)
            } else {
                mutated(&mut random, kind.body.as_bytes())
            };
            let signed = kind.sign(&body);
            refused += u32::from(verify(&kind, &signed).is_err());
            let mut noisy = signed;
            for (_, value) in &mut noisy.headers {
                if random.chance(50) {
                    *value =
                        if random.chance(50) { bytes(&mut random, 100) } else { mutated(&mut random, value) };
                }
            }
            if let Ok(url) = String::from_utf8(mutated(&mut random, noisy.url.as_bytes())) {
                noisy.url = url;
            }
            noisy.at_us = i64::from_le_bytes(random.next().to_le_bytes());
            verify(&kind, &noisy).ok();
        }
        assert!(refused > 0 || kind.name == "twilio_form", "{}", kind.name);
    }
}
