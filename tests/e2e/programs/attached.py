"""Has evprof attach to it and detach from it, and looks at itself before and after: python attached.py EVPROF ROUNDS [OPTION...].

Each round is a trace of its own, round-N.evp, in which leaf() is called CALLS times by the main thread and by a thread that was there
before; its options are the OPTION of that number, split at blanks. Prints as JSON what it has counted and found.
"""
import ctypes
import json
import os
import subprocess
import sys
import threading
import time

CALLS = 1000
EVPROF, ROUNDS, OPTIONS = sys.argv[1], int(sys.argv[2]), sys.argv[3:]

begins, done, ends = threading.Semaphore(0), threading.Semaphore(0), []
memory = ctypes.PyDLL(None)
memory.prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may trace it, too


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


def leaf():
    pass


def other():
    pass


def calls():
    for _ in range(CALLS):
        leaf()
    other()


def serves():
    while True:
        begins.acquire()
        if ends:
            return
        calls()
        done.release()


def outer():
    serves()


def libraries():
    with open("/proc/self/maps") as maps:
        return [line.split() for line in maps if "evprof" in line.rsplit("/", 1)[-1]]


def allocators_of_evprof():
    ours = [tuple(int(end, 16) for end in line[0].split("-")) for line in libraries() if "memfd" not in line[-1]]
    found, allocator = 0, Allocator()
    for domain in range(3):
        memory.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        found += any(begin <= (allocator.malloc or 0) < end for begin, end in ours)
    return found


def handler_of(number):
    with open("/proc/self/status") as status:
        caught = [line.split()[1] for line in status if line.startswith("SigCgt")]
    return bool(int(caught[0], 16) >> (number - 1) & 1)


def tools():
    monitoring = getattr(sys, "monitoring", None)
    return [monitoring.get_tool(i) for i in range(6)] if monitoring else []


def state():
    return {
        "descriptors": sorted(os.readlink("/proc/self/fd/%s" % fd) for fd in os.listdir("/proc/self/fd")
                              if os.path.lexists("/proc/self/fd/%s" % fd)),
        "threads": len(os.listdir("/proc/self/task")),
        "profile": repr(sys.getprofile()),
        "trace": repr(sys.gettrace()),
        "tools": tools(),
        "allocators": allocators_of_evprof(),
        "urgent": handler_of(23),
        "variables": [name for name in os.environ if name.startswith("EVPROF")],
        "modules": [name for name in sys.modules if "evprof" in name],
        "names": sorted(globals()),
    }


def asks(*arguments):
    process = subprocess.Popen((EVPROF,) + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while process.poll() is None:
        time.sleep(0.001)
    with process.stdout as output:
        text = output.read().decode()
    if process.returncode:
        sys.exit("%s: status %d: %s" % (arguments, process.returncode, text))


def main():
    thread = threading.Thread(target=outer, name="Server")
    thread.start()
    before, found = state(), []
    for number in range(ROUNDS):
        options = OPTIONS[number].split() if number < len(OPTIONS) else []
        asks("attach", "-q", "-o", "round-%d.evp" % number, *(options + [str(os.getpid())]))
        begins.release()
        calls()
        done.acquire()
        during = state() if number == 0 else None
        asks("detach", "-q", str(os.getpid()))
        begins.release()
        calls()
        done.acquire()
        found.append({"during": during, "after": state()})
    ends.append(True)
    begins.release()
    thread.join()
    print(json.dumps({"calls": 2 * CALLS, "before": before, "rounds": found, "libraries": len(libraries())}))


main()
