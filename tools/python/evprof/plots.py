"""Plots of a trace by matplotlib, as EventProfiler's gallery has them. Called by the plot_ methods of Trace."""
import os
from typing import TYPE_CHECKING, Any, Dict

from ._needs import needs

if TYPE_CHECKING:
    from .trace import Trace

_NS = 1e9
_MIB = 1 << 20
_POINTS = 2000  # of a line; more are not seen


def _axes(ax: Any) -> Any:
    """New axes without a window, unless there are some."""
    if ax is not None:
        return ax
    figure = needs("matplotlib.figure", "a plot").Figure(figsize=(10, 4))
    return figure.subplots()


def plot_events(trace: "Trace", bins: int, ax: Any, filters: Dict[str, Any]) -> Any:
    """Trace.plot_events()."""
    numpy = needs("numpy", "a plot of events")
    ax = _axes(ax)
    from . import EVENTS
    rows = trace.to_numpy(**{**filters, "since_start": True})
    edges = numpy.linspace(0, max(trace.duration_ns, 1), bins + 1)
    for name, number in EVENTS.items():
        times = rows["time"][rows["event"] == number]
        if len(times):
            ax.plot(edges[:-1] / _NS, numpy.histogram(times, edges)[0], label=name, drawstyle="steps-post")
    ax.set(xlabel="time (s)", ylabel="events in %.3g ms" % (trace.duration_ns / bins / 1e6))
    ax.legend(loc="upper right")
    return ax


def plot_memory(trace: "Trace", ax: Any, filters: Dict[str, Any]) -> Any:
    """Trace.plot_memory()."""
    numpy = needs("numpy", "a plot of memory")
    ax = _axes(ax)
    rows = trace.to_numpy(**{**filters, "since_start": True,
                             "kinds": ["malloc", "calloc", "realloc", "free", "realloc_free"]})
    # A failed allocation has no address.
    made = numpy.where(rows["value1"] != 0, rows["value2"], 0)
    for pid in numpy.unique(rows["pid"]):
        own = rows["pid"] == pid
        times, live = rows["time"][own], numpy.cumsum(made[own])
        # The most in each of so many stretches, so that no peak is missing.
        starts = numpy.unique(numpy.searchsorted(times, numpy.linspace(times[0], times[-1], _POINTS)))
        ax.plot(times[starts] / _NS, numpy.maximum.reduceat(live, starts) / _MIB, label="process %d" % pid,
                drawstyle="steps-post")
    ax.set(xlabel="time (s)", ylabel="allocated (MiB)")
    if len(rows["pid"]):
        ax.legend(loc="upper right")
    return ax


def plot_functions(trace: "Trace", limit: int, ax: Any, filters: Dict[str, Any]) -> Any:
    """Trace.plot_functions()."""
    ax = _axes(ax)
    rows = sorted(trace.functions(**filters), key=lambda row: -row.calls)[:limit][::-1]
    names = ["%s (%s:%d)" % (row.name, os.path.basename(row.file), row.line) if row.line else row.name for row in rows]
    ax.barh(range(len(rows)), [row.calls for row in rows])
    ax.set_yticks(range(len(rows)))
    ax.set_yticklabels(names)
    ax.set(xlabel="calls")
    return ax
