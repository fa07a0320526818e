"""Stops the recording and starts it again, by evprof_stop() and evprof_start(): python switched.py PART [LIBRARY].

Prints what it has counted and timed itself, as JSON. What evprof has set is looked for in the memory of the process: pointers into
libevprof.so in Python's allocators and in the state of the thread (until 3.11), instrumented code (from 3.12 on).
"""
import ctypes
import json
import os
import sys
import threading
import time

from own_addresses import is_ours

evprof = ctypes.PyDLL(None)


def leaf():
    pass


def leaves(count):
    for _ in range(count):
        leaf()


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


def allocators():
    count = 0
    for domain in range(3):
        allocator = Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        count += is_ours(allocator.malloc) + is_ours(allocator.free)
    return count


def thread_state():
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.POINTER(ctypes.c_void_p)
    state = ctypes.pythonapi.PyThreadState_Get()
    return sum(is_ours(state[i]) for i in range(30))


def evaluator():
    """Python 3.9 and 3.10, where only calls are recorded."""
    ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
    ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
    interpreter = ctypes.c_void_p(ctypes.pythonapi.PyInterpreterState_Get())
    return int(is_ours(ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc(interpreter)))


def probe():
    pass


def instrumented():
    import opcode
    probe()
    return int(probe.__code__._co_code_adaptive[0] == opcode.opmap["INSTRUMENTED_RESUME"])


def hooked():
    if sys.version_info >= (3, 12):
        return instrumented()
    return thread_state() or (evaluator() if sys.version_info >= (3, 9) else 0)


def hooks():
    leaves(3)
    return {"allocators": allocators(), "calls": hooked()}


def part_hooks():
    leaves(10)
    found = [hooks()]
    for _ in range(3):
        evprof.evprof_stop()
        leaves(1000)
        found.append(hooks())
        evprof.evprof_start()
        found.append(hooks())
    return {"hooks": found, "leaves": 10 + 3 + 3 * 3}


def part_hooks_of_child():
    """The child of a fork is not recorded."""
    leaves(10)
    found = [hooks()]
    results, result = os.pipe()
    child = os.fork()
    if not child:
        leaves(1000)
        os.write(result, json.dumps(hooks()).encode())
        os._exit(0)
    found.append(json.loads(os.read(results, 1000).decode()))
    os.waitpid(child, 0)
    return {"hooks": found, "leaves": 10 + 3}


def part_without_gil():
    library = ctypes.CDLL(None)
    leaves(10)
    library.evprof_stop()
    leaves(1000)
    library.evprof_start()
    leaves(20)
    return {"leaves": 30}


def part_waiting():
    """Started by the environment: nothing is recorded before evprof_start()."""
    leaves(1000)
    found = [hooks()]
    evprof.evprof_start()
    leaves(20)
    found.append(hooks())
    return {"hooks": found, "leaves": 23}


def waits(until, entered):
    entered.set()
    until.wait()


def works(until, entered, counts):
    entered.set()
    while not until.is_set():
        if counts["on"]:
            counts["leaves"] += 1
            leaf()
        else:
            time.sleep(0.001)


def part_threads():
    """One thread waits in a function while recording is stopped and started, one runs functions."""
    until, entered, counts = threading.Event(), threading.Event(), {"on": True, "leaves": 0}
    begin = time.perf_counter()
    threads = [threading.Thread(target=waits, args=(until, entered)),
               threading.Thread(target=works, args=(until, threading.Event(), counts))]
    for thread in threads:
        thread.start()
    entered.wait()
    time.sleep(0.1)
    counts["on"] = False
    time.sleep(0.1)
    stopped = time.perf_counter()
    evprof.evprof_stop()
    time.sleep(0.7)
    evprof.evprof_start()
    started = time.perf_counter()
    counts["on"] = True
    time.sleep(0.1)
    until.set()
    for thread in threads:
        thread.join()
    return {"leaves": counts["leaves"], "recorded_s": stopped - begin + time.perf_counter() - started}


