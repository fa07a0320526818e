"""Holds what tracemalloc says of by_line.py (DIRECTORY/oracle.json) against the JSON of evprof memory (DIRECTORY/memory.json) of
another run: `judge_by_line.py DIRECTORY`. Shares nothing with evprof; prints how many numbers it compared."""
import json
import os
import sys


def read(name):
    with open(os.path.join(sys.argv[1], name), encoding="utf-8") as file:
        return json.load(file)


def main():
    oracle, memory = read("oracle.json"), read("memory.json")
    process, = memory["processes"]
    named = sorted(name for name in process if not name.startswith("resident_"))
    assert named == ["end_bytes", "missing_stacks", "peak_bytes", "peak_rss_bytes", "peak_time_ns", "pid", "sites"]
    assert process["missing_stacks"] == 0 and process["peak_time_ns"] > 0
    lines = {}
    for site in process["sites"]:
        assert sorted(site) == ["allocated_bytes", "allocations", "end_bytes", "file", "function", "line", "native", "peak_bytes",
                                "temporary"]
        if (site["file"] or "").endswith("by_line.py") and str(site["line"]) in oracle["looks"]["peak_bytes"]:
            assert site["line"] not in lines
            lines[site["line"]] = site
    compared = 0
    for moment in ("peak_bytes", "end_bytes"):
        for line, size in oracle["looks"][moment].items():
            found = lines[int(line)][moment]
            assert found == size, (moment, line, found, size)
            compared += 1
    dropped, = [site for site in lines.values() if site["function"] == "drop" and site["temporary"]]
    assert dropped["temporary"] == dropped["allocations"] == oracle["count"], dropped
    assert dropped["allocated_bytes"] == oracle["sizes"], dropped
    for moment in ("peak_bytes", "end_bytes"):
        assert sum(site[moment] for site in process["sites"]) == process[moment]
    return compared


print(main())
