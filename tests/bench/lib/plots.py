"""plots.py SECTION FILE < ROWS: draws a section of the bench as SVG: budget, peers, growth. The rows are JSON. Run by a Python with matplotlib."""
import json
import statistics
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "evprof", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt  # noqa: E402

import stats  # noqa: E402


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


def peers(rows):
    names = list(dict.fromkeys(row["peer"] for row in rows))[::-1]
    figure, (times, sizes) = plt.subplots(1, 2, sharey=True, figsize=(9, 0.28 * len(names) + 1), layout="constrained")
    bars(times, rows, names, lambda row: 100 * (row["wall"]["median"] - 1), "time added, % (median; a dot is a program)", 0.5)
    bars(sizes, rows, names, lambda row: row["bytes"] / 1e6, "output, MB", 0.01)
    times.set_yticks(range(len(names)), names)
    return figure


def growth(rows):
    """What an event costs, for each kind of growth."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    figure, places = plt.subplots(2, 3, figsize=(9, 4.4), layout="constrained")
    for axes, kind in zip(places.flat, kinds):
        for python in dict.fromkeys(row["python"] for row in rows):
            own = [row for row in rows if row["kind"] == kind and row["python"] == python]
            axes.plot([row["number"] for row in own], [row["ns"]["median"] for row in own], "o-", markersize=3, label=python)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_title(kind, fontsize=9)
        axes.grid(color="#dddddd", linewidth=0.5)
    for axes in places[:, 0]:
        axes.set_ylabel("CPU ns an event")
    places[0][0].legend(fontsize=8)
    return figure


def budget(rows):
    """What each budget adds to each program; a line at 1.2 times the budget."""
    pythons, budgets = list(dict.fromkeys(row["python"] for row in rows)), list(rows[0]["added"])
    figure, places = plt.subplots(1, len(budgets), sharey=True, figsize=(9, 0.32 * len(pythons) + 1), layout="constrained")
    for axes, name in zip(places, budgets):
        for at, python in enumerate(pythons[::-1]):
            added = [100 * row["added"][name]["median"] for row in rows if row["python"] == python]
            axes.plot(added, [at] * len(added), ".", color="#333333", markersize=4)
            axes.plot(statistics.median(added), at, "|", color="#1f5fa8", markersize=14, markeredgewidth=2.5)
        axes.axvline(100 * stats.budget_limit(name), color="#b03030", linewidth=0.8)
        axes.set_title("within " + name, fontsize=9)
        axes.grid(axis="x", color="#dddddd", linewidth=0.5)
        axes.set_axisbelow(True)
    places[0].set_yticks(range(len(pythons)), pythons[::-1])
    figure.supxlabel("CPU time added, % (a dot is a program, the bar their median, the line 1.2 times the budget)", fontsize=8)
    return figure


{"budget": budget, "peers": peers, "growth": growth}[sys.argv[1]](json.load(sys.stdin)).savefig(sys.argv[2], metadata={"Date": None})
