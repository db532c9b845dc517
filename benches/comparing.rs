//! Comparing: six CSV relations to suspicious payments and findings, beside DuckDB on the same files.
//!
//! `cargo bench --bench comparing` generates a million provider events with planted faults, compares
//! them with both and prints wall time and peak memory; `-- 10000000` takes another size. Needs a
//! Python with DuckDB 2 (`pip install duckdb`), named by `RECON_BENCH_PYTHON` where it is not
//! `python3`; without one only our side is measured. Both sides run as processes of their own, one
//! after the other, so that a ratio is of one run on one machine; processor time is printed too,
//! because on a busy machine wall time measures the neighbours. There are two questions, and both sides
//! must answer each alike: which payments are suspicious (for DuckDB: the eight statements of
//! `comparing/rules`), and what the rules find (the whole specification in `queries/rules`, its views
//! kept as tables).

#[path = "comparing/findings.rs"]
mod findings;
#[path = "comparing/generate.rs"]
mod generate;
#[path = "comparing/process.rs"]
mod process;
#[path = "comparing/relations.rs"]
mod relations;
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/it/world.rs"]
mod world;

use anyhow::{Context, Result, bail};
use recon::compare::Comparer;
use recon::config::CompareSettings;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const MEMORY_MIB: usize = 256;
/// What DuckDB may hold before it spills to disk; it is far more than ours, and a busy machine stays alive.
const DUCKDB_MEMORY: &str = "12GB";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["generate", folder, events] => {
            let planted = generate::generate(Path::new(folder), events.parse()?)?;
            println!("planted={planted}");
            Ok(())
        }
        ["compare", folder] => compare(Path::new(folder), 2, MEMORY_MIB),
        ["compare", folder, threads, memory_mib] => {
            compare(Path::new(folder), threads.parse()?, memory_mib.parse()?)
        }
        [] => side_by_side(1_000_000),
        [events] => side_by_side(events.parse()?),
        _ => {
            bail!("usage: comparing [EVENTS] | generate FOLDER EVENTS | compare FOLDER [THREADS MEMORY_MIB]")
        }
    }
}

/// Generates, measures both sides, compares their answers, removes the files where they agree.
fn side_by_side(events: u64) -> Result<()> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = base.join("target/bench-data").join(format!("comparing-{events}"));
    generate::generate(&folder, events)?;
    measure(base, &folder, if events > 1_000_000 { 1 } else { 2 })?;
    std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))
}

fn measure(base: &Path, folder: &Path, runs: u32) -> Result<()> {
    let specification = base.join("queries/rules");
    let memory = [OsStr::new("--memory"), OsStr::new(DUCKDB_MEMORY)];
    let rules = [OsStr::new("--rules"), specification.as_os_str()];
    for run in 1..=runs {
        println!("run {run}");
        process::ours(folder)?;
        process::duckdb("duckdb_rules.py", folder, &memory);
        process::duckdb("duckdb_rules.py", folder, &[memory, rules].concat());
    }
    let read = |name: &str| std::fs::read(folder.join(name));
    for (ours, theirs, what) in [
        ("suspicious_roots.txt", "duckdb_roots.txt", "payments"),
        ("findings.txt", "duckdb_findings.txt", "findings"),
    ] {
        match (read(ours), read(theirs)) {
            (Ok(ours), Ok(theirs)) if ours == theirs => println!("both name the same {what}"),
            (Ok(_), Ok(_)) => bail!("the two sides name other {what}: see {}", folder.display()),
            _ => {}
        }
    }
    Ok(())
}

/// Our side: CSV files to suspicious roots, written sorted to a file beside them.
fn compare(folder: &Path, threads: usize, memory_mib: usize) -> Result<()> {
    let start = Instant::now();
    let settings = CompareSettings { memory_bytes_max: memory_mib << 20, threads };
    let comparer = Comparer::new(&settings, &folder.join("spill"))?.covering(BTreeMap::new());
    let source = relations::Source::open(folder, &relations::Relation::ALL)?;
    std::thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for _ in 0..threads {
            let feed = comparer.feed()?;
            workers.push(scope.spawn(|| relations::read(&source, feed)));
        }
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a reader broke down"))??;
        }
        Ok(())
    })?;
    let read_ms = start.elapsed().as_millis();
    let suspicious = comparer.finish()?;
    let mut out = std::io::BufWriter::new(std::fs::File::create(folder.join("suspicious_roots.txt"))?);
    let mut roots = findings::Wanted::default();
    let mut root_count = 0_u64;
    for root in suspicious.roots()? {
        let root = root?;
        writeln!(out, "{}/{}", root.scope, root.root_id)?;
        roots.add(root.scope, root.root_id);
        root_count += 1;
    }
    out.flush()?;
    let mut events = findings::Wanted::default();
    for event in suspicious.inbox_only()? {
        let event = event?;
        events.add(event.scope, event.event_id);
    }
    println!(
        "ours: {} ms (reading {read_ms} ms), {}, {root_count} roots, {} provider events",
        start.elapsed().as_millis(),
        process::spent()?,
        suspicious.totals().counts.provider_events,
    );
    let found = findings::find(folder, &roots, events, threads)?;
    let lines = found.iter().fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(folder.join("findings.txt"), lines)?;
    println!(
        "ours, judged by the rules too: {} ms, {}, {} findings",
        start.elapsed().as_millis(),
        process::spent()?,
        found.len(),
    );
    Ok(())
}
