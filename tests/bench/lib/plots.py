"""plots.py FILE < ROWS: draws the race of other profilers (peers.py) as SVG; the rows are JSON. Run by a Python with matplotlib."""
import json
import statistics
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "evprof", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt  # noqa: E402


def numbers(rows, name, value):
    return [value(row) for row in rows if row["peer"] == name and "failed" not in row]


def bars(axes, rows, names, value, title, floor):
    """A bar to the median of each profiler; a dot for each program."""
    for at, name in enumerate(names):
        found = [max(floor, number) for number in numbers(rows, name, value)]
        colour = "#1f5fa8" if name.startswith("evprof") else "#9a9a9a"
        if found:
            axes.barh(at, statistics.median(found), color=colour, height=0.65)
            axes.plot(found, [at] * len(found), ".", color="#333333", markersize=3)
    axes.set_xscale("log")
    axes.set_xlim(left=floor)
    axes.set_title(title, fontsize=9)
    axes.grid(axis="x", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def main():
    rows = json.load(sys.stdin)
    names = list(dict.fromkeys(row["peer"] for row in rows))[::-1]
    figure, (times, sizes) = plt.subplots(1, 2, sharey=True, figsize=(9, 0.28 * len(names) + 1), layout="constrained")
    bars(times, rows, names, lambda row: 100 * (row["wall"]["median"] - 1), "time added, % (median; a dot is a program)", 0.5)
    bars(sizes, rows, names, lambda row: row["bytes"] / 1e6, "output, MB", 0.01)
    times.set_yticks(range(len(names)), names)
    figure.savefig(sys.argv[1], metadata={"Date": None})


main()
