//! `recon show`: one list in time, with what was doubled or swapped marked, and nothing personal.

use super::{by, ends, execute, rows, run};
use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};

/// The steps: (time, teller, text).
fn steps(said: &str) -> Vec<(String, String, String)> {
    let lines = said.lines().filter(|line| line.starts_with("20") && line.contains('T'));
    lines
        .map(|line| {
            let (at, rest) = line.split_once(' ').unwrap();
            let (teller, text) = rest.trim_start().split_once(' ').unwrap();
            (at.to_owned(), teller.to_owned(), text.trim_start().to_owned())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubled_payment_is_told_from_its_charge_to_its_closing() {
    let stage = Stage::new(9, 200, &Mix::only(Fault::DuplicateDelivery), Faults::default()).await;
    ends(&run(&stage, 0), 1);
    let row = rows(&stage).remove(0);
    let (id, object) = (row[0].to_owned(), row[7].to_owned());
    let (kept, excess) = row[9].split_once('|').unwrap();
    let ended = by(&stage, "", 1, &["show", &id]);
    ends(&ended, 0);
    assert_eq!(ended.stdout.lines().last(), Some("outcome=findings findings=1"));
    assert!(
        ended.stdout.contains(&format!("  !! booked twice: row {kept} and row {excess}")),
        "{}",
        ended.stdout
    );
    assert_eq!(ended.stdout.matches("!! ").count(), 1, "{}", ended.stdout);
    let plan = stage.reports().pop().unwrap().join("plan.csv");
    let applied = by(&stage, "dora", 2, &["apply", plan.to_str().unwrap()]);
    ends(&applied, 0);
    ends(&run(&stage, 3), 0);
    ends(&by(&stage, "ana", 4, &["findings", "close", &id, "--reason", "checked"]), 0);
    let ended = by(&stage, "", 5, &["show", &object]);
    ends(&ended, 0);
    let told = steps(&ended.stdout);
    let times: Vec<&String> = told.iter().map(|(at, _, _)| at).collect();
    // All of one zone without a change of clocks, so the texts sort as the times do to the second.
    assert!(times.is_sorted_by(|one, other| one[..19] <= other[..19]), "{}", ended.stdout);
    for (teller, part) in [
        ("provider", format!("charge {object} created")),
        ("provider", "paid +".to_owned()),
        ("provider", "event evt_".to_owned()),
        ("inbox", " received".to_owned()),
        ("effects", format!("row {kept}: credit +")),
        ("run", "found for the first time".to_owned()),
        ("correction", "planned by run ".to_owned()),
        ("effects", format!("undoes row {excess}")),
        ("correction", "reverse_entry applied by dora".to_owned()),
        ("run", "no longer found it".to_owned()),
        ("person", "closed by ana, confirmed by run ".to_owned()),
    ] {
        let is_told = told.iter().any(|(_, by, text)| by == teller && text.contains(&*part));
        assert!(is_told, "{teller}: {part}\n{}", ended.stdout);
    }
    assert!(ended.stdout.contains("!! undone by row "), "{}", ended.stdout);
    let names = stage.world.payments.iter().map(|payment| &payment.customer_name);
    for name in names.filter(|name| !name.is_empty()) {
        assert!(!ended.stdout.contains(name.as_str()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_came_and_what_was_swapped_is_marked() {
    let stage = Stage::new(9, 200, &Mix::only(Fault::MissedRefund), Faults::default()).await;
    ends(&run(&stage, 0), 1);
    let row = rows(&stage).remove(0);
    let ended = by(&stage, "", 1, &["show", &row[0]]);
    ends(&ended, 0);
    assert!(ended.stdout.contains("  !! never received"), "{}", ended.stdout);
    let plan = stage.reports().pop().unwrap().join("plan.csv");
    stage.apply(&plan).await;
    // The payment's own row as if it had been booked after the refund.
    let refunded = format!("select object_id from ledger_entry where object_id = '{}'", &row[7]);
    assert_eq!(stage.rows(&refunded).await.len(), 1);
    let payment =
        stage.world.payments.iter().find(|payment| payment.refunds.iter().any(|refund| refund.id == row[7]));
    let payment = payment.unwrap();
    let ids = [
        payment.intent_id.clone(),
        payment.charge.as_ref().map(|charge| charge.id.clone()),
        payment.invoice.clone(),
        payment.session.clone(),
    ];
    let ids: Vec<String> = ids.into_iter().flatten().map(|id| format!("'{id}'")).collect();
    let late = stage.world.now_us + 1;
    let sql = format!(
        "update ledger_entry set applied_at_us = {late} where kind = 'credit' and object_id in ({})",
        ids.join(", ")
    );
    assert_eq!(execute(&stage, &sql).await, 1);
    let ended = by(&stage, "", 2, &["show", &row[0]]);
    ends(&ended, 0);
    assert!(ended.stdout.contains("  !! refunded before paid was applied"), "{}", ended.stdout);
}

/// A side that cannot be read leaves a hole in the story, and the answer says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_story_with_a_side_missing_does_not_look_whole() {
    let stage = Stage::new(9, 160, &Mix::only(Fault::AmountOther), Faults::default()).await;
    ends(&run(&stage, 0), 1);
    let id = rows(&stage)[0][0].to_owned();
    stage.configure("[corrections]", "[local]\nurl = \"sqlite:gone.db\"\n[corrections]");
    let ended = by(&stage, "", 1, &["show", &id]);
    ends(&ended, 2);
    assert!(
        ended.stdout.contains("!! not read, so its steps are missing: the local books"),
        "{}",
        ended.stdout
    );
    assert_eq!(ended.stdout.lines().last(), Some("outcome=incomplete findings=1"));
}
