//! Field cases of signatures and scope (group L), and the rules that go with them for every scheme.

use super::{Sample, T, kind, kinds, owned, settings};
use recon::receive::{Refusal, Scheme, check_secrets};

const BODY: &str = r#"{"id":"evt_S41","amount":10.50,"note":"a/b"}"#;
const BY_NEW: &str = "d38987caca728710dbfc8096991fdf40261c79d860056318919dd384c0815483";
const BY_OLD: &str = "50c41f0bcca00effedc3c2130a888f27410115f3c08cbb36d0e3118cd26b503c";
const NEW: &str = "whsec_new_A";
const OLD: &str = "whsec_old_B";

fn stripe(body: &str, header: &str) -> Sample {
    Sample::new(body).header("Stripe-Signature", header)
}

#[test]
fn c83_the_bytes_as_received_are_what_is_checked_and_kept() {
    let settings = settings(Scheme::Stripe);
    let header = format!("t={T},v1={BY_NEW}");
    let verified = stripe(BODY, &header).verify(&settings, &[NEW]).unwrap();
    assert_eq!((verified.events.len(), verified.events[0].event_id.as_str()), (1, "evt_S41"));
    assert_eq!(&BODY[verified.events[0].body.clone()], BODY);
    let again = r#"{"id": "evt_S41", "amount": 10.5, "note": "a/b"}"#;
    assert_eq!(stripe(again, &header).verify(&settings, &[NEW]), Err(Refusal::WrongSignature));
}

#[test]
fn c85_any_v1_against_any_secret_of_the_endpoint() {
    let settings = settings(Scheme::Stripe);
    let zeros = "0".repeat(64);
    let header = format!("t={T},v1={zeros},v1={BY_OLD}");
    assert_eq!(stripe(BODY, &header).slot(&settings, &[NEW, OLD]), Ok(2));
    assert_eq!(stripe(BODY, &header).slot(&settings, &[NEW]), Err(Refusal::WrongSignature));
    let both = format!("t={T},v1={BY_NEW},v1={BY_OLD}");
    assert_eq!(stripe(BODY, &both).slot(&settings, &[NEW, OLD]), Ok(1));
    assert_eq!(stripe(BODY, &both).slot(&settings, &[OLD]), Ok(1));
    // `v0` and others never count.
    for header in [format!("t={T},v0={BY_NEW}"), format!("t={T},v2={BY_NEW}"), format!("t={T}")] {
        assert_eq!(stripe(BODY, &header).slot(&settings, &[NEW]), Err(Refusal::MalformedSignature));
    }
    let beside = format!("t={T},v1=nonsense,v1={BY_NEW}");
    assert_eq!(stripe(BODY, &beside).slot(&settings, &[NEW]), Ok(1));
}

#[test]
fn c86_age_is_two_sided_inclusive_and_judged_at_receipt() {
    let settings = settings(Scheme::Stripe);
    let header = format!("t={T},v1={BY_NEW}");
    let at = |seconds: i64| stripe(BODY, &header).at_s(T + seconds).slot(&settings, &[NEW]);
    assert_eq!((at(300), at(-300)), (Ok(1), Ok(1)));
    assert_eq!((at(301), at(-301)), (Err(Refusal::TooOld), Err(Refusal::FromTheFuture)));
    let mut late = stripe(BODY, &header).at_s(T + 300);
    late.at_us += 1;
    assert_eq!(late.slot(&settings, &[NEW]), Err(Refusal::TooOld));
    for time in ["", "x", "-5", "+5", "1e9", "1767225600.5", " 1767225600", "17672256000000"] {
        let header = format!("t={time},v1={BY_NEW}");
        assert_eq!(stripe(BODY, &header).slot(&settings, &[NEW]), Err(Refusal::MalformedSignature), "{time}");
    }
    // The signature comes first: who cannot sign learns nothing of the clock.
    let wrong = stripe(BODY, &header).at_s(T + 301).slot(&settings, &[OLD]);
    assert_eq!(wrong, Err(Refusal::WrongSignature));
}

#[test]
fn c86_holds_for_every_scheme_that_renews_its_time() {
    for kind in kinds() {
        let at = |seconds: i64| kind.sample().at_s(T + seconds).slot(&kind.settings, &[&kind.secret]);
        let far = (at(301), at(-301), at(1_000_000));
        if kind.is_timed {
            assert_eq!((at(300), at(-300)), (Ok(1), Ok(1)), "{}", kind.name);
            let old = Err(Refusal::TooOld);
            assert_eq!(far, (old, Err(Refusal::FromTheFuture), old), "{}", kind.name);
        } else {
            assert_eq!(far, (Ok(1), Ok(1), Ok(1)), "{}", kind.name);
        }
    }
}

#[test]
fn c86_a_limit_may_be_set_where_none_is_the_default() {
    for name in ["discord", "mercado_pago"] {
        let mut kind = kind(name);
        kind.settings.age_max_s = Some(60);
        let at = |seconds: i64| kind.sample().at_s(T + seconds).slot(&kind.settings, &[&kind.secret]);
        assert_eq!((at(60), at(-60)), (Ok(1), Ok(1)), "{name}");
        assert_eq!((at(61), at(-61)), (Err(Refusal::TooOld), Err(Refusal::FromTheFuture)), "{name}");
    }
    // Milliseconds, as Mercado Pago's documentation shows them.
    let kind = kind("mercado_pago");
    let mut limited = kind.settings.clone();
    limited.age_max_s = Some(60);
    let at = |seconds: i64| {
        kind.sign_with(&kind.secret, kind.body, T * 1_000).at_s(T + seconds).slot(&limited, &[&kind.secret])
    };
    assert_eq!((at(60), at(61)), (Ok(1), Err(Refusal::TooOld)));
}

