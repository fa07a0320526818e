"""The limits of @pytest.mark.evprof: what a mark says, what a test did, and the text of a limit that does not hold.

Calls, allocations and bytes are read of the trace, between two calls of _window.pause(), and are exact. What the trace does not have
exactly is refused.
"""
import inspect
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ._window import find_edges, pids_of
from .errors import EvprofError
from .trace import Trace, load

_TIME_UNITS = {"": 1e9, "s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}
_BYTE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*\Z")
_SHOWN = 5  # callers, or stacks


class Limits(NamedTuple):
    """What the marks of a test say. max_time in ns, max_memory and max_leak in bytes; None: no limit."""
    max_calls: Dict[str, int]
    max_time: Optional[int] = None
    max_memory: Optional[int] = None
    max_allocations: Optional[int] = None
    max_leak: Optional[int] = None
    warmups: int = 0

    @property
    def any(self) -> bool:
        """Whether there is a limit."""
        return bool(self.max_calls) or self.max_time is not None or self.of_memory

    @property
    def of_memory(self) -> bool:
        """Whether there is one of memory."""
        return any(value is not None for value in (self.max_memory, self.max_allocations, self.max_leak))


class Window(NamedTuple):
    """What was measured while a test ran. start, end: ns of CLOCK_MONOTONIC; elapsed: ns; tid: of its thread; frame: how the frame of
    its function ends in a stack of the trace; "": it has none, or is a coroutine."""
    start: int
    end: int
    elapsed: int
    tid: int
    frame: str


def _quantity(name: str, value: object, units: Mapping[str, float], example: str) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return round(value * units[""])
    found = _QUANTITY.match(value) if isinstance(value, str) else None
    unit = found.group(2) if found else None
    if found and unit is not None and unit in units:
        return round(float(found.group(1)) * units[unit])
    raise ValueError("%s is a number or a text such as %s, not %r" % (name, example, value))


def _bytes(name: str, value: object) -> int:
    if isinstance(value, str):
        value = re.sub(r"(?i)(?<=[kmg])i?b\s*\Z", "", value).lower()
    return _quantity(name, value, _BYTE_UNITS, '"24MB"')


def _count(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("%s is a whole number, not %r" % (name, value))


def _calls(value: object) -> Dict[str, int]:
    if not isinstance(value, Mapping):
        raise ValueError('max_calls is a dict such as {"app.db:query": 20}, not %r' % (value,))
    for function in value:
        if not isinstance(function, str) or ":" not in function:
            raise ValueError('a key of max_calls is "MODULE:FUNCTION", not %r' % (function,))
    return {function: _count("the limit of %s" % function, most) for function, most in value.items()}


def parse(marks: Iterable[Any]) -> Limits:
    """The limits of marks, the closest to the test first: that one counts where two have the same limit.

    Raises ValueError, with one line, for a mark with other arguments.

    >>> from evprof._limits import parse
    >>> from collections import namedtuple
    >>> Mark = namedtuple("Mark", "args kwargs")
    >>> parse([Mark((), {"max_time": "200ms"}), Mark((), {"max_time": 1, "max_memory": "24MB"})])
    Limits(max_calls={}, max_time=200000000, max_memory=25165824, max_allocations=None, max_leak=None, warmups=0)
    """
    found: Dict[str, Any] = {"max_calls": {}}
    for mark in marks:
        if mark.args:
            raise ValueError("the mark evprof has arguments with names only, such as max_calls=")
        for name, value in mark.kwargs.items():
            if name == "max_calls":
                found[name] = {**_calls(value), **found[name]}
            elif name == "max_time":
                found.setdefault(name, _quantity(name, value, _TIME_UNITS, '"200ms"'))
            elif name in ("max_memory", "max_leak"):
                found.setdefault(name, _bytes(name, value))
            elif name in ("max_allocations", "warmups"):
                found.setdefault(name, _count(name, value))
            else:
                raise ValueError("the mark evprof has no argument %s; it has %s" % (name, ", ".join(Limits._fields)))
    return Limits(**found)


def frame_of(function: Any) -> str:
    """Window.frame of a function."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return ""
    return "%s:%d)" % (os.path.basename(code.co_filename), code.co_firstlineno)


def _of_test(stack: List[str], window: Window) -> List[str]:
    """The part of a stack that is the test's; empty: none is. stack: process, thread, functions. What pytest allocates in the test's
    thread is not the test's."""
    if not window.frame or not stack[1].endswith("(%d)" % window.tid):
        return [stack[1].rpartition(" (")[0]] + stack[2:]  # without the number: it varies
    for place, element in enumerate(stack):
        if element.endswith(window.frame) and element[-len(window.frame) - 1] in "(/":
            return stack[place:]
    return []


class _Measured:
    """A trace between the two times of a window."""

    def __init__(self, trace: Trace, window: Window) -> None:
        self._trace, self._window = trace, window
        start, end = find_edges(trace, window.start, window.end, window.tid)
        self._filters: Dict[str, Any] = {"start": start, "end": end, "processes": pids_of(trace, os.getpid())}

    def check(self, limits: Limits) -> None:
        """Raises EvprofError for limits of what was not recorded, or is an estimate; `evprof check` refuses these, too."""
        for meta in [process.meta for process in self._trace.processes if process.pid in self._filters["processes"]]:
            recorded = meta.get("events") or ()
            for wrong, reason in (
                    # Without calls the test is not in the stacks of its allocations.
                    ((limits.max_calls or limits.of_memory) and "call" not in recorded,
                     "calls were not recorded; EVPROF_EVENTS needs call"),
                    (limits.max_calls and "sample_rate" in meta, "stacks were sampled, which counts no calls"),
                    (limits.max_calls and "budget" in meta, "numbers of calls are estimates with EVPROF_BUDGET"),
                    (limits.of_memory and "mem" not in recorded, "memory was not recorded; EVPROF_EVENTS needs mem"),
                    (limits.of_memory and "memory_interval" in meta, "memory was sampled; leave EVPROF_MEMORY_INTERVAL out")):
                if wrong:
                    raise EvprofError("evprof: " + reason)

    def callers(self, function: str) -> Dict[str, int]:
        """Calls of a function by caller."""
        found: Dict[str, int] = {}
        for row in self._trace.callers(function, **self._filters):
            caller = "%s (%s:%d)" % (row.name, row.file, row.line) if row.file else "(no Python function)"
            found[caller] = found.get(caller, 0) + row.calls
        return found

    def stacks(self, weight: str) -> Dict[str, int]:
        """Bytes or allocations of the test by stack."""
        found: Dict[str, int] = {}
        for line in self._trace.flame(weight=weight, **self._filters).splitlines():
            stack, _, value = line.rpartition(" ")
            mine = _of_test(stack.split(";"), self._window)
            if mine:
                shown = " < ".join(reversed(mine))
                found[shown] = found.get(shown, 0) + int(value)
        return found


def _most(parts: Dict[str, int]) -> List[str]:
    largest = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    width = len(str(largest[0][1])) if largest else 0
    lines = ["    %*d  %s" % (width, count, text) for text, count in largest[:_SHOWN] if count]
    rest = [count for _, count in largest[_SHOWN:] if count]
    return lines + (["    %*d  in %d others" % (width, sum(rest), len(rest))] if rest else [])


def failures(limits: Limits, window: Window, path: str) -> Tuple[List[str], List[str]]:
    """The lines about limits that do not hold, and the functions that were not called at all though they may be.

    Raises EvprofError if the trace cannot be read, or does not have what is limited.
    """
    lines: List[str] = []
    absent: List[str] = []
    if limits.max_time is not None and window.elapsed > limits.max_time:
        lines.append("max_time: %.6g ms, at most %.6g ms" % (window.elapsed / 1e6, limits.max_time / 1e6))
    with load(path) as trace:
        measured = _Measured(trace, window)
        measured.check(limits)
        for function, most in limits.max_calls.items():
            callers = measured.callers(function)
            calls = sum(callers.values())
            if calls > most:
                lines += ["max_calls: %s: %d calls, at most %d; called by" % (function, calls, most)] + _most(callers)
            elif not calls and most:
                absent.append(function)
        for name, weight, most_of, what in (
                ("max_memory", "peak", limits.max_memory, "bytes at the peak, at most %d; allocated by"),
                ("max_allocations", "allocations", limits.max_allocations, "allocations, at most %d; by"),
                ("max_leak", "live", limits.max_leak, "bytes not freed, at most %d; allocated by")):
            if most_of is None:
                continue
            stacks = measured.stacks(weight)
            if sum(stacks.values()) > most_of:
                lines += ["%s: %d %s" % (name, sum(stacks.values()), what % most_of)] + _most(stacks)
    return lines, absent
