"""evprof reads the traces (*.evp) of the event profiler evprof. No build step; Python 3.8 and later.

    import evprof
    trace = evprof.load("app.evp")
    trace.processes, trace.threads      what ran
    trace.damage                        what is missing; false if nothing is
    trace.to_dataframe()                one table of all calls and allocations (needs numpy and pandas)
    trace.to_numpy()                    the same as a dict of arrays (needs numpy)
    trace.to_parquet("app.parquet")     the same as a file (needs numpy and pyarrow)

The table has the columns of cpyquickhelper's EventProfiler, and pid and tid; docs/table.md says what each means. It is
that of `evprof export --format csv`.

    python -m evprof app.evp            a summary
"""
from .model import CFunction, Code, Process, Thread, Trace, load
from .reading import Damage, TraceError

#: The events of the table, with EventProfiler's numbers for them, as to_numpy() has them.
EVENTS = {"call": 1, "return": 2, "c_call": 3, "c_return": 4, "exception": 5, "c_exception": 6,
          "malloc": 1000, "calloc": 1001, "realloc": 1002, "free": 1003, "realloc_free": 1004}

__all__ = ["CFunction", "Code", "Damage", "EVENTS", "Process", "Thread", "Trace", "TraceError", "load"]
