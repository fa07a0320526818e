"""judge_tree.py COUNTED TREE: whether the text of evprof tree has the stacks and calls that the program counted itself.

Also: times of children are within those of their parent, the most time comes first, and the share is that of all."""
import json
import re
import sys

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
LINE = re.compile(r" *([0-9.]+) (ns|us|ms|s) +([0-9.]+) % (?: *([0-9.]+) (ns|us|ms|s) +(\d+)  | {20})( *)(.+)")


def main():
    counted = json.load(open(sys.argv[1]))
    text = open(sys.argv[2]).read().split("\n")
    begin = next(i for i, line in enumerate(text) if line.split() == ["total", "%", "own", "calls", "function"])
    seen, path, times, before = {}, [], [], {}
    for line in text[begin + 1:]:
        match = LINE.fullmatch(line)
        if not match:
            assert not line, line
            continue
        depth = len(match[7]) // 2
        total = float(match[1]) * UNITS[match[2]]
        del path[depth:], times[depth:]
        for deeper in [known for known in before if known > depth]:
            del before[deeper]
        assert len(path) == depth, "a line without its parent: " + line
        # three digits are shown
        assert not times or total <= times[-1] * 1.01, "more than its parent: " + line
        assert total <= before.get(depth, total) * 1.01, "not in the order of time: " + line
        before[depth] = total
        path.append(re.sub(r"^.*[.]", "", match[8].split("  ")[0]) if match[4] else None)
        times.append(total)
        assert abs(float(match[3]) - 100 * total / times[0]) < 1 or len(text) < 8, line
        if match[4] and path[2:] != ["<module>"]:
            names = path[3:] if path[2] == "<module>" else path[2:]
            if names[0] != "Shape":  # the body of the class runs before the program counts
                seen["/".join(names)] = seen.get("/".join(names), 0) + int(match[6])
    assert seen == counted, (sorted(set(seen.items()) ^ set(counted.items())))
    print("%d stacks agree" % len(seen))


main()
