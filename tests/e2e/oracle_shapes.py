"""Holds what evprof wrote of programs/shapes.py in each format against what the program itself counted and measured:
`oracle_shapes.py DIRECTORY`, with counted.json, report.json and the exports in it. Shares nothing with evprof; what is
wrong is an exception."""
import base64
import collections
import csv
import itertools
import json
import marshal
import os
import re
import sys
import zlib

sys.dont_write_bytecode = True
from oracle_flame import directory, fields, numbers, one, read_json, unzipped  # noqa: E402

PROGRAM = "shapes.py"


class Found(dict):
    """By name of a function of the program: [calls, ns on the stack]."""

    def add(self, name, file, calls=0, total=0):
        if file.endswith(PROGRAM):
            sums = self.setdefault(name.rsplit(".", 1)[-1], [0, 0])
            sums[0] += calls
            sums[1] += total

    def add_stack(self, frames, total):
        for name, file in set(frames):
            self.add(name, file, 0, total)


def path_of(name):
    return os.path.join(directory, name)


def from_report():
    found = Found()
    for row in read_json("report.json")["functions"]:
        found.add(row["function"], row["file"], row["ncalls"], row["cumtime_ns"])
    return found


def from_csv():
    found = Found()
    with open(path_of("events.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.add(row["name"], row["mod"], row["event"] == "call")
    return found


def from_pstats():
    found = Found()
    with open(path_of("stats.pstats"), "rb") as file:
        for (place, _, name), (_, calls, _, seconds, _) in marshal.load(file).items():
            found.add(name, place, calls, seconds * 1e9)
    return found


def page_blocks():
    with open(path_of("page.html"), encoding="utf-8") as file:
        page = file.read()
    meta = json.loads(re.search(r'<script type="application/json" id="meta">(.*?)</script>', page, re.S).group(1))
    blocks = dict(re.findall(r'<script type="text/plain" id="b(\d+)">(.*?)</script>', page, re.S))

    def columns(number):
        data, at, result = zlib.decompress(base64.b64decode(blocks[str(number)])), 0, []
        while at < len(data):
            length = int.from_bytes(data[at:at + 4], "little")
            result.append(data[at + 4:at + 4 + length])
            at += 4 + length
        return result

    return meta, columns


def from_html():
    """From the table, and from the tree."""
    table, tree, path, open_ = Found(), Found(), [], []
    meta, columns = page_blocks()
    lengths, bytes_ = columns(meta["texts"])
    ends = list(itertools.accumulate(numbers(lengths)))
    texts = [bytes_[end - length:end].decode("utf-8") for end, length in zip(ends, numbers(lengths))]
    _, names, files, _, _, calls, _, _, totals = map(numbers, columns(meta["functions"])[:9])
    for name, file, number, total in zip(names, files, calls, totals):
        table.add(texts[name], texts[file], number, total)
    distances, functions, calls, totals = map(numbers, columns(meta["tree"]))
    for i, (distance, f, number, total) in enumerate(zip(distances, functions, calls, totals)):
        above = path[i - distance] if distance else None
        path.append(above + (f,) if above is not None else ())
        if distance:
            place = texts[names[f]], texts[files[f]]
            tree.add(*place, number, 0 if f in above else total)
    return table, tree


def from_callgrind():
    """The column of calls, and the numbers of calls from each caller, must be the same."""
    found, called, known = Found(), collections.Counter(), {}
    name = callee = calls = None
    with open(path_of("callgrind.out"), encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            place = re.match(r"(c?)(ob|fl|fn)=\((\d+)\)(?: (.*))?$", line)
            if place:
                kind, number, text = place.group(2, 3, 4)
                if text is not None:
                    assert known.setdefault((kind, number), text) == text
                if kind == "fl":
                    at = known[kind, number]
                elif kind == "fn" and place.group(1):
                    callee = known[kind, number], at
                elif kind == "fn":
                    name = known[kind, number], at
            elif line.startswith("calls="):
                calls = int(line[6:].split()[0])
                assert calls, "a reader takes the costs of no call for the caller's own"
            elif re.match(r"\d+ \d+ \d+", line):
                costs = [int(number) for number in line.split()]
                if calls is None:
                    found.add(name[0].rsplit(":", 1)[0], name[1], costs[2])
                else:
                    found.add(callee[0].rsplit(":", 1)[0], callee[1], 0, costs[1])
                    called[callee[0].rsplit(":", 1)[0].rsplit(".", 1)[-1]] += calls * callee[1].endswith(PROGRAM)
                calls = None
    for name in counted:
        assert called[name] == found[name][0], (name, called[name], found[name])
    return found


def outermost(found, events, frame_of):
    """From begins and ends in their order: (begins, frame, ns)."""
    stack, since = [], {}
    for begins, frame, now in events:
        if begins:
            since.setdefault(frame, now)
            stack.append(frame)
        else:
            frame = stack.pop()
            if frame not in stack:
                found.add(*frame_of(frame), 0, now - since.pop(frame))
    assert not stack


def from_speedscope():
    found = Found()
    root = read_json("speedscope.json")
    frames = [(frame["name"], frame.get("file", "")) for frame in root["shared"]["frames"]]
    for profile in root["profiles"]:
        outermost(found, ((e["type"] == "O", e["frame"], e["at"]) for e in profile["events"]), frames.__getitem__)
        for event in profile["events"]:
            found.add(*frames[event["frame"]], event["type"] == "O")
    return found


def from_sampled():
    found = Found()
    root = read_json("sampled.json")
    frames = [(frame["name"], frame.get("file", "")) for frame in root["shared"]["frames"]]
    for profile in root["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"]):
            found.add_stack([frames[frame] for frame in stack], weight)
    return found


def from_chrome():
    found, threads = Found(), collections.defaultdict(list)
    for event in read_json("chrome.json")["traceEvents"]:
        if event["ph"] in "BE":
            name = event.get("name"), event.get("args", {}).get("file", "")
            threads[event["pid"], event["tid"]].append((event["ph"] == "B", name, event["ts"] * 1000))
            if event["ph"] == "B":
                found.add(*name, event["cat"] in ("call", "resume", "throw"))
    for events in threads.values():
        outermost(found, events, lambda frame: frame)
    return found


def from_pprof():
    found, profile = Found(), fields(unzipped("profile.pb.gz"))
    strings = [string.decode("utf-8") for string in profile[6]]
    functions = {one(f, 1): (strings[one(f, 2)], strings[one(f, 4)]) for f in map(fields, profile[5])}
    for sample in map(fields, profile[2]):
        stack = [functions[number] for number in numbers(sample[1][0])]
        calls, own = numbers(sample[2][0])[:2]
        if stack:
            found.add(*stack[0], calls)
            found.add_stack(stack, own)
    return found


def from_firefox():
    found, root = Found(), read_json("firefox.json")
    strings = root["shared"]["stringArray"]
    for thread in root["threads"]:
        functions, frames = thread["funcTable"], thread["frameTable"]["func"]
        names = [(strings[name], "" if file is None else strings[file])
                 for name, file in zip(functions["name"], functions["fileName"])]
        stacks = []
        for frame, prefix in zip(thread["stackTable"]["frame"], thread["stackTable"]["prefix"]):
            stacks.append((() if prefix is None else stacks[prefix]) + (names[frames[frame]],))
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            if stack is not None:
                found.add_stack(stacks[stack], round(weight * 1e6))
    return found


def from_folded():
    found = Found()
    with open(path_of("folded.txt"), encoding="utf-8", newline="\n") as file:
        for line in file:
            stack, weight = line.rsplit(" ", 1)
            frames = (re.match(r"(.*) \((.*):\d+\)$", frame) for frame in stack.split(";")[2:])
            found.add_stack([frame.groups() for frame in frames if frame], int(weight))
    return found


counted = read_json("counted.json")
assert len(counted) > 10


def check(name, found, calls=True, times=True):
    """The stopwatch starts after the call and stops before its end. Other programs may run in between, which is chance:
    status 3 says that times are off, and that is asked once more. A sum that is wrong is wrong each time."""
    for function, (wanted, seconds) in counted.items():
        number, ns = found.get(function, (0, 0))
        assert not calls or number == wanted, (name, function, number, wanted)
        near = -1e5 < ns / 1e9 * 1e9 - seconds * 1e9 < 0.05 * seconds * 1e9 + 3e5 * wanted + 1e7
        if times and not near:
            print("time of", function, "in", name, ns / 1e9, "own", seconds, file=sys.stderr)
            sys.exit(3)


check("report", from_report())
check("csv", from_csv(), times=False)
check("pstats", from_pstats())
html_table, html_tree = from_html()
check("html's table", html_table)
check("html's tree", html_tree)
check("callgrind", from_callgrind())
check("speedscope", from_speedscope())
check("speedscope-sampled", from_sampled(), calls=False)
check("chrome", from_chrome())
check("pprof", from_pprof())
check("firefox", from_firefox(), calls=False)
check("folded", from_folded(), calls=False)
print(len(counted))
