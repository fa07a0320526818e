"""python -m evprof.fleet: the analyses of evprof.fleet as tables of text, JSON, folded stacks or a page. See main()."""
import argparse
import html
import json
import sys
from typing import Any, Dict, Iterable, Iterator, List

from . import fleet
from .errors import EvprofError

_NARROW = 0.0005  # of the whole width: narrower boxes are left out
_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>evprof fleet: %s</title>
<style>
body { font: 12px sans-serif; margin: 8px; }
p { margin: 0 1px 1px 0; padding: 1px 3px; overflow: hidden; white-space: nowrap; height: 14px; background: #f5b26b; }
p:hover { background: #f0832f; }
div { display: flex; }
section { min-width: 0; }
</style>
<h3>%s</h3>
%s
</html>
"""


class Node:
    """A frame of the merged stacks. value: of itself and of all above it."""

    def __init__(self) -> None:
        self.value = 0
        self.inner: Dict[str, "Node"] = {}


def tree_of(lines: Iterable[str]) -> Node:
    """The root of folded stacks."""
    root = Node()
    for line in lines:
        stack, _, value = line.rpartition(" ")
        node = root
        node.value += int(value)
        for frame in stack.split(";"):
            node = node.inner.setdefault(frame, Node())
            node.value += int(value)
    return root


def _boxes(root: Node, unit: str) -> Iterator[str]:
    """Pieces of the page, without recursion: stacks may be deep."""
    waiting: List[Any] = [(root, "all", 1.0)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
            continue
        node, name, share = one
        text = html.escape("%s: %d %s, %.2f %%" % (name, node.value, unit, 100.0 * node.value / root.value))
        yield '<section style="width:%.4f%%"><p title="%s">%s</p><div>' % (100 * share, text, html.escape(name))
        waiting.append("</div></section>")
        for inner, below in sorted(node.inner.items(), key=lambda item: item[1].value):
            if below.value >= _NARROW * root.value:
                waiting.append((below, inner, below.value / node.value))


def page(lines: Iterable[str], weight: str) -> str:
    """A page with the flame graph of folded stacks, complete in itself and without a script: names and numbers show at the mouse.

    EvprofError: there is no stack.
    """
    root = tree_of(lines)
    if not root.value:
        raise EvprofError("evprof: no trace has stacks with %s" % weight)
    unit = {"time": "ns", "allocations": "allocations", "temporary": "allocations"}.get(weight, "bytes")
    return _PAGE % (weight, weight, "\n".join(_boxes(root, unit)))


def _shown(value: Any) -> str:
    text = "%.4g" % value if isinstance(value, float) else "" if value is None else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def text_table(names: List[str], rows: List[Any]) -> str:
    """Columns side by side; numbers to the right."""
    cells = [names] + [[_shown(value) for value in row] for row in rows]
    widths = [max(len(line[number]) for line in cells) for number in range(len(names))]
    right = [all(isinstance(row[number], (int, float, type(None))) for row in rows) for number in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) if to_right else cell.ljust(width)
                               for cell, width, to_right in zip(line, widths, right)).rstrip() for line in cells)


def _arguments(words: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evprof.fleet", description="Analyses of the traces below a folder, on Spark.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("folder")
    common.add_argument("--master", default="local[*]", help="spark://HOST:7077; else this machine")
    common.add_argument("--json", action="store_true", help="a list of objects")
    common.add_argument("--limit", type=int, default=20, help="rows, 20; 0: all")
    for name in ("include", "exclude", "service", "part-bytes"):
        common.add_argument("--" + name)
    for name in ("exclude-syspath", "skip-unreadable"):
        common.add_argument("--" + name, action="store_true")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("functions", parents=[common], help="by own time, with percentiles of durations")
    verb.add_argument("--no-percentiles", dest="percentiles", action="store_false")
    verb = verbs.add_parser("regressions", parents=[common], help="from one version of services to another")
    verb.add_argument("--before", required=True)
    verb.add_argument("--after", required=True)
    verb.add_argument("--request", default="", help="FILE:FUNCTION")
    verb = verbs.add_parser("outliers", parents=[common], help="hosts, processes or requests unlike the others")
    verb.add_argument("--by", choices=("host", "process", "request"), default="process")
    verb.add_argument("--request", default="", help="FILE:FUNCTION")
    verb = verbs.add_parser("flame", parents=[common], help="stacks of all processes, merged: folded, or a page")
    verb.add_argument("--weight", default="time")
    verb.add_argument("--html", metavar="FILE")
    verbs.add_parser("leaks", parents=[common], help="memory that grows from day to day")
    return parser.parse_args(words)


def _write_flame(rows: Any, weight: str, file: str) -> None:
    lines = fleet.folded(rows)
    if not file:
        for line in lines:
            print(line)
        return
    text = page(lines, weight)
    with open(file, "w", encoding="utf-8") as output:
        output.write(text)


def _answer(spark: Any, given: Dict[str, Any]) -> None:
    own = {name: given.pop(name, None) for name in ("verb", "folder", "json", "limit", "html")}
    rows = getattr(fleet, own["verb"])(spark, own["folder"], **{name: value for name, value in given.items() if value is not None})
    if own["verb"] == "flame" and not own["json"]:
        return _write_flame(rows, given["weight"], own["html"])
    found = (rows.limit(own["limit"]) if own["limit"] else rows).collect()
    if own["json"]:
        print(json.dumps([row.asDict() for row in found], indent=1))
    else:
        print(text_table(rows.columns, found))


def main(words: List[str]) -> int:
    """python -m evprof.fleet VERB FOLDER; the exit status is 2 with a line if that cannot be."""
    given = vars(_arguments(words))
    spark = fleet.session(given.pop("master"))
    spark.sparkContext.setLogLevel("ERROR")
    try:
        _answer(spark, given)
        return 0
    except (EvprofError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:  # Spark's, with ours in it
        lines = [line for line in str(error).splitlines() if "evprof: " in line]
        if not lines:
            raise
        print("evprof: " + lines[-1].partition("evprof: ")[2], file=sys.stderr)
        return 2
    finally:
        spark.stop()
