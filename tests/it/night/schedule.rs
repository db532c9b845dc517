//! The schedules in `cron/`: read by the readers that they are for, their command lines by our own, and the lines of
//! crontab and systemd really run, with nothing in the environment but what the file itself sets.

use crate::stage::{Ended, Stage};
use crate::witness::venv::script;
use clap::Parser;
use recon::cli::Cli;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// That our command line takes these words.
fn is_taken(words: &[&str]) {
    if let Err(error) = Cli::try_parse_from(words) {
        panic!("{words:?}: {error}");
    }
}

/// A unit as systemd reads it (systemd.syntax(7)): sections of `Key=Value`; comments begin a line. A key that is set
/// again adds a value. Whatever else there is fails.
fn unit(path: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut sections: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut name = String::new();
    for line in read(path).lines().map(str::trim_end) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        assert!(!line.ends_with('\\') && !line.starts_with(' '), "{path}: {line}");
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section.clone_into(&mut name);
            assert!(sections.insert(name.clone(), Vec::new()).is_none(), "{path}: [{name}] twice");
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{path}: {line}"));
        assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{path}: {line}");
        let section = sections.get_mut(&name).unwrap_or_else(|| panic!("{path}: {line} before any section"));
        section.push((key.to_owned(), value.to_owned()));
    }
    sections
}

fn value<'a>(section: &'a [(String, String)], key: &str) -> &'a str {
    let found: Vec<&str> =
        section.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect();
    assert_eq!(found.len(), 1, "{key}: {found:?}");
    found[0]
}

/// systemd's own reader, over a copy whose program is there.
fn analyze(arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["recon.service", "recon.timer"] {
        let text = read(&format!("cron/{name}"));
        let text = text.replace("ExecStart=recon ", "ExecStart=/bin/true ").replace("man:recon(1)", "");
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).current_dir(folder.path());
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; hint: install it (Debian: `apt-get install systemd`; it need not run)")
    });
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}");
    // It warns of keys that it does not know and goes on.
    assert!(!said.contains("Unknown") && !said.contains("ignoring"), "{said}");
}

#[test]
fn systemd_reads_the_units_and_finds_them_hardened() {
    analyze(&["verify", "./recon.service", "./recon.timer"]);
    // 0 is the best of 10; it calls below 2.0 OK. 20 is 2.0.
    analyze(&["security", "--offline=yes", "--threshold=20", "./recon.service"]);
    let service = unit("cron/recon.service");
    let service = &service["Service"];
    for (key, wanted) in [
        ("Type", "oneshot"),
        ("SuccessExitStatus", "1 75"),
        ("RestartPreventExitStatus", "78"),
        ("DynamicUser", "yes"),
        ("ProtectSystem", "strict"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("WorkingDirectory", "/var/lib/recon"),
    ] {
        assert_eq!(value(service, key), wanted, "{key}");
    }
    assert!(value(service, "LoadCredential").starts_with("stripe.key:/etc/recon/"));
    assert!(!service.iter().any(|(key, _)| key.starts_with("Environment")), "secrets are files");
    is_taken(&value(service, "ExecStart").split_whitespace().collect::<Vec<_>>());
    let timer = unit("cron/recon.timer");
    assert_eq!(value(&timer["Timer"], "Persistent"), "true");
    assert_eq!(value(&timer["Install"], "WantedBy"), "timers.target");
}

/// A stage as a host is set up, and the command line of a schedule with its paths turned there.
struct Host {
    stage: Stage,
}

impl Host {
    async fn new() -> Self {
        let stage = Stage::new(71, 160, &Mix::each(1), Faults::default()).await;
        Self { stage }
    }

    fn turned(&self, line: &str) -> String {
        let config = self.stage.config();
        let log = self.stage.folder.path().join("recon.log");
        line.replace("/usr/local/bin/recon", env!("CARGO_BIN_EXE_recon"))
            .replace("/etc/recon/recon.toml", config.to_str().unwrap())
            .replace("/var/log/recon.log", log.to_str().unwrap())
            .replace("/srv/finance/recon", self.stage.folder.path().join("finance").to_str().unwrap())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.stage.folder.path().join("recon.log")).unwrap()
    }

    /// As `env -i`: nothing but these and the world's time.
    fn run(&self, program: &str, arguments: &[&str], environment: &[(String, String)]) -> Ended {
        let mut command = Command::new("env");
        command.arg("-i").args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg(format!("RECON_NOW={}", self.stage.world.now_us / 1_000_000));
        command.arg(program).args(arguments).current_dir("/").stdin(Stdio::null());
        Ended::of(&command.output().unwrap())
    }
}

