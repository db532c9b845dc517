"""DuckDB's side of `comparing`: loads the six CSV relations and runs the rules over them.

usage: duckdb_rules.py FOLDER [--rules FOLDER] [--memory 4GB] [--threads 2]

Prints wall time, processor time and peak memory (VmHWM). Column types are given, so nothing is spent on
guessing them. Without --rules the statements beside this file are taken: together they ask what the engine
asks of a payment, and the payments that any of them names are written, sorted, to FOLDER/duckdb_roots.txt.
With --rules queries/rules the whole specification is run: its views are kept as tables, then each rule is
asked, and what they find is written, sorted, to FOLDER/duckdb_findings.txt.
"""

import argparse
import pathlib
import re
import sys
import time

import duckdb

TEXT, NUMBER = "varchar", "bigint"
NUMBERS = {
    "created_us", "wanted", "settled", "received_at_us", "amount_minor", "occurred_at_us", "in_window",
    "applied_at_us", "refunded_minor", "authorized_minor", "at_us", "updated_at_us",
}
RELATIONS = (
    "provider_event", "inbox_event", "provider_effect", "local_effect", "provider_state", "local_state",
)


def peak_mib():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rules", type=pathlib.Path)
    parser.add_argument("--memory")
    parser.add_argument("--threads", type=int, default=2)
    settings = parser.parse_args()
    if int(duckdb.__version__.split(".")[0]) < 2:
        sys.exit(f"DuckDB 2 is needed, this is {duckdb.__version__}")
    beside = pathlib.Path(__file__).parent / "comparing/rules"
    start = time.monotonic()
    base = duckdb.connect(":memory:")
    base.execute(f"set threads = {settings.threads}")
    base.execute("set preserve_insertion_order = false")
    if settings.memory:
        base.execute(f"set memory_limit = '{settings.memory}'")
        base.execute(f"set temp_directory = '{settings.folder / 'duckdb-spill'}'")
    for name in RELATIONS:
        path = settings.folder / f"{name}.csv"
        with path.open() as file:
            columns = file.readline().strip().split(",")
        types = {column: NUMBER if column in NUMBERS else TEXT for column in columns}
        base.execute(
            f"create table {name} as select * from read_csv('{path}', header = true, auto_detect = false,"
            f" delim = ',', quote = '\"', escape = '\"', new_line = '\\n', columns = {types},"
            f" force_not_null = {[c for c in columns if c not in NUMBERS]})"
        )
    loaded = time.monotonic()
    roots, lines, rows = set(), [], 0
    for view in sorted((settings.rules / "views").glob("*.sql")) if settings.rules else []:
        began = time.monotonic()
        base.execute(re.sub("^create view ", "create table ", view.read_text(), flags=re.MULTILINE))
        print(f"  {view.stem}: {(time.monotonic() - began) * 1000:.0f} ms, peak {peak_mib()} MiB", file=sys.stderr)
    for rule in sorted((settings.rules or beside).glob("*.sql")):
        began = time.monotonic()
        found = base.execute(rule.read_text()).fetchall()
        rows += len(found)
        if settings.rules:
            lines.extend("|".join("" if value is None else str(value) for value in row) for row in found)
        else:
            roots.update("/".join(row[:3]) + "/" + row[3] for row in found)
        print(f"  {rule.stem}: {len(found)} rows, {(time.monotonic() - began) * 1000:.0f} ms", file=sys.stderr)
    ended = time.monotonic()
    if settings.rules:
        (settings.folder / "duckdb_findings.txt").write_text("".join(f"{line}\n" for line in sorted(lines)))
    else:
        (settings.folder / "duckdb_roots.txt").write_text("".join(f"{root}\n" for root in sorted(roots)))
    named = "the specification" if settings.rules else f"{len(roots)} roots"
    print(
        f"duckdb {duckdb.__version__}: {(ended - start) * 1000:.0f} ms (loading {(loaded - start) * 1000:.0f} ms),"
        f" processor {time.process_time() * 1000:.0f} ms, peak {peak_mib()} MiB, {named}, {rows} rows"
    )


main()
