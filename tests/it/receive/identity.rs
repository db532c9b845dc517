//! Which events a delivery holds: ids, composed keys, accounts, modes, batches, and what is answered.

use super::{Kind, Sample, T, kind, kinds};
use recon::receive::{Received, Refusal, Reply, Verified};
use recon::record::sha256_hex;

#[track_caller]
fn verified(kind: &Kind, sample: &Sample) -> Verified {
    sample.verify(&kind.settings, &[&kind.secret]).unwrap_or_else(|why| panic!("{}: {why}", kind.name))
}

/// The only event of a body.
#[track_caller]
fn event(kind: &Kind, body: &str) -> Received {
    let mut verified = verified(kind, &kind.sign(body));
    assert_eq!(verified.events.len(), 1);
    verified.events.remove(0)
}

#[track_caller]
fn id(kind: &Kind, body: &str) -> String {
    event(kind, body).event_id
}

#[track_caller]
fn refusal(kind: &Kind, sample: &Sample) -> Refusal {
    sample.verify(&kind.settings, &[&kind.secret]).unwrap_err()
}

#[test]
fn every_scheme_finds_its_event() {
    for kind in kinds() {
        let sample = kind.sample();
        let verified = verified(&kind, &sample);
        assert_eq!((verified.secret_slot, verified.events.len()), (1, 1), "{}", kind.name);
        let found = &verified.events[0];
        let (id, event_type, account, mode, created_us) = &kind.expected;
        assert_eq!(
            (&found.event_id, found.event_type.as_str(), found.account.as_str(), found.mode.as_str()),
            (id, *event_type, *account, *mode),
            "{}",
            kind.name
        );
        assert_eq!(found.created_us, *created_us, "{}", kind.name);
        if !["adyen", "twilio_json"].contains(&kind.name) {
            assert_eq!(found.body, 0..sample.body.len(), "{}", kind.name);
        }
        let reply = match kind.name {
            "adyen" => Reply::Accepted,
            "discord" => Reply::NoContent,
            _ => Reply::Ok,
        };
        assert_eq!(verified.reply, reply, "{}", kind.name);
    }
}

