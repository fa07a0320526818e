"""judge_span_outputs.py SEEN CHROME FIREFOX REPORT SPEEDSCOPE: the spans and counters of evprof's outputs are those that programs/spans.py saw,
for test_spans.c. SEEN: the program's own rows. Names, numbers, arguments and durations are compared.
"""
import collections
import json
import sys

FAR_NS = 200000


def rows(path):
    with open(path, encoding="utf-8", errors="surrogatepass") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def load(path):
    with open(path, encoding="utf-8", errors="surrogatepass") as file:
        return json.load(file)


def durations_agree(seen, found, what):
    """seen: (least, most) of each span in ns; found: in ns. Both by name.

    Each time has an interval of its own: of those that it may have, the one that ends first, as the others can take more.
    """
    assert {name: len(times) for name, times in seen.items()} == {name: len(times) for name, times in found.items()}, what
    for name in seen:
        left = sorted(seen[name], key=lambda interval: interval[1])
        for ns in sorted(found[name]):
            taken = next((one for one in left if one[0] - FAR_NS <= ns <= one[1] + FAR_NS), None)
            assert taken, (what, name, ns, left)
            left.remove(taken)


def judge_chrome(chrome, seen, spans, counters):
    events = chrome["traceEvents"]
    begun, found = {}, collections.defaultdict(list)
    arguments = []
    for event in events:
        if event.get("cat") == "span" and event["ph"] == "b":
            assert event["id"] not in begun
            begun[event["id"]] = event
            if event.get("args"):
                arguments.append((event["name"], json.dumps(event["args"], sort_keys=True)))
    for event in events:
        if event.get("cat") == "span" and event["ph"] == "e":
            begin = begun.pop(event["id"])
            assert begin["name"] == event["name"]
            found[event["name"]].append(round((event["ts"] - begin["ts"]) * 1000))
    durations_agree(spans, found, "chrome")
    assert len(begun) == sum("end" not in row for row in seen if row["what"] == "span"), begun
    expected = [(row["name"], json.dumps(dict(row["arguments"]), sort_keys=True)) for row in seen
                if row["what"] == "span" and row["arguments"]]
    assert sorted(arguments) == sorted(expected), "arguments in chrome"
    values = [(event["name"], event["args"]["value"]) for event in events if event.get("cat") == "counter"]
    assert values == counters, (values[:5], counters[:5])


def shown(arguments):
    """As a marker has them: key=value, key=value."""
    texts = [value if isinstance(value, str) else "true" if value is True else "false" if value is False else
             "%d" % value if isinstance(value, int) else "%.17g" % value for _, value in arguments]
    return ", ".join("%s=%s" % (key, text) for (key, _), text in zip(arguments, texts))


def judge_unfinished(seen, found, what):
    """found: names and durations in ns of what is shown as unfinished, each until its process ends."""
    expected = sorted(row["name"] for row in seen if row["what"] == "span" and "end" not in row)
    assert sorted(name for name, _ in found) == expected, (what, found, expected)
    assert all(ns > 0 for _, ns in found), (what, found)


def judge_firefox(firefox, seen, spans, counters):
    strings = firefox["shared"]["stringArray"] if "shared" in firefox else None
    found, values, texts_found, unfinished = collections.defaultdict(list), [], [], []
    for thread in firefox["threads"]:
        markers, texts = thread["markers"], strings or thread["stringArray"]
        for i in range(markers["length"]):
            name = texts[markers["name"][i]]
            ns = round(((markers["endTime"][i] or 0) - markers["startTime"][i]) * 1e6)
            if name.startswith("span ") and markers["data"][i]["text"].startswith("unfinished"):
                unfinished.append((name[5:], ns))
            elif name.startswith("span "):
                found[name[5:]].append(ns)
                texts_found.append((name[5:], markers["data"][i]["text"]))
            if name == "mark":
                texts_found.append((name, markers["data"][i]["text"]))
            if name.startswith("counter "):
                values.append((name[8:], float(markers["data"][i]["text"])))
    durations_agree(spans, found, "firefox")
    judge_unfinished(seen, unfinished, "firefox")
    assert values == counters
    expected = [(row["name"], shown(row["arguments"])) for row in seen if row["what"] == "span" and "end" in row]
    expected += [("mark", "%s: %s" % (row["name"], shown(row["arguments"]))) for row in seen if row["what"] == "mark"]
    assert sorted(texts_found) == sorted(expected), "arguments in firefox"


