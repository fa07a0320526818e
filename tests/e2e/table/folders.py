"""folders.py EVPROF TRACE...: the folder of tables of each trace, as DuckDB, Polars, pandas, pyarrow, and with EVPROF_TEST_ALL chDB and
Spark read it, against `evprof report`, the csv of `evprof export` and trace.calls(). Used by test_tables.c. Prints "as reported" and the
engines.
"""
import collections
import csv
import json
import os
import subprocess
import sys
import tempfile

import evprof
from evprof import tables

tool, paths = sys.argv[1], sys.argv[2:]
engines = ["pyarrow"]
import pyarrow.compute
import pyarrow.csv
import pyarrow.dataset
try:
    import duckdb
    engines.append("duckdb")
except ImportError:
    duckdb = None
try:
    import polars
    engines.append("polars")
except ImportError:
    polars = None
try:
    import pandas
    engines.append("pandas")
except ImportError:
    pandas = None
chdb = pyspark = None
if os.environ.get("EVPROF_TEST_ALL"):  # they are large, and no pins have them: where this Python has them
    try:
        import chdb
        engines.append("chdb")
    except ImportError:
        pass
    try:
        import pyspark.sql
        engines.append("pyspark")
    except ImportError:
        pass


def same(what, mine, theirs):
    if mine != theirs:
        sys.exit("%s: %r instead of %r" % (what, mine, theirs))


