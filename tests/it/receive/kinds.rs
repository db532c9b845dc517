//! One endpoint of each scheme: settings, a secret, a body as the provider sends it, and how the provider signs.

use super::{Sample, T, settings};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use recon::receive::{Encoding, Hash, HmacScheme, Place, Scheme, Settings, Template};
use recon::record::{hex, sha256_hex};
use ring::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA512};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::fmt::Write;

pub struct Kind {
    pub name: &'static str,
    pub settings: Settings,
    pub secret: String,
    /// A body as the provider sends it.
    pub body: &'static str,
    /// (event id, type, account, mode, created)
    pub expected: (String, &'static str, &'static str, &'static str, Option<i64>),
    /// Signs a body at a time, Unix seconds, with a secret.
    sign: fn(&str, &[u8], i64) -> Sample,
    /// Whether a signature has a time in it that is checked.
    pub is_timed: bool,
    /// Whether every bit of the body is signed.
    pub is_body_signed: bool,
    /// The header of the signature; empty where it stands in the body.
    pub signature_header: &'static str,
}

impl Kind {
    pub fn sign(&self, body: impl AsRef<[u8]>) -> Sample {
        (self.sign)(&self.secret, body.as_ref(), T)
    }

    pub fn sign_with(&self, secret: &str, body: impl AsRef<[u8]>, at_s: i64) -> Sample {
        (self.sign)(secret, body.as_ref(), at_s)
    }

    pub fn sample(&self) -> Sample {
        self.sign(self.body)
    }
}

pub fn kind(name: &str) -> Kind {
    kinds().into_iter().find(|kind| kind.name == name).unwrap()
}

fn mac(algorithm: hmac::Algorithm, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, key), &parts.concat()).as_ref().to_vec()
}

fn sha256(key: &str, parts: &[&[u8]]) -> String {
    hex(&mac(HMAC_SHA256, key.as_bytes(), parts))
}

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap_or(0)).collect()
}

/// The pair whose public half is the "secret".
fn ed25519() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn stripe(secret: &str, body: &[u8], at_s: i64) -> Sample {
    let made = sha256(secret, &[format!("{at_s}.").as_bytes(), body]);
    Sample::new(body).header("Stripe-Signature", format!("t={at_s},v1={made},v0={made}"))
}

