"""hook_compat.py WHAT: another tool on the hooks of the interpreter, which prints all its events.

Each of them calls known.work(100) three times: before, while and after the other tool listens (MORE in the others).
"""
import sys
import threading

import known

HERE = ("known.py", "hook_compat.py")


class Log:
    """The events that a profile or trace function gets of the files of this test."""

    def __init__(self):
        self.lines = []

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename.endswith(HERE):
            name = argument.__name__ if event.startswith("c_") else ""
            self.lines.append("%s %s %d %s" % (event, frame.f_code.co_name, frame.f_lineno, name))
        return self

    def show(self, title):
        counts = {}
        for line in self.lines:
            counts[line] = counts.get(line, 0) + 1
        print(title, len(self.lines))
        for line in sorted(counts):
            print("  ", counts[line], line)


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


def under_setprofile(log):
    sys.setprofile(log)
    known.work(100)
    sys.setprofile(None)


def setprofile():
    log = Log()
    known.work(100)
    under_setprofile(log)
    known.work(100)
    log.show("setprofile")
    print(sys.getprofile())


def setprofile_in_thread():
    log = Log()

    def whole():
        known.work(100)
        under_setprofile(log)
        known.work(100)
        print(sys.getprofile())

    in_thread(whole)
    log.show("setprofile in a thread")