def said(*words):
    done = subprocess.run([tool, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        sys.exit("%s ends with %d: %s" % (" ".join(words), done.returncode, done.stderr.decode()))
    return done.stdout.decode()


def files_below(folder):
    return sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)


def read(folder, format="parquet"):
    """All rows, with pyarrow."""
    return pyarrow.dataset.dataset(folder, format=format, partitioning="hive").to_table().to_pylist()


def sums(folder):
    """{engine: (rows, sum of own, least start)} of calls."""
    found, pattern = {}, os.path.join(folder, "**", "*.parquet")
    if duckdb:
        found["duckdb"] = duckdb.sql("SELECT count(*), sum(own)::BIGINT, min(start) FROM read_parquet('%s', hive_partitioning=true)"
                                     " WHERE host <> '' AND day > DATE '2000-01-01'" % pattern).fetchall()[0]
    if polars:
        lazy = polars.scan_parquet(folder, hive_partitioning=True)
        found["polars"] = lazy.select(polars.len(), polars.col("own").sum(), polars.col("start").min()).collect().row(0)
    if pandas:
        frame = pandas.read_parquet(folder)
        found["pandas"] = (len(frame), int(frame["own"].sum()), int(frame["start"].min()))
    if chdb:
        answer = chdb.query("SELECT count(), sum(own), min(start) FROM file('%s')" % pattern, "CSV")
        found["chdb"] = [int(value) for value in str(answer).split(",")]
    if pyspark:
        found["pyspark"] = spark().read.parquet(folder).selectExpr("count(*)", "sum(own)", "min(start)").collect()[0]
    return found


def spark():
    """On this machine only."""
    builder = pyspark.sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()


def judge_calls(trace, rows, report):
    plain = list(trace.calls())
    origin = trace.start_ns + trace.realtime_offset_ns
    same("calls", len(rows), len(plain))
    ended = set()
    for row in rows:
        mine = plain[row["id"]]
        same("call %d" % row["id"], (row["start"] - origin, row["parent"]) + tuple(row[name] for name in mine._fields if name in (
            "duration", "own", "name", "mod", "lineno", "kind", "end", "depth", "task", "thread", "pid", "tid")),
            (mine.start, mine.parent) + tuple(getattr(mine, name) for name in mine._fields if name not in ("start", "parent")))
        same("a caller ends later", row["parent"] in ended, False)
        ended.add(row["id"])
    same("ids", sorted(ended), list(range(len(plain))))
    same("calls of the report", sum(row["kind"] != "frame" for row in rows), report["calls"])
    judge_own(rows, report)


def judge_own(rows, report):
    by_id = {row["id"]: row for row in rows}
    own, calls, edges = collections.Counter(), collections.Counter(), collections.Counter()
    for row in rows:
        key = row["mod"], row["lineno"], row["name"]
        if row["lineno"] >= 0:
            own[key] += row["own"]
            calls[key] += row["kind"] != "frame"
        if row["parent"] >= 0:
            parent = by_id[row["parent"]]
            edges[parent["mod"], parent["lineno"], parent["name"]] += 1
    reported = [one for one in report["functions"] if one["line"] and calls[one["file"], one["line"], one["function"]]]
    same("Python functions", len(reported), sum(count > 0 for count in calls.values()))
    for one in reported:
        key = one["file"], one["line"], one["function"]
        same("calls of %s:%d %s" % key, calls[key], one["ncalls"])
        if abs(own[key] - one["tottime_ns"]) > calls[key] + edges[key]:  # each duration is rounded to ns
            sys.exit("%s:%d %s: %d ns of its own, reported are %d" % (key + (own[key], one["tottime_ns"])))


def judge_functions(rows, report):
    same("functions", sorted((row["file"], row["line"], row["name"], row["calls"], row["primitive_calls"], row["own"],
                              row["cumulative"]) for row in rows),
         sorted((one["file"], one["line"], one["function"], one["ncalls"], one["primitive_calls"], one["tottime_ns"],
                 one["cumtime_ns"]) for one in report["functions"]))


COLUMNS = ["time", "event", "name", "value1", "value2", "from_name", "pid", "tid"]


def sorted_columns(table):
    texts = [pyarrow.compute.cast(table.column(name), pyarrow.string()) if not pyarrow.types.is_integer(table.column(name).type)
             else pyarrow.compute.cast(table.column(name), pyarrow.int64()) for name in COLUMNS]
    return pyarrow.table(texts, COLUMNS).sort_by([(name, "ascending") for name in COLUMNS]).combine_chunks()


def judge_events(path, folder, scratch):
    """Events and allocations together are the csv."""
    table, found = os.path.join(scratch, "table.csv"), []
    said("export", "-f", "csv", "--exclude-syspath", path, "-o", table)
    for name in ("events", "allocations"):
        if os.path.exists(os.path.join(folder, name)):
            rows = pyarrow.dataset.dataset(os.path.join(folder, name)).to_table()
            rows = rows.rename_columns([{"address": "value1", "bytes": "value2"}.get(one, one) for one in rows.schema.names])
            found.append(sorted_columns(rows))
    text = pyarrow.string()
    wanted = pyarrow.csv.read_csv(table, convert_options=pyarrow.csv.ConvertOptions(
        include_columns=COLUMNS, column_types={"name": text, "from_name": text, "event": text}, strings_can_be_null=False))
    same("events and allocations", sorted_columns(pyarrow.concat_tables(found)).equals(sorted_columns(wanted)), True)


def judge(path, scratch):
    folder, trace = os.path.join(scratch, "tables"), evprof.load(path, exclude_syspath=True)
    said("export", "--format", "parquet", "--python", sys.executable, "--exclude-syspath", path, "-o", folder, "--service", "a/b=c",
         "--host", "h 1")
    for file in files_below(folder):
        same("a file's place", "/service=a%2Fb%3Dc/host=h%201/" in file and file.endswith(".parquet"), True)
    report = json.loads(said("report", "--json", "--limit", "all", "--exclude-syspath", path))
    rows = read(os.path.join(folder, "calls"))
    same("partitions", {(row["service"], row["host"]) for row in rows}, {("a/b=c", "h 1")})
    judge_calls(trace, rows, report)
    judge_functions(read(os.path.join(folder, "functions")), report)
    judge_events(path, folder, scratch)
    wanted = (len(rows), sum(row["own"] for row in rows), min(row["start"] for row in rows))
    for engine, found in sums(os.path.join(folder, "calls")).items():
        same("calls, as %s reads them" % engine, tuple(found), wanted)
    judge_variants(trace, rows, scratch)


def without_names(rows):
    return [{name: value for name, value in row.items() if name not in ("day", "service", "host")} for row in rows]


def judge_variants(trace, rows, scratch):
    """Arrow's files have the same rows; so have days of 10 ms, many at a time, each file with its day only."""
    arrow, days = os.path.join(scratch, "arrow"), os.path.join(scratch, "days")
    same("rows of the arrow files", trace.to_tables(arrow, format="arrow", tables="calls"), {"calls": len(rows)})
    same("arrow files", without_names(read(os.path.join(arrow, "calls"), "arrow")), without_names(rows))
    names = sorted({row["name"] for row in rows})[:2]
    few = {"folder": os.path.join(scratch, "few"), "tables": ["calls", "functions"]}
    same("rows with filters of an iterator", trace.to_tables(include=iter(names), **few), trace.to_tables(include=names, **few))
    real = tables._DAY_NS, tables._BATCH_ROWS, tables._WRITERS
    tables._DAY_NS, tables._BATCH_ROWS, tables._WRITERS = 10**7, 1000, 3
    tables.time.strftime = lambda format, day: "%d" % (tables.time.mktime(day) // 86400)
    try:
        same("rows of short days", trace.to_tables(days, tables=["calls"]), {"calls": len(rows)})
    finally:
        tables._DAY_NS, tables._BATCH_ROWS, tables._WRITERS = real
    split, ended = read(os.path.join(days, "calls")), {row["id"]: row for row in rows}
    same("ids of short days", sorted(row["id"] for row in split), sorted(ended))
    for row in split:
        same("a row of a short day", row["start"], ended[row["id"]]["start"])
    of_day = collections.defaultdict(set)
    for row in split:
        of_day[row["day"]].add(row["start"] // 10**7)
    same("days in a partition", {len(found) for found in of_day.values()}, {1})
    same("partial files", [name for name in files_below(scratch) if name.endswith(".partial")], [])


def judge_samples(path, scratch):
    """Stretches of a sampled trace add up to the times of evprof report."""
    trace, folder = evprof.load(path), os.path.join(scratch, "samples")
    trace.to_tables(folder, tables=["samples"])
    own = collections.Counter()
    rows = read(os.path.join(folder, "samples"))
    for row in rows:
        own[row["mod"], row["lineno"], row["name"]] += row["duration"]
        same("the innermost function", row["stack"].split(";")[-1], row["name"])
        same("depth", row["depth"], row["stack"].count(";") + 1)
    report = json.loads(said("report", "--json", "--limit", "all", path))
    reported = {(one["file"], one["line"], one["function"]): one["tottime_ns"] for one in report["functions"] if one["tottime_ns"]}
    same("sampled functions", sorted(own), sorted(reported))
    for key, ns in reported.items():
        if abs(own[key] - ns) > len(rows):  # each is rounded to ns
            sys.exit("%s: %d ns in samples, reported are %d" % (key, own[key], ns))


for number, path in enumerate(paths):
    with tempfile.TemporaryDirectory() as scratch:
        if evprof.load(path).processes[0].meta.get("sample_rate"):
            judge_samples(path, scratch)
        else:
            judge(path, scratch)
print("as reported: %d traces, %s" % (len(paths), ", ".join(engines)))
