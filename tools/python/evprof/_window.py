"""Stretches of this process that are found again in its trace. Used by the limits of pytest tests.

Each begins and ends with a call of pause(). The calls are found in the trace, so it does not matter how well its clock and the
program's agree, and what is counted between them is exact.
"""
import os
import threading
import time
from typing import List, Set, Tuple

from .errors import EvprofError
from .trace import Trace

_PAUSE_S = 0.001
_NEAR_NS = 50000000  # the clocks of trace and program differ by less


def pause() -> int:
    """An edge of a stretch: the time of its end, in ns of CLOCK_MONOTONIC."""
    time.sleep(_PAUSE_S)
    return time.monotonic_ns()


def this_thread() -> int:
    """The number by which the trace has this thread."""
    return threading.get_native_id()


def _pauses(trace: Trace, monotonic_ns: int, tid: int) -> List[Tuple[int, int]]:
    """Begin and end of the calls of pause() by that thread about that time, in ns since the start of the trace."""
    about = monotonic_ns - trace.start_ns
    rows = trace.calls(start=max(0, about - _NEAR_NS), end=max(0, about) + _NEAR_NS, processes=os.getpid(),
                       include="*/" + "/".join(__file__.split(os.sep)[-2:]))
    return [(row.start, row.start + row.duration) for row in rows
            if row.name == pause.__name__ and row.tid == tid and row.kind == "call"]


def find_edges(trace: Trace, begin_ns: int, end_ns: int, tid: int) -> Tuple[int, int]:
    """Times within two calls of pause() by that thread, by what they returned; in ns since the start of the trace.

    The distance of the two is the same on both clocks; the clocks themselves may differ by more than a short stretch lasts.
    EvprofError: this process is not in the trace.
    """
    if all(process.pid != os.getpid() for process in trace.processes):
        raise EvprofError("evprof: %s: this process is not in the trace" % trace.path)
    pairs = [(first, second) for first in _pauses(trace, begin_ns, tid) for second in _pauses(trace, end_ns, tid)
             if first[1] <= second[0]]
    if not pairs:  # EVPROF_EVENTS has no calls
        begin = max(0, begin_ns - trace.start_ns)
        return begin, max(begin + 1, end_ns - trace.start_ns)

    def distance(pair: Tuple[Tuple[int, int], Tuple[int, int]]) -> int:
        (_, first), (_, second) = pair
        return 4 * abs(second - first - (end_ns - begin_ns)) + abs(first - (begin_ns - trace.start_ns))

    first, second = min(pairs, key=distance)
    return sum(first) // 2, sum(second) // 2


def pids_of(trace: Trace, pid: int) -> List[int]:
    """The pids of a process and of those that it has started."""
    mine: Set[int] = {pid}
    for process in trace.processes:  # a parent comes before its children
        if process.ppid in mine:
            mine.add(process.pid)
    return sorted(mine & {process.pid for process in trace.processes})
