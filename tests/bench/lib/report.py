"""The limits of the design, and the markdown that shows them with the figures."""
import statistics

from . import stats

BEGIN = "<!-- bench: begin; tests/bench/run --write-docs writes what is between these lines -->"
END = "<!-- bench: end -->"

# Added cost of calls and C calls as a multiple of what an empty C hook adds, and of what cProfile adds.
OF_HOOK = {8: 1.6, 9: 1.6, 10: 1.6, 11: 1.15, 12: 0.55, 13: 0.55}
OF_HOOK_LATER = 0.90
OF_LEAST, OF_LEAST_BEFORE_11 = 1.15, 1.35  # where that allows more: no recorder can do less than the least one
OF_CPROFILE = {11: 0.75}
OF_CPROFILE_OTHERS = 0.5
ALLOCATIONS = {14: 2.5}
CALL_EVENT_BYTES = 1.5
MEMORY_EVENT_BYTES = 5
MEMORY_DISK_BYTES = 6
MEMORY_SAMPLED = 1.01  # times bare
COLLECTOR_MIB = 64
START_PYTHON_MS = 5
START_OTHER_MS = 0.3
READING_M_ROWS = 30


def minor(name):
    """The N of a name like 3.N-static."""
    return int(name.split("-")[0].split(".")[1])


def hook_limit(version, least=None):
    """least: what the least recorder adds, as a multiple of what the empty hook adds."""
    limit = OF_HOOK.get(minor(version), OF_HOOK_LATER)
    of_least = OF_LEAST if minor(version) >= 11 else OF_LEAST_BEFORE_11
    return max(limit, of_least * least["median"]) if least else limit


def cprofile_limit(version):
    return OF_CPROFILE.get(minor(version), OF_CPROFILE_OTHERS)


def verdict(*pairs):
    """ok when every value is within its limit; over with what exceeds it."""
    return "ok" if all(value <= limit for value, limit in pairs) else "**over**"


def with_spread(figures, digits=2):
    if not figures:
        return "–"
    return "{0:.{3}f} ({1:.{3}f}–{2:.{3}f})".format(figures["median"], figures["low"], figures["high"], digits)


def median(figures, digits=2):
    return "%.*f" % (digits, figures["median"]) if figures else "–"


