//! Bytes hold personal data: they are given only to who asks for them in words, the event's own and other ones that came
//! under its id.

use super::operating::said;
use super::shop::{Shop, scope};
use recon::cli::ShowEventArgs;
use recon::commands::inbox::InboxArgs;
use recon::record::sha256_hex;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

const OWN: &[u8] = b"{\"who\":\"carol@example.com\"}";
const OTHER: &[u8] = b"{\"who\":\"mallory@example.com\"}";

fn show(args: ShowEventArgs) -> InboxArgs {
    InboxArgs::Show(ShowEventArgs { event: "evt_1".to_owned(), ..args })
}

async fn shop() -> Shop {
    let shop = Shop::new(66, 60, "").await;
    shop.receive_as(&scope(), "evt_1", "charge.succeeded", OWN).await;
    shop.pass(Duration::from_secs(1));
    shop.receive_as(&scope(), "evt_1", "charge.succeeded", OTHER).await;
    shop
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_bytes_are_named_and_given_to_who_asks() {
    let shop = shop().await;
    let hash = sha256_hex(OTHER);
    let shown = said(&shop, &show(ShowEventArgs::default())).await.unwrap();
    assert!(shown.contains(&hash) && !shown.contains("@example.com"), "{shown}");
    let typed = format!("recon inbox show {}/evt_1 --other {} --save FILE", scope(), &hash[..8]);
    assert!(shown.contains(&typed), "{shown}");
    for hash in [&hash[..8], &hash, &hash[..12].to_uppercase()] {
        let args = ShowEventArgs { other: Some(hash.to_owned()), body: true, ..ShowEventArgs::default() };
        assert_eq!(said(&shop, &show(args)).await.unwrap().as_bytes(), OTHER);
    }
    let path = shop.folder.path().join("other.json");
    let save = |other: Option<&str>| {
        let other = other.map(str::to_owned);
        show(ShowEventArgs { other, save: Some(path.clone()), ..ShowEventArgs::default() })
    };
    let told = said(&shop, &save(Some(&hash))).await.unwrap();
    assert!(told.ends_with("\noutcome=clean findings=0\n") && !told.contains("mallory"), "{told}");
    assert_eq!(std::fs::read(&path).unwrap(), OTHER);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = said(&shop, &save(None)).await.unwrap_err();
    assert!(refused.contains("is there already"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), OTHER, "nothing is written over");
    std::fs::remove_file(&path).unwrap();
    said(&shop, &save(None)).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), OWN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_none_and_bytes_that_are_gone_are_told() {
    let shop = shop().await;
    let hash = sha256_hex(OTHER);
    let body = |other: &str| {
        show(ShowEventArgs { other: Some(other.into()), body: true, ..ShowEventArgs::default() })
    };
    for (args, expected) in [
        (show(ShowEventArgs { other: Some(hash.clone()), ..ShowEventArgs::default() }), "say where to"),
        (body(&hash[..7]), "first eight digits"),
        (body("% or 1=1"), "first eight digits"),
        (body("0123456789"), "no other bytes"),
        (body(&sha256_hex(OWN)), "no other bytes"),
        (
            show(ShowEventArgs {
                save: Some(PathBuf::from("/no/such/folder/f")),
                ..ShowEventArgs::default()
            }),
            "--save /no/such/folder/f",
        ),
    ] {
        let refused = said(&shop, &args).await.unwrap_err();
        assert!(refused.contains(expected) && !refused.contains("@example.com"), "{refused}");
    }
    let twin = format!("{}{}", &hash[..20], "0".repeat(44));
    shop.execute(&format!(
        "insert into inbox_conflict select provider, account, mode, event_id, '{twin}', body, received_at_us, 1 \
         from inbox_conflict"
    ))
    .await;
    assert!(said(&shop, &body(&hash[..20])).await.unwrap_err().contains("several"));
    assert_eq!(said(&shop, &body(&hash[..21])).await.unwrap().as_bytes(), OTHER);
    shop.execute("update inbox_event set status = 'applied'").await;
    shop.pass(Duration::from_hours(24 * 90));
    recon::commands::prune::prune(&shop.settings(), shop.now_us(), &mut Vec::new()).await.unwrap();
    for gone in [body(&hash), show(ShowEventArgs { body: true, ..ShowEventArgs::default() })] {
        assert!(said(&shop, &gone).await.unwrap_err().contains("no longer kept"));
    }
    let shown = said(&shop, &show(ShowEventArgs::default())).await.unwrap();
    assert!(!shown.contains("--save"), "nothing is left to save: {shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_says_that_there_is_more() {
    let shop = Shop::new(67, 60, "").await;
    for event in 1..=3 {
        shop.receive_as(&scope(), &format!("evt_{event}"), "charge.succeeded", b"{").await;
    }
    let list = |limit| InboxArgs::List { status: None, limit };
    let short = said(&shop, &list(2)).await.unwrap();
    assert!(short.ends_with("and more: --limit N lists up to N\noutcome=clean findings=0 listed=2\n"));
    assert_eq!(short.lines().count(), 4, "{short}");
    let whole = said(&shop, &list(3)).await.unwrap();
    assert!(
        whole.lines().count() == 4 && whole.ends_with("\noutcome=clean findings=0 listed=3\n"),
        "{whole}"
    );
}