#[test]
fn c88_the_mode_is_part_of_the_key() {
    let kind = kind("stripe");
    let event = |live: &str| {
        let body = format!(r#"{{"id":"evt_00000000000000","type":"charge.succeeded","livemode":{live}}}"#);
        let verified = kind.sign(body).verify(&kind.settings, &[&kind.secret]);
        verified.map(|verified| (verified.events[0].event_id.clone(), verified.events[0].mode.clone()))
    };
    let id = || "evt_00000000000000".to_owned();
    // Verified and kept, whatever the endpoint's own mode is: the worker sees the wrong scope.
    assert_eq!(event("false"), Ok((id(), "test".to_owned())));
    assert_eq!(event("true"), Ok((id(), "live".to_owned())));
    assert_eq!(event("null"), Ok((id(), "live".to_owned())));
    for unreadable in ["\"maybe\"", "0", "{}"] {
        assert_eq!(event(unreadable), Err(Refusal::MalformedBody), "{unreadable}");
    }
}

#[test]
fn c36_an_unknown_type_has_a_good_signature() {
    let kind = kind("stripe");
    let body = r#"{"id":"evt_1","type":"payment_intent.teleported","data":{"object":{"status":7}}}"#;
    let verified = kind.sign(body).verify(&kind.settings, &[&kind.secret]).unwrap();
    assert_eq!(verified.events[0].event_type, "payment_intent.teleported");
}

#[test]
fn c37_ids_keep_every_digit() {
    let kind = kind("mercado_pago");
    for id in ["9007199254740992", "9007199254740993", "9223372036854775807", "123"] {
        for spelt in [id.to_owned(), format!("\"{id}\"")] {
            let body = format!(r#"{{"id":{spelt},"data":{{"id":"123456"}}}}"#);
            let verified = kind.sign(body).verify(&kind.settings, &[&kind.secret]).unwrap();
            assert_eq!(verified.events[0].event_id, id);
        }
    }
}

#[test]
fn a_rotation_works_for_every_scheme() {
    for kind in kinds().iter().filter(|kind| !["discord", "standard_ed25519"].contains(&kind.name)) {
        let old = match kind.name {
            "adyen" => "00ff",
            "standard" => "whsec_b2xkIHNlY3JldCBvbGQgc2VjcmV0IG9sZA==",
            "hmac" => "b2xkIHNlY3JldA==",
            _ => "the old secret",
        };
        let by_old = kind.sign_with(old, kind.body, T);
        let slot = |secrets: &[&str]| by_old.slot(&kind.settings, secrets);
        assert_eq!(slot(&[&kind.secret, old]), Ok(2), "{}", kind.name);
        assert_eq!(slot(&[old, &kind.secret]), Ok(1), "{}", kind.name);
        assert_eq!(slot(&[&kind.secret]), Err(Refusal::WrongSignature), "{}", kind.name);
        let verified = by_old.verify(&kind.settings, &[&kind.secret, old]).unwrap();
        assert_eq!(verified.secret_slot, 2);
    }
}

#[test]
fn an_empty_secret_signs_nothing() {
    for kind in kinds().iter().filter(|kind| !["discord", "standard_ed25519"].contains(&kind.name)) {
        let sample = kind.sign_with("", kind.body, T);
        assert!(sample.slot(&kind.settings, &[""]).is_err(), "{}", kind.name);
        assert!(sample.slot(&kind.settings, &["", &kind.secret]).is_err(), "{}", kind.name);
    }
}

#[test]
fn unusable_secrets_are_found_before_the_first_delivery() {
    for kind in kinds() {
        let check = |secrets: &[&str]| check_secrets(&kind.settings.scheme, &owned(secrets));
        assert_eq!(check(&[&kind.secret]), Ok(()), "{}", kind.name);
        assert_eq!(check(&[]).unwrap_err().slot, 0, "{}", kind.name);
        assert_eq!(check(&[&kind.secret, ""]).unwrap_err().slot, 2, "{}", kind.name);
    }
    for (name, secret) in [
        ("adyen", "xyz"),
        ("discord", "abcd"),
        ("standard", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("standard", "whpk_AAAA"),
        ("standard", "whsec_*"),
        ("hmac", "*"),
    ] {
        let unusable = check_secrets(&kind(name).settings.scheme, &owned(&[secret])).unwrap_err();
        assert!(unusable.slot == 1 && !unusable.to_string().contains(secret), "{name}: {unusable}");
    }
}

#[test]
fn c82_nothing_of_a_delivery_is_in_what_can_be_logged() {
    for kind in kinds() {
        let sample = kind.sample();
        let refusal = sample.slot(&kind.settings, &["xxxx"]).unwrap_err();
        let said = format!("{refusal} {refusal:?} {} {:?}", refusal.as_str(), owned(&[&kind.secret]));
        for hidden in [kind.secret.as_str(), "evt_", "signature_value"] {
            assert!(!said.contains(hidden), "{}: {said}", kind.name);
        }
    }
}

#[test]
fn refusals_have_words_of_their_own() {
    let words: std::collections::BTreeSet<&str> =
        Refusal::ALL.iter().map(|refusal| refusal.as_str()).collect();
    assert_eq!(words.len(), Refusal::ALL.len());
    for refusal in Refusal::ALL {
        assert!([400, 401, 415, 503].contains(&refusal.status()), "{refusal:?}");
        let is_label = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        assert!(refusal.as_str().chars().all(is_label), "{refusal:?}");
    }
}