fn github(secret: &str, body: &[u8], _: i64) -> Sample {
    Sample::new(body)
        .header("X-Hub-Signature-256", format!("sha256={}", sha256(secret, &[body])))
        .header("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
        .header("X-GitHub-Event", "issues")
        .header("Content-Type", "application/json")
}

fn shopify(secret: &str, body: &[u8], _: i64) -> Sample {
    Sample::new(body)
        .header("X-Shopify-Hmac-Sha256", base64(&mac(HMAC_SHA256, secret.as_bytes(), &[body])))
        .header("X-Shopify-Event-Id", "98880550-7158-44d4-b7cd-2c97c8a091b5")
        .header("X-Shopify-Webhook-Id", "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043")
        .header("X-Shopify-Topic", "orders/create")
        .header("X-Shopify-Shop-Domain", "one.myshopify.com")
        .header("X-Shopify-Triggered-At", "2026-01-01T00:00:00.5Z")
}

fn twilio_form(secret: &str, body: &[u8], _: i64) -> Sample {
    let mut fields: Vec<(String, String)> = form_urlencoded::parse(body).into_owned().collect();
    fields.sort();
    fields.dedup();
    let text = fields.iter().fold(super::URL.to_owned(), |mut text, (name, value)| {
        write!(text, "{name}{value}").unwrap();
        text
    });
    let made = mac(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes(), &[text.as_bytes()]);
    Sample::new(body)
        .header("X-Twilio-Signature", base64(&made))
        .header("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
}

fn twilio_json(secret: &str, body: &[u8], _: i64) -> Sample {
    let url = format!("{}?bodySHA256={}", super::URL, sha256_hex(body));
    let made = mac(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes(), &[url.as_bytes()]);
    let sample = Sample::new(body).url(&url).header("X-Twilio-Signature", base64(&made));
    sample.header("Content-Type", "application/json")
}

fn slack(secret: &str, body: &[u8], at_s: i64) -> Sample {
    let made = sha256(secret, &[format!("v0:{at_s}:").as_bytes(), body]);
    Sample::new(body)
        .header("X-Slack-Signature", format!("v0={made}"))
        .header("X-Slack-Request-Timestamp", at_s.to_string())
        .header("Content-Type", "application/json")
}

fn discord(_: &str, body: &[u8], at_s: i64) -> Sample {
    let made = ed25519().sign(&[at_s.to_string().as_bytes(), body].concat());
    Sample::new(body)
        .header("X-Signature-Ed25519", hex(made.as_ref()))
        .header("X-Signature-Timestamp", at_s.to_string())
}

fn mercado_pago(secret: &str, body: &[u8], at_s: i64) -> Sample {
    let request = "2066ca19-c6f1-498a-be75-1923005edd06";
    let manifest = format!("id:123456;request-id:{request};ts:{at_s};");
    let made = sha256(secret, &[manifest.as_bytes()]);
    Sample::new(body)
        .url("https://shop.example/webhooks/mp?data.id=123456&type=payment")
        .header("x-signature", format!("ts={at_s},v1={made}"))
        .header("x-request-id", request)
}

fn asaas(secret: &str, body: &[u8], _: i64) -> Sample {
    Sample::new(body).header("asaas-access-token", secret)
}

fn pagbank(secret: &str, body: &[u8], _: i64) -> Sample {
    let made = sha256_hex(&[secret.as_bytes(), b"-", body].concat());
    Sample::new(body).header("x-authenticity-token", made)
}

/// Puts the signature where `HMAC` stands in the body; the signed text is that of the sample.
fn adyen(secret: &str, body: &[u8], _: i64) -> Sample {
    let text = b"7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true";
    let made = base64(&mac(HMAC_SHA256, &unhex(secret), &[text]));
    let at = body.windows(4).position(|window| window == b"HMAC");
    let body = match at {
        Some(at) => [&body[..at], made.as_bytes(), &body[at + 4..]].concat(),
        None => body.to_vec(),
    };
    Sample::new(body)
}

fn paddle(secret: &str, body: &[u8], at_s: i64) -> Sample {
    let made = sha256(secret, &[format!("{at_s}:").as_bytes(), body]);
    Sample::new(body).header("Paddle-Signature", format!("ts={at_s};h1={made}"))
}

fn square(secret: &str, body: &[u8], _: i64) -> Sample {
    let made = mac(HMAC_SHA256, secret.as_bytes(), &[super::URL.as_bytes(), body]);
    Sample::new(body).header("x-square-hmacsha256-signature", base64(&made))
}

const MESSAGE: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";

fn standard(secret: &str, body: &[u8], at_s: i64) -> Sample {
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap_or_default();
    let made = mac(HMAC_SHA256, &key, &[format!("{MESSAGE}.{at_s}.").as_bytes(), body]);
    Sample::new(body)
        .header("webhook-id", MESSAGE)
        .header("webhook-timestamp", at_s.to_string())
        .header("webhook-signature", format!("v1,{}", base64(&made)))
}

fn standard_ed25519(_: &str, body: &[u8], at_s: i64) -> Sample {
    let made = ed25519().sign(&[format!("{MESSAGE}.{at_s}.").as_bytes(), body].concat());
    Sample::new(body)
        .header("svix-id", MESSAGE)
        .header("svix-timestamp", at_s.to_string())
        .header("svix-signature", format!("v1a,{}", base64(made.as_ref())))
}

fn other_hmac(secret: &str, body: &[u8], at_s: i64) -> Sample {
    let key = STANDARD.decode(secret).unwrap_or_default();
    let head = format!("POST\n{}\n{at_s}\n", super::URL);
    let made = mac(HMAC_SHA512, &key, &[head.as_bytes(), body]);
    Sample::new(body)
        .header("X-Signature", format!("sha512={}", base64(&made)))
        .header("X-Time", at_s.to_string())
        .header("X-Event", "invoice.paid")
}

fn other_scheme() -> Scheme {
    Scheme::Hmac(HmacScheme {
        signature_header: "X-Signature".into(),
        prefix: "sha512=".into(),
        hash: Hash::Sha512,
        encoding: Encoding::Base64,
        secret_encoding: Encoding::Base64,
        timestamp_header: Some("X-Time".into()),
        signed: Template::parse("{method}\n{url}\n{timestamp}\n{body}").unwrap(),
        event_id: Some(Place::Field(vec!["meta".into(), "id".into()])),
        event_type: Some(Place::Header("X-Event".into())),
    })
}

/// One of each scheme but `PayPal`, which nobody here can sign for.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn kinds() -> Vec<Kind> {
    let row = |name, scheme, secret: &str, body, signature_header, sign| Kind {
        name,
        settings: settings(scheme),
        secret: secret.to_owned(),
        body,
        expected: (String::new(), "", "", "live", None),
        sign,
        is_timed: false,
        is_body_signed: true,
        signature_header,
    };
    let public = ed25519().public_key().as_ref().to_vec();
    let us = T * 1_000_000;
    let discord_body = r#"{"version":1,"application_id":"1234","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-01-01T00:00:00.000001","data":{"id":"5"}}}"#;
    vec![
        Kind {
            expected: ("evt_1".into(), "charge.succeeded", "acct_1", "test", Some(us)),
            is_timed: true,
            ..row(
                "stripe",
                Scheme::Stripe,
                "whsec_test_secret",
                r#"{"id":"evt_1","object":"event","account":"acct_1","created":1767225600,"livemode":false,"type":"charge.succeeded"}"#,
                "stripe-signature",
                stripe,
            )
        },
        Kind {
            expected: ("72d3162e-cc78-11e3-81ab-4c9367dc0958".into(), "issues.opened", "", "live", None),
            ..row(
                "github",
                Scheme::GitHub,
                "It's a Secret to Everybody",
                r#"{"action":"opened","issue":{"number":1}}"#,
                "x-hub-signature-256",
                github,
            )
        },
        Kind {
            expected: (
                "98880550-7158-44d4-b7cd-2c97c8a091b5:orders/create".into(),
                "orders/create",
                "one.myshopify.com",
                "live",
                Some(us + 500_000),
            ),
            ..row(
                "shopify",
                Scheme::Shopify,
                "hush",
                r#"{"id":820982911946154508,"total_price":"199.00"}"#,
                "x-shopify-hmac-sha256",
                shopify,
            )
        },
        Kind {
            expected: ("SM1:delivered".into(), "message.delivered", "AC1", "live", None),
            // Two spellings of one escape are one value.
            is_body_signed: false,
            ..row(
                "twilio_form",
                Scheme::Twilio,
                "12345",
                "MessageSid=SM1&MessageStatus=delivered&AccountSid=AC1&To=%2B18005551212",
                "x-twilio-signature",
                twilio_form,
            )
        },
        Kind {
            expected: ("EZ1".into(), "com.twilio.messaging.message.delivered", "", "live", Some(us)),
            ..row(
                "twilio_json",
                Scheme::Twilio,
                "12345",
                r#"[{"specversion":"1.0","id":"EZ1","type":"com.twilio.messaging.message.delivered","time":"2026-01-01T00:00:00Z","data":{}}]"#,
                "x-twilio-signature",
                twilio_json,
            )
        },
        Kind {
            expected: ("Ev08MFMKH6".into(), "message", "T1DC2JH3J", "live", Some(us)),
            is_timed: true,
            ..row(
                "slack",
                Scheme::Slack,
                "8f742231b10e8888abcd99yyyzzz85a5",
                r#"{"token":"x","team_id":"T1DC2JH3J","api_app_id":"A1","event":{"type":"message"},"type":"event_callback","event_id":"Ev08MFMKH6","event_time":1767225600}"#,
                "x-slack-signature",
                slack,
            )
        },
        Kind {
            expected: (
                format!("sha256:{}", sha256_hex(discord_body.as_bytes())),
                "ENTITLEMENT_CREATE",
                "",
                "live",
                Some(us + 1),
            ),
            ..row("discord", Scheme::Discord, &hex(&public), discord_body, "x-signature-ed25519", discord)
        },
        Kind {
            expected: ("12345".into(), "payment.created", "44444", "live", Some(us)),
            is_body_signed: false,
            ..row(
                "mercado_pago",
                Scheme::MercadoPago,
                "your_secret_key_here",
                r#"{"id":12345,"live_mode":true,"type":"payment","date_created":"2025-12-31T20:00:00.000-04:00","user_id":44444,"api_version":"v1","action":"payment.created","data":{"id":"123456"}}"#,
                "x-signature",
                mercado_pago,
            )
        },
        Kind {
            expected: (
                "evt_05b708f961d739ea7eba7e4db318f621&368604920".into(),
                "PAYMENT_RECEIVED",
                "",
                "live",
                None,
            ),
            is_body_signed: false,
            ..row(
                "asaas",
                Scheme::Asaas,
                "a-token-that-we-chose",
                r#"{"id":"evt_05b708f961d739ea7eba7e4db318f621&368604920","event":"PAYMENT_RECEIVED","dateCreated":"2026-01-01 00:00:00","payment":{"id":"pay_1"}}"#,
                "asaas-access-token",
                asaas,
            )
        },
        Kind {
            expected: ("CHAR_1:PAID:500:0".into(), "PAID", "", "live", None),
            ..row(
                "pagbank",
                Scheme::PagBank,
                "B1E2-token",
                r#"{"id":"ORDE_1","charges":[{"id":"CHAR_1","status":"PAID","amount":{"value":500,"currency":"BRL","summary":{"total":500,"paid":500,"refunded":0}}}]}"#,
                "x-authenticity-token",
                pagbank,
            )
        },
        Kind {
            expected: (
                "AUTHORISATION:7914073381342284:true".into(),
                "AUTHORISATION",
                "TestMerchant",
                "test",
                Some(us),
            ),
            is_body_signed: false,
            ..row(
                "adyen",
                Scheme::Adyen,
                "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
                r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"HMAC"},"amount":{"currency":"EUR","value":1130},"eventCode":"AUTHORISATION","eventDate":"2026-01-01T01:00:00+01:00","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","pspReference":"7914073381342284","success":"true"}}]}"#,
                "",
                adyen,
            )
        },
        Kind {
            expected: (
                "evt_01hsdn97563968dy0szkmgjwh3".into(),
                "price.created",
                "",
                "live",
                Some(us + 590_857),
            ),
            is_timed: true,
            ..row(
                "paddle",
                Scheme::Paddle,
                "VALID_SECRET",
                r#"{"event_id":"evt_01hsdn97563968dy0szkmgjwh3","event_type":"price.created","occurred_at":"2026-01-01T00:00:00.590857Z","notification_id":"ntf_1","data":{}}"#,
                "paddle-signature",
                paddle,
            )
        },
        Kind {
            expected: (
                "ac3ac95b-f97d-458c-a6e6-18981597e05f".into(),
                "payment.updated",
                "MLEFBHHSJGVHD",
                "live",
                Some(us + 37_339),
            ),
            ..row(
                "square",
                Scheme::Square,
                "Ibxx_5AKakO-3qeNVR61Dw",
                r#"{"merchant_id":"MLEFBHHSJGVHD","type":"payment.updated","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2026-01-01T00:00:00.037339943Z","data":{}}"#,
                "x-square-hmacsha256-signature",
                square,
            )
        },
        Kind {
            expected: (MESSAGE.into(), "user.created", "", "live", Some(us)),
            is_timed: true,
            ..row(
                "standard",
                Scheme::StandardWebhooks,
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                r#"{"type":"user.created","timestamp":"2026-01-01T00:00:00Z","data":{}}"#,
                "webhook-signature",
                standard,
            )
        },
        Kind {
            expected: (MESSAGE.into(), "", "", "live", None),
            is_timed: true,
            ..row(
                "standard_ed25519",
                Scheme::StandardWebhooks,
                &format!("whpk_{}", base64(&public)),
                r#"{"data":{}}"#,
                "svix-signature",
                standard_ed25519,
            )
        },
        Kind {
            expected: ("9007199254740993".into(), "invoice.paid", "", "live", None),
            is_timed: true,
            ..row(
                "hmac",
                other_scheme(),
                "b3RoZXIgc2VjcmV0",
                r#"{"meta":{"id":9007199254740993},"data":[1,2]}"#,
                "x-signature",
                other_hmac,
            )
        },
    ]
}
