"""Are annotate's hits those of sys.settrace? `python judge_lines.py ANNOTATED LOG`, both of lines.py."""
import ast
import json
import os
import sys


def inside(path):
    """Lines of function bodies: the others run before the program can set its tracer."""
    lines = set()
    for node in ast.walk(ast.parse(open(path, encoding="utf-8").read())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines.update(range(node.body[0].lineno, node.end_lineno + 1))
    return lines


def main(annotated, log):
    annotated = json.load(open(annotated, encoding="utf-8"))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lines.py")
    source = open(path, encoding="utf-8").read().split("\n")
    assert annotated["by"] == "line", annotated["by"]
    (file,) = [file for file in annotated["files"] if file["file"].endswith("lines.py")]
    lines = {line["line"]: line for line in file["lines"]}
    expected = {int(line): hits for line, hits in json.loads(open(log, encoding="utf-8").read()).items()}
    assert len(expected) > 40, expected
    for number in sorted(inside(path) | set(expected)):
        hits = lines[number]["hits"] if number in lines else 0
        assert hits == expected.get(number, 0), (number, source[number - 1], hits, expected.get(number, 0))

    def place(text):
        (number,) = [i + 1 for i, line in enumerate(source) if line.strip() == text]
        return lines[number]

    def calls(text):
        return {call["function"]: call["calls"] for call in place(text)["calls"]}

    # Where the calls were made, and where the time went.
    assert calls("things.append(Thing(i))").get("__init__") == 10, calls("things.append(Thing(i))")
    assert calls("thing.double()") == {"double": 10}
    assert calls("return recurse(n - 1)") == {"recurse": 40}
    assert calls("recurse(20)") == {"recurse": 2}
    assert calls("fails(i)") == {"fails": 6}
    assert place("time.sleep(0.06)")["own_ns"] < 20000000, place("time.sleep(0.06)")
    (nap,) = [call for call in place("time.sleep(0.06)")["calls"] if "sleep" in call["function"]]
    assert nap["total_ns"] >= 50000000, nap
    loop = place("for i in range(100000):")
    assert loop["own_ns"] > place("thing.double()")["own_ns"], loop


main(*sys.argv[1:])
