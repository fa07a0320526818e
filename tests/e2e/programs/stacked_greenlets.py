"""Has evprof stack print its greenlets that do not run: python stacked_greenlets.py EVPROF greenlet|gevent.

The oracle is greenlet itself: the frames of gr_frame, with the line of each. Ends with status 1 and a line for each difference.
"""
import ctypes
import gc
import json
import os
import subprocess
import sys
import threading

import greenlet

EVPROF, KIND = sys.argv[1:]
ctypes.PyDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too
Any = type(greenlet.getcurrent())


class Derived(Any):
    def run(self):
        waits()


def waits():
    greenlet.getcurrent().parent.switch()


def deep(depth):
    return deep(depth - 1) if depth else waits()


def through_c():
    sorted([1], key=lambda _: max([2], key=lambda _: waits()))


def generates():
    yield waits()


def through_a_generator():
    for _ in generates():
        pass


def starts_another():
    other = Any(through_c)
    other.switch()
    keeps.append(other)
    waits()


def ends():
    pass


def chain(frame):
    """The innermost first."""
    frames = []
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    return frames


def look():
    wanted = sorted([one.gr_frame is not None, chain(one.gr_frame)] for one in gc.get_objects()
                    if isinstance(one, Any) and one is not greenlet.getcurrent())
    wanted = [frames for suspended, frames in wanted if suspended]
    for _ in range(10):  # the other thread may be on its way to where it waits: then what was found may not be all
        text = subprocess.check_output([EVPROF, "stack", "--json", str(os.getpid())])
        (process,) = json.loads(text.decode())["processes"]
        if process["tasks_complete"]:
            break
    found = sorted([[frame["file"], frame["line"], frame["function"]] for frame in one["frames"]] for one in process["greenlets"])
    differences = ["not there: %s" % one for one in wanted if one not in found] + ["too much: %s" % one for one in found if one not in wanted]
    if len(wanted) < 3 or len(wanted) != len(found) or not process["tasks_complete"]:
        differences.append("%d wanted, %d found" % (len(wanted), len(found)))
    types = set(one["type"] for one in process["greenlets"])
    if not types & {"greenlet.greenlet"} or len(types) < 2 or process["tasks"]:
        differences.append("types %s, tasks %s" % (types, process["tasks"]))
    print(ascii("\n".join(differences)) if differences else "same")
    sys.stdout.flush()
    os._exit(1 if differences else 0)


def waits_in_a_thread():
    one = Any(deep)
    one.switch(3)
    keeps.append(one)
    begun.set()
    threading.Event().wait()


keeps, begun = [], threading.Event()
if KIND == "gevent":
    import gevent

    keeps = [gevent.spawn(gevent.sleep, 1000), gevent.spawn(lambda: gevent.sleep(1000)), gevent.spawn(through_c)]
    keeps[2].join(0.01)
    keeps.append(Any(waits))
    keeps[-1].switch()
    look()
threading.Thread(target=waits_in_a_thread, daemon=True).start()
begun.wait()
for function, arguments in (deep, [0]), (deep, [200]), (through_c, []), (through_a_generator, []), (starts_another, []), (ends, []):
    one = Any(function)
    one.switch(*arguments)
    keeps.append(one)
keeps += [Derived(), Any(deep)]
keeps[-2].switch()
Any(look).switch()  # the first greenlet of the thread does not run, either
