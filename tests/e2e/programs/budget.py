"""budget.py KIND SECONDS - runs for that much CPU time, and prints how often each of its functions was called, as JSON."""
import contextlib
import json
import os
import sys
import threading
import time
import timeit

kind, limit = sys.argv[1], float(sys.argv[2])
if kind == "tasks":
    import asyncio


class Counts(object):
    def __init__(self):
        self.tiny = self.other = self.long_one = self.raises = self.fib = self.steps = self.long_loop = 0
        self.thrown = self.guarded = self.deep = self.small = self.steps_of_a_task = self.__dict__["__getitem__"] = 0
        self.some_time = self.much_time = self.made = self.parent = self.passed = self.seconds = self.cpu_seconds = 0
        self.shared = self.shared_us = self.instructions = self.loop_over_c = 0


counts = Counts()


def tiny(x):
    counts.tiny += 1
    return abs(x)


def other(x):
    counts.other += 1
    return x


class Raised(KeyError):
    pass


def raises():
    counts.raises += 1
    raise Raised


def fib(n):
    counts.fib += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def steps(n):
    for i in range(n):
        counts.steps += 1
        yield i


def long_one():
    """Takes more than 100 us, also without what recording tiny() costs: it is never thinned."""
    counts.long_one += 1
    return sum([tiny(i) for i in range(2000)])


def caught():
    try:
        raises()
    except KeyError:
        pass


def work():
    long_one()
    if kind == "many":
        sum(steps(50))
        fib(6)
        for _ in range(10):
            caught()


def long_loop():
    """Calls nothing but a C function, and takes some ms."""
    counts.long_loop += 1
    for i in range(50000):
        abs(i)


def classes():
    """Calls nothing but a class, and takes some ms."""
    counts.long_loop += 1
    for i in range(50000):
        complex(i)


SPREAD = 1500 if kind == "spread" else 0
for number in range(SPREAD):
    exec(compile("def spread_%d():\n    counts.spread_%d += 1" % (number, number), __file__, "exec"))
    setattr(counts, "spread_%d" % number, 0)


def spread(functions=[globals()["spread_%d" % number] for number in range(SPREAD)]):
    """Most of the time is in no function more than in another."""
    long_one()
    for _ in range(10):
        for function in functions:
            function()


def wide(count):
    """Calls functions, of which there are many, and which call C functions."""
    names = {}
    for number in range(count):
        exec("def wide_%d(x):\n    return abs(x) + len('abc')" % number, names)
    functions = [names["wide_%d" % number] for number in range(count)]

    def calls():
        for _ in range(10):
            for function in functions:
                function(3)

    return calls


numbers = range(1000)


def some_time():
    counts.some_time += 1
    for _ in numbers:
        pass


def much_time():
    """Takes more than 100 us. What it calls takes 20 us on a machine that is not busy."""
    global numbers
    if not counts.much_time:
        numbers = range(int(len(numbers) * 20e-6 / min(timeit.repeat(some_time, number=1, repeat=50))))
    counts.much_time += 1
    for _ in range(30):
        some_time()


def shares_processors(end):
    """Others want its processor, too: a call may take ms in which it waits for that. shared_us: the CPU time of a call."""
    import subprocess

    def as_long_as_some_time():
        counts.shared += 1
        for _ in numbers:
            pass

    def much_more_time():
        for _ in range(30):
            as_long_as_some_time()

    much_time()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    load = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(3)]
    try:
        began = time.process_time()
        until(end, much_more_time)
        counts.shared_us = (time.process_time() - began) / counts.shared * 1e6
    finally:
        for process in load:
            process.kill()
            process.wait()


def instructions(number):
    counts.instructions += 1
    x = 0
    for i in range(number):
        x = x * 3 + i & 65535
        pair = (x, i) if x > 100 else None
    return pair