#[test]
fn replies_are_what_each_provider_wants_to_hear() {
    let said = |reply: &Reply| (reply.status(), reply.content_type(), reply.body().to_owned());
    assert_eq!(said(&Reply::Ok), (200, None, String::new()));
    assert_eq!(said(&Reply::NoContent), (204, None, String::new()));
    let text = Some("text/plain; charset=utf-8");
    assert_eq!(said(&Reply::Accepted), (200, text, "[accepted]".to_owned()));
    assert_eq!(said(&Reply::Challenge("3eZb".into())), (200, text, "3eZb".to_owned()));
    assert_eq!(said(&Reply::Pong), (200, Some("application/json"), r#"{"type":1}"#.to_owned()));
}

#[test]
fn the_endpoint_s_account_and_mode_stand_in_where_the_body_says_none() {
    let mut kind = kind("stripe");
    kind.settings.account = "acct_own".into();
    kind.settings.mode = "test".into();
    let found = event(&kind, r#"{"id":"evt_1"}"#);
    assert_eq!((found.account.as_str(), found.mode.as_str()), ("acct_own", "test"));
    let found = event(&kind, r#"{"id":"evt_1","account":"acct_1","livemode":true}"#);
    assert_eq!((found.account.as_str(), found.mode.as_str()), ("acct_1", "live"));
    let found = event(&kind, r#"{"id":"evt_1","account":null,"livemode":null}"#);
    assert_eq!((found.account.as_str(), found.mode.as_str()), ("acct_own", "test"));
}

#[test]
fn stripe_thin_events_are_not_for_this_path() {
    let kind = kind("stripe");
    let thin = kind.sign(r#"{"id":"evt_1","object":"v2.core.event","created":"2026-01-01T00:00:00.000Z"}"#);
    assert_eq!(refusal(&kind, &thin), Refusal::Unsupported);
}

#[test]
fn github_forms_are_signed_as_forms() {
    let kind = kind("github");
    let form = kind.sign("payload=%7B%22action%22%3A%22closed%22%7D").without("content-type");
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let found = &verified(&kind, &form).events[0];
    assert_eq!(found.event_type, "issues.closed");
    assert_eq!(found.body, 0..form.body.len());
    let ping = kind.sign("{}").without("x-github-event").header("x-github-event", "ping");
    assert_eq!(verified(&kind, &ping).events[0].event_type, "ping");
    let none = kind.sign("{}").without("x-github-delivery");
    assert_eq!(refusal(&kind, &none), Refusal::NoIdentity);
}

#[test]
fn shopify_headers_have_two_spellings() {
    let kind = kind("shopify");
    let old = kind.sample();
    let mut new = old.clone();
    for (name, _) in &mut new.headers {
        *name = name.trim_start_matches("X-").to_lowercase();
    }
    assert_eq!(verified(&kind, &new), verified(&kind, &old));
    let mut both = old.clone();
    both.headers.extend(new.headers.clone());
    assert_eq!(verified(&kind, &both), verified(&kind, &old));
    both.headers.iter_mut().find(|(name, _)| name == "shopify-topic").unwrap().1 = b"orders/paid".to_vec();
    assert_eq!(refusal(&kind, &both), Refusal::MalformedHeader);
    // One act of a merchant sets off several topics.
    let other = old.clone().without("x-shopify-topic").header("x-shopify-topic", "orders/paid");
    assert_ne!(verified(&kind, &other).events[0].event_id, verified(&kind, &old).events[0].event_id);
    // Another subscription to the same topic is the same event.
    let second = old.clone().without("x-shopify-webhook-id").header("x-shopify-webhook-id", "other");
    assert_eq!(verified(&kind, &second), verified(&kind, &old));
    let without = old.without("x-shopify-event-id");
    let id = "webhook:b54557e4-bdd9-4b37-8a5f-bf7d70bcd043";
    assert_eq!(verified(&kind, &without).events[0].event_id, id);
    assert_eq!(refusal(&kind, &without.without("x-shopify-webhook-id")), Refusal::NoIdentity);
}

#[test]
fn twilio_composes_keys_of_what_it_signs() {
    let kind = kind("twilio_form");
    assert_eq!(id(&kind, "SmsSid=SM2&SmsStatus=received&Body=hi"), "SM2:received");
    assert_eq!(
        id(&kind, "CallSid=CA1&CallStatus=completed&SequenceNumber=3&CallbackSource=x"),
        "CA1:completed:3"
    );
    // Every step of a call is `in-progress`: they are different events.
    let first = id(&kind, "CallSid=CA1&CallStatus=in-progress&Digits=1");
    let second = id(&kind, "CallSid=CA1&CallStatus=in-progress&Digits=2");
    assert!(first.starts_with("CA1:in-progress:sha256:") && first != second, "{first} {second}");
    assert_eq!(id(&kind, "CallSid=CA1&CallStatus=in-progress&Digits=1"), first);
    assert!(id(&kind, "Anything=1").starts_with("sha256:"));

    let kind = super::kind("twilio_json");
    let batch = kind.sign(r#" [{"id":"EZ1","type":"a"} , {"id":"EZ2","type":"b"}]"#);
    let verified = verified(&kind, &batch);
    let items: Vec<(&str, &[u8])> = verified
        .events
        .iter()
        .map(|found| (found.event_id.as_str(), &batch.body[found.body.clone()]))
        .collect();
    let raw: [&[u8]; 2] = [br#"{"id":"EZ1","type":"a"}"#, br#"{"id":"EZ2","type":"b"}"#];
    assert_eq!(items, [("EZ1", raw[0]), ("EZ2", raw[1])]);
    assert_eq!(refusal(&kind, &kind.sign("[]")), Refusal::NoIdentity);
    let single = id(&kind, r#"{"a":1}"#);
    assert_eq!(single, format!("sha256:{}", sha256_hex(br#"{"a":1}"#)));
}

#[test]
fn twilio_may_sign_with_sha256_and_a_key_of_its_own() {
    let kind = kind("twilio_form");
    let named = |algorithm: &str| {
        kind.sample().header("X-Twilio-Webhooks-Signature-Settings", format!("key=k,algorithm={algorithm}"))
    };
    assert_eq!(named("HMAC_SHA1").slot(&kind.settings, &[&kind.secret]), Ok(1));
    let wrong = named("HMAC_SHA256").slot(&kind.settings, &[&kind.secret]);
    assert_eq!(wrong, Err(Refusal::WrongSignature));
    assert_eq!(named("HMAC_MD5").slot(&kind.settings, &[&kind.secret]), Err(Refusal::Unsupported));
}

#[test]
fn slack_handshakes_commands_and_rate_limits() {
    let kind = kind("slack");
    let verify = |body: &str| verified(&kind, &kind.sign(body));
    let handshake = verify(r#"{"type":"url_verification","token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV"}"#);
    assert_eq!(handshake.reply, Reply::Challenge("3eZbrw1aBm2rZgRNFdxV".into()));
    assert!(handshake.events.is_empty());
    for challenge in ["", "a\\nb", &"x".repeat(1_025)] {
        let body = format!(r#"{{"type":"url_verification","challenge":"{challenge}"}}"#);
        assert_eq!(refusal(&kind, &kind.sign(body)), Refusal::MalformedBody, "{challenge}");
    }
    let limited =
        r#"{"type":"app_rate_limited","team_id":"T1","api_app_id":"A1","minute_rate_limited":1767225600}"#;
    let found = event(&kind, limited);
    assert_eq!(
        (found.event_id.as_str(), found.account.as_str(), found.created_us),
        ("app_rate_limited:A1:1767225600", "T1", Some(T * 1_000_000))
    );
    // A retry is an event like any other.
    let retry = kind.sample().header("x-slack-retry-num", "1").header("x-slack-retry-reason", "http_timeout");
    assert_eq!(verified(&kind, &retry), verified(&kind, &kind.sample()));
    let form = kind.sign("command=%2Fpay&team_id=T1&trigger_id=1").without("content-type");
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let found = &verified(&kind, &form).events[0];
    assert_eq!((found.event_type.as_str(), found.account.as_str()), ("slash_command", "T1"));
}

#[test]
fn discord_pings_are_answered_and_interactions_are_not_taken() {
    let kind = kind("discord");
    let verify = |body: &str| kind.sign(body).verify(&kind.settings, &[&kind.secret]);
    let reply = |body: &str| verify(body).map(|verified| (verified.events.len(), verified.reply));
    assert_eq!(reply(r#"{"version":1,"application_id":"1","type":0}"#), Ok((0, Reply::NoContent)));
    assert_eq!(reply(r#"{"version":1,"application_id":"1","type":1}"#), Ok((0, Reply::Pong)));
    assert_eq!(reply(r#"{"id":"1","type":2,"data":{}}"#), Err(Refusal::Unsupported));
    assert_eq!(Refusal::WrongSignature.status(), 401);
}

#[test]
fn mercado_pago_s_body_must_say_what_the_signature_says() {
    let kind = kind("mercado_pago");
    let other = kind.sign(r#"{"id":1,"data":{"id":"999"}}"#);
    assert_eq!(refusal(&kind, &other), Refusal::Contradiction);
    // Notifications of orders have no id.
    let order = r#"{"action":"order.processed","type":"order","data":{"id":"123456"},"user_id":"7"}"#;
    let found = event(&kind, order);
    assert_eq!(found.event_id, format!("sha256:{}", sha256_hex(order.as_bytes())));
    assert_eq!((found.event_type.as_str(), found.account.as_str()), ("order.processed", "7"));
    assert_eq!(event(&kind, r#"{"id":1,"live_mode":false}"#).mode, "test");
}

#[test]
fn pagbank_keys_are_charge_status_and_sums() {
    let kind = kind("pagbank");
    let charge = |id: &str, status: &str, refunded: u32| {
        format!(
            r#"{{"id":"{id}","status":"{status}","amount":{{"summary":{{"paid":500,"refunded":{refunded}}}}}}}"#
        )
    };
    let order = |charges: &str| format!(r#"{{"id":"ORDE_1","charges":[{charges}]}}"#);
    assert_eq!(id(&kind, &charge("CHAR_1", "PAID", 100)), "CHAR_1:PAID:500:100");
    assert_eq!(id(&kind, &order(&charge("CHAR_1", "PAID", 100))), "CHAR_1:PAID:500:100");
    let two =
        |refunded| id(&kind, &order(&[charge("A", "PAID", 0), charge("B", "PAID", refunded)].join(",")));
    assert!(two(0).starts_with("ORDE_1:sha256:") && two(0) != two(1));
    assert!(id(&kind, &order("")).starts_with("ORDE_1:sha256:"));
    assert_eq!(refusal(&kind, &kind.sign(r#"{"charges":[]}"#)), Refusal::NoIdentity);
    let recurring = Sample::new("{}").header("X-Payload-Signature", "MEUCIQ==");
    assert_eq!(refusal(&kind, &recurring), Refusal::Unsupported);
}

#[test]
fn adyen_items_are_signed_and_kept_one_by_one() {
    let kind = kind("adyen");
    let one = String::from_utf8(kind.sample().body).unwrap();
    let start = one.find("[{").unwrap() + 1;
    let item = &one[start..one.len() - 2];
    let batch = |items: &[&str]| {
        Sample::new(format!(r#"{{"live":"true","notificationItems":[ {} ]}}"#, items.join(" ,\n")))
    };
    let spaced = item.replace(",\"eventCode\"", " ,\n \"eventCode\"");
    let two = batch(&[item, &spaced]);
    let verified = verified(&kind, &two);
    let raw: Vec<&[u8]> = verified.events.iter().map(|found| &two.body[found.body.clone()]).collect();
    let inner = |item: &str| item.as_bytes()[r#"{"NotificationRequestItem":"#.len()..item.len() - 1].to_vec();
    assert_eq!(raw, [inner(item), inner(&spaced)]);
    assert!(verified.events.iter().all(|found| found.mode == "live"));
    let forged = item.replace("\"value\":1130", "\"value\":9130");
    assert_eq!(refusal(&kind, &batch(&[item, &forged])), Refusal::WrongSignature);
    let unsigned = item.replace("hmacSignature", "other");
    assert_eq!(refusal(&kind, &batch(&[item, &unsigned])), Refusal::MissingSignature);
    assert_eq!(refusal(&kind, &batch(&[])), Refusal::MalformedBody);
    let many = vec![item; 501];
    assert_eq!(refusal(&kind, &batch(&many)), Refusal::TooManyEvents);
    // A colon anywhere but in the merchant's own reference could have been moved there from it.
    let moved = item.replace("\"TestMerchant\"", "\"TestMerchant:Test\"");
    assert_eq!(refusal(&kind, &batch(&[&moved])), Refusal::MalformedBody);
    // Null and missing are the same: nothing.
    let null = item.replace("{\"additionalData\"", "{\"originalReference\":null,\"additionalData\"");
    assert_eq!(batch(&[&null]).slot(&kind.settings, &[&kind.secret]), Ok(1));
}

#[test]
fn a_scheme_of_the_settings_takes_its_id_where_it_is_told() {
    use recon::receive::{Place, Scheme, Template};
    let kind = kind("hmac");
    let with = |place: Option<Place>| {
        let mut kind = super::kind("hmac");
        let Scheme::Hmac(scheme) = &mut kind.settings.scheme else { panic!() };
        scheme.event_id = place;
        kind
    };
    let field = |path: &[&str]| Some(Place::Field(path.iter().map(|name| (*name).to_owned()).collect()));
    let found = verified(&with(None), &kind.sample());
    assert_eq!(found.events[0].event_id, format!("sha256:{}", sha256_hex(kind.body.as_bytes())));
    let found = verified(&with(Some(Place::Header("x-event".into()))), &kind.sample());
    assert_eq!(found.events[0].event_id, "invoice.paid");
    for path in [&["none"][..], &["meta", "none"], &["meta", "id", "deeper"], &["data"], &[]] {
        assert_eq!(refusal(&with(field(path)), &kind.sample()), Refusal::NoIdentity, "{path:?}");
    }
    for wrong in ["", "{timestamp}", "{body}{body}", "{body", "{secret}{body}"] {
        assert!(Template::parse(wrong).is_err(), "{wrong}");
    }
    for right in ["{body}", "{timestamp}.{body}", "a}b{body}"] {
        assert!(Template::parse(right).is_ok(), "{right}");
    }
}
