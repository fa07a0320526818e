"""judge_cut.py EVPROF TRACE FILE [PARTS]: pieces of a trace that evprof cut makes.

Pieces at random times that follow each other have, together, the events of the whole by thread and kind, and its calls by function of
FILE, primitive ones too. No end in them is without a call. PARTS: what the program counted in each part; the spans "part" and the
stretches between the marks "from" and "to" have those calls. A reader that was written from the documents alone reads some of them.
"""
import collections
import json
import os
import random
import subprocess
import sys

EVPROF, TRACE, FILE = sys.argv[1:4]
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle_trace.py")
PIECES = 6


def output(*words):
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if ran.returncode:
        sys.exit("%s: status %d: %s%s" % (" ".join(words), ran.returncode, ran.stdout[-300:], ran.stderr))
    return ran.stdout


def events(path):
    """By thread and kind."""
    found = collections.Counter()
    for process in json.loads(output(EVPROF, "info", "--json", path))["processes"]:
        for thread in process["threads"]:
            for kind, count in thread["events"].items():
                found[thread["tid"], kind] += count
    return found


def calls(path, what="ncalls"):
    """By function of FILE."""
    report = json.loads(output(EVPROF, "report", "--json", "--include", "*/" + FILE, path))
    if report["unmatched"]:
        sys.exit("%s: %d calls or ends have no partner" % (path, report["unmatched"]))
    found = collections.Counter()
    for row in report["functions"]:
        found[row["function"]] += row[what]
    return found


def independent(path):
    """The same by the independent reader."""
    found, called = collections.Counter(), collections.Counter()
    for line in output(sys.executable, ORACLE, path).splitlines():
        row = line.split()
        if row[0].isdigit():
            found[int(row[0]), row[1]] += int(row[2])
        elif row[0].startswith(FILE + ":"):
            called[row[0][len(FILE) + 1:]] += int(row[1])
    same(events(path), found, "events of " + path)
    return called


def same(found, wanted, what):
    wrong = {key: (found.get(key, 0), wanted.get(key, 0)) for key in set(found) | set(wanted)
             if found.get(key, 0) != wanted.get(key, 0)}
    if wrong:
        sys.exit("%s: found and wanted are %s" % (what, wrong))


def judge_pieces():
    duration = json.loads(output(EVPROF, "info", "--json", "--quick", TRACE))["duration_ns"]
    edges = sorted(random.Random(5).sample(range(1, duration), PIECES - 1)) + [duration + 1]
    sums, start = [collections.Counter() for _ in range(3)], 0
    for end in edges:
        output(EVPROF, "cut", TRACE, "--from", str(start), "--to", str(end), "-o", "piece.evp")
        for total, found in zip(sums, (events("piece.evp"), calls("piece.evp"), calls("piece.evp", "primitive_calls"))):
            total.update(found)
        start = end
    same(sums[0], events(TRACE), "pieces at %s" % edges)
    same(sums[1], calls(TRACE), "calls in pieces at %s" % edges)
    same(sums[2], calls(TRACE, "primitive_calls"), "primitive calls in pieces at %s" % edges)


def judge_parts(parts):
    names = {name for part in parts for name in part}
    for name, options in (("span", ["--span", "part"]), ("marks", ["--between", "from,to"])):
        output(EVPROF, "cut", TRACE, "--each", "-o", name + ".evp", *options)
        for number, part in enumerate(parts):
            path = "%s-%d.evp" % (name, number + 1) if number else name + ".evp"
            found = independent(path)
            same({key: found.get(key, 0) for key in names}, part, path)


judge_pieces()
if len(sys.argv) > 4:
    with open(sys.argv[4]) as file:
        judge_parts(json.load(file))
else:
    independent("piece.evp")
print("as counted")
