"""Holds what tracemalloc said in alive_by_stack.py (FILE) against the folded stacks that evprof export made of the same run (FOLDED):
`judge_alive.py FILE FOLDED PID FRAMES [calls]`, FRAMES those that tracemalloc kept. By stack and by innermost line, exactly. With
`calls` the stacks are those of recorded calls, where the innermost function alone has the line at which it stands: by line only.
Shares nothing with evprof; prints how many stacks, or lines, it compared."""
import json
import os
import re
import sys

said, folded, parent, most = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
calls = sys.argv[5:] == ["calls"]
NAME = "alive_by_stack.py"


def place(file, line):
    return os.path.basename(file), line


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME), encoding="utf-8") as program:
    LINES = program.read().split("\n")
EXITS = LINES.index("main()") + 2


def counts(stack):
    """Whether both must have it: made by main(), which evprof saw from its beginning on, and not by what ends the program; by a line
    that makes nothing but bytes. Other objects have free lists: from 3.8 on tracemalloc says of a block that one gives back who got it
    last, and not who allocated it. Line 1 of <made> has what only recording calls allocates."""
    file, line = stack[-1] if stack else ("", 0)
    if not any(one == NAME for one, _ in stack) or any(one == NAME and at >= EXITS for one, at in stack):
        return False
    if file == "<made>":
        return stack[-2][0] == "<made>" and not (calls and line == 1)
    return file == NAME and "compile(" not in LINES[line - 1] and re.search(r"bytes\(|bytearray\(", LINES[line - 1]) is not None


def main():
    oracle, found = {}, {}
    with open(said, encoding="utf-8") as file:
        for stack, size, _ in json.load(file):
            stack = tuple(place(*frame) for frame in stack)
            if counts(stack):
                stack = stack[-1:] if calls else stack
                oracle[stack] = oracle.get(stack, 0) + size
    with open(folded, encoding="utf-8") as file:
        for line in file:
            stack, size = line.rstrip("\n").rsplit(" ", 1)
            frames = stack.split(";")
            if int(re.match(r".*\((\d+)\)$", frames[0]).group(1)) != parent:
                continue
            stack = tuple(place(*re.match(r".* \((.*):(\d+)\)$", frame).groups()) for frame in frames[2:])
            stack = tuple((file, int(line)) for file, line in stack)[-most:]
            if counts(stack):
                stack = stack[-1:] if calls else stack
                found[stack] = found.get(stack, 0) + int(size)
    wrong = [(stack, oracle.get(stack, 0), found.get(stack, 0)) for stack in set(oracle) | set(found)
             if oracle.get(stack, 0) != found.get(stack, 0)]
    for stack, theirs, mine in sorted(wrong)[:40]:
        print("tracemalloc %d, evprof %d: %s" % (theirs, mine, stack[-4:]), file=sys.stderr)
    assert not wrong, "%d of %d stacks differ" % (len(wrong), len(oracle))
    lines = [{}, {}]
    for sums, by_line in zip((oracle, found), lines):
        for stack, size in sums.items():
            by_line[stack[-1]] = by_line.get(stack[-1], 0) + size
    assert lines[0] == lines[1]
    return len(oracle)


print(main())
