//! An event that the provider has forgotten by now: it was made before its list begins, and nobody can say that it is
//! unknown.

use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};
use std::path::Path;

fn findings(dir: &Path) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_path(dir.join("findings.csv")).unwrap();
    reader.records().map(Result::unwrap).map(|row| (row[1].to_owned(), row[7].to_owned())).collect()
}

#[tokio::test]
async fn an_event_of_before_the_list_is_counted_and_not_called_unknown() {
    let mix = Mix(vec![(Fault::UnknownEvent, 2)]);
    let stage = Stage::new(7, 120, &mix, Faults::default()).await;
    let ids: Vec<String> = stage.planted.iter().map(|one| one.expected[0].object_id.clone()).collect();
    let of = |id: &String| ("unknown_event".to_owned(), id.clone());
    let (_, dir) = stage.reconcile().await;
    let found = findings(&dir);
    assert!(found.len() == 2 && ids.iter().all(|id| found.contains(&of(id))), "{found:?}");
    // The first was made forty days ago, and came inside the window.
    let made_s = stage.world.now_us / 1_000_000 - 40 * 86_400;
    let body = format!("{{\"id\": \"{}\", \"object\": \"event\", \"created\": {made_s}}}", ids[0]);
    let store = stage.store().await;
    sqlx::query("update inbox_event set body = $1 where event_id = $2")
        .bind(body.into_bytes())
        .bind(&ids[0])
        .execute(store.pool())
        .await
        .unwrap();
    store.close().await;
    let (_, dir) = stage.reconcile().await;
    assert_eq!(findings(&dir), [of(&ids[1])]);
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["totals"]["counted"]["not_judged"], 1, "{manifest}");
}
