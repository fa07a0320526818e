"""python -m evprof VERB ...: the tool evprof, with this Python for `run`.

python -m evprof --library: prints the path of libevprof.so, for LD_PRELOAD.
python -m evprof TRACE: what a trace holds, without numpy. Exit status 0; 1 if something is missing; 2 if it cannot be read.
"""
import os
import shlex
import signal
import sys
from typing import Any, Dict, List, Tuple

from ._paths import find
from ._tool import run_tool
from .errors import EvprofError
from .trace import Process, Trace, load

_USAGE = "usage: python -m evprof TRACE, or python -m evprof VERB ... (python -m evprof help)"


def _counts(trace: Trace) -> Dict[int, Any]:
    """What the trace says of its threads, by number, with events counted where their number is missing."""
    return {thread["number"]: thread for process in trace._counted() for thread in process["threads"]}


def _events(thread: Dict[str, Any]) -> Tuple[int, str]:
    counts = thread["events"] or {}
    return sum(counts.values()), ", ".join("%s %d" % item for item in counts.items())


def _ending(process: Process) -> str:
    if process.end is None:
        return "its end is not in the trace"
    how = str(process.end.get("how", "?"))
    for detail in ("signal", "status"):
        if process.end.get(detail) is not None:
            return "%s, %s %s" % (how, detail, process.end[detail])
    return how


def _one_line(text: object) -> str:
    """Control characters of names do not reach the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def summary(trace: Trace) -> List[str]:
    """The lines of the summary."""
    lines, total, counted = [], 0, _counts(trace)
    for process in trace.processes:
        lines.append("process %d: Python %s: %s (%s)" % (process.pid, _one_line(process.python or "?"),
                                                         _one_line(" ".join(shlex.quote(str(word)) for word in process.argv)),
                                                         _one_line(_ending(process))))
        for thread in process.threads:
            count, kinds = _events(counted[thread.number])
            total += count
            lost = sum((thread.lost or {}).values())
            lines.append("  thread %d %s: %d events%s%s" % (thread.tid, _one_line(thread.name or ""), count,
                                                           ", %d lost" % lost if lost else "",
                                                           ": " + kinds if kinds else ""))
    return ["%s: %d events of %d process%s in %.3f s" % (_one_line(trace.path), total, len(trace.processes),
                                                        "" if len(trace.processes) == 1 else "es",
                                                        trace.duration_ns / 1e9)] + lines


def _print(text: str) -> int:
    """The exit status: 0, or 2 if it cannot be written. A closed pipe ends the process by SIGPIPE, as it ends the tool."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes the text once more when it ends
        print("evprof: cannot write: %s" % error.strerror, file=sys.stderr)
        return 2
    return 0


def main(arguments: List[str]) -> int:
    """The exit status."""
    if arguments == ["--library"]:
        return _print(find("libevprof.so"))
    if arguments and (arguments[0].isalpha() or arguments == ["--version"]):  # a verb; a trace has a dot or a slash
        return run_tool(arguments)
    if arguments in (["--help"], ["-h"]):
        return _print("%s\n\n%s" % (_USAGE, __doc__))
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        trace = load(arguments[0])
    except EvprofError as error:
        print(error, file=sys.stderr)
        if arguments[0].endswith(".py"):
            print("evprof: python -m evprof run %s records a program" % shlex.quote(arguments[0]), file=sys.stderr)
        return 2
    status = _print("\n".join(line.encode("utf-8", "replace").decode("utf-8") for line in summary(trace)))
    damage = trace.damage
    if damage:
        print("evprof: %s: the trace is incomplete: %s" % (trace.path, damage), file=sys.stderr)
    return status or (1 if damage else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
