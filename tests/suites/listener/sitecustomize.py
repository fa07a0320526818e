"""Listens to calls, C calls and exceptions, as evprof does, by the interpreter's own means, in each Python that finds this
module: for run_cpython.py, to know what differs under any listener from what differs under evprof."""
import sys


def listen(*_):
    pass


def listen():
    if not hasattr(sys, "monitoring"):
        import threading
        threading.setprofile(listen)
        sys.setprofile(listen)
        return
    events = sys.monitoring.events
    tool = 4
    sys.monitoring.use_tool_id(tool, "listener")
    wanted = 0
    for name in ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "CALL", "C_RETURN", "C_RAISE",
                 "RAISE"):
        event = getattr(events, name)
        sys.monitoring.register_callback(tool, event, listen)
        if name not in ("C_RETURN", "C_RAISE"):  # these come with CALL
            wanted |= event
    sys.monitoring.set_events(tool, wanted)


listen()
