"""Does `evprof annotate --format json` say what `evprof report --json` says? `python judge_annotate.py ANNOTATED REPORT`."""
import collections
import json
import sys


def main(annotated, report):
    annotated = json.load(open(annotated, encoding="utf-8"))
    assert annotated["by"] == "function", annotated["by"]
    lines, calls = collections.Counter(), collections.Counter()
    for file in annotated["files"]:
        try:
            source = open(file["file"], "rb").read().decode("utf-8", "replace").split("\n")
        except OSError:
            source = None
        for line in file["lines"]:
            lines[file["file"], line["line"]] += line["hits"]
            if source and line["line"]:
                assert (line["source"] or "") == source[line["line"] - 1].rstrip(), (file["file"], line)
            for call in line["calls"]:
                calls[call["file"], call["line"], call["function"]] += call["calls"]
        assert file["own_ns"] == sum(line["own_ns"] for line in file["lines"])
    expected = collections.Counter()
    for function in json.load(open(report, encoding="utf-8"))["functions"]:
        key = function["file"], function["line"]
        if function["file"] != "~":
            expected[key] += function["ncalls"]
        # Calls by Python code; C code calls some, too.
        assert calls[key + (function["function"],)] <= function["ncalls"], function
    assert len(expected) > 50 and sum(calls.values()) > 1000, (len(expected), calls)
    assert lines == expected, (lines - expected, expected - lines)


main(*sys.argv[1:])
