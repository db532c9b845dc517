//! Several processes start at once on a store that is not there yet, as at the first boot: all of them get one.

use crate::postgres::Place;
use recon::store::Database;
use std::process::{Child, Command, Stdio};

const PROCESSES: usize = 8;
const ROUNDS: usize = 3;

fn start(folder: &std::path::Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.current_dir(folder).args(["work", "--drain"]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn eight_processes_at_once_make_one_store() {
    for (database, round) in [Database::Sqlite, Database::Postgres]
        .iter()
        .flat_map(|one| (0..ROUNDS).map(move |round| (*one, round)))
    {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let text = format!(
            "[store]\nurl = \"{}\"\n[[provider]]\nname = \"stripe\"\napi_key = {{ file = \"key\" }}\n",
            place.url()
        );
        std::fs::write(folder.path().join("recon.toml"), text).unwrap();
        std::fs::write(folder.path().join("key"), "rk_live_1234567890abcdef").unwrap();
        let children: Vec<Child> = (0..PROCESSES).map(|_| start(folder.path())).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{database:?}, round {round}: {said}");
        }
    }
}
