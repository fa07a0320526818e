"""Reads what evprof export, diff and report wrote of one trace, each by its format's own rules, and holds them against
each other: `oracle_flame.py DIRECTORY`. Shares nothing with evprof; what is wrong is an exception."""
import collections
import gzip
import json
import os
import sys

directory = sys.argv[1]


def pairs(items):
    assert len({key for key, _ in items}) == len(items), items
    return dict(items)


def refuse(word):
    raise ValueError(word)


def read_json(name):
    with open(os.path.join(directory, name), "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_constant=refuse, object_pairs_hook=pairs)


class Times(dict):
    """By (file, line) of Python functions, and None for all C functions: [calls, own ns, cumulative ns]."""

    def add(self, key, calls=0, own=0, total=0):
        sums = self.setdefault(key, [0, 0, 0])
        sums[0] += calls
        sums[1] += own
        sums[2] += total


def key_of(file, line):
    return (file, line) if line else None


def from_report():
    times = Times()
    for row in read_json("report.json")["functions"]:
        key = key_of(row["file"], row["line"])
        times.add(key, row["ncalls"], row["tottime_ns"], row["cumtime_ns"])
    return times


def from_diff():
    times = Times()
    for row in read_json("diff.json")["functions"]:
        assert row["a"] and row["a"] == row["b"] and not any(row["change"].values()), row
        side = row["b"]
        times.add(key_of(side["file"], side["line"]), side["ncalls"], side["tottime_ns"], side["cumtime_ns"])
    return times


def from_evented(root):
    times = Times()
    frames = root["shared"]["frames"]
    for profile in root["profiles"]:
        if profile["type"] != "evented":
            continue
        assert profile["unit"] == "nanoseconds" and profile["name"]
        stack, now = [], profile["startValue"]
        for event in profile["events"]:
            assert event["at"] >= now, event
            now = event["at"]
            frame = event["frame"]
            if event["type"] == "O":
                stack.append([frame, now, 0])
                continue
            opened, start, inner = stack.pop()
            assert event["type"] == "C" and opened == frame, event
            file = frames[frame]
            times.add(key_of(file.get("file"), file.get("line")), 1, now - start - inner)
            if stack:
                stack[-1][2] += now - start
        assert not stack and now == profile["endValue"]
    return times


def from_sampled(root):
    times = Times()
    for profile in root["profiles"]:
        assert profile["type"] == "sampled" and len(profile["samples"]) == len(profile["weights"])
        assert len({tuple(stack) for stack in profile["samples"]}) == len(profile["samples"]), "each stack once"
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        for stack, weight in zip(profile["samples"], profile["weights"]):
            frame = root["shared"]["frames"][stack[-1]]
            times.add(key_of(frame.get("file"), frame.get("line")), 0, weight)
    return times


def from_folded():
    stacks = collections.Counter()
    with open(os.path.join(directory, "folded.txt"), encoding="utf-8", newline="\n") as file:
        for line in file.read().split("\n")[:-1]:
            stack, weight = line.rsplit(" ", 1)
            assert len(stack.split(";")) >= 3 and line.isprintable() or "\ufeff" in line or "\ufffd" in line, line
            stacks[stack] += int(weight)
    return sum(stacks.values())


# --- protobuf, by https://protobuf.dev/programming-guides/encoding/ ---

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    at, found = 0, collections.defaultdict(list)
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
            assert len(value) == len(bytes(value))
        else:
            assert tag & 7 == 0, tag
        found[tag >> 3].append(value)
    assert at == len(data)
    return found


def numbers(packed):
    at, values = 0, []
    while at < len(packed):
        value, at = varint(packed, at)
        values.append(value)
    return values


def one(message, field):
    return message[field][0] if message[field] else 0


def unzipped(name):
    with gzip.open(os.path.join(directory, name)) as file:
        return file.read()


def from_pprof():
    profile = fields(unzipped("profile.pb.gz"))
    strings = [string.decode("utf-8") for string in profile[6]]
    assert strings[0] == ""
    types = [(strings[one(fields(t), 1)], strings[one(fields(t), 2)]) for t in profile[1]]
    heap = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert types[:2] == [("calls", "count"), ("time", "nanoseconds")] and types[2:] in ([], heap), types
    functions = {one(f, 1): (strings[one(f, 4)], one(f, 5)) for f in map(fields, profile[5])}
    locations = {one(loc, 1): one(fields(loc[4][0]), 1) for loc in map(fields, profile[4])}
    assert set(locations.values()) == set(functions) and 0 not in functions
    times = Times()
    for sample in map(fields, profile[2]):
        stack = numbers(sample[1][0])
        calls, own, *memory = numbers(sample[2][0])
        assert len(memory) == len(types) - 2 and (not memory or memory[2] <= memory[0] and memory[3] <= memory[1])
        labels = [fields(label) for label in sample[3]]
        assert [strings[one(label, 1)] for label in labels] == ["pid", "tid", "thread"]
        assert one(labels[0], 3) > 0 and one(labels[1], 3) > 0 and strings[one(labels[2], 2)]
        if stack:
            times.add(key_of(*functions[locations[stack[0]]]), calls, own)
        else:  # what was allocated before any function ran
            assert memory and not calls and not own, (calls, own)
    return times


# --- the Firefox Profiler's processed format, by its src/types/profile.ts at version 57 ---

def columns(table, names):
    assert set(table) >= set(names) | {"length"}, set(names) - set(table)
    for name in names:
        assert table[name] is None or len(table[name]) == table["length"], (name, table["length"])


def check_tables(thread, strings, categories):
    frames, functions, stacks = thread["frameTable"], thread["funcTable"], thread["stackTable"]
    columns(frames, ["address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID",
                     "line", "column"])
    columns(functions, ["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"])
    columns(stacks, ["frame", "prefix"])
    columns(thread["resourceTable"], ["lib", "name", "host", "type"])
    columns(thread["nativeSymbols"], ["libIndex", "address", "name", "functionSize"])
    assert all(0 <= frame < frames["length"] for frame in stacks["frame"])
    assert all(prefix is None or 0 <= prefix < i for i, prefix in enumerate(stacks["prefix"]))
    assert all(0 <= function < functions["length"] for function in frames["func"])
    assert all(0 <= category < len(categories) for category in frames["category"])
    assert all(0 <= name < len(strings) for name in functions["name"])
    assert all(name is None or 0 <= name < len(strings) for name in functions["fileName"])


def check_markers(thread, strings, schemas):
    markers = thread["markers"]
    columns(markers, ["data", "name", "startTime", "endTime", "phase", "category"])
    for data, name in zip(markers["data"], markers["name"]):
        assert data["type"] in schemas and strings[name]
        assert "cause" not in data or 0 <= data["cause"]["stack"] < thread["stackTable"]["length"]
    assert markers["startTime"] == sorted(markers["startTime"])


def add_samples(times, thread, strings):
    samples, functions = thread["samples"], thread["funcTable"]
    columns(samples, ["stack", "time", "weight"])
    assert samples["weightType"] == "tracing-ms" and samples["length"] > 0
    assert samples["time"] == sorted(samples["time"]) and samples["stack"][-1] is None
    for i, stack in enumerate(samples["stack"]):
        weight = round(samples["weight"][i] * 1e6)
        if stack is None:
            assert weight == 0
            continue
        assert abs(round(samples["time"][i + 1] * 1e6) - round(samples["time"][i] * 1e6) - weight) <= 1, i
        function = thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]
        file = functions["fileName"][function]
        times.add(None if file is None else (strings[file], functions["lineNumber"][function]), 0, weight)


