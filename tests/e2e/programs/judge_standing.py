"""Does annotate have the calls of spin() where the program counted them? `judge_standing.py ANNOTATED COUNTED`.

Exit status 3: only a time differs, which a process that loses its processor between the call and its own stopwatch shows, too.
"""
import json
import os
import sys


def calls_by_line(annotated, name):
    (file,) = [file for file in annotated["files"] if os.path.basename(file["file"]) == "standing.py"]
    found = {}
    for line in file["lines"]:
        for call in line["calls"]:
            if call["function"].split(".")[-1] == name:
                found[line["line"]] = call["calls"], call["total_ns"] / 1e9
    return found


def main(annotated, counted):
    found = calls_by_line(json.load(open(annotated, encoding="utf-8")), "spin")
    expected = {}
    for row in open(counted, encoding="utf-8").read().splitlines():
        line, calls, seconds = row.split()
        expected[int(line)] = int(calls), float(seconds)
    assert expected and set(found) == set(expected), (found, expected)
    for line, (calls, seconds) in sorted(expected.items()):
        assert found[line][0] == calls, (line, found[line], calls)
    for line, (calls, seconds) in sorted(expected.items()):
        # Its own stopwatch is inside of the call; what is outside is the call itself.
        if not seconds * 0.98 <= found[line][1] <= seconds * 1.02 + 0.004:
            print("line %d: %r, not %f s" % (line, found[line], seconds))
            sys.exit(3)


main(*sys.argv[1:])