def setprofile_in_many():
    """Several threads, each with a function of its own, at once."""
    logs = [Log() for _ in range(4)]
    gate = threading.Barrier(4)

    def whole(log):
        gate.wait()
        for _ in range(5):
            under_setprofile(log)
            known.work(15)

    threads = [threading.Thread(target=whole, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.show("setprofile in one of many")


def setprofile_stays():
    """Until the end of the program."""
    log = Log()
    sys.setprofile(log)
    known.work(100)
    known.work(100)
    known.work(100)
    print(len(log.lines), sys.getprofile() is log)


def setprofile_raises():
    """A profile function that raises is taken away by the interpreter, and the call fails."""
    def refuse(frame, event, argument):
        if frame.f_code.co_name == "leaf" and event == "call":
            raise ValueError("no leaf")

    known.work(100)
    sys.setprofile(refuse)
    try:
        known.work(50)
    except ValueError as error:
        print("raised", error)
    print(sys.getprofile())
    known.work(100)
    known.work(100)


def settrace_raises():
    def refuse(frame, event, argument):
        if frame.f_code.co_name == "leaf":
            raise ValueError("no leaf")
        return refuse

    known.work(100)
    sys.settrace(refuse)
    try:
        known.work(50)
    except ValueError as error:
        print("raised", error)
    print(sys.gettrace())
    known.work(100)
    known.work(100)


def settrace_raises_at_return():
    def refuse(frame, event, argument):
        if frame.f_code.co_name == "leaf" and event == "return":
            raise ValueError("no return of leaf")
        return refuse

    known.work(100)
    sys.settrace(refuse)
    try:
        known.work(50)
    except ValueError as error:
        print("raised", error)
    print(sys.gettrace())
    known.work(100)
    known.work(99)


def settrace():
    log = Log()
    known.work(100)
    sys.settrace(log)
    known.work(100)
    sys.settrace(None)
    known.work(100)
    log.show("settrace")
    print(sys.gettrace())


def settrace_in_other_threads():
    """Threads that remove the trace function that they do not have, by Python and by C, leave the main thread its own."""
    import ctypes
    log = Log()
    known.work(100)
    sys.settrace(log)
    in_thread(sys.settrace, None)
    in_thread(ctypes.pythonapi.PyEval_SetTrace, None, None)
    known.work(100)
    sys.settrace(None)
    known.work(100)
    log.show("settrace")


def both():
    """A profile and a trace function, one set inside of the other."""
    profile, trace = Log(), Log()
    known.work(100)
    sys.settrace(trace)
    sys.setprofile(profile)
    known.work(100)
    sys.settrace(None)
    known.work(100)
    sys.setprofile(None)
    profile.show("profile")
    trace.show("trace")


def threading_hooks():
    profile, trace = Log(), Log()
    in_thread(known.work, 100)
    threading.setprofile(profile)
    threading.settrace(trace)
    in_thread(known.work, 100)
    threading.setprofile(None)
    threading.settrace(None)
    in_thread(known.work, 100)
    profile.show("threading.setprofile")
    trace.show("threading.settrace")


def all_threads():
    """3.12: for the threads that run already, too."""
    if not hasattr(threading, "setprofile_all_threads"):
        known.work(300)
        return
    profile = Log()
    begin, end = threading.Barrier(2), threading.Barrier(2)

    def waits():
        begin.wait()
        known.work(100)
        end.wait()

    known.work(100)
    thread = threading.Thread(target=waits)
    thread.start()
    threading.setprofile_all_threads(profile)
    begin.wait()
    end.wait()
    threading.setprofile_all_threads(None)
    thread.join()
    known.work(100)
    print(sum("leaf" in line for line in profile.lines))


def profile_of(module):
    import pstats

    profile = module.Profile()
    profile.runcall(known.work, 100)
    stats = pstats.Stats(profile).stats
    print(sorted((key[2], value[:2]) for key, value in stats.items() if "known" in key[0] or key[0] == "~"))


def cprofile():
    import cProfile

    known.work(100)
    profile_of(cProfile)
    known.work(100)


def cprofile_in_thread():
    in_thread(cprofile)


def pure_profile():
    import profile

    known.work(100)
    profile_of(profile)
    known.work(100)


def replaced_within():
    """One profiler takes the place of another, in frames of different depth."""
    import cProfile

    log, profile = Log(), cProfile.Profile()

    def inner():
        sys.setprofile(log)
        known.work(50)

    def outer():
        inner()
        known.work(50)

    known.work(100)
    outer()
    known.work(100)
    sys.setprofile(None)
    log.show("replaced")


def trace_module():
    import trace

    known.work(100)
    tracer = trace.Trace(count=1, trace=0, countfuncs=0)
    tracer.runfunc(known.work, 100)
    known.work(100)
    counts = tracer.results().counts
    print(sorted((key[1], value) for key, value in counts.items() if key[0].endswith("known.py")))


def bdb_module():
    """A debugger that quits in the middle: its trace function raises."""
    import bdb

    class Quits(bdb.Bdb):
        def user_call(self, frame, arguments):
            if frame.f_code.co_name == "leaf":
                self.set_quit()

        def user_line(self, frame):
            self.set_step()

    known.work(100)
    debugger = Quits()
    print(debugger.runcall(known.work, 50) if sys.version_info >= (3, 0) else None)
    print(sys.gettrace())
    known.work(100)
    known.work(100)


def handler_raises():
    """A signal handler that raises does so wherever the program is: also where a function has not quite begun."""
    import signal

    class Now(Exception):
        pass

    def handler(*arguments):
        raise Now

    def forever():
        while True:
            known.leaf()

    times = 0
    signal.signal(signal.SIGALRM, handler)
    while times < 50:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            forever()
        except Now:
            times += 1
    print(times)


def monitoring_tool(tool):
    """sys.monitoring by a tool of this number, all kinds of events."""
    monitoring, log = sys.monitoring, []

    def listener(name):
        def listen(code, *rest):
            if code.co_filename.endswith("known.py"):
                log.append("%s %s" % (name, code.co_name))
        return listen

    known.work(100)
    print(monitoring.use_tool_id(tool, "other tool"), monitoring.get_tool(tool))
    events = 0
    for name in ("PY_START", "PY_RETURN", "PY_UNWIND", "LINE", "JUMP", "CALL", "C_RETURN", "C_RAISE", "RAISE"):
        event = getattr(monitoring.events, name)
        print(name, monitoring.register_callback(tool, event, listener(name)))
        if not name.startswith("C_"):
            events |= event
    monitoring.set_events(tool, events)
    known.work(100)
    monitoring.set_events(tool, 0)
    for name in ("PY_START", "PY_RETURN"):
        monitoring.register_callback(tool, getattr(monitoring.events, name), None)
    monitoring.free_tool_id(tool)
    print(monitoring.get_tool(tool))
    known.work(100)
    for line in sorted(set(log)):
        print(tool, log.count(line), line)


def monitoring_each():
    if not hasattr(sys, "monitoring"):
        known.work(6 * 300)
        return
    for tool in range(6):
        monitoring_tool(tool)


def monitoring_all():
    """All six ids are taken at once."""
    if not hasattr(sys, "monitoring"):
        known.work(300)
        return
    monitoring, counts = sys.monitoring, [0] * 6

    def counter(tool):
        def listen(code, offset):
            counts[tool] += code.co_name == "leaf"
        return listen

    known.work(100)
    for tool in range(6):
        monitoring.use_tool_id(tool, "tool %d" % tool)
        monitoring.register_callback(tool, monitoring.events.PY_START, counter(tool))
        monitoring.set_events(tool, monitoring.events.PY_START)
    known.work(100)
    for tool in range(6):
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    known.work(100)
    print(counts)


def monitoring_looks():
    """A program that looks for a free id finds all of them, and one that clears up after others does no harm."""
    if not hasattr(sys, "monitoring"):
        known.work(300)
        return
    monitoring = sys.monitoring
    known.work(100)
    print([monitoring.get_tool(tool) for tool in range(6)])
    print([monitoring.get_events(tool) for tool in range(6)])
    known.work(100)
    for tool in list(range(6)) + [3, 4]:
        monitoring.free_tool_id(tool)
    for tool in (-1, 6, "3", 3.0, None):
        try:
            monitoring.use_tool_id(tool, "wrong")
        except (TypeError, ValueError) as error:
            print(type(error).__name__, error)
    for tool in range(6):
        try:
            monitoring.set_events(tool, monitoring.events.LINE)
        except ValueError as error:
            print(error)
    known.work(100)


def monitoring_disables():
    """DISABLE, restart_events and local events of another tool are its own."""
    if not hasattr(sys, "monitoring"):
        known.work(300)
        return
    monitoring, calls = sys.monitoring, []

    def once(code, offset):
        calls.append(code.co_name)
        return monitoring.DISABLE

    tool, event = monitoring.DEBUGGER_ID, monitoring.events.PY_START
    monitoring.use_tool_id(tool, "once")
    monitoring.register_callback(tool, event, once)
    monitoring.set_local_events(tool, known.leaf.__code__, event)
    known.work(100)
    monitoring.restart_events()
    known.work(100)
    monitoring.set_local_events(tool, known.leaf.__code__, 0)
    monitoring.free_tool_id(tool)
    known.work(100)
    print(calls)


def monitoring_raises():
    """A callback of another tool raises: the program gets the exception, at that place."""
    if not hasattr(sys, "monitoring"):
        known.work(300)
        return
    monitoring, left = sys.monitoring, [0]

    def refuse(code, *rest):
        if code.co_name == "leaf":
            left[0] += 1
            if left[0] % 2:
                raise ValueError("no leaf")

    events = monitoring.events
    known.work(100)
    for tool in (0, 5):
        for event in (events.PY_START, events.PY_RETURN, events.CALL, events.LINE):
            monitoring.use_tool_id(tool, "refuses")
            monitoring.register_callback(tool, event, refuse)
            monitoring.set_events(tool, event)
            try:
                known.work(50)
            except ValueError as error:
                print(tool, event, "raised", error)
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
    known.work(100)
    known.work(100)


def thrown_into():
    """An exception that a generator passes on, and one that it does not."""
    for exception in (KeyError, GeneratorExit):
        numbers = known.numbers(3)
        next(numbers)
        try:
            numbers.throw(exception)
        except (KeyError, GeneratorExit):
            pass


def refused_everywhere():
    known.work(2)
    sum(known.numbers(2))
    len("abc")
    try:
        int("x")
    except ValueError:
        pass
    thrown_into()


def monitoring_raises_anywhere():
    """A callback of another tool raises once, at the first, second, ... event of each kind."""
    if not hasattr(sys, "monitoring"):
        known.work(300)
        return
    monitoring, calls, seen = sys.monitoring, [0], []

    def refuse(*what):
        calls[0] += 1
        if calls[0] == nth:
            raise RuntimeError("refused")

    known.work(100)
    for tool in (0, 5):
        for name in "PY_START PY_RESUME PY_RETURN PY_YIELD PY_THROW PY_UNWIND CALL C_RETURN C_RAISE RAISE LINE".split():
            event = getattr(monitoring.events, name)
            for nth in range(1, 9):
                calls[0] = 0
                monitoring.use_tool_id(tool, "refuses")
                seen.append(monitoring.register_callback(tool, event, refuse))
                try:
                    monitoring.set_events(tool, monitoring.events.CALL if name.startswith("C_") else event)
                    refused_everywhere()
                except RuntimeError as error:
                    print(tool, name, nth, error)
                monitoring.set_events(tool, 0)
                seen.append(monitoring.register_callback(tool, event, None))
                monitoring.free_tool_id(tool)
    print(len(seen), set(seen) == {None, refuse})
    known.work(200)


def monitoring_raises_at_branch():
    """Until 3.13 the interpreter has no place of the exception then. The code of each generator is elsewhere."""
    if not hasattr(sys, "monitoring"):
        known.work(300)
        return
    monitoring, event, left = sys.monitoring, sys.monitoring.events.BRANCH, [0]

    def refuse(code, *rest):
        if code.co_name == "catches" and left:
            left.pop()
            raise ZeroDivisionError

    known.work(100)
    monitoring.use_tool_id(0, "refuses")
    monitoring.register_callback(0, event, refuse)
    kept = []
    for number in range(50):
        names = {}
        exec("def catches():\n    try:\n        yield 1\n    except KeyError:\n        yield 2\n", names)
        kept.append((names, bytes(10000 * number)))
        left[:] = [0]
        monitoring.set_events(0, event)
        generator = names["catches"]()
        next(generator)
        try:
            generator.throw(KeyError)
        except ZeroDivisionError:
            pass
        monitoring.set_events(0, 0)
    monitoring.register_callback(0, event, None)
    monitoring.free_tool_id(0)
    known.work(200)


def tracemalloc_between():
    """Started and stopped in the middle."""
    import tracemalloc

    print(tracemalloc.is_tracing())
    tracemalloc.stop()
    known.work(100)
    for _ in range(3):
        tracemalloc.start(3)
        kept = [bytearray(100000) for _ in range(20)]
        known.work(100)
        snapshot = tracemalloc.take_snapshot()
        print([(trace.size, trace.traceback[0].lineno) for trace in snapshot.traces if trace.size > 99999][:25])
        del kept
        tracemalloc.stop()
        print(tracemalloc.is_tracing(), tracemalloc.get_traced_memory())
    kept = [bytearray(77777) for _ in range(10)]
    del kept
    known.work(100)


def listen():
    """A hook that does nothing, with the events that evprof asks for: what Python keeps for that at each code object."""
    if sys.version_info >= (3, 12):
        sys.monitoring.use_tool_id(3, "listener")
        events = "PY_START PY_RESUME PY_THROW PY_RETURN PY_YIELD PY_UNWIND CALL RAISE"
        sys.monitoring.set_events(3, sum(getattr(sys.monitoring.events, event) for event in events.split()))
    else:
        sys.setprofile(lambda frame, event, argument: None)


def tracemalloc_totals():
    """What is traced of a program that defines functions and calls them. LISTEN: as if there was a hook.

    Free lists hold what start-up has left, which is not traced when it is used again, and a collection empties them, at a
    time that all objects so far decide: each machine has its own (START makes others). So one is made here, and none while
    it is traced.
    """
    import gc
    import os
    import tracemalloc

    def define(n):
        kept = []
        for _ in range(n):
            names = {"known": known}
            exec("def made(x):\n    return [x]\nclass Made:\n    def method(self):\n        return made(1)\n", names)
            kept.append((names["made"](1), names["Made"]().method(), names["made"]))
        return kept

    start = [{n: [n, (n, n, gc)]} for n in range(int(os.environ.get("START", 0)))]
    if os.environ.get("LISTEN"):
        listen()
    define(10)
    known.work(100)
    gc.disable()
    gc.collect()
    tracemalloc.start()
    kept = define(300)
    total, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(len(kept), total)
    del start


def faults():
    import faulthandler
    import tempfile

    known.work(100)
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.enable()
        faulthandler.dump_traceback(file=file)
        known.work(100)
        faulthandler.disable()
        file.seek(0)
        print("".join(line for line in file if "File" in line))
    known.work(100)


def audited():
    """A hook that gets all audit events from here on: none but the program's."""
    seen = []

    def hook(event, arguments):
        if listening:
            seen.append(event)

    def deep(n):
        if n:
            return deep(n - 1)
        return exec("known.work(1)", {"known": known})

    listening = True
    sys.addaudithook(hook)
    known.work(100)
    deep(20)
    log = Log()
    sys.setprofile(log)
    known.work(100)
    sys.setprofile(None)
    known.work(100)
    in_thread(known.work, 99)
    exec(compile("def new():\n    pass\nfor i in range(10):\n    new()", "new.py", "exec"), {})
    try:
        eval("1 / 0")
    except ZeroDivisionError:
        pass
    listening = False
    print("\n".join(seen))


def audited_id():
    """Hooks of the program get the events of id() and frames, whichever way they are added; id() is the address, as repr() has it."""
    import ctypes
    import os

    class Thing(object):
        pass

    def ids(number):
        thing, frame = Thing(), sys._getframe()
        for _ in range(number):
            assert frame.f_code is ids.__code__ and getattr(frame, "f_code").co_name == "ids"
            assert id(thing) == int(repr(thing).rpartition(" at ")[2].rstrip(">"), 16)

    def counts(event):
        if event in (b"builtins.id", "builtins.id", b"object.__getattr__", "object.__getattr__"):
            seen.append(event)
        return 0

    seen = []
    known.work(100)
    ids(10)
    try:
        id()
    except TypeError as error:
        print(error)
    if hasattr(ctypes.pythonapi, "PySys_AddAuditHook"):
        # Without the GIL, as by an embedder: Python then reports it to no other hook.
        hook = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)(lambda event, arguments, data: counts(event))
        library = ctypes.CDLL(None) if hasattr(ctypes.CDLL(None), "PySys_AddAuditHook") else ctypes.CDLL(ctypes.pythonapi._name)
        print(library.PySys_AddAuditHook(hook, None))
        ids(20)
        print(len(seen))
        sys.addaudithook(lambda event, arguments: counts(event))
        ids(30)
        print(len(seen))
    known.work(200)
    sys.stdout.flush()
    os._exit(0)  # at Python's end its last event would call ctypes, which has ended


def code_extra():
    """A tool keeps something at code objects, as debuggers and compilers do: its free function gets its own only."""
    import ctypes

    def function(name):
        names = ("PyUnstable_" + name, "_Py" + name)
        return next(getattr(ctypes.pythonapi, one) for one in names if hasattr(ctypes.pythonapi, one))

    global free  # code objects may outlive this function
    freed = []
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(freed.append)
    request, put = function("Eval_RequestCodeExtraIndex"), function("Code_SetExtra")
    put.argtypes = (ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p)
    index = request(free)
    for i in range(50):
        names = {"known": known}
        exec("def made():\n    known.work(1)", names)
        if i % 10 == 0:
            put(names["made"].__code__, index, 1000 + i)
        names["made"]()
        if i % 10 == 5:
            put(names["made"].__code__, index, 1000 + i)
        names.clear()
    print(freed)


def coverage_tool():
    import io

    import coverage

    known.work(100)
    cover = coverage.Coverage(data_file=None, include=["*/known.py"])
    cover.start()
    known.work(100)
    cover.stop()
    known.work(100)
    _, statements, missing, _ = cover.analysis(known.__file__)
    print(statements, missing)
    out = io.StringIO()
    cover.report(file=out)
    print(out.getvalue().splitlines()[-1].split()[1:])


globals()[sys.argv[1]]()
