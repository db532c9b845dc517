"""Other tools on the data of `comparing_files`: how many of the planted double credits each tells of, in what time and memory.

usage: peers_files.py FOLDER [TOOL…]     (FOLDER from `cargo bench --bench comparing_files -- generate FOLDER ROWS`)
needs: pip install csv-diff datacompy polars reladiff duckdb fastrecon

Each tool runs in a process of its own, told the key as its documentation says. FOLDER/duckdb.txt or ours.txt names what was
planted, one key a line. A tool that tells of other rows than those gives a wrong answer, however quickly.
"""

import pathlib
import subprocess
import sys
import time

TOOLS = ["csv-diff", "datacompy", "reladiff", "fastrecon"]


def csv_diff(left, right):
    from csv_diff import compare, load_csv

    with open(left) as one, open(right) as other:
        found = compare(load_csv(one, key="id"), load_csv(other, key="id"))
    return [row["id"] for row in found["added"] + found["removed"]] + [row["key"] for row in found["changed"]]


def datacompy(left, right):
    import datacompy
    import polars

    sides = [polars.read_csv(side, schema_overrides={"amount": polars.Decimal(18, 2)}) for side in (left, right)]
    found = datacompy.PolarsCompare(*sides, join_columns=["id"])
    different = found.intersect_rows.filter(~polars.all_horizontal(polars.col("^.*_match$")))["id"].to_list()
    return found.df1_unq_rows["id"].to_list() + found.df2_unq_rows["id"].to_list() + different


def reladiff(left, right):
    import duckdb
    from reladiff import connect_to_table, diff_tables

    name = str(pathlib.Path(left).with_name("reladiff.duckdb"))
    pathlib.Path(name).unlink(missing_ok=True)
    with duckdb.connect(name) as base:
        for table, path in (("one", left), ("other", right)):
            base.execute(f"create table {table} as select * from read_csv('{path}', types = {{'amount': 'decimal(18, 2)'}})")
    columns = ("amount", "currency")
    sides = [connect_to_table(f"duckdb://main:@/{name}", table, "id") for table in ("one", "other")]
    return [row[0] for _, row in diff_tables(*sides, extra_columns=columns)]


def fastrecon(left, right):
    from fastrecon import CsvFile, compare

    found = compare(left=CsvFile(left), right=CsvFile(right), keys=["id"])
    counts = {name: value for name, value in vars(found).items() if name.endswith(("rows", "_in_left", "_in_right"))}
    print("  it names no keys, only a sample; it counts", counts)
    return []


def one(tool, folder):
    start = time.monotonic()
    keys = {"csv-diff": csv_diff, "datacompy": datacompy, "reladiff": reladiff, "fastrecon": fastrecon}[tool](
        str(folder / "left.csv"), str(folder / "right.csv")
    )
    elapsed = time.monotonic() - start
    text = pathlib.Path("/proc/self/status").read_text()
    peak = next(line for line in text.splitlines() if line.startswith("VmHWM:"))
    planted = set((folder / "ours.txt").read_text().split())
    right = planted & set(keys)
    print(
        f"{tool}: {elapsed:.1f} s, processor {time.process_time():.1f} s, peak {int(peak.split()[1]) // 1024} MiB,"
        f" tells of {len(right)} of {len(planted)} planted keys and of {len(keys) - len(right)} other rows"
    )


if sys.argv[1] == "--one":
    one(sys.argv[2], pathlib.Path(sys.argv[3]))
else:
    for tool in sys.argv[2:] or TOOLS:
        subprocess.run([sys.executable, __file__, "--one", tool, sys.argv[1]], check=False)