def from_firefox():
    root = read_json("firefox.json")
    strings, schemas = root["shared"]["stringArray"], {schema["name"] for schema in root["meta"]["markerSchema"]}
    assert root["meta"]["preprocessedProfileVersion"] == 57 and len(set(strings)) == len(strings)
    assert any(category["color"] == "grey" for category in root["meta"]["categories"])
    times = Times()
    for thread in root["threads"]:
        assert isinstance(thread["pid"], str) and isinstance(thread["tid"], int) and thread["name"]
        check_tables(thread, strings, root["meta"]["categories"])
        check_markers(thread, strings, schemas)
        add_samples(times, thread, strings)
    return times


# --- all ---

def same(name, found, wanted, calls=False, total=False):
    """Times are rounded to ns at each event in one place, in sums in the other."""
    for key in set(found) | set(wanted):
        one_side, other = found.get(key, [0, 0, 0]), wanted.get(key, [0, 0, 0])
        room = 2000 + 3 * max(one_side[0], other[0])
        assert abs(one_side[1] - other[1]) <= room, (name, "own", key, one_side, other)
        assert not calls or one_side[0] == other[0], (name, "calls", key, one_side, other)
        # C functions are one sum here, and their cumulative times overlap
        assert not total or key is None or abs(one_side[2] - other[2]) <= room * 50, (name, "total", key, one_side, other)


def main():
    report = from_report()
    assert sum(sums[0] for sums in report.values()) > 0
    evented = from_evented(read_json("speedscope.json"))
    same("diff", from_diff(), report, calls=True, total=True)
    same("speedscope", evented, report)
    assert all(evented[key][0] >= sums[0] for key, sums in report.items()), "each call is there"
    same("speedscope-sampled", from_sampled(read_json("sampled.json")), report)
    same("pprof", from_pprof(), report, calls=True)
    same("firefox", from_firefox(), report)
    whole = sum(sums[1] for sums in report.values())
    assert abs(from_folded() - whole) <= 2000 + 3 * sum(sums[0] for sums in report.values())
    print(len(report))


if __name__ == "__main__":
    main()
