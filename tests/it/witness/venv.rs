//! The witness's virtual environment and its processes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The folder of the scripts.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/witness")
}

/// The environment's Python.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| environment("witness-venv", &scripts().join("requirements.txt")))
}

/// The Python of an environment with these requirements. It lies in the target folder and is made when it is not there or
/// the requirements have changed; when it cannot be made, the test fails and says how to get it.
pub fn environment(name: &str, requirements: &Path) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let venv = target.join(name);
    // Two test processes at once make it once.
    let lock = std::fs::File::create(target.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let wanted = std::fs::read_to_string(requirements).unwrap();
    let mark = venv.join("installed.txt");
    let python = venv.join("bin/python");
    if std::fs::read_to_string(&mark).ok().as_ref() == Some(&wanted) {
        return python;
    }
    let make = [
        ("python3", vec!["-m", "venv", "--clear", venv.to_str().unwrap()]),
        (
            python.to_str().unwrap(),
            vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"],
        ),
    ];
    for (at, (program, arguments)) in make.iter().enumerate() {
        let mut command = Command::new(program);
        command.args(arguments);
        if at == 1 {
            command.arg(requirements);
        }
        let output = command.output();
        let why = match &output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        panic!(
            "this test needs the packages of {1}, and {program} {arguments:?} failed: {why}\n\
             hint: install python3 with its venv module (Debian: apt-get install python3-venv), let pip \
             reach PyPI or a mirror (PIP_INDEX_URL), and run this test again; by hand: python3 -m venv {0} \
             && {0}/bin/pip install -r {1} && cp {1} {2}",
            venv.display(),
            requirements.display(),
            mark.display()
        );
    }
    std::fs::write(&mark, wanted).unwrap();
    python
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(python());
    command.arg("-u").args(arguments).current_dir(scripts());
    // Loopback never goes through a proxy of the host.
    command.env("NO_PROXY", "*").env("no_proxy", "*").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs a script to its end with this on stdin; what it printed, as JSON.
pub fn script(arguments: &[&str], input: &str) -> serde_json::Value {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server in another process. Dropping it ends it.
pub struct Server {
    child: Child,
    /// Its loopback port.
    pub port: u16,
}

impl Server {
    /// Starts it, with stderr to `log`, and reads its port: the digits at the end of a line that it prints.
    pub fn start(arguments: &[&str], log: &Path) -> Self {
        Self::of(command(arguments), log)
    }

    /// The same for any command.
    pub fn of(mut command: Command, log: &Path) -> Self {
        let stderr = std::fs::File::create(log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(port) = lines.by_ref().find_map(|line| port_of(&line.unwrap())) else {
            child.wait().unwrap();
            let said = std::fs::read_to_string(log).unwrap();
            panic!("{command:?} ended without naming its port (localstripe needs IPv6 on loopback): {said}");
        };
        // What it prints from here on is read and thrown away, or it would block.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `9000` or `==== Running on http://[::]:9000 ====`.
fn port_of(line: &str) -> Option<u16> {
    line.trim_end_matches(['=', ' ']).rsplit(':').next()?.parse().ok()
}
