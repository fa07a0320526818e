"""oracle_monitoring.py PROGRAM: what sys.monitoring (3.12+) reports of PROGRAM's program(), one event a line.

The second run of program() is logged, functions of PROGRAM's file only. The kinds are those of evprof. For an
exception: only where it is raised, not in each frame that it propagates through; there its traceback has one entry.
"""
import importlib.util
import sys

NAMES = {"PY_START": "call", "PY_RESUME": "resume", "PY_THROW": "throw", "PY_RETURN": "return", "PY_YIELD": "yield",
         "PY_UNWIND": "unwind", "RAISE": "exception", "RERAISE": "reraise"}
TOOL = 5
log = []


def callback(kind, path):
    def record(code, *rest):
        if code.co_filename == path:
            if kind != "exception":
                log.append("%s %s" % (kind, code.co_name))
            elif rest[1].__traceback__ is None or rest[1].__traceback__.tb_next is None:
                log.append("exception %s" % type(rest[1]).__name__)
    return record


def main(path):
    spec = importlib.util.spec_from_file_location("subject", path)
    subject = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(subject)
    subject.program()
    monitoring = sys.monitoring
    monitoring.use_tool_id(TOOL, "oracle")
    events = 0
    for name, kind in NAMES.items():
        if kind != "reraise":
            event = getattr(monitoring.events, name)
            monitoring.register_callback(TOOL, event, callback(kind, path))
            events |= event
    monitoring.set_events(TOOL, events)
    subject.program()
    monitoring.set_events(TOOL, 0)
    print("\n".join(log))


main(sys.argv[1])