def part_profiles():
    """The program's own profile function gets the same events, whether evprof records or not."""
    seen = []

    def profile(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    sys.setprofile(profile)
    leaves(5)
    evprof.evprof_stop()
    leaves(5)
    same = sys.getprofile() is profile
    evprof.evprof_start()
    leaves(5)
    sys.setprofile(None)
    leaves(5)
    return {"leaves": 15, "seen": len(seen), "same": same, "none": sys.getprofile() is None}


def part_traces():
    """A trace function of the program's stays in its thread."""
    barrier, seen = threading.Barrier(2), []

    def trace(frame, event, argument):
        if event == "line" and frame.f_code is leaf.__code__:
            seen.append(event)
        return trace

    def traced():
        sys.settrace(trace)
        for _ in range(3):
            leaves(5)
            barrier.wait()
            barrier.wait()
        sys.settrace(None)

    thread = threading.Thread(target=traced)
    thread.start()
    for switch in (evprof.evprof_stop, evprof.evprof_start, int):
        barrier.wait()
        switch()
        barrier.wait()
    thread.join()
    return {"leaves": 10, "seen": len(seen)}


def part_traced():
    """tracemalloc goes over evprof's allocators."""
    import tracemalloc
    tracemalloc.start()
    leaves(10)
    evprof.evprof_stop()
    kept = [bytes(10000) for _ in range(100)]
    leaves(100)
    evprof.evprof_start()
    kept += [bytes(10000) for _ in range(100)]
    leaves(20)
    traced = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    leaves(5)
    return {"leaves": 35, "traced": 2000000 < traced < 2200000 and len(kept) == 200}


def part_greenlets():
    import greenlet

    def inner():
        while True:
            leaf()
            main.switch()

    main, other = greenlet.getcurrent(), greenlet.greenlet(inner)
    trace = greenlet.gettrace()
    for _ in range(5):
        other.switch()
    evprof.evprof_stop()
    for _ in range(100):
        other.switch()
    evprof.evprof_start()
    for _ in range(7):
        other.switch()
    return {"leaves": 12, "same": greenlet.gettrace() is trace}


def part_greenlets_waiting():
    """The module is imported before recording begins."""
    import greenlet

    def inner():
        while True:
            leaf()
            main.switch()

    main, other = greenlet.getcurrent(), greenlet.greenlet(inner)
    other.switch()
    evprof.evprof_start()
    for _ in range(20):
        other.switch()
    return {"leaves": 20}


def part_signal():
    """The signal comes to a thread that runs Python, one that waits, and one that is in C code."""
    import signal
    found = []

    def toggle(work, on):
        os.kill(os.getpid(), signal.SIGUSR2)
        end = time.perf_counter() + 10
        while (hooked() != 0) == on and time.perf_counter() < end:
            work()
        return hooks()["calls"]

    text = "x" * 200000
    for work in (probe, lambda: time.sleep(0.01), lambda: sorted(text)):
        found += [toggle(work, True) == 0, toggle(work, False) != 0]
    return {"leaves": 3 * 3, "found": found}


def part_signal_in_lock():
    """The signal comes at each instruction of Py_AddPendingCall(), which takes and releases a lock."""
    import signal
    add_pending_call = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p)
    ctypes.PyDLL(sys.argv[2]).signal_each_instruction(int(signal.SIGUSR2), add_pending_call)
    end = time.perf_counter() + 10
    while hooked() and time.perf_counter() < end:
        probe()
    return {"leaves": 0, "stopped": hooked() == 0}


def part_signal_after_python():
    """The signal comes in an exit handler of C, when Python has ended."""
    import signal
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
    libc.__cxa_atexit(ctypes.cast(libc["raise"], ctypes.c_void_p), int(signal.SIGUSR2), None)
    leaves(3)
    return {"leaves": 3}


def part_interpreters():
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return {"leaves": 0}
    source = "def leaf(): pass\nfor _ in range(%d): leaf()\nimport os"
    other = interpreters.create()
    run = getattr(interpreters, "exec", None) or interpreters.run_string
    run(other, source % 10)
    evprof.evprof_stop()
    run(other, source % 1000)
    leaves(100)
    evprof.evprof_start()
    leaves(20)
    run(other, "import os.path")
    return {"leaves": 20}


def part_forked():
    """What is stopped stays so in children, with an audit event (an open file) and without, until they start."""
    start, active = evprof.evprof_start, evprof.evprof_active

    def child(audits, starts):
        if audits:
            open(os.devnull).close()
        leaves(1000)
        if starts:
            start()
            leaves(5)
            if os.fork() == 0:
                leaves(2)
                os._exit(0)
            os.wait()
        os._exit(int(active()))

    evprof.evprof_stop()
    statuses = []
    for audits, starts in ((False, True), (True, True), (True, False)):
        if os.fork() == 0:
            child(audits, starts)
        statuses.append(os.wait()[1] >> 8)
    leaves(1000)
    start()
    leaves(20)
    return {"leaves": 20 + 2 * (5 + 2), "active": statuses}


def part_stays():
    """A thread that stays in another interpreter of the same GIL: its events are on, off, and on again."""
    try:
        import _interpreters as interpreters
        other = interpreters.create("legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        other = interpreters.create(isolated=False)
    (steps, step), (results, result) = os.pipe(), os.pipe()
    source = """
import opcode, os
def leaf(): pass
def probe(): pass
for count in (10, 1000, 20):
    os.read(%d, 1)
    for _ in range(2):
        open(os.devnull).close()
        for _ in range(count): leaf()
    probe()
    os.write(%d, b"%%d" %% (probe.__code__._co_code_adaptive[0] == opcode.opmap["INSTRUMENTED_RESUME"]))
""" % (steps, result)
    source = "exec(compile(%r, %r, 'exec'))" % (source, __file__)
    thread = threading.Thread(target=interpreters.run_string, args=(other, source))
    thread.start()
    on = b""
    for switch in (int, evprof.evprof_stop, evprof.evprof_start):
        switch()
        os.write(step, b"x")
        on += os.read(results, 1)
    thread.join()
    return {"leaves": 2 * 10 + 2 * 20, "on": on.decode()}


print(json.dumps(globals()["part_" + sys.argv[1]]()))
