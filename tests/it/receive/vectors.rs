//! The constants that the providers publish, or that follow from what their own tests put in.

use super::{Kind, Sample, every_bit, kinds, settings};
use recon::receive::{Refusal, Scheme};

/// A published delivery: its name, scheme, secret, and what was sent.
struct Vector {
    name: &'static str,
    scheme: Scheme,
    secret: &'static str,
    sample: Sample,
}

const SLACK: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const STRIPE: &str = "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\",\n  \"data\": { \"object\": { \"id\": \"rdr_123\", \"object\": \"terminal.reader\" } }\n}";
const SQUARE: &str = r#"{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}"#;
const PADDLE: &str = r#"{"data":{"id":"pri_01hsdn96k2hxjzsq5yerecdj9j","name":null,"status":"active","quantity":{"maximum":999999,"minimum":1},"tax_mode":"account_setting","product_id":"pro_01hsdn8qp7yydry3x1yeg6a9rv","unit_price":{"amount":"1000","currency_code":"USD"},"custom_data":null,"description":"testing","import_meta":null,"trial_period":null,"billing_cycle":{"interval":"month","frequency":1},"unit_price_overrides":[]},"event_id":"evt_01hsdn97563968dy0szkmgjwh3","event_type":"price.created","occurred_at":"2024-03-20T10:07:35.590857Z","notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc"}"#;
const TWILIO_URL: &str = "https://mycompany.com/myapp.php?foo=1&bar=2";
const TWILIO_FORM: &str =
    "CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212&Caller=%2B14158675309";
const TWILIO_REPEATED: &str = "Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234";
const TWILIO_JSON: &str = r#"{"property": "value", "boolean": true}"#;
const TWILIO_JSON_SHA256: &str = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620";
const ADYEN_KEY: &str = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
const ADYEN_KEY_2: &str = "74F490DD33F7327BAECC88B2947C011FC02D014A473AAA33A8EC93E4DC069174";

fn twilio(url: &str, form: &str, signature: &str) -> Sample {
    Sample::new(form)
        .url(url)
        .header("X-Twilio-Signature", signature)
        .header("Content-Type", "application/x-www-form-urlencoded")
}

fn adyen(psp: &str, account: &str, reference: &str, amount: u32, signature: &str) -> Sample {
    let item = serde_json::json!({
        "additionalData": { "hmacSignature": signature },
        "amount": { "currency": "EUR", "value": amount },
        "eventCode": "AUTHORISATION",
        "eventDate": "2023-01-09T16:27:29+01:00",
        "merchantAccountCode": account,
        "merchantReference": reference,
        "pspReference": psp,
        "success": "true",
    });
    Sample::new(
        serde_json::json!({ "live": "false", "notificationItems": [{ "NotificationRequestItem": item }] })
            .to_string(),
    )
}

fn paddle(body: &str, header: &str, at_s: i64) -> Sample {
    Sample::new(body).header("Paddle-Signature", header).at_s(at_s)
}