def computes(end):
    """Instructions and a C function in turns. loop_over_c: the CPU time of the ones over that of the other, the median."""
    ratios = []
    while time.process_time() < end:
        began = time.process_time()
        instructions(300000)
        looped = time.process_time()
        sum(range(1000000))
        ratios.append((looped - began) / (time.process_time() - looped))
    counts.loop_over_c = sorted(ratios)[len(ratios) // 2]


def compiled_anew(kept=[]):
    """As template engines do. Many of the functions live at a time, and are called again."""
    names = {"counts": counts}
    exec(compile("def made(x):\n    counts.made += 1\n    return x", __file__, "exec"), names)
    kept.append(names["made"])
    del kept[:-50]
    for made in kept:
        for i in range(20):
            made(i)


class Passing(Exception):
    pass


def passed(n):
    """It is raised in the innermost of some frames, which pass it on."""
    counts.passed += 1
    if n:
        return passed(n - 1)
    counts.thrown += 1
    raise Passing


def passing():
    for i in range(300):
        try:
            passed(3)
        except Passing:
            tiny(i)


def parent(x):
    counts.parent += 1
    return tiny(x) + other(x)


def timed():
    """Measures the calls of parent(), with all that these call."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    for i in range(300):
        parent(i)
    counts.cpu_seconds += time.process_time() - cpu_begin
    counts.seconds += time.perf_counter() - begin


def second():
    for i in range(300):
        other(i)


class Sequence(object):
    def __getitem__(self, i):
        counts.__dict__["__getitem__"] += 1
        return i


def subscripts(sequence=Sequence()):
    for i in range(300):
        sequence[i]
        tiny(i)


class LongSequence:
    def __getitem__(self, i):
        counts.__dict__["__getitem__"] += 1
        for _ in range(5000):
            pass
        return i


def long_subscripts(end):
    """One call, which makes no call but by subscripts, and of C functions now and then."""
    sequences, turn, x = [list(range(100))] * 4 + [LongSequence()], 0, 0
    while time.process_time() < end:
        turn += 1
        sequence = sequences[turn // 20 % 5]
        for i in range(100):
            sequence[i]
            for k in range(200):
                x = x * 3 + k & 65535


@contextlib.contextmanager
def guarded():
    """It is entered twice: that it goes on counts as a call, as cProfile has it."""
    counts.guarded += 1
    try:
        yield
    except KeyError:
        counts.guarded += 1


def throws():
    for _ in range(30):
        with guarded():
            raises()


async def small():
    counts.small += 1


async def steps_of_a_task():
    """The steps of a task: that it goes on counts as a call, as cProfile has it."""
    for _ in range(4):
        counts.steps_of_a_task += 1
        await small()
        await asyncio.sleep(0)
    counts.steps_of_a_task += 1


def tasks():
    async def main():
        long_one()
        await asyncio.gather(*[steps_of_a_task() for _ in range(100)])

    asyncio.run(main())


def deep(n):
    counts.deep += 1
    tiny(n)
    return deep(n - 1) if n else 0


def dive():
    """Deeper than the C stack has room for, where calls between Python functions do not need it."""
    sys.setrecursionlimit(10**6)
    deep(100000 if sys.version_info >= (3, 11) else 5000)


def profiled(end):
    """cProfile sees what it would see alone."""
    import cProfile

    profile, before = cProfile.Profile(), counts.tiny
    profile.runcall(until, end, work)
    profile.create_stats()
    seen = sum(row[1] for (_, _, name), row in profile.stats.items() if name == "tiny")
    assert seen == counts.tiny - before, (seen, counts.tiny - before)


def traced(end):
    """So does a debugger."""
    before, seen = counts.tiny, []

    def trace(frame, event, argument):
        if event == "call" and frame.f_code is tiny.__code__:
            seen.append(1)

    sys.settrace(trace)
    until(end, work)
    sys.settrace(None)
    assert len(seen) == counts.tiny - before, (len(seen), counts.tiny - before)


def evaluated(end):
    """So does another frame evaluator (PEP 523)."""
    import ctypes

    library, before = ctypes.PyDLL(os.environ["EVALUATOR"]), counts.tiny
    library.begin(0)
    until(end, work)
    seen = library.end()
    assert seen > counts.tiny - before, (seen, counts.tiny - before)


def switched(end):
    """Two greenlets, whose stacks take turns within one call of each."""
    import greenlet

    def turns():
        while time.process_time() < end:
            work()
            main.switch()

    main = greenlet.getcurrent()
    child = greenlet.greenlet(turns)
    while not child.dead:
        child.switch()
        tiny(1)


MADE_BY_SECOND = 200000


def in_interpreters(end):
    """Another interpreter calls a function while this one works, from 3.13 on with a GIL of its own."""
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
        other = interpreters.create()
    else:
        import _xxsubinterpreters as interpreters
        other = interpreters.create(isolated=False)
    body = "def made(x):\n    return x\nfor i in range(%d):\n    made(i)" % MADE_BY_SECOND
    code = "exec(compile(%r, %r, 'exec'))" % (body, __file__)
    run = getattr(interpreters, "exec", None) or interpreters.run_string
    thread = threading.Thread(target=run, args=(other, code))
    thread.start()
    until(end, work)
    thread.join()
    interpreters.destroy(other)
    counts.made += MADE_BY_SECOND


def in_threads_that_audit(end):
    """What another tool switches off comes again with each burst, and not with each thread."""
    monitoring, seen, threads = sys.monitoring, [], 0

    def switched_off(code, offset):
        if code is other.__code__:
            seen.append(1)
        return monitoring.DISABLE

    monitoring.use_tool_id(0, "test")
    monitoring.register_callback(0, monitoring.events.PY_START, switched_off)
    monitoring.set_local_events(0, other.__code__, monitoring.events.PY_START)
    while time.process_time() < end or threads < 100:
        other(threads)
        thread = threading.Thread(target=lambda: os.listdir("/dev/fd"))
        thread.start()
        thread.join()
        threads += 1
    assert len(seen) < threads / 2, (len(seen), threads)


def stops_and_starts(end):
    """Without the GIL, and so soon that nothing is called in between."""
    import ctypes

    stop, start = ctypes.CDLL(None).evprof_stop, ctypes.PyDLL(None).evprof_start
    while time.process_time() < end:
        stop(), start()
        until(min(end, time.process_time() + 0.003), work)


def until(end, step):
    while time.process_time() < end:
        step()


def in_threads(end):
    lock = threading.Lock()

    def run():
        while time.process_time() < end:
            with lock:
                work()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_short_threads(end, target=work):
    """One after the other, as where each request has a thread."""
    while time.process_time() < end:
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()


def ordered(events):
    """Works now and then, until somebody outside has had other events recorded."""
    import subprocess

    order = subprocess.Popen([os.environ["ORDERS"], "start", "--events", events, str(os.getpid())])
    while order.poll() is None:
        work()
        time.sleep(0.02)
    assert order.returncode == 0


QUIET_SECONDS = 3  # longer than a function stays thinned that nobody calls
begin = time.process_time()
if kind == "threads":
    in_threads(begin + limit)
elif kind == "short_threads":
    in_short_threads(begin + limit)
elif kind == "shares_processors":
    shares_processors(begin + limit)
elif kind == "wide":
    until(begin + limit, wide(4000))
elif kind == "wide_threads":
    in_short_threads(begin + limit, wide(600))
elif kind == "quiet":
    until(begin + limit, work)
    until(begin + limit + QUIET_SECONDS, lambda: sum(range(20000)))
    until(begin + limit * 1.5 + QUIET_SECONDS, work)
elif kind == "phases":
    until(begin + limit / 2, work)
    until(begin + limit, second)
elif kind == "computes":
    computes(begin + limit / 2)
    computes(begin + limit * 1.5)
elif kind == "long_subscripts":
    long_subscripts(begin + limit)
elif kind == "loops":
    until(begin + limit, long_loop)
elif kind in ("classes", "compiled_anew", "much_time", "passing", "spread", "subscripts", "tasks", "throws", "timed"):
    until(begin + limit, globals()[kind])
elif kind == "deep":
    until(begin + limit / 2, work)
    dive()
    until(begin + limit, work)
elif kind in ("profiled", "traced", "evaluated", "switched"):
    until(begin + limit / 2, work)
    globals()[kind](begin + limit * 1.5)
    until(begin + limit * 2, work)
elif kind == "fork":
    until(begin + limit / 2, work)
    child = os.fork()
    if child == 0:
        counts = Counts()
        begin = time.process_time()
    until(begin + limit, work)
    if child:
        os.waitpid(child, 0)
elif kind == "interpreters":
    until(begin + limit / 2, work)
    in_interpreters(begin + limit)
elif kind == "stop":
    import evprof

    until(begin + limit / 2, work)
    evprof.stop()
    bare, counts = counts, Counts()
    until(begin + limit, work)
    counts = bare
    evprof.start()
    until(begin + limit * 1.5, work)
elif kind == "stops":
    until(begin + limit / 2, work)
    stops_and_starts(begin + limit * 1.5)
elif kind == "audits":
    until(begin + limit / 2, work)
    in_threads_that_audit(begin + limit)
elif kind == "lines":
    events = os.environ.get("EVPROF_EVENTS", "call,c_call,exception")
    until(begin + limit / 2, work)
    ordered(events + ",line")
    for _ in range(10):
        work()
    ordered(events)
    until(begin + limit, work)
else:
    until(begin + limit, work)
result = vars(counts)
result["<built-in method builtins.abs>"] = counts.tiny + 50000 * counts.long_loop
print(json.dumps(result), flush=True)
