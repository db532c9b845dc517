//! What a receiver cannot use ends it at its start, with the place and what to do about it.

use super::{BOTH, Receiver, Site};
use crate::stage::Ended;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// How a receiver ended that cannot start.
fn refused(command: &mut Command) -> Ended {
    Ended::of(&command.env("RECON_LOG", "warn").stderr(Stdio::piped()).output().unwrap())
}

#[track_caller]
fn is_config(ended: &Ended, said: &[&str]) {
    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert_eq!(ended.stdout, "outcome=config findings=0\n");
    assert_eq!(ended.errors().len(), 1, "{}", ended.stderr);
    for text in said {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
}

#[test]
fn a_spill_folder_that_cannot_be_used_is_told_at_the_start() {
    for database in BOTH {
        let site = Site::new(database);
        let file = site.folder.path().join("letter");
        std::fs::write(&file, "mine").unwrap();
        for (folder, hint) in [
            ("letter", "hint: that path, or a part of it, is a file"),
            ("letter/spill", "hint: that path, or a part of it, is a file"),
            ("/proc/no-such-process/spill", "hint: it is not there and cannot be made"),
            ("", "hint: name a folder"),
            ("  ", "hint: name a folder"),
        ] {
            site.configure(&format!("spill_dir = \"{folder}\""), "");
            let ended = refused(&mut site.command());
            is_config(&ended, &["[receive] spill_dir", folder.trim(), hint]);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        site.configure("spill_dir = \"spill/deep\"", "");
        assert_eq!(site.start().end(), Some(0), "one that can be made is made");
    }
}

#[test]
fn a_spill_folder_that_may_not_be_written_is_told_at_the_start() {
    let site = Site::new(BOTH[0]);
    // Rights do not bind root: then somebody else runs a copy that he may read.
    let copy = site.folder.path().join("recon");
    std::fs::copy(env!("CARGO_BIN_EXE_recon"), &copy).unwrap();
    std::fs::set_permissions(site.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let spill = site.spill_folder();
    std::fs::create_dir(&spill).unwrap();
    std::fs::set_permissions(&spill, std::fs::Permissions::from_mode(0o555)).unwrap();
    site.configure("spill_dir = \"spill\"", "");
    let mut command = Command::new(&copy);
    command.arg("--config").arg(site.config()).arg("serve");
    site.dress(&mut command);
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(65_534).gid(65_534);
    }
    let ended = refused(&mut command);
    is_config(
        &ended,
        &[&*spill.to_string_lossy(), "Permission denied", "hint: let the user that runs recon write there"],
    );
}

#[test]
fn an_address_that_cannot_be_had_says_what_to_do() {
    let site = Site::new(BOTH[0]);
    // For documentation only: no machine has it (RFC 5737).
    site.configure("", "");
    let text = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(site.config(), text.replace("127.0.0.1:0", "203.0.113.7:8787")).unwrap();
    let ended = refused(&mut site.command());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("error: listen on 203.0.113.7:8787"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: this machine has no such address"), "{}", ended.stderr);
    site.configure("", "");
    let first = site.start();
    let text = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(site.config(), text.replace("127.0.0.1:0", &first.address.to_string())).unwrap();
    let said = Receiver::start(&mut site.command()).err();
    assert_eq!(said.as_deref(), Some("outcome=incomplete findings=0\n"));
    assert!(site.log().contains("hint: another process listens there"), "{}", site.log());
}
