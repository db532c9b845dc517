//! Whoever reads what a command prints may go away, as `head -1` does: the command does what it would have done, ends as
//! it would have ended, and says nothing of it.

use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Output};

/// What a command does whose stdout nobody reads.
fn unread(mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_gone_changes_no_exit_code_and_is_not_told() {
    let stage = Stage::new(7, 150, &Mix::random(7, 4), Faults::default()).await;
    let event = stage.rows("select event_id from inbox_event order by event_id").await.remove(0);
    let run = unread(stage.run_command(&[]));
    assert_eq!((run.status.code(), &*run.stderr), (Some(1), &b""[..]), "{run:?}");
    let [report] = &stage.reports()[..] else { panic!("one report is written all the same") };
    assert_eq!(stage.ask("select outcome from run").await, "findings", "and the run is recorded");
    let finding = stage.rows("select finding_id from finding order by finding_id").await.remove(0);
    let plan = report.join("plan.csv").display().to_string();
    std::fs::write(stage.folder.path().join("left.csv"), "id,amount\nch_1,5\n").unwrap();
    std::fs::write(stage.folder.path().join("right.csv"), "id,amount\nch_1,6\n").unwrap();
    let lines = [
        "--help",
        "inbox --help",
        "man",
        "completions bash",
        "init fresh",
        "compare left.csv right.csv --key id --amount amount --currency-is usd --units minor",
        "status",
        "inbox list",
        "inbox dead",
        &format!("inbox show {event}"),
        &format!("inbox show {event} --body"),
        "outbox list",
        "findings list",
        &format!("findings show {finding}"),
        &format!("show {finding}"),
        "prune",
        &format!("replay {event} --reason test"),
        "work --drain",
        "inbox retry nobody --reason test",
        &format!("apply {plan}"),
        "inbox",
    ];
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let expected = stage.command(&words).output().unwrap();
        assert!(!expected.stdout.is_empty(), "{line}: {expected:?}");
        let found = unread(stage.command(&words));
        assert_eq!(found.status, expected.status, "{line}: {found:?}");
        assert_eq!(found.stderr, expected.stderr, "{line}");
    }
    stage.emulator.stop();
}

#[test]
fn a_receiver_goes_on_whose_first_lines_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "[receive]\nlisten = \"{free}\"\n[[provider]]\nname = \"stripe\"\napi_key = {{ env = \"KEY\" }}\n\
         webhook_secrets = [{{ env = \"SECRET\" }}]\n"
    );
    std::fs::write(folder.path().join("recon.toml"), text).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (mut said, stderr) = std::io::pipe().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.current_dir(folder.path()).env_clear().env("SECRET", "whsec_x").arg("serve");
    let mut child = command.stdout(writer).stderr(stderr).spawn().unwrap();
    drop(command);
    let answered = loop {
        if let Ok(stream) = std::net::TcpStream::connect(free) {
            drop(stream);
            break true;
        }
        if child.try_wait().unwrap().is_some() {
            break false;
        }
        std::thread::yield_now();
    };
    let asked = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    let ended = child.wait().unwrap();
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert!(answered && asked.success(), "{text}");
    assert_eq!((ended.code(), &*text), (Some(0), ""));
}
