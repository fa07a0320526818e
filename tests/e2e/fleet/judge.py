"""judge.py EVPROF FOLDER [MASTER]: evprof.fleet on Spark, against `evprof report`, `evprof export` and trace.calls() of the same traces,
and against what programs/fleet.py is known to do. Used by test_fleet.c. Records into FOLDER; prints "as reported".
"""
import collections
import contextlib
import io
import json
import math
import os
import struct
import subprocess
import sys

import evprof
from evprof import _fleet_main, fleet

tool, folder = sys.argv[1:3]
program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "fleet.py")


def same(what, mine, theirs):
    if mine != theirs:
        sys.exit("%s: %r instead of %r" % (what, mine, theirs))


def said(*words):
    done = subprocess.run([tool, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit("%s ends with %d: %s" % (" ".join(words), done.returncode, done.stderr.decode()))
    return done.stdout.decode()


def record(place, *arguments):
    path = os.path.join(folder, place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    said("run", "-q", "--program-only", "-o", path, program, *map(str, arguments))
    return path


def record_all():
    """Four processes of each version, of which one asks much more often, and one has a slow page; a leak over six days."""
    for host in "abcd":
        record("web/version=1/host=%s/w.evp" % host, 3, 40, 1000)
        record("web/version=2/host=%s/w.evp" % host, 4, 240, 1000)
    record("odd/host=a/a.evp", 3, 5, 1000)
    for host in "bcdef":
        record("odd/host=%s/x.evp" % host, 30 if host == "d" else 3, 5, 1000, *([7] if host == "e" else []))
    for day in range(6):
        record("days/day=2026-11-%02d/x.evp" % (day + 1), 1, 0, 10000 + 50000 * day)


def traces(part):
    return [os.path.join(place, name) for place, _, names in os.walk(os.path.join(folder, part)) for name in names]


def judge_functions(spark):
    paths = traces("web")
    report = json.loads(said("report", "--json", "--limit", "all", *paths))
    rows = fleet.functions(spark, os.path.join(folder, "web"), part_bytes=5000).collect()
    mine = sorted((row.file, row.line, row.name, row.calls, row.primitive_calls, row.own, row.cumulative) for row in rows)
    same("functions", mine, sorted((one["file"], one["line"], one["function"], one["ncalls"], one["primitive_calls"],
                                    one["tottime_ns"], one["cumtime_ns"]) for one in report["functions"]))
    same("without percentiles", [row.name for row in rows if row.calls and row.p50 is None], [])
    durations = collections.defaultdict(list)
    for path in paths:
        for call in evprof.load(path).calls():
            durations[call.name].append(call.duration)
    by_name = {row.name: row for row in rows}
    for name, called in (("query", "query"), ("page", "page"), ("<built-in method time.sleep>", "time.sleep")):
        row, values = by_name[name], sorted(durations[called] or durations[called.rpartition(".")[2]])
        same("calls of " + name, row.calls, len(values))
        for share, found in ((0.5, row.p50), (0.9, row.p90), (0.99, row.p99), (1, row.max)):
            same("percentile %g of %s" % (share, name), found, values[math.ceil(share * len(values)) - 1])
    same("hosts and processes", (by_name["page"].hosts, by_name["page"].processes), (4, 8))
    same("in order of own time", [row.own for row in rows], sorted((row.own for row in rows), reverse=True))


def judge_calls(spark):
    """Each call of each trace once, with its caller, read in many parts."""
    path, mine, theirs = os.path.join(folder, "web"), collections.Counter(), collections.Counter()
    rows = fleet.read(spark, path, "calls", part_bytes=5000)
    same("several parts of a trace", rows.rdd.getNumPartitions() > len(traces("web")), True)
    callers = {(row.trace, row.id): row for row in rows.collect()}
    for (trace, _), row in callers.items():
        caller = callers[trace, row.parent].name if row.parent >= 0 else None
        mine[trace, row.start, row.duration, row.own, row.name, row.mod, row.kind, row.end, row.depth, row.thread, row.pid, caller] += 1
    for one in traces("web"):
        trace = evprof.load(one)
        calls, origin = list(trace.calls()), trace.start_ns + trace.realtime_offset_ns
        for row in calls:
            caller = calls[row.parent].name if row.parent >= 0 else None
            theirs[os.path.relpath(one, path), row.start + origin, row.duration, row.own, row.name, row.mod, row.kind, row.end,
                   row.depth, row.thread, row.pid, caller] += 1
    same("calls", mine, theirs)


def judge_regressions(spark):
    def verdicts(before, after):
        rows = fleet.regressions(spark, os.path.join(folder, "web"), before, after, request="fleet.py:page").collect()
        return rows, {(row.name, row.measure): row for row in rows}
    rows, by = verdicts("1", "2")
    query, sleep = by["query", "per_request"], by["<built-in method time.sleep>", "own_per_call"]
    same("queries a page", (query.verdict, query.before, query.after, query.before_processes), ("changed", 3, 4, 4))
    same("a longer sleep", (sleep.verdict, sleep.ratio > 2), ("changed", True))
    same("what did not change", {by[name, "per_request"].verdict for name in ("page", "keep", "work")}, {"noise"})
    same("the first row is the largest change", rows[0].verdict, "changed")
    same("changes to the same version", [row for row in verdicts("1", "1")[0] if row.verdict == "changed"], [])
    same("one version is not there", {(row.verdict, row.ratio) for row in verdicts("3", "1")[0]}, {("unknown", None)})


def judge_outliers(spark):
    place = os.path.join(folder, "odd")
    for by in ("process", "host"):
        rows = fleet.outliers(spark, place, by, request="fleet.py:page").where("measure = 'per_request'").collect()
        same("%s that asks too often" % by, {(row.host, row.name) for row in rows if row.file.endswith("fleet.py")}, {("d", "query")})
        same("its queries", [(row.value, round(row.median, 9), row.of) for row in rows if row.name == "query"], [(30, 3, 6)])
    rows = fleet.outliers(spark, place, "request", request="fleet.py:page").collect()
    same("the slow request", (rows[0].host, rows[0].value > 3e9), ("e", True))
    calls = [call for call in evprof.load(os.path.join(place, "host=e", "x.evp")).calls(since_start=True) if call.name == "page"]
    same("when it was", rows[0].value, max(call.duration for call in calls))


def judge_flame(spark):
    mine, theirs = {}, collections.Counter()
    for row in fleet.flame(spark, os.path.join(folder, "web")).collect():
        mine[row.stack] = row.value
    for path in traces("web"):
        for line in said("export", "-f", "folded", path, "-o", "-").splitlines():
            stack, _, value = line.rpartition(" ")
            program, thread, rest = stack.split(";", 2)
            theirs[";".join([program.partition(" (")[0], thread.partition(" (")[0], rest])] += int(value)
    same("stacks", mine, dict(theirs))
    page = _fleet_main.page(fleet.folded(fleet.flame(spark, os.path.join(folder, "web"))), "time")
    total, slept = sum(mine.values()), sum(value for stack, value in mine.items() if stack.endswith("time.sleep"))
    same("the page's sums", ("all: %d ns, 100.00 %%" % total in page, "time.sleep: %d ns" % slept in page), (True, True))


def judge_leaks(spark):
    rows = fleet.leaks(spark, os.path.join(folder, "days")).collect()
    same("leaks", [row.name for row in rows if row.verdict == "leak" and row.bytes_per_day > 1000], ["keep"])
    keep = rows[0]
    same("a day's growth", (keep.name, round(keep.bytes_per_day), keep.days), ("keep", 50000, 6))
    short = fleet.leaks(spark, os.path.join(folder, "days", "day=2026-11-01")).collect()
    same("of one day", short, [])


def refused(what, line, make):
    try:
        make()
    except Exception as error:
        if line in str(error):
            return
        sys.exit("%s: %s" % (what, error))
    sys.exit("%s is not refused" % what)


def spoil(path, copy):
    """A byte of the last chunk of events becomes another (docs/trace.md)."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = last = 64
    while data[at:at + 4] == b"EVCK":
        kind, _, stored = struct.unpack_from("<HHI", data, at + 4)
        last = at if kind == 3 else last
        at += 64 + (stored + 7) // 8 * 8
    data[last + 64] ^= 1
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    with open(copy, "wb") as file:
        file.write(data)


def judge_damage(spark):
    copy = os.path.join(folder, "damaged", "w.evp")
    spoil(os.path.join(folder, "web", "version=1", "host=a", "w.evp"), copy)
    found = [row.damage for row in fleet.read(spark, os.path.dirname(copy), "traces").collect()]
    same("damage", len(found) == 1 and "1 damaged chunk" in found[0], True)


def judge_errors(spark):
    web = os.path.join(folder, "web")
    refused("nothing to read", "it has no files *.evp", lambda: fleet.read(spark, os.path.dirname(program), "calls").count())
    refused("another store", "a fleet reads folders", lambda: fleet.read(spark, "hdfs://host/x", "calls").count())
    refused("an option", "there is no option nothing", lambda: fleet.read(spark, web, "calls", nothing=1).count())
    refused("a table", "table one of traces, calls", lambda: fleet.read(spark, web, "cats").count())
    refused("a request", "a request is FILE:FUNCTION", lambda: fleet.outliers(spark, web, "request", "page"))
    broken = os.path.join(folder, "odd", "broken.evp")
    with open(broken, "w") as file:
        file.write("text")
    refused("a file that is not a trace", "broken.evp", lambda: fleet.read(spark, os.path.dirname(broken), "traces").count())
    same("it is left out", fleet.read(spark, os.path.dirname(broken), "traces", skip_unreadable=True).count(), 6)


def judge_statistics():
    """From tables of Student's t, and examples that can be checked by hand."""
    for t, freedom, p in ((2.228139, 10, 0.05), (12.7062, 1, 0.05), (63.6567, 1, 0.01), (3.169273, 10, 0.01), (0, 5, 1)):
        same("p of t = %g" % t, round(fleet.student_p(t, freedom), 5), p)
    same("Welch", round(fleet.welch_p(5, 10, 1, 5, 12, 2), 4), 0.0355)
    same("equal without noise", fleet.welch_p(3, 1, 0, 3, 1, 0), 1)
    same("different without noise", fleet.welch_p(3, 1, 0, 3, 2, 0), 0)
    same("one process", fleet.welch_p(1, 1, 0, 3, 2, 0), None)


def judge_command():
    def printed(*words):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
            status = _fleet_main.main([*words, "--master", "local[1]"])
        return status, out.getvalue(), error.getvalue()
    web = os.path.join(folder, "web")
    status, out, _ = printed("functions", web, "--json", "--limit", "2", "--no-percentiles", "--include", "*fleet.py")
    same("objects", (status, [row["service"] for row in json.loads(out)]), (0, ["fleet", "fleet"]))
    status, out, _ = printed("outliers", web, "--by", "host", "--limit", "3")
    same("a table", (status, out.split()[:4]), (0, ["service", "file", "line", "name"]))
    same("nothing to read", printed("leaks", os.path.dirname(program))[::2],
         (2, "evprof: %s: it has no files *.evp\n" % os.path.dirname(program)))


judge_statistics()
record_all()
session = fleet.session(*sys.argv[3:4])
session.sparkContext.setLogLevel("OFF")
session.conf.set("spark.sql.shuffle.partitions", 2)
for judge in (judge_functions, judge_calls, judge_regressions, judge_outliers, judge_flame, judge_leaks, judge_damage, judge_errors):
    judge(session)
    print(judge.__name__, file=sys.stderr, flush=True)
session.stop()
judge_command()
print("as reported")
