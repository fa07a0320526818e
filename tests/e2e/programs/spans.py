"""Spans, counters and marks by evprof.span() and its like, and what the program itself saw of them: for test_spans.c.

spans.py PART: prints a JSON object for each line, of a span, counter or mark: its name, arguments and thread, and between which
times of CLOCK_MONOTONIC it began and ended. "late": begins to record by itself.
"""
import asyncio
import concurrent.futures
import contextlib
import ctypes
import json
import os
import sys
import threading
import time
import types

import evprof

LOCK = threading.Lock()
ROWS = []
CLOCK_MONOTONIC = getattr(time, "CLOCK_MONOTONIC")
now = getattr(time, "monotonic_ns", lambda: int(time.clock_gettime(CLOCK_MONOTONIC) * 1e9))


def tid():
    return ctypes.CDLL(None).syscall(186 if os.uname().machine == "x86_64" else 178)


def note(what, name, **values):
    row = dict(what=what, name=name, tid=tid(), pid=os.getpid(), **values)
    with LOCK:
        ROWS.append(row)
    return row


class watched:
    """evprof.span() between looks at the clock."""

    def __init__(self, name, **arguments):
        self.row = note("span", name, arguments=[[key, shown(value)] for key, value in arguments.items()])
        self.span = evprof.span(name, **arguments)

    def __enter__(self):
        self.row["begin"] = [now()]
        self.span.__enter__()
        self.row["begin"].append(now())
        return self

    def __exit__(self, *error):
        self.row["end"] = [now()]
        self.span.__exit__(*error)
        self.row["end"].append(now())
        self.row["end_tid"] = tid()


@contextlib.contextmanager
def observed(span):
    """The same for a span object that others use at the same time."""
    row = note("span", span.name, arguments=[], begin=[now()])
    with span:
        row["begin"].append(now())
        try:
            yield
        finally:
            row["end"] = [now()]
    row["end"].append(now())
    row["end_tid"] = tid()


def shown(value):
    """How a value is expected in the trace."""
    if isinstance(value, bool) or isinstance(value, float):
        return value
    if isinstance(value, int) and -2**63 <= value < 2**63 - 32:
        return value
    if isinstance(value, int) and value < 2**63:
        return float(value)
    data = str(value).replace("\0", "?").encode("utf-8", "surrogatepass")
    if len(data) > 1056:
        return {"begins": data[:1000].decode("utf-8", "surrogatepass")}
    return data.decode("utf-8", "surrogatepass")


def work(n=2000):
    return sum(range(n))


def nested():
    with watched("outer", path="/users", n=3):
        for i in range(5):
            with watched("inner", i=i):
                work()
    evprof.mark("between", path="/users", n=3)
    note("mark", "between", arguments=[["path", "/users"], ["n", 3]])
    with watched("ünï ☃ \U0001f600"):
        work()


def arguments():
    texts = ["", "x", "x" * 7, "x" * 8, "x" * 88, "x" * 89, "☃" * 40, "☃" * 300, "y" * 1056, "z" * 5000, "a\0b", "\ud800lone"]
    for value in texts + [0, -1, 2**62, -2**63, 2**63 - 1, 2**63 - 32, 2**63, 2**200, 1.5, -0.0, 1e308, float("inf"), True, False, None,
                          [1, 2], b"bytes"]:
        with watched("arguments", value=value):
            pass
    with watched("many", **{"key%d" % i: i for i in range(16)}):
        pass
    evprof.mark("a mark", key="value", n=7)
    note("mark", "a mark", arguments=[["key", "value"], ["n", 7]])


def counters():
    for i in range(100):
        value = [i, i / 7, -1e300, float(2**53)][i % 4]
        evprof.counter("counter %d" % (i % 3), value)
        note("counter", "counter %d" % (i % 3), value=float(value))


def exceptions():
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        try:
            with watched("raises"):
                raise error
        except error:
            pass

    @evprof.span("decorated")
    def fails():
        raise OSError

    before = now()
    try:
        fails()
    except OSError:
        note("span", "decorated", arguments=[], begin=[before, now()], end=[before, now()], end_tid=tid())


