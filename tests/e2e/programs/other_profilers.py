"""Uses the hooks of the interpreter itself, and prints what they reported."""
import cProfile
import pstats
import sys
import threading

import known


def count(events):
    def hook(frame, event, argument):
        if frame.f_code.co_name in ("leaf", "work"):
            events[event] = events.get(event, 0) + 1
        return hook
    return hook


def by_setprofile():
    events = {}
    sys.setprofile(count(events))
    known.work(100)
    sys.setprofile(None)
    print("setprofile", sorted(events.items()), sys.getprofile())


def by_settrace():
    events = {}
    sys.settrace(count(events))
    known.work(100)
    sys.settrace(None)
    print("settrace", sorted(events.items()), sys.gettrace())


def by_threading():
    events = {}
    threading.setprofile(count(events))
    thread = threading.Thread(target=known.work, args=(100,))
    thread.start()
    thread.join()
    threading.setprofile(None)
    print("threading", sorted(events.items()))


def by_cprofile():
    profile = cProfile.Profile()
    profile.enable()
    known.work(100)
    profile.disable()
    stats = pstats.Stats(profile).stats
    print("cProfile", sorted((key[2], value[1]) for key, value in stats.items() if "known" in key[0]))


def by_monitoring():
    monitoring = getattr(sys, "monitoring", None)
    if not monitoring:
        known.work(100)
        return
    calls = []
    monitoring.use_tool_id(monitoring.PROFILER_ID, "own")
    monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.PY_START,
                                 lambda code, offset: calls.append(code.co_name))
    monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.PY_START)
    known.work(100)
    monitoring.set_events(monitoring.PROFILER_ID, 0)
    monitoring.free_tool_id(monitoring.PROFILER_ID)
    print("monitoring", calls.count("leaf"))


print(sys.getprofile(), sys.gettrace())
by_setprofile()
by_settrace()
by_threading()
by_cprofile()
by_monitoring()
known.work(100)
print(sys.getprofile(), sys.gettrace())
