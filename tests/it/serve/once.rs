//! An event is there once, however often and however it is delivered, with its bytes and its scope.

use super::{BOTH, Receiver, Site, event, other_providers, secret_of, stripe};
use crate::receive::{Sample, T, kinds};
use recon::store::Database;

const COUNTS: &str = "select event_id || ' ' || cast(deliveries as text) from inbox_event order by event_id";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_event_twice_is_one_event() {
    for database in BOTH {
        let site = Site::new(database);
        let receiver = site.start();
        for _ in 0..2 {
            assert_eq!(receiver.stripe(&event("evt_1")).unwrap().status, 200);
        }
        assert_eq!(site.rows(COUNTS).await, ["evt_1 2"]);
        receiver.wait_for("recon_deliveries_total{provider=\"stripe\",became=\"duplicate\"} 1");
        receiver.wait_for("recon_deliveries_total{provider=\"stripe\",became=\"new\"} 1");
        assert_eq!(receiver.end(), Some(0));
        site.said_nothing_of(&["pi_1"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c01_fifty_at_once_are_one_event() {
    for database in BOTH {
        let site = Site::new(database);
        // Two processes on one store, as behind a balancer.
        let receivers = [site.start(), site.start()];
        let body = event("evt_S01");
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let post = |at: usize| receivers[at % 2].stripe(&body).unwrap().status;
            let threads: Vec<_> = (0..50).map(|at| scope.spawn(move || post(at))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(statuses, [200; 50]);
        assert_eq!(site.rows(COUNTS).await, ["evt_S01 50"]);
        assert!(site.rows("select event_id from inbox_conflict").await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_bytes_under_a_known_id_are_kept_beside_it() {
    const HASHES: &str =
        "select body_sha256 from inbox_event union all select body_sha256 from inbox_conflict";
    for database in BOTH {
        let site = Site::new(database);
        let receiver = site.start();
        let (first, other) = (event("evt_1"), event("evt_1").replace("1000", "9000"));
        for body in [&first, &other, &other, &first] {
            assert_eq!(receiver.stripe(body).unwrap().status, 200);
        }
        let hash = |body: &String| recon::record::sha256_hex(body.as_bytes());
        assert_eq!(site.rows(HASHES).await, [hash(&first), hash(&other)]);
        let kept = "select cast(deliveries as text) from inbox_conflict";
        assert_eq!(site.rows(kept).await, ["2"]);
        receiver.wait_for("recon_deliveries_total{provider=\"stripe\",became=\"conflicting\"} 2");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c88_a_test_event_is_filed_under_its_mode_and_blocks_no_live_one() {
    for database in BOTH {
        let site = Site::new(database);
        let receiver = site.start();
        let live = event("evt_00000000000000");
        let test = live.replace("\"livemode\":true", "\"livemode\":false");
        for body in [&test, &test, &live] {
            assert_eq!(receiver.stripe(body).unwrap().status, 200);
        }
        let rows = "select mode || ' ' || cast(deliveries as text) from inbox_event order by mode";
        assert_eq!(site.rows(rows).await, ["live 1", "test 2"]);
    }
}

/// The signature is that of the case, made by somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c83_bytes_are_verified_and_stored_as_they_came() {
    const BODY: &str = r#"{"id":"evt_S41","amount":10.50,"note":"a/b"}"#;
    const SIGNATURE: &str =
        "t=1767225600,v1=d38987caca728710dbfc8096991fdf40261c79d860056318919dd384c0815483";
    for database in BOTH {
        let mut site = Site::new(database);
        site.secrets[0].1 = "whsec_new_A".into();
        let receiver = site.start();
        let post = |body: &str| {
            let sample = Sample::new(body).header("Stripe-Signature", SIGNATURE);
            receiver.deliver("stripe", &sample).unwrap().status
        };
        assert_eq!(post(r#"{"id": "evt_S41", "amount": 10.5, "note": "a/b"}"#), 401);
        assert_eq!(post(BODY), 200);
        let hex = match database {
            Database::Sqlite => "lower(hex(body))",
            Database::Postgres => "encode(body, 'hex')",
        };
        let stored = site.rows(&format!("select {hex} from inbox_event")).await;
        assert_eq!(stored, [recon::record::hex(BODY.as_bytes())]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c85_any_secret_of_the_endpoint_may_have_signed() {
    let mut site = Site::new(Database::Sqlite);
    site.secrets[0].1 = "whsec_new_A".into();
    site.secrets.push(("OLD".into(), "whsec_old_B".into()));
    let config = std::fs::read_to_string(site.config()).unwrap();
    let with_old = config.replace("[{ env = \"SECRET\" }]", "[{ env = \"SECRET\" }, { env = \"OLD\" }]");
    let body = r#"{"id":"evt_S41","amount":10.50,"note":"a/b"}"#;
    let old = "t=1767225600,v1=0000000000000000000000000000000000000000000000000000000000000000,\
        v1=50c41f0bcca00effedc3c2130a888f27410115f3c08cbb36d0e3118cd26b503c";
    let sample = Sample::new(body).header("Stripe-Signature", old);
    for (config, status) in [(&config, 401), (&with_old, 200)] {
        std::fs::write(site.config(), config).unwrap();
        let receiver = site.start();
        assert_eq!(receiver.deliver("stripe", &sample).unwrap().status, status);
    }
    assert_eq!(site.rows("select cast(secret_slot as text) from inbox_event").await, ["2"]);
    let kept = site.rows("select headers from inbox_event").await;
    assert_eq!(kept, [format!("{{\"stripe-signature\":\"{old}\"}}")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_scheme_is_taken_and_no_secret_is_kept() {
    for database in BOTH {
        let mut site = Site::new(database);
        let providers = other_providers(&mut site);
        site.configure("", &providers);
        let receiver = site.start();
        let mut expected = Vec::new();
        for kind in kinds() {
            let sample = kind.sign_with(&secret_of(&kind), kind.body, T);
            let answer = receiver.deliver(kind.name, &sample).unwrap();
            assert!(answer.is_taken(), "{}: {answer:?}", kind.name);
            let (id, event_type, account, mode, _) = &kind.expected;
            expected.push(format!("{} {account} {mode} {id} {event_type}", kind.name));
            // One bit more or less is refused, where every bit is signed.
            if kind.is_body_signed {
                let mut turned = sample.clone();
                turned.body[0] ^= 1;
                let answer = receiver.deliver(kind.name, &turned).unwrap();
                assert!((400..500).contains(&answer.status), "{}: {answer:?}", kind.name);
            }
        }
        expected.sort();
        let all = "select provider || ' ' || account || ' ' || mode || ' ' || event_id || ' ' || event_type \
             from inbox_event order by 1";
        let mut stored = site.rows(all).await;
        stored.sort();
        assert_eq!(stored, expected);
        let headers = site.rows("select headers || url from inbox_event").await.concat();
        for (name, secret) in &site.secrets {
            // A public key is none.
            let is_public = name.contains("DISCORD") || name.contains("ED25519");
            assert!(is_public || !headers.contains(secret.as_str()), "{name} is stored");
        }
        assert!(!headers.contains("asaas-access-token") && !headers.contains("authorization"), "{headers}");
        assert_eq!(receiver.end(), Some(0));
        let log = site.log();
        for (name, secret) in site.secrets.iter().filter(|(_, secret)| secret.len() > 6) {
            assert!(!log.contains(secret.as_str()), "the log holds {name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_signature_is_refused_and_counted_for_the_report() {
    for database in BOTH {
        let site = Site::new(database);
        let receiver = site.start();
        let old = stripe().sign_with(&stripe().secret, event("evt_1"), T - 301);
        let just = stripe().sign_with(&stripe().secret, event("evt_2"), T - 300);
        for _ in 0..3 {
            assert_eq!(receiver.deliver("stripe", &old).unwrap().status, 401);
        }
        assert_eq!(receiver.deliver("stripe", &just).unwrap().status, 200);
        assert_eq!(receiver.end(), Some(0));
        let refused =
            site.rows("select reason || ' ' || cast(deliveries as text) from refused_delivery").await;
        assert_eq!(refused, ["too_old 3"]);
        assert_eq!(site.ids().await, ["evt_2"]);
    }
}

/// `MySQL`'s usual comparison makes one of each pair; both of our stores compare bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c70_ids_that_differ_in_case_or_by_a_blank_are_two_events() {
    let ids = ["evt_1", "evt_1 ", "evt_1AbC", "evt_1aBc"];
    for database in BOTH {
        let site = Site::new(database);
        let receiver = site.start();
        for id in ids {
            assert_eq!(receiver.stripe(&event(id)).unwrap().status, 200);
        }
        assert_eq!(site.ids().await, ids);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_from_receipt_to_the_end_is_measured() {
    for database in BOTH {
        let site = Site::new(database);
        let mut command = site.command_of(&["serve", "--work"]);
        let receiver = Receiver::start(command.env("KEY", "rk_live_nobody")).unwrap();
        let idle = event("evt_1").replace("payment_intent.succeeded", "customer.created");
        assert_eq!(receiver.stripe(&idle).unwrap().status, 200);
        receiver.wait_for("recon_completion_seconds_count 1");
        receiver.wait_for("recon_completion_seconds_bucket{le=\"+Inf\"} 1");
        receiver.wait_for("recon_events_ended_total{status=\"ignored\"} 1");
        assert_eq!(receiver.end(), Some(0));
    }
}

/// A delivery that is signed over something else in its place must not be taken.
#[test]
fn what_is_signed_must_be_known_at_the_start() {
    let signed = |signed: &str| {
        format!(
            "[[provider]]\nname = \"own\"\nkind = \"hmac\"\nwebhook_secrets = [{{ env = \"SECRET\" }}]\n\
             [provider.signature]\nheader = \"X-Signature\"\nsigned = \"{signed}\"\n"
        )
    };
    let named = |kind: &str| {
        format!(
            "[[provider]]\nname = \"own\"\nkind = \"{kind}\"\nwebhook_secrets = [{{ env = \"SECRET\" }}]\n"
        )
    };
    for (provider, missing) in [
        (signed("{url}{body}"), "webhook_url"),
        (signed("{timestamp}.{body}"), "timestamp_header"),
        (named("twilio"), "webhook_url"),
        (named("square"), "webhook_url"),
    ] {
        let site = Site::new(Database::Sqlite);
        site.configure("", &provider);
        let output = site.command().stderr(std::process::Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{said}");
        assert!(said.contains("own") && said.contains(missing), "{said}");
    }
}
