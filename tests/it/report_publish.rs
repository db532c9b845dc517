//! Publishing: no reader ever sees half a file, and a failure leaves what was there.

use crate::sample::sample;
use recon::record::sha256_hex;
use recon::report::cell::Style;
use recon::report::{Rendered, manifest, render, write};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn file(name: &str, bytes: &[u8]) -> Rendered {
    Rendered { name: name.to_owned(), bytes: bytes.to_vec(), rows: 0 }
}

/// Name → bytes of everything in a folder, hidden files too.
fn listing(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn c78_the_manifest_counts_and_checks_every_file() {
    let out = tempfile::tempdir().unwrap();
    let sample = sample();
    let dir = sample.with(Style::Machine, |input| {
        let files = render(input).unwrap();
        let manifest = manifest::render(input, &files).unwrap();
        write::publish(&out.path().join("deep/out"), input.run_id, &files, &manifest).unwrap()
    });
    assert_eq!(dir, out.path().join("deep/out/20240601T061500Z-4f1d"));
    let mut found = listing(&dir);
    let manifest: serde_json::Value =
        serde_json::from_slice(&found.remove("manifest.json").unwrap()).unwrap();
    let files = manifest["files"].as_array().unwrap();
    assert_eq!(files.len(), found.len(), "no other file, no temporary one");
    for entry in files {
        let bytes = &found[entry["name"].as_str().unwrap()];
        assert_eq!(entry["sha256"], sha256_hex(bytes));
        assert_eq!(entry["bytes"], bytes.len());
        let rows = csv::Reader::from_reader(&**bytes).records().count();
        assert_eq!(entry["rows"], rows, "{}", entry["name"]);
    }
    assert_eq!(manifest["totals"]["findings"], 4);
    assert_eq!(manifest["totals"]["timing_differences"], 1);
    assert_eq!(manifest["window"]["from"], "2024-05-01T00:00:00-03:00");
}

#[test]
fn c78_a_reader_never_sees_a_partial_file() {
    let out = tempfile::tempdir().unwrap();
    let bytes = |word: &str| {
        let rows = (0..100_000).map(|number| format!("{number},{word}\n"));
        format!("number,word\n{}", rows.collect::<String>()).into_bytes()
    };
    let (old, new) = (bytes("old"), bytes("newer"));
    write::publish(out.path(), "r1", &[file("findings.csv", &old)], b"{}").unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !is_done.load(Ordering::Relaxed) || reads == 0 {
                let seen = fs::read(out.path().join("r1/findings.csv")).unwrap();
                assert!(seen == old || seen == new, "a mixture of {} bytes", seen.len());
                reads += 1;
            }
        });
        for round in 0..20 {
            let bytes = if round % 2 == 0 { &new } else { &old };
            write::publish(out.path(), "r1", &[file("findings.csv", bytes)], b"{}").unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

/// `/dev/full` answers every write with "no space left on device".
#[cfg(target_os = "linux")]
#[test]
fn c78_a_full_disk_leaves_the_old_report_and_nothing_new() {
    let out = tempfile::tempdir().unwrap();
    write::publish(out.path(), "r1", &[file("findings.csv", b"old\n")], b"{\"old\":1}").unwrap();
    let before = listing(&out.path().join("r1"));
    std::os::unix::fs::symlink("/dev/full", out.path().join("r1/.tie_out.csv.tmp")).unwrap();
    let files = [file("findings.csv", b"new\n"), file("tie_out.csv", b"new\n")];
    let error = write::publish(out.path(), "r1", &files, b"{}").unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("r1/tie_out.csv: No space left on device"), "{text}");
    assert_eq!(listing(&out.path().join("r1")), before);
}

#[test]
fn c78_what_a_killed_run_left_behind_is_not_in_the_way() {
    let out = tempfile::tempdir().unwrap();
    fs::create_dir(out.path().join("r1")).unwrap();
    fs::write(out.path().join("r1/.findings.csv.tmp"), b"half a li").unwrap();
    fs::write(out.path().join("r1/.manifest.json.tmp"), b"{").unwrap();
    write::publish(out.path(), "r1", &[file("findings.csv", b"a\n")], b"{}").unwrap();
    let expected = BTreeMap::from([
        ("findings.csv".to_owned(), b"a\n".to_vec()),
        ("manifest.json".to_owned(), b"{}".to_vec()),
    ]);
    assert_eq!(listing(&out.path().join("r1")), expected);
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let out = tempfile::tempdir().unwrap();
    for run_id in ["", ".", "..", "../r1", "a/b", "/r1"] {
        let error = write::publish(out.path(), run_id, &[], b"{}").unwrap_err();
        assert!(error.to_string().contains("is no plain file name"), "{error}");
    }
    let bad = [file("../findings.csv", b"")];
    assert!(write::publish(out.path(), "r1", &bad, b"{}").is_err());
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