fn square(url: &str, body: &str, signature: &str) -> Sample {
    Sample::new(body).url(url).header("x-square-hmacsha256-signature", signature)
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn vectors() -> Vec<Vector> {
    let row = |name, scheme, secret, sample| Vector { name, scheme, secret, sample };
    let twilio_row =
        |name, url, form, signature| row(name, Scheme::Twilio, "12345", twilio(url, form, signature));
    vec![
        // github/docs, validating-webhook-deliveries.md
        row(
            "github",
            Scheme::GitHub,
            "It's a Secret to Everybody",
            Sample::new("Hello, World!").header(
                "X-Hub-Signature-256",
                "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            ),
        ),
        // slackapi/python-slack-sdk, tests/slack_sdk/signature/test_signature_verifier.py
        row(
            "slack",
            Scheme::Slack,
            "8f742231b10e8888abcd99yyyzzz85a5",
            Sample::new(SLACK)
                .header("X-Slack-Request-Timestamp", "1531420618")
                .header(
                    "X-Slack-Signature",
                    "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
                )
                .header("Content-Type", "application/x-www-form-urlencoded")
                .at_s(1_531_420_618),
        ),
        // twilio/twilio-python, tests/unit/test_request_validator.py
        twilio_row("twilio", TWILIO_URL, TWILIO_FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
        twilio_row(
            "twilio, port in ours, not in theirs",
            "https://mycompany.com:443/myapp.php?foo=1&bar=2",
            TWILIO_FORM,
            "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
        ),
        twilio_row(
            "twilio, port in theirs, not in ours",
            TWILIO_URL,
            TWILIO_FORM,
            "kvajT1Ptam85bY51eRf/AJRuM3w=",
        ),
        twilio_row(
            "twilio, port of http",
            "http://mycompany.com/myapp.php?foo=1&bar=2",
            TWILIO_FORM,
            "0ZXoZLH/DfblKGATFgpif+LLRf4=",
        ),
        twilio_row(
            "twilio, a port of its own",
            "http://mycompany.com:1234/myapp.php?foo=1&bar=2",
            TWILIO_FORM,
            "Zmvh+3yNM1Phv2jhDCwEM3q5ebU=",
        ),
        twilio_row("twilio, repeated fields", TWILIO_URL, TWILIO_REPEATED, "IK+Dwps556ElfBT0I3Rgjkr1wJU="),
        row(
            "twilio, json",
            Scheme::Twilio,
            "12345",
            Sample::new(TWILIO_JSON)
                .url(&format!("{TWILIO_URL}&bodySHA256={TWILIO_JSON_SHA256}"))
                .header("X-Twilio-Signature", "a9nBmqA0ju/hNViExpshrM61xv4=")
                .header("Content-Type", "application/json"),
        ),
        // standard-webhooks, libraries/go/webhook_test.go
        row(
            "standard webhooks",
            Scheme::StandardWebhooks,
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            Sample::new(r#"{"test": 2432232314}"#)
                .header("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
                .header("webhook-timestamp", "1614265330")
                .header("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
                .at_s(1_614_265_330),
        ),
        // square/square-python-sdk, tests/integration/test_webhooks_helper.py
        row(
            "square",
            Scheme::Square,
            "Ibxx_5AKakO-3qeNVR61Dw",
            square(
                "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
                SQUARE,
                "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=",
            ),
        ),
        row(
            "square, characters of HTML",
            Scheme::Square,
            "signature-key",
            square(
                "https://webhook.site/webhooks",
                r#"{"data":{"type":"webhooks","id":">id<"}}"#,
                "Cxt7+aTi4rKgcA0bC4g9EHdVtLSDWdqccmL5MvihU4U=",
            ),
        ),
        // Adyen/adyen-python-api-library, test/UtilTest.py and test/mocks/util
        row(
            "adyen",
            Scheme::Adyen,
            ADYEN_KEY,
            adyen(
                "7914073381342284",
                "TestMerchant",
                "TestPayment-1407325143704",
                1_130,
                "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=",
            ),
        ),
        row(
            "adyen, backslashes",
            Scheme::Adyen,
            ADYEN_KEY_2,
            adyen(
                "T7FD4VM4D3RZNN82",
                "AntoniStroinski",
                r"\\slashes are fun",
                1_000,
                "nIgT81gaB5oJpn2jPXupDq68iRo2wUlBsuYjtYfwKqo=",
            ),
        ),
        row(
            "adyen, colon",
            Scheme::Adyen,
            ADYEN_KEY_2,
            adyen(
                "M8NB66SBZSGLNK82",
                "AntoniStroinski",
                ":slashes are fun",
                1_000,
                "2EQYm7YJpKO4EtHSPu55SQTyWf8dkW5u2nD1tJFpViA=",
            ),
        ),
        // PaddleHQ/paddle-node-sdk, webhooks-validator.node.test.ts; PaddleHQ/paddle-go-sdk, webhook_verifier_test.go
        row(
            "paddle",
            Scheme::Paddle,
            "VALID_SECRET",
            paddle(
                r#"{"data": ["1", "2"]}"#,
                "ts=1698796800;h1=a300428748dce5c70e4da19bffd60769591ea969c99dea3105d0ec9612cf43f9",
                1_698_796_800,
            ),
        ),
        row(
            "paddle, whole",
            Scheme::Paddle,
            "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr",
            paddle(
                PADDLE,
                "ts=1710929255;h1=6c05ef8fa83c44d751be6d259ec955ce5638e2c54095bf128e408e2fce1589c8",
                1_710_929_255,
            ),
        ),
        // mercadopago/sdk-nodejs, src/utils/webhook/webhook.spec.ts: its input, whose hash it computes
        row(
            "mercado pago",
            Scheme::MercadoPago,
            "your_secret_key_here",
            Sample::new("{}")
                .url("https://shop.example/mp?data.id=ORD01JQ4S4KY8HWQ6NA5PXB65B3D3&type=order")
                .header("x-request-id", "2066ca19-c6f1-498a-be75-1923005edd06")
                .header(
                    "x-signature",
                    "ts=1742505638683,v1=633f91233312dd391ec75fa0bea539cfc2d6c4918873305b84a96cc1c58db71c",
                ),
        ),
        // stripe/stripe-python, tests/test_webhook.py: its input, whose hash it computes
        row(
            "stripe",
            Scheme::Stripe,
            "whsec_test_secret",
            Sample::new(STRIPE).at_s(1_700_000_000).header(
                "Stripe-Signature",
                "t=1700000000,v1=3bfab77baf5f7b6991a46c9b53b6547d7afc56148b10468fcad9f35c1992ffbd",
            ),
        ),
    ]
}

#[test]
fn official_vectors_are_accepted() {
    for vector in vectors() {
        let slot = vector.sample.slot(&settings(vector.scheme), &[vector.secret]);
        assert_eq!(slot, Ok(1), "{}", vector.name);
    }
}

#[test]
fn official_vectors_do_not_match_another_secret() {
    for vector in vectors() {
        let settings = settings(vector.scheme);
        let wrong = "b".repeat(vector.secret.len());
        assert_eq!(vector.sample.slot(&settings, &[&wrong]), Err(Refusal::WrongSignature), "{}", vector.name);
        assert_eq!(vector.sample.slot(&settings, &[&wrong, vector.secret]), Ok(2), "{}", vector.name);
        assert_eq!(vector.sample.slot(&settings, &[]), Err(Refusal::WrongSignature), "{}", vector.name);
    }
}

#[test]
fn mercado_pago_signs_an_id_in_lower_case_or_as_it_stands() {
    let kind = super::kind("mercado_pago");
    let signed = |id: &str| {
        let manifest = format!("id:{id};ts:{};", super::T);
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, kind.secret.as_bytes());
        let made = recon::record::hex(ring::hmac::sign(&key, manifest.as_bytes()).as_ref());
        Sample::new("{}")
            .url("https://shop.example/mp?data.id=AbC1")
            .header("x-signature", format!("ts={}, v1={made}", super::T))
    };
    assert_eq!(signed("AbC1").slot(&kind.settings, &[&kind.secret]), Ok(1));
    assert_eq!(signed("abc1").slot(&kind.settings, &[&kind.secret]), Ok(1));
    assert_eq!(signed("ABC1").slot(&kind.settings, &[&kind.secret]), Err(Refusal::WrongSignature));
}

/// The signatures of every scheme: no single bit of what is signed, of the signature or of the secret may turn.
#[test]
fn one_bit_turned_anywhere_is_refused() {
    for kind in kinds() {
        assert_eq!(kind.sample().slot(&kind.settings, &[&kind.secret]), Ok(1), "{}", kind.name);
        if kind.is_body_signed {
            for body in every_bit(&kind.sample().body) {
                let turned = Sample { body, ..kind.sample() };
                refused(&kind, &turned, &kind.secret, "body");
            }
        }
        let sample = kind.sample();
        for (at, (name, value)) in sample.headers.iter().enumerate() {
            if name.to_lowercase() != kind.signature_header {
                continue;
            }
            // Other versions in Stripe's header are never looked at.
            let value = String::from_utf8(value.clone()).unwrap();
            let value = value.split(",v0").next().unwrap();
            for turned in every_bit(value.as_bytes()) {
                let mut headers = sample.headers.clone();
                headers[at].1 = turned;
                refused(&kind, &Sample { headers, ..sample.clone() }, &kind.secret, "signature");
            }
        }
        for secret in every_bit(kind.secret.as_bytes()) {
            let Ok(secret) = String::from_utf8(secret) else { continue };
            let is_hexadecimal = matches!(kind.name, "adyen" | "discord");
            if !(is_hexadecimal && secret.eq_ignore_ascii_case(&kind.secret)) {
                refused(&kind, &sample, &secret, "secret");
            }
        }
    }
}

#[track_caller]
fn refused(kind: &Kind, sample: &Sample, secret: &str, what: &str) {
    let result = sample.slot(&kind.settings, &[secret]);
    assert!(result.is_err(), "{}: a turned bit of the {what} is taken", kind.name);
}

/// What is signed beside the body is covered too.
#[test]
fn one_bit_turned_in_the_url_is_refused_where_the_url_is_signed() {
    for name in ["twilio_form", "twilio_json", "square", "hmac"] {
        let kind = super::kind(name);
        for url in every_bit(kind.sample().url.as_bytes()) {
            let Ok(url) = String::from_utf8(url) else { continue };
            refused(&kind, &kind.sample().url(&url), &kind.secret, "url");
        }
    }
    let kind = super::kind("mercado_pago");
    let other = kind.sample().url("https://shop.example/webhooks/mp?data.id=123457&type=payment");
    refused(&kind, &other, &kind.secret, "url");
}

#[test]
fn one_bit_turned_in_what_adyen_signs_is_refused() {
    let kind = super::kind("adyen");
    let body = String::from_utf8(kind.sample().body).unwrap();
    for signed in ["7914073381342284", "TestMerchant", "TestPayment-1407325143704", "1130", "EUR", "\"true\""]
    {
        let at = body.find(signed).unwrap();
        for turned in every_bit(signed.as_bytes()) {
            let turned = [&body.as_bytes()[..at], &turned, &body.as_bytes()[at + signed.len()..]].concat();
            refused(&kind, &Sample::new(turned), &kind.secret, signed);
        }
    }
}
