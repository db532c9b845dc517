"""DuckDB's side of `comparing_files`: which (id, amount, currency) stands more often on one side than on the other.

usage: duckdb_files.py FOLDER [--memory 4GB] [--threads 2]

Column types are given, so nothing is spent on guessing them; unlike ours, the answer names no rows. Writes the keys, one
a line for each row too many, sorted, to FOLDER/duckdb.txt, and prints wall time, processor time and peak memory (VmHWM).
"""

import argparse
import pathlib
import sys
import time

import duckdb

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--memory")
parser.add_argument("--threads", type=int, default=2)
settings = parser.parse_args()
if int(duckdb.__version__.split(".")[0]) < 2:
    sys.exit(f"DuckDB 2 is needed, this is {duckdb.__version__}")

COLUMNS = "{id: 'varchar', created: 'varchar', amount: 'decimal(18, 2)', currency: 'varchar', status: 'varchar'}"


def side(name):
    return (
        f"select id, amount, currency, count(*) as n from read_csv('{settings.folder / name}.csv', header = true,"
        f" auto_detect = false, delim = ',', quote = '\"', escape = '\"', new_line = '\\n', columns = {COLUMNS})"
        " group by all"
    )


start = time.monotonic()
base = duckdb.connect(":memory:")
base.execute(f"set threads = {settings.threads}")
base.execute("set preserve_insertion_order = false")
base.execute(f"set temp_directory = '{settings.folder / 'duckdb-spill'}'")
if settings.memory:
    base.execute(f"set memory_limit = '{settings.memory}'")
found = base.execute(
    f"select id, coalesce(r.n, 0) - coalesce(l.n, 0) from ({side('left')}) l full join ({side('right')}) r"
    " using (id, amount, currency) where l.n is distinct from r.n"
).fetchall()
elapsed = time.monotonic() - start
keys = sorted(key for key, count in found for _ in range(abs(count)))
(settings.folder / "duckdb.txt").write_text("".join(f"{key}\n" for key in keys))
peak = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(
    f"duckdb {duckdb.__version__}: {elapsed * 1000:.0f} ms, processor {time.process_time() * 1000:.0f} ms,"
    f" peak {int(peak.split()[1]) // 1024} MiB, {len(keys)} double credits"
)