def table(titles, rows):
    """Columns in which nothing was measured are left out."""
    used = [i for i, title in enumerate(titles) if not title or any(row[i] != "–" for row in rows)]
    titles, rows = [titles[i] for i in used], [[row[i] for i in used] for row in rows]
    lines = ["| " + " | ".join(titles) + " |", "|" + "|".join(["---"] * len(titles)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def cost_row(row):
    wall, cpu, judge, version = row["wall"], row["cpu"], row[row["clock"]], row["python"]
    times = wall["times_bare"]
    hook, cprofile = wall.get("of_hook"), wall.get("of_cprofile")
    cells = [version, row["program"], median(wall["bare_s"], 3)]
    cells += [median(times.get(name)) for name in ("hook", "calls", "cprofile", "all", "viztracer")]
    if not hook or not cprofile:
        return cells + ["–"] * 9
    least, of_least = wall.get("least_of_hook"), wall.get("of_least")
    limit = hook_limit(version, judge.get("least_of_hook"))
    cells += [with_spread(hook), median(cpu["of_hook"]), "%.2f" % limit, median(least), median(of_least)]
    cells += [with_spread(cprofile), median(cpu["of_cprofile"]), "%.2f" % cprofile_limit(version)]
    judged = [(judge["of_hook"]["median"], limit)]
    judged.append((judge["of_cprofile"]["median"], cprofile_limit(version)))
    notes = " (by CPU)" if row["clock"] == "cpu" else ""
    judge_least = judge.get("least_of_hook")
    if judge_least and judge_least["median"] > hook_limit(version):
        notes += "; the least is over"
    return cells + [verdict(*judged) + notes + (", %d lost" % row["lost"] if row["lost"] else "")]


def cost_table(rows):
    titles = ["Python", "program", "bare, s", "× bare: empty hook", "evprof, calls", "cProfile", "evprof, default"]
    titles += ["VizTracer", "added / empty hook's", "CPU", "limit", "the least / empty hook's", "added / the least"]
    titles += ["added / cProfile's", "CPU", "limit", ""]
    return table(titles, [cost_row(row) for row in rows])


def allocation_table(rows):
    titles = ["Python", "bare, s", "× bare: calls only", "calls and allocations", "limit", "memray", ""]
    lines = []
    for row in rows:
        times, limit = row["times_bare"], ALLOCATIONS.get(minor(row["python"]))
        both = times.get("all")
        good = verdict((both["median"], limit)) if both and limit else ""
        lines.append([row["python"], median(row["bare_s"], 3), with_spread(times.get("calls")), with_spread(both),
                      str(limit or ""), with_spread(times.get("memray")), good])
    return table(titles, lines)


def memory_bound(row):
    """The project's own, or what the least recorder needs with 15 % more, where that is more."""
    least, nothing = row["wall"]["least"], 0 if "memray" in row["wall"]["times_bare"] else 1
    return max(row["bound"], nothing + OF_LEAST * (least["median"] - nothing) if least else 0)


def memory_row(row):
    """By wall-clock time; the ratio by CPU time of the program, all its threads, as well."""
    wall, (size, made, lost), bound = row["wall"], row["disk"], memory_bound(row)
    theirs, ratio = wall["times_bare"].get("memray"), wall["ratio"]
    good = verdict((ratio["median"], bound), (size / max(1, made), MEMORY_DISK_BYTES))
    return [row["python"], row["program"], median(wall["bare_s"], 3), with_spread(wall["times_bare"]["evprof"]),
            with_spread(theirs), with_spread(ratio) if theirs else "–", median(row["cpu"]["ratio"]), median(wall["least"]),
            "%.2f" % bound if theirs else "× bare %.2f" % bound, "%.2f" % (size / max(1, made)), str(lost), good]


def memory_table(rows):
    titles = ["Python", "what", "bare, s", "× bare: evprof", "memray", "added / memray's", "CPU", "the least recorder", "bound"]
    return table(titles + ["bytes an allocation", "lost", ""], [memory_row(row) for row in rows])


def memory_sampled_table(rows):
    lines = []
    for row in rows:
        cpu, empty = row["cpu"], row["cpu"]["empty"]["median"]
        good = verdict((cpu["sampled"]["median"], max(MEMORY_SAMPLED, 1 + OF_LEAST * (empty - 1))))
        lines.append([row["python"], row["program"], median(row["bare_s"], 3), with_spread(cpu["empty"], 3),
                      with_spread(cpu["hooks"], 3), with_spread(cpu["sampled"], 3), good])
    return table(["Python", "program", "bare, s", "× bare, CPU: empty hooks", "evprof without a sample", "sampled", ""], lines)


def collector_row(row):
    call_bytes, memory_bytes = row.get("bytes_per_call_event"), row.get("bytes_per_memory_event")
    limits = [(row["lost"], 0), (row["peak_kib"], COLLECTOR_MIB * 1024)]
    limits.append((row["collector_cpu_s"], row["program_cpu_s"]))
    if call_bytes:
        limits.append((call_bytes, CALL_EVENT_BYTES))
    if memory_bytes:
        limits.append((memory_bytes, MEMORY_EVENT_BYTES))
    name = row["program"] + (" × %d" % row["repeat"] if row["repeat"] > 1 else "")
    early = " (%.1f after a fifth)" % (row["peak_early_kib"] / 1024) if row["peak_early_kib"] else ""
    return [
        row["python"], name, row["events_asked"], "%.1f M" % (row["events"] / 1e6),
        "%.1f M/s" % (row["events"] / row["wall_s"] / 1e6), str(row["lost"]), "%d: %.3f" % (row.get("waits", 0), row["waited_s"]),
        "%.2f" % row["program_cpu_s"], "%.2f" % row["collector_cpu_s"], "%.1f%s" % (row["peak_kib"] / 1024, early),
        "%.2f" % call_bytes if call_bytes else "–", "%.2f" % memory_bytes if memory_bytes else "–",
        verdict(*limits),
    ]


def collector_table(rows):
    titles = ["Python", "program", "events asked for", "events", "rate", "lost", "waits for room: s", "program CPU, s"]
    titles += ["collector CPU, s", "peak MiB", "bytes a call event", "bytes a memory event", ""]
    return table(titles, [collector_row(row) for row in rows])


def startup_table(rows):
    lines = []
    for row in rows:
        lines.append([row["program"], median(row["bare_ms"]), median(row["measured_ms"]), with_spread(row["added_ms"]),
                      str(row["limit_ms"]), verdict((row["added_ms"]["median"], row["limit_ms"]))])
    return table(["program", "bare, ms", "evprof, ms", "added, ms", "limit", ""], lines)


def sampling_table(rows):
    lines = []
    for row in rows:
        sampler = row["sampler_cpu"]
        lines.append([row["python"], row["program"], row["variant"], with_spread(row["wall_of_bare"], 3),
                      with_spread(row["cpu_of_bare"], 3), "%.1f %%" % (100 * sampler["median"]) if sampler["median"] else "–"])
    titles = ["Python", "program", "samples a second", "× bare", "× bare, CPU", "the sampler's share of a processor"]
    return table(titles, lines)


def production_table(rows):
    lines = [[row["python"], row["program"]] +
             [with_spread(row[clock][what], 3) for what in ("stopped_of_bare", "kept_of_whole") for clock in ("wall", "cpu")]
             for row in rows]
    return table(["Python", "program", "stopped × bare", "CPU", "kept × whole trace", "CPU"], lines)


def live_table(rows):
    lines = [[row["python"], row["program"], with_spread(row["collector_of_unseen"], 3), with_spread(row["cpu_of_unseen"], 3),
              "%.1f %%" % (100 * row["viewer_share"]["median"])] for row in rows]
    return table(["Python", "program", "collector's CPU, × without", "program's CPU, × without", "`evprof top`, of a processor"], lines)


def quiet_table(rows):
    lines = [[row["python"], row["program"], row["variant"], "%.1f" % row["wakeups"], "%.2f %%" % (100 * row["cpu"])]
             for row in rows]
    return table(["Python", "program", "profiler", "wake-ups a second", "share of a processor"], lines)


def reading_table(rows):
    """The limit is that of to_numpy(), by the time of its thread on a processor."""
    lines = []
    for row in rows:
        wall, cpu = row["wall"], row["cpu"]
        cells = [row["python"], row["program"], row["events_asked"], "%.1f M" % (row["rows"] / 1e6)]
        cells += [with_spread(cpu["to_numpy"], 1), median(wall["to_numpy"], 1), with_spread(cpu["of_copy"])]
        cells += [with_spread(cpu.get("batches"), 1), with_spread(cpu.get("of_parquet"))]
        lines.append(cells + [str(READING_M_ROWS), verdict((READING_M_ROWS, cpu["to_numpy"]["median"]))])
    titles = ["Python", "program", "events asked for", "rows", "`to_numpy()`, M rows a second", "by wall clock"]
    return table(titles + ["time / numpy's copy", "`batches()`, M rows a second", "time / pyarrow's Parquet", "limit", ""], lines)


def budget_summary(rows):
    """One row for each Python: of its programs the median, and how many are within the budget."""
    lines = []
    for python in dict.fromkeys(row["python"] for row in rows):
        own = [row for row in rows if row["python"] == python]
        cells = [python, str(len(own))]
        for name in own[0]["added"]:
            added = [row["added"][name]["median"] for row in own]
            kept = sum(one <= stats.budget_limit(name) for one in added)
            cells.append("%.1f %%, %d of %d" % (100 * statistics.median(added), kept, len(own)))
        total = {key: sum(row["judged"][key] for row in own) for key in own[0]["judged"]}
        cells += ["%d of %d" % (total["equal"], total["exact"]), "%d of %d" % (total["within"], total["with_interval"])]
        lines.append(cells + ["%.1f" % max(row["longest_us"] for row in own), "%d of %d" % (
            sum(row["longest_us"] < 10 for row in own), len(own))])
    return table(["Python", "programs"] + ["%s: median, within %.1f times" % (name, stats.BUDGET_ALLOWED) for name in rows[0]["added"]] + [
        "exact counts that are right", "true calls within the interval of 95 %", "longest left out: µs", "programs where it is below 10 µs"], lines)


def budget_table(rows):
    lines = []
    for row in rows:
        added, judged = row["added"], row["judged"]
        cells = [row["python"], row["program"], median(row["bare_s"])]
        cells += ["%.1f %% (%.1f–%.1f)" % tuple(100 * added[name][key] for key in ("median", "low", "high")) for name in added]
        cells += ["%.1f %%" % (100 * row["account"]["median"]), "%.1f" % row["longest_us"],
                  "%d of %d" % (judged["equal"], judged["exact"]), "%d of %d" % (judged["within"], judged["with_interval"])]
        lines.append(cells + [verdict(*((added[name]["median"], stats.budget_limit(name)) for name in added))])
    titles = ["Python", "program", "bare: CPU s"] + list(rows[0]["added"]) + [
        "its account at 5 %", "longest left out: µs", "exact counts that are right", "within the interval of 95 %", ""]
    return budget_summary(rows) + "\n\n" + table(titles, lines)


def scale_table(rows):
    lines = []
    for row in rows:
        lines.append([row["query"], row["of"], "%.2f" % (row["events"] / 1e9), str(row["workers"]), "%.1f" % row["seconds"],
                      "%.1f" % row["cpu_s"], "%.0f" % row["peak_mib"], "%.2f" % (row["read"] / 1e9),
                      "%.1f" % (row["events"] / 1e6 / row["seconds"])])
    return table(["query", "of", "billion events", "workers", "s", "CPU s", "peak MiB", "GB read", "M events a second"], lines)


def middle(rows, value):
    return statistics.median([value(row) for row in rows])


def peer_rows(rows):
    """One row for each profiler, over the programs that it ran."""
    lines = []
    for name in dict.fromkeys(row["peer"] for row in rows):
        own = [row for row in rows if row["peer"] == name]
        ran = [row for row in own if "failed" not in row]
        if not ran:
            lines.append([name, own[0]["records"], "0 of %d" % len(own)] + ["–"] * 7)
            continue
        kept, times = sum(row["events"] or 0 for row in ran), [row["wall"]["median"] for row in ran]
        lines.append([
            name, own[0]["records"], "%d of %d" % (len(ran), len(own)),
            "%.2f (%.2f–%.2f)" % (statistics.median(times), min(times), max(times)),
            "%.2f" % middle(ran, lambda row: row["cpu"]["median"]),
            "%.0f" % middle(ran, lambda row: row["peak_mib"] - row["bare_mib"]),
            "%.1f" % middle(ran, lambda row: row["bytes"] / 1e6), "%.1f" % middle(ran, lambda row: row["open_s"]),
            "%.0f M" % (kept / 1e6) if kept else "–", "–" if ran[0]["lost"] is None else str(sum(row["lost"] for row in ran))])
    return lines


def peer_table(rows):
    titles = ["profiler", "records", "programs", "× bare: time (least to most)", "CPU", "MiB more than bare", "MB of output",
              "s to read it", "events kept", "lost"]
    text = table(titles, peer_rows(rows))
    bounds = [row for row in rows if row.get("bound") and row["bound"]["ratio"]]
    if bounds:
        lines = [[row["program"], row["peer"], row["bound"]["of"], with_spread(row["bound"]["ratio"]), "%.2f" % row["bound"]["most"],
                  verdict((row["bound"]["ratio"]["median"], row["bound"]["most"]))] for row in bounds]
        text += "\n\n" + table(["program", "what this adds", "over what this adds", "ratio", "bound", ""], lines)
    failed = ["- %s, %s: %s" % (row["peer"], row["program"], row["failed"]) for row in rows if "failed" in row]
    return text + ("\n\n" + "\n".join(failed) if failed else "")


def growth_table(rows):
    lines = []
    for row in rows:
        lines.append([row["python"], row["kind"], "{:,}".format(row["number"]), "%.2f" % (row["events"] / 1e6), median(row["bare_s"]),
                      "%.0f (%.0f–%.0f)" % tuple(row["ns"][key] for key in ("median", "low", "high")), median(row["wall"]),
                      "%.0f" % row["mib"]["median"], "%.2f" % (row["bytes"] / row["events"]), str(row["lost"])])
    return table(["Python", "of what", "number", "M events", "bare: CPU s", "CPU ns an event", "× bare: time", "MiB more than bare",
                  "bytes an event", "lost"], lines)


def instruction_table(rows):
    lines = []
    for row in rows:
        if "bare" in row:
            added = ["%.0f" % (row[n] - row["bare"]) if n in row else "–" for n in ("hook", "calls", "cprofile")]
            lines.append([row["python"], "%.0f" % row["bare"]] + added)
    return table(["Python", "bare", "empty hook adds", "evprof adds", "cProfile adds"], lines)


SECTIONS = [
    ("cost", "Calls and C calls", cost_table),
    ("allocations", "Allocations: alloc.py", allocation_table),
    ("memory", "Memory, against memray", memory_table),
    ("memory_sampled", "Memory, sampled", memory_sampled_table),
    ("collector", "The collector", collector_table),
    ("startup", "Starting", startup_table),
    ("sampling", "Sampling", sampling_table),
    ("production", "Stopped, and the last stretch kept", production_table),
    ("live", "Looked at", live_table),
    ("quiet", "Programs that do little", quiet_table),
    ("reading", "Reading a trace in Python", reading_table),
    ("budget", "A budget, over programs of pyperformance, services and sessions", budget_table),
    ("scale", "Many traces, and a large one", scale_table),
    ("peers", "Beside other profilers", peer_table),
    ("growth", "Growth", growth_table),
    ("instructions", "Instructions a Python call with one C call in it (callgrind)", instruction_table),
]


def markdown(results, sections):
    """The tables of some sections."""
    machine = results["machine"]
    lines = ["Measured %s on %s; load average %s before, %s after." % (
        results["when"], machine["text"], machine["load_before"], machine["load_after"]), ""]
    for key, title, render in SECTIONS:
        if key in sections and results.get(key):
            lines += ["### " + title, "", render(results[key]), ""]
    lines += ["- " + text for text in results["messages"] + results["failures"]]
    return "\n".join(lines).rstrip() + "\n"


def write_docs(path, text):
    """Puts the text between the marks of docs/performance.md. ValueError where they are not there."""
    with open(path, encoding="utf-8") as file:
        document = file.read()
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError("%s: the two bench marks are not there once each" % path)
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n\n" + text + "\n" + END + after)