/// The jobs of the crontab and what it sets for them.
fn crontab() -> (Vec<(String, String)>, Vec<String>) {
    let text = read("cron/crontab");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let is_set = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.contains('='));
    let (set, jobs): (Vec<&str>, Vec<&str>) = lines.partition(is_set);
    let set = set.iter().map(|line| line.split_once('=').unwrap());
    // Five fields; `\%` is a percent sign.
    let jobs = jobs.iter().map(|line| line.splitn(6, ' ').nth(5).unwrap().replace("\\%", "%"));
    (set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), jobs.collect())
}

/// Whether a run saw everything, by its exit code and by its last line alike.
fn is_done(code: Option<i32>, said: &str) -> bool {
    let last = said.lines().last().unwrap_or_default();
    match code {
        Some(0) => last.starts_with("outcome=clean findings=0 "),
        Some(1) => last.starts_with("outcome=findings findings="),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c80_the_lines_of_the_crontab_run_in_an_empty_environment() {
    let host = Host::new().await;
    let (set, jobs) = crontab();
    assert_eq!(jobs.len(), 4, "{jobs:?}");
    let cron = |line: &str| host.run("/bin/sh", &["-c", &host.turned(line)], &set);
    // Before the first night, the check has something to say.
    let check = cron(&jobs[3]);
    assert!(check.stdout.contains("no run has ever seen everything"), "{}{}", check.stdout, check.stderr);
    let night = cron(&jobs[0]);
    assert_eq!((&*night.stdout, &*night.stderr), ("", ""), "cron has nothing to mail");
    assert!(is_done(night.code, &host.log()), "{:?} {}", night.code, host.log());
    let check = cron(&jobs[3]);
    assert_eq!((check.code, &*check.stdout, &*check.stderr), (Some(0), "", ""));
    let prune = cron(&jobs[2]);
    assert_eq!((prune.code, &*prune.stdout, &*prune.stderr), (Some(0), "", ""));
    let month = cron(&jobs[1]);
    assert_eq!(month.code, Some(78), "the host's `date` knows nothing of the world's month: {}", host.log());
    assert!(host.log().lines().any(|line| line.starts_with("error: ")), "{}", host.log());
    // What is missing is named, by name.
    host.stage.configure("{ file = \"stripe.key\" }", "{ env = \"STRIPE_API_KEY\" }");
    let night = cron(&jobs[0]);
    assert_eq!(night.code, Some(78));
    assert!(host.log().contains("STRIPE_API_KEY, which is not set"), "{}", host.log());
}

/// What the shell makes of each end of a drain; that a drain with new dead letters ends with 1 is shown where it works.
#[test]
fn the_line_that_drains_mails_new_dead_letters_and_nothing_else() {
    let text = read("cron/crontab");
    let line = text.lines().find(|line| line.contains("work --drain")).unwrap();
    assert!(read("docs/cron.md").contains(line.trim_start_matches("# ")), "the page shows the same line");
    let line = line.splitn(7, ' ').nth(6).unwrap();
    for (code, mailed) in [(0, ""), (1, "it said so\n"), (2, ""), (75, ""), (78, "")] {
        let program = format!("sh -c 'echo it said so; exit {code}'");
        let line = line.replace("/usr/local/bin/recon", &program);
        let output = Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), mailed, "exit {code}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c80_the_line_of_the_service_runs_in_an_empty_environment() {
    let host = Host::new().await;
    let service = unit("cron/recon.service");
    let line = value(&service["Service"], "ExecStart");
    let line = line.strip_prefix("recon ").unwrap();
    // The credential lies where systemd would put it.
    let credentials = host.stage.folder.path().join("credentials");
    std::fs::create_dir(&credentials).unwrap();
    std::fs::rename(host.stage.folder.path().join("stripe.key"), credentials.join("stripe.key")).unwrap();
    let path = credentials.join("stripe.key");
    host.stage.configure("{ file = \"stripe.key\" }", &format!("{{ file = \"{}\" }}", path.display()));
    let turned = host.turned(line);
    let words: Vec<&str> = turned.split_whitespace().collect();
    let night = host.run(env!("CARGO_BIN_EXE_recon"), &words, &[]);
    assert!(is_done(night.code, &night.stdout), "{:?} {}{}", night.code, night.stdout, night.stderr);
    assert_eq!(night.stderr, "");
    let successes = value(&service["Service"], "SuccessExitStatus");
    assert!(successes.split(' ').any(|code| code == "1"), "{successes}");
    assert_eq!(host.stage.reports().len(), 1);
}

/// The `CronJob` of the file, and its one container.
fn cron_job() -> (Value, Value) {
    let documents = script(&["yaml_documents.py"], &read("cron/kubernetes.yaml"));
    let jobs: Vec<&Value> =
        documents.as_array().unwrap().iter().filter(|document| document["kind"] == "CronJob").collect();
    assert_eq!(jobs.len(), 1, "{documents}");
    let pod = &jobs[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    (jobs[0].clone(), containers[0].clone())
}

#[test]
fn kubernetes_runs_one_at_a_time_as_nobody_and_writes_nowhere_else() {
    let (job, container) = cron_job();
    let spec = &job["spec"];
    assert_eq!((&job["apiVersion"], &spec["concurrencyPolicy"]), (&json!("batch/v1"), &json!("Forbid")));
    assert_eq!(spec["schedule"].as_str().unwrap().split(' ').count(), 5);
    let pod = &spec["jobTemplate"]["spec"]["template"]["spec"];
    assert_eq!(
        (&pod["restartPolicy"], &pod["automountServiceAccountToken"]),
        (&json!("Never"), &json!(false))
    );
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    // Secrets come as files: no variable is read from one.
    for variable in container["env"].as_array().unwrap() {
        assert!(variable.get("valueFrom").is_none(), "{variable}");
    }
    let volumes: Vec<&str> =
        pod["volumes"].as_array().unwrap().iter().map(|volume| volume["name"].as_str().unwrap()).collect();
    let mut writable = Vec::new();
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(volumes.contains(&mount["name"].as_str().unwrap()), "{mount}");
        if mount["readOnly"] != true {
            writable.push(mount["mountPath"].as_str().unwrap());
        }
    }
    assert_eq!(writable, ["/var/lib/recon", "/tmp"], "the store and the reports, and where comparing spills");
    let mut words = vec!["recon"];
    words.extend(container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    is_taken(&words);
    // What is no success of a run is not begun again in vain.
    let rules = &spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"];
    assert_eq!(rules[0]["onExitCodes"]["values"], json!([1, 75, 78]));
    assert_eq!(rules[0]["onExitCodes"]["containerName"], container["name"]);
}

#[test]
fn the_image_is_static_small_and_not_root() {
    let text = read("Dockerfile");
    let lines: Vec<(&str, &str)> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    let all = |word: &str| -> Vec<&str> {
        lines.iter().filter(|(name, _)| *name == word).map(|(_, rest)| *rest).collect()
    };
    for (word, _) in &lines {
        let known = ["FROM", "RUN", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD"];
        assert!(known.contains(word), "{word}");
    }
    let stages = all("FROM");
    assert_eq!(stages.len(), 2, "{stages:?}");
    assert!(stages[0].contains("alpine AS build") && stages[1] == "scratch", "{stages:?}");
    let compiler =
        read("Cargo.toml").lines().find_map(|line| line.strip_prefix("rust-version = ").map(str::to_owned));
    assert!(stages[0].starts_with(&format!("rust:{}-", compiler.unwrap().trim_matches('"'))), "{stages:?}");
    for image in &stages {
        assert!(!image.contains('/'), "{image} names a registry's host");
    }
    assert!(all("RUN").iter().any(|run| run.contains("cargo build --locked --release --bin recon")));
    let users = all("USER");
    let user: u32 = users.last().unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(user > 0, "{users:?}");
    let (_, container) = cron_job();
    let (job, _) = cron_job();
    let runs_as = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"];
    assert_eq!(runs_as, &json!(user), "{container}");
    let words = |word: &str| -> Vec<String> { serde_json::from_str(all(word)[0]).unwrap() };
    assert_eq!(words("ENTRYPOINT"), ["/usr/local/bin/recon"]);
    let mut line = vec!["recon".to_owned()];
    line.extend(words("CMD"));
    is_taken(&line.iter().map(String::as_str).collect::<Vec<_>>());
    // What is copied is there.
    let ignored = read(".dockerignore");
    assert!(ignored.lines().any(|line| line == "target") && ignored.lines().any(|line| line == ".git"));
}

#[test]
fn what_the_debian_package_brings_is_there() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let assets: Vec<[&str; 3]> = deb["assets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|asset| {
            let words: Vec<&str> =
                asset.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            words.try_into().unwrap()
        })
        .collect();
    let made = read("cron/debian");
    for [from, to, mode] in &assets {
        assert!(!to.starts_with('/'), "{to}");
        assert_eq!(*mode, if to.starts_with("usr/bin") { "755" } else { "644" }, "{to}");
        let is_made = from.starts_with("target/release/") || made.contains(&format!("> {from}\n"));
        assert!(is_made || root().join(from).exists(), "{from}");
    }
    for wanted in [
        "usr/bin/",
        "usr/lib/systemd/system/recon.service",
        "usr/lib/systemd/system/recon.timer",
        "usr/share/man/man1/recon.1",
        "usr/share/bash-completion/completions/recon",
    ] {
        assert!(assets.iter().any(|[_, to, _]| *to == wanted), "{wanted}");
    }
    for line in made.lines().filter_map(|line| line.strip_prefix("target/release/recon ")) {
        let words: Vec<&str> = line.split(" > ").next().unwrap().split(' ').collect();
        is_taken(&[&["recon"], &*words].concat());
    }
    let _: PathBuf = root().join(deb["license-file"][0].as_str().unwrap()).canonicalize().unwrap();
}
