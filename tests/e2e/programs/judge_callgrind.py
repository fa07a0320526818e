"""Is what callgrind_annotate reads what `evprof report --json` says? `python judge_callgrind.py REPORT CALLGRIND`."""
import collections
import json
import re
import subprocess
import sys

# The third number is there where lines were recorded.
ROW = re.compile(r"^\s*([\d,.]+)\s+([\d,.]+)\s+(?:[\d,.]+\s+)?(.*) \[(.*?)\]$")
PLACE = re.compile(r"^(.*):([^:]*):(\d+)(_\d+)?$")


def annotate(path, inclusive):
    """{(file, line) or ("~", name): [ns, calls]} of a callgrind file."""
    command = ["callgrind_annotate", "--auto=no", "--show-percs=no", "--threshold=100", "--inclusive=" + inclusive, path]
    # From a place that is in no name: it takes its own directory out of names.
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", check=True)
    assert not ran.stderr, ran.stderr
    rows = collections.defaultdict(lambda: [0, 0])
    for line in ran.stdout.decode("utf-8", "replace").split("file:function\n", 1)[1].splitlines():
        row = ROW.match(line)
        if not row or row.group(4).startswith("process "):
            continue
        numbers = [int(text.replace(",", "")) if text != "." else 0 for text in row.groups()[:2]]
        if row.group(3).startswith("~:"):
            key = ("~", row.group(3)[2:])
        else:
            place = PLACE.match(row.group(3))
            assert place, line
            key = (place.group(1), int(place.group(3)))
        rows[key][0] += numbers[0]
        rows[key][1] += numbers[1]
    return rows


def reported(path):
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for function in json.load(open(path, encoding="utf-8"))["functions"]:
        native = function["file"] == "~"
        row = rows["~" if native else function["file"], function["function"] if native else function["line"]]
        row[0] += function["tottime_ns"]
        row[1] += function["ncalls"]
        row[2] += function["cumtime_ns"]
    return rows


def near(a, b, calls):
    """Times are rounded to ns once for each event on the one side, once for each function on the other."""
    return abs(a - b) <= 100 + 20 * calls + b // 100


def main(report, callgrind):
    expected, own, total = reported(report), annotate(callgrind, "no"), annotate(callgrind, "yes")
    assert len(expected) > 50, len(expected)
    assert set(own) == set(expected), (sorted(map(str, set(own) ^ set(expected))))
    for key, (own_ns, calls, total_ns) in expected.items():
        assert own[key][1] == calls, (key, own[key], calls)
        assert near(own[key][0], own_ns, calls), (key, own[key], own_ns)
        assert near(total[key][0], total_ns, calls), (key, total[key], total_ns)


main(*sys.argv[1:])