def judge_speedscope(speedscope, seen, spans):
    """Profiles of spans are stacks: each end is that of the innermost open frame."""
    frames, found = [frame["name"] for frame in speedscope["shared"]["frames"]], collections.defaultdict(list)
    layers, unfinished = 0, []
    for profile in speedscope["profiles"]:
        open_frames, last = [], profile["startValue"]
        for event in profile["events"]:
            assert last <= event["at"] <= profile["endValue"], profile["name"]
            last = event["at"]
            if event["type"] == "O":
                open_frames.append((event["frame"], last))
                continue
            frame, start = open_frames.pop()
            assert frame == event["frame"], profile["name"]
            if " spans" in profile["name"]:
                assert frames[frame].startswith("span ")
                if frames[frame].endswith(" (unfinished)"):
                    unfinished.append((frames[frame][5:-13], last - start))
                else:
                    found[frames[frame][5:]].append(last - start)
        assert not open_frames or " spans" not in profile["name"]
        layers += " spans" in profile["name"]
    durations_agree(spans, found, "speedscope")
    judge_unfinished(seen, unfinished, "speedscope")
    return layers


def judge_report(report, seen, spans):
    for row in report["spans"]:
        missing = sum(one["name"] == row["span"] and "end" not in one for one in seen if one["what"] == "span")
        assert row["unfinished"] == missing, (row, missing)
    found = {row["span"]: row for row in report["spans"] if row["count"]}
    assert set(found) == set(spans)
    for name, times in spans.items():
        row = found[name]
        assert row["count"] == len(times), (name, row)
        least, most = sum(time[0] for time in times), sum(time[1] for time in times)
        assert least - FAR_NS * len(times) <= row["total_ns"] <= most + FAR_NS * len(times), (name, row, least, most)
        assert abs(row["mean_ns"] - row["total_ns"] / row["count"]) <= 1
        assert max(time[0] for time in times) - FAR_NS <= row["max_ns"] <= max(time[1] for time in times) + FAR_NS
        for key, fraction in (("p50_ns", 0.5), ("p90_ns", 0.9)):
            ranks = [sorted(time[side] for time in times)[max(0, -int(-fraction * len(times) // 1) - 1)] for side in (0, 1)]
            assert ranks[0] * 0.99 - FAR_NS <= row[key] <= ranks[1] * 1.01 + FAR_NS, (name, key, row, ranks)
        assert 0 <= row["own_ns"] <= row["total_ns"]
    if set(spans) >= {"outer", "inner"}:
        outer, inner = found["outer"], found["inner"]
        assert abs(outer["own_ns"] - (outer["total_ns"] - inner["total_ns"])) < 1000, (outer, inner)
        assert inner["own_ns"] == inner["total_ns"]
    for name in [name for name in found if name.startswith("greenlet ")]:
        row, steps = found[name], found["step " + name[9:]]
        assert abs(row["own_ns"] - (row["total_ns"] - steps["total_ns"])) < 1000, (row, steps)
        assert steps["own_ns"] == steps["total_ns"] and found["main"]["own_ns"] == found["main"]["total_ns"], "spans of others within"


def main(seen, chrome, firefox, report, speedscope):
    seen = rows(seen)
    spans = collections.defaultdict(list)
    for row in seen:
        if row["what"] == "span" and "end" in row:
            spans[row["name"]].append((row["end"][0] - row["begin"][1], row["end"][1] - row["begin"][0]))
    counters = [(row["name"], row["value"]) for row in seen if row["what"] == "counter"]
    assert spans or counters
    judge_chrome(load(chrome), seen, spans, counters)
    judge_firefox(load(firefox), seen, spans, counters)
    layers = judge_speedscope(load(speedscope), seen, spans)
    assert layers > 1 or not set(spans) & {"task", "thread 1", "greenlet 1"}, "overlapping spans, and threads, have profiles of their own"
    judge_report(load(report), seen, spans)
    print("%d spans and %d counters agree" % (sum(map(len, spans.values())), len(counters)))


main(*sys.argv[1:])
