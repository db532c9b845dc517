//! Full disks and missing rights: exit 2 with one clear line, no half report, nothing lost, and the same
//! command goes on once there is room.

use crate::bad_input::{is_refused, loudly, recovers, run, stage};
use crate::stage::{Ended, Stage};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command in a mount namespace of its own, where `out` is a disk of a few KiB.
fn on_a_tiny_disk(stage: &Stage, size: &str) -> Command {
    let out = stage.folder.path().join("out");
    std::fs::create_dir_all(&out).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size} tmpfs out && \"$0\" \"$@\"; code=$?; ls -A out >&2; exit $code"
    );
    let own = stage.run_command(&[]);
    let mut command = Command::new("unshare");
    command.args(["-r", "-m", "sh", "-c", &script]).arg(own.get_program()).args(own.get_args());
    command.current_dir(stage.folder.path()).stdin(Stdio::null());
    command.env("RECON_NOW", (stage.world.now_us / 1_000_000).to_string());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c81_a_full_disk_under_the_reports_leaves_no_report() {
    let stage = stage().await;
    let can_mount = Command::new("unshare")
        .args(["-r", "-m", "sh", "-c", "mount -t tmpfs -o size=8k tmpfs /mnt"])
        .status()
        .is_ok_and(|status| status.success());
    if can_mount {
        let ended = Ended::of(&loudly(&mut on_a_tiny_disk(&stage, "8k")).output().unwrap());
        is_refused(&stage, &ended, 2, &["write", "No space left on device"]).await;
        assert!(ended.stderr.contains("hint: make room"), "{}", ended.stderr);
        assert_eq!(
            ended.stderr.lines().last().map(|line| line.starts_with("hint: ")),
            Some(true),
            "left on it"
        );
    }
    // Without the right to mount, a file where the folder should be refuses as well.
    std::fs::remove_dir_all(stage.folder.path().join("out")).ok();
    std::fs::write(stage.folder.path().join("out"), "in the way").unwrap();
    let before = stage.business_rows().await;
    let ended = Ended::of(&loudly(&mut stage.run_command(&[])).output().unwrap());
    std::fs::remove_file(stage.folder.path().join("out")).unwrap();
    is_refused(&stage, &ended, 2, &["create the report folder"]).await;
    assert_eq!(stage.business_rows().await, before);
    recovers(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c81_a_full_disk_under_the_store_loses_nothing() {
    let stage = stage().await;
    let before = stage.business_rows().await;
    let own = stage.run_command(&[]);
    let mut command = Command::new("sh");
    // Blocks of 512 bytes; the signal would kill before the error could be told.
    command.args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\""]).arg(own.get_program());
    command.args(own.get_args()).current_dir(stage.folder.path()).stdin(Stdio::null()).env_clear();
    command.env("RECON_NOW", (stage.world.now_us / 1_000_000).to_string());
    let ended = Ended::of(&loudly(&mut command).output().unwrap());
    is_refused(&stage, &ended, 2, &[]).await;
    assert!(ended.stderr.contains("hint: make room where the store lies"), "{}", ended.stderr);
    assert_eq!(stage.business_rows().await, before);
    recovers(&stage).await;
}

/// Rights to a folder and the files in it.
fn allow(folder: &Path, folder_mode: u32, file_mode: u32) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && path.file_name().is_some_and(|name| name != "recon") {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file_mode)).unwrap();
        }
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(folder_mode)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_cannot_be_written_is_told() {
    let stage = stage().await;
    let folder = stage.folder.path();
    // Rights do not bind root: then somebody else runs a copy that he may read.
    let copy = folder.join("recon");
    std::fs::copy(env!("CARGO_BIN_EXE_recon"), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let own = stage.run_command(&[]);
    let mut command = Command::new(&copy);
    command.args(own.get_args()).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("RECON_NOW", (stage.world.now_us / 1_000_000).to_string());
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(65_534).gid(65_534);
    }
    allow(folder, 0o555, 0o444);
    let ended = Ended::of(&loudly(&mut command).output().unwrap());
    allow(folder, 0o755, 0o644);
    is_refused(&stage, &ended, 2, &["recon.db"]).await;
    assert!(ended.stderr.contains("hint: let this user write"), "{}", ended.stderr);
    recovers(&stage).await;
    std::fs::write(folder.join("recon.db"), "no database at all, but a letter".repeat(200)).unwrap();
    for end in ["wal", "shm"] {
        std::fs::remove_file(folder.join(format!("recon.db-{end}"))).ok();
    }
    let ended = run(&stage, &[]);
    assert_eq!((ended.code, ended.errors().len()), (Some(2), 1), "{}", ended.stderr);
    assert!(ended.errors()[0].contains("recon.db"), "{}", ended.stderr);
}
