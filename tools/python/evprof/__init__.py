"""evprof: an event profiler for Python. This package records in the program, and reads traces (``*.evp``)::

    import evprof
    trace = evprof.load("app.evp")
    trace.processes, trace.threads      what ran
    trace.damage                        what is missing; false if nothing is
    trace.to_dataframe()                one table of all calls and allocations (pandas; also to_numpy, to_arrow, to_polars,
                                        to_parquet)

    python -m evprof app.evp            a summary

The table has the columns of cpyquickhelper's EventProfiler, and pid and tid; docs/table.md says what each means.

Importing this package loads nothing else: modules are imported when one of their names is used.
"""
TYPE_CHECKING = False  # typing itself takes longer than all of this
if TYPE_CHECKING:
    from typing import Any, List

    from .errors import EvprofError, EvprofFileError
    from .recording import active, counter, mark, profile, snapshot, span, start, stop, trace_path
    from .table import Column, Table
    from .tables import export_tables
    from .text import Text
    from .trace import Budget, CFunction, Code, Damage, Process, Thread, Trace, load

    __version__: str

#: The events of the table, with EventProfiler's numbers for them, as to_numpy() has them; from 2000 on evprof's own.
EVENTS = {"call": 1, "return": 2, "c_call": 3, "c_return": 4, "exception": 5, "c_exception": 6,
          "malloc": 1000, "calloc": 1001, "realloc": 1002, "free": 1003, "realloc_free": 1004,
          "span_begin": 2000, "span_end": 2001, "mark": 2002, "counter": 2003}

_MODULES = {
    "errors": ("EvprofError", "EvprofFileError"),
    "recording": ("active", "counter", "mark", "profile", "snapshot", "span", "start", "stop", "trace_path"),
    "table": ("Column", "Table"),
    "tables": ("export_tables",),
    "text": ("Text",),
    "trace": ("Budget", "CFunction", "Code", "Damage", "Process", "Thread", "Trace", "load"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}
_PLACES["load_ipython_extension"] = "notebook"  # %load_ext evprof

__all__ = ["EVENTS", "Budget", "CFunction", "Code", "Column", "Damage", "EvprofError", "EvprofFileError", "Process", "Table", "Text",
           "Thread", "Trace", "active", "counter", "export_tables", "load", "mark", "profile", "snapshot", "span", "start", "stop", "trace_path"]


def __getattr__(name: str) -> "Any":
    if name == "TraceError":  # as it was named before
        name = "EvprofError"
    if name == "__version__":
        from ._library import release
        return release()
    if name not in _PLACES:
        raise AttributeError("module 'evprof' has no attribute %r" % name)
    module = __import__("%s.%s" % (__name__, _PLACES[name]), fromlist=[name])
    # All names of the module at once: none is looked for in a block that evprof.profile() records.
    globals().update({other: getattr(module, other) for other in _MODULES.get(_PLACES[name], (name,))})
    return globals()[name]


def __dir__() -> "List[str]":
    return sorted(set(globals()) | set(_PLACES))