def decorated():
    names = []

    def timed(name, function, *args):
        row = note("span", name, arguments=[])
        row["begin"] = [now(), None]
        result = function(*args)
        row["begin"][1] = now()
        row["end"] = row["begin"]
        row["end_tid"] = tid()
        return result

    @evprof.span("plain")
    def plain(a, b=2):
        """A docstring."""
        names.append(a)
        return a + b

    class Class:
        @evprof.span("method")
        def method(self):
            return self

        @staticmethod
        @evprof.span("static")
        def static():
            return 5

    assert plain.__name__ == "plain" and plain.__doc__ == "A docstring."
    assert timed("plain", plain, 1) == 3
    assert isinstance(timed("method", Class().method), Class)
    assert timed("static", Class.static) == 5

    @evprof.span("generator")
    def generator(n):
        sent = []
        for i in range(n):
            sent.append((yield i))
        return sent

    def drive():
        items = generator(3)
        assert [next(items), items.send("a"), items.send("b")] == [0, 1, 2]
        try:
            items.send("c")
        except StopIteration as stop:
            return stop.value
        raise AssertionError

    assert timed("generator", drive) == ["a", "b", "c"]

    @evprof.span("recursive")
    def recursive(n):
        return n and recursive(n - 1)

    @evprof.span("left early")
    def endless():
        while True:
            yield

    def leave(closes):
        items = endless()
        next(items)
        if closes:
            items.close()

    timed("left early", leave, True)
    timed("left early", leave, False)  # its end frees it, which closes it

    @evprof.span("fails inside")
    def fails():
        yield 1
        raise ValueError

    def fail():
        try:
            list(fails())
        except ValueError:
            pass

    timed("fails inside", fail)
    rows = [note("span", "recursive", arguments=[]) for _ in range(4)]
    begin = now()
    recursive(3)
    end = now()
    for row in rows:
        row.update(begin=[begin, end], end=[begin, end], end_tid=tid())


def one_object():
    """One span object: within itself, in an ExitStack, in generators that take turns."""
    span = evprof.span("shared")

    def turns(n):
        with observed(span):
            for _ in range(n):
                yield

    with observed(span):
        with observed(span):
            work()
    with contextlib.ExitStack() as stack:
        row = note("span", "shared", arguments=[], begin=[now()])
        stack.enter_context(span)
        row["begin"].append(now())
        row["end"] = [now()]
    row["end"].append(now())
    row["end_tid"] = tid()
    threads = [threading.Thread(target=list, args=(turns(50),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, two = turns(2), turns(3)
    for items in (one, two, one, one, two, two, two):
        next(items, None)
    assert not span._open and not span._others
    with span, contextlib.ExitStack() as stack:  # in which order they end is not known, but all do
        stack.enter_context(span)
        stack.enter_context(span)
    assert not span._open and not span._others


def one_object_of_two():
    """One span object: a with statement of a thread or task has it, and an ExitStack of another one."""
    span = evprof.span("shared")

    async def by_statement(begins, lasts):
        await asyncio.sleep(begins)
        with observed(span):
            await asyncio.sleep(lasts)

    async def by_stack(begins, lasts):
        await asyncio.sleep(begins)
        with contextlib.ExitStack() as stack:
            row = note("span", "shared", arguments=[], begin=[now()])
            stack.enter_context(span)
            row["begin"].append(now())
            await asyncio.sleep(lasts)
            row["end"] = [now()]
        row["end"].append(now())
        row["end_tid"] = tid()

    for lasts in (0.01, 0.05):
        for first, second in ((by_statement, by_stack), (by_stack, by_statement)):
            if first is by_statement:  # of two in one thread, an ExitStack ends the newer one
                loop = asyncio.new_event_loop()
                loop.run_until_complete(asyncio.wait([loop.create_task(first(0, 0.03)), loop.create_task(second(0.005, lasts))]))
            threads = [threading.Thread(target=lambda one: asyncio.new_event_loop().run_until_complete(one), args=(one,))
                       for one in (first(0, 0.03), second(0.005, lasts))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert span._open is None and not span._others

    def generator():
        with observed(span):
            yield

    # A generator goes on in another thread than it began in, where another one has begun meanwhile.
    one, other = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))
    first, second = generator(), generator()
    for thread, step in (one, (next, first)), (other, (next, second)), (other, (next, first, None)), (one, (next, second, None)):
        thread.submit(*step).result()
        time.sleep(0.01)
    for thread in one, other:
        thread.shutdown()


def tasks():
    """Tasks that take turns: spans overlap, and each ends its own."""

    async def task(n):
        with watched("task", n=n):
            for i in range(n):
                with watched("step", n=n, i=i):
                    await asyncio.sleep(0.001 * (n - i))
        return n

    @evprof.span("coroutine")
    async def coroutine():
        await asyncio.sleep(0.001)
        return "done"

    @evprof.span("of types")
    @types.coroutine
    def of_types():
        yield
        return "done, too"

    @evprof.span("async generator")
    async def items(log):
        try:
            for i in range(3):
                log.append((yield i))
        except ValueError:
            yield "caught"
        finally:
            log.append("closed")

    async def main():
        loop = asyncio.get_event_loop()
        assert sorted(await asyncio.gather(*[loop.create_task(task(n)) for n in range(1, 6)])) == [1, 2, 3, 4, 5]
        rows = [note("span", name, arguments=[], begin=[now(), None]) for name in ("coroutine", "of types", "async generator")]
        assert await coroutine() == "done"
        assert await of_types() == "done, too"
        log = []
        generator = items(log)
        assert [await generator.__anext__(), await generator.asend("sent")] == [0, 1]
        assert await generator.athrow(ValueError()) == "caught"
        await generator.aclose()
        assert log == ["sent", "closed"], log
        for row in rows:
            row["begin"][1] = now()
            row.update(end=row["begin"], end_tid=tid())
        cancelled = loop.create_task(task(1000))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        try:
            await cancelled
        except asyncio.CancelledError:
            pass

    asyncio.new_event_loop().run_until_complete(main())


def greenlets():
    """Spans of greenlets that take turns in one thread: each ends in its own, and none is within one of another."""
    import greenlet
    main = greenlet.getcurrent()

    def run(n):
        with watched("greenlet %d" % n, n=n):
            for i in range(3):
                with watched("step %d" % n, i=i):
                    work(500 * n)
                    main.switch()
                main.switch()

    def fails():
        with watched("ends by an error"):
            main.switch()

    @evprof.span("decorated")
    def decorated():
        main.switch()

    with watched("main"):
        all_of_them = [greenlet.greenlet(run) for _ in range(4)]
        while not all(one.dead for one in all_of_them):
            for n, one in enumerate(all_of_them):
                if not one.dead:
                    one.switch(*[n] * (not one))
        failing = greenlet.greenlet(fails)
        failing.switch()
        try:
            failing.throw(ValueError)
        except ValueError:
            pass
        row = note("span", "decorated", arguments=[], begin=[now(), None])
        other = greenlet.greenlet(decorated)
        other.switch()
        work()
        other.switch()
        row["begin"][1] = now()
        row.update(end=row["begin"], end_tid=tid())


def left_open(*names):
    """Spans that nothing ends."""
    for name in names:
        watched(name).__enter__()
    with watched("closed"):
        work()


def execs():
    """The program becomes another one in the middle of two spans."""
    left_open("open at the exec", "within it")
    show()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, sys.argv[0], "nested"])


