"""python -m evprof TRACE: what a trace holds, without numpy. Exit status 0; 1 if something is missing; 2 if it cannot be read."""
import shlex
import sys

from .model import KINDS, load
from .reading import TraceError

_USAGE = "usage: python -m evprof TRACE"
_BOOKKEEPING = {"none", "time", "gap", "stack", "frame", "extended", "cpu", "native_stack", "at_line", "other_call", "open"}
_KIND_OF_BYTE = bytes(byte & 31 for byte in range(256))
_EXTENDED = KINDS.index("extended")
_RARE = KINDS.index("thread_start")


def _counted(trace, thread):
    """Events of a thread by kind, read where its end is missing."""
    counts = dict.fromkeys(KINDS, 0)
    for place in thread.places:
        found = trace.file.read(place)
        if found is None:
            continue
        heads = bytes(found[1][:4 * found[0].events])
        kinds = heads[::4].translate(_KIND_OF_BYTE)
        for number, kind in enumerate(KINDS[:_RARE]):
            if trace.file.version == 1 and _EXTENDED <= number < _EXTENDED + 9:
                kind = KINDS[number - _EXTENDED + _RARE]
            counts[kind] += kinds.count(number)
        at = kinds.find(_EXTENDED) if trace.file.version > 1 else -1
        while at >= 0:
            counts[KINDS[_RARE + (heads[4 * at] >> 5 | (heads[4 * at + 1] & 3) << 3)]] += 1
            at = kinds.find(_EXTENDED, at + 1)
    return {kind: count for kind, count in counts.items() if count and kind not in _BOOKKEEPING}


def _events(trace, thread):
    counts = _counted(trace, thread) if thread.events is None else thread.events
    return sum(counts.values()), ", ".join("%s %d" % item for item in counts.items())


def _ending(process):
    if process.end is None:
        return "its end is not in the trace"
    how = process.end.get("how", "?")
    for detail in ("signal", "status"):
        if process.end.get(detail) is not None:
            return "%s, %s %s" % (how, detail, process.end[detail])
    return how


def _one_line(text):
    """Control characters of names do not reach the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def summary(trace):
    """The lines of the summary."""
    lines, total = [], 0
    for process in trace.processes:
        lines.append("process %d: Python %s: %s (%s)" % (process.pid, _one_line(process.python or "?"),
                                                         _one_line(" ".join(shlex.quote(str(word)) for word in process.argv)),
                                                         _one_line(_ending(process))))
        for thread in process.threads:
            count, kinds = _events(trace, thread)
            total += count
            lost = sum((thread.lost or {}).values())
            lines.append("  thread %d %s: %d events%s%s" % (thread.tid, _one_line(thread.name or ""), count,
                                                           ", %d lost" % lost if lost else "",
                                                           ": " + kinds if kinds else ""))
    return ["%s: %d events of %d process%s in %.3f s" % (_one_line(trace.path), total, len(trace.processes),
                                                        "" if len(trace.processes) == 1 else "es",
                                                        trace.duration_ns / 1e9)] + lines


def main(arguments):
    if arguments in (["--help"], ["-h"]):
        print("%s\n\n%s" % (_USAGE, __doc__))
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        trace = load(arguments[0])
    except OSError as error:
        print("evprof: %s: %s" % (arguments[0], error.strerror or error), file=sys.stderr)
        return 2
    except TraceError as error:
        print("evprof: %s" % error, file=sys.stderr)
        return 2
    print("\n".join(line.encode("utf-8", "replace").decode("utf-8") for line in summary(trace)))
    if trace.damage:
        print("evprof: %s: the trace is incomplete: %s" % (trace.path, trace.damage), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