def dies():
    """The process is killed in the middle of two spans."""
    left_open("open at the death", "within it")
    show()
    sys.stdout.flush()
    os.kill(os.getpid(), 9)


def shared():
    """One span object of four threads that take turns at every chance: each span has its end."""
    sys.setswitchinterval(1e-6)
    span = evprof.span("shared")

    def run():
        for _ in range(2000):
            with span:
                pass

    running = [threading.Thread(target=run) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert span._open is None and not span._others


def lossy():
    """More spans than the ring has room for between two rounds of the collector. What the trace has of them is as the program saw it."""
    def run(n):
        for i in range(300):
            with watched("lossy %d" % n, i=i):
                for _ in range(10):
                    with evprof.span("within", i=i, text="x" * 1000):
                        pass

    running = [threading.Thread(target=run, args=(n,)) for n in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def threads():
    """Spans in threads, and one that ends in another thread than it began in."""
    def run(n):
        for i in range(20):
            with watched("thread %d" % n, i=i):
                work()

    running = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    over = watched("over there")
    over.__enter__()
    thread = threading.Thread(target=over.__exit__, args=(None, None, None))
    thread.start()
    thread.join()


def forks():
    """The parent's spans go on; the child has its own, and what it ends of the parent's ends nowhere."""
    with watched("around"):
        pid = os.fork()
        if pid == 0:
            ROWS.clear()
            with watched("child"):
                work()
    if pid == 0:
        ROWS[:] = [row for row in ROWS if row["name"] == "child"]
        show()
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def stops():
    """What ends while nothing records has no end; what begins then is not there."""
    row = watched("cut")
    row.__enter__()
    evprof.stop()
    assert not evprof.active()
    row.__exit__(None, None, None)
    for when in ("end", "end_tid"):
        del row.row[when]
    with evprof.span("missing"):
        evprof.start()
        assert evprof.active()
    with watched("again"):
        work()


def runaway():
    """Names without end: past the budget they have one name, and nothing else changes."""
    for i in range(70000):
        evprof.counter("name %d" % i, i)
    for i in range(3):
        note("counter", "name %d" % i, value=float(i))


def late():
    evprof.start()
    nested()
    tasks()
    threads()
    evprof.stop()


def show():
    for row in ROWS:
        print(json.dumps(row))


def main(part):
    globals()[part]()
    show()


main(*sys.argv[1:])
