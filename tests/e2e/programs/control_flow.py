"""control_flow.py WHAT: the ways in and out of functions that are not plain calls. Each prints how often its leaf() was called,
which it counts itself."""
import sys
import threading

count = 0


def leaf():
    global count
    count += 1


def leaves(n):
    for _ in range(n):
        leaf()


# ---- generators --------------------------------------------------------------------------------------------------------


def generator(n):
    try:
        for i in range(n):
            leaf()
            yield i
    except KeyError:
        leaf()
        yield "caught"
    finally:
        leaf()


def generators():
    """Run to the end, closed, dropped, thrown into, before and after they began, within each other."""
    def delegating(n):
        result = yield from generator(n)
        leaf()
        return result

    def raising():
        yield 1
        raise ValueError("raising")

    for kind in (generator, delegating):
        list(kind(5))
        it = kind(5)
        next(it)
        it.close()
        it = kind(5)
        it.close()
        it = kind(5)
        next(it)
        print(it.throw(KeyError("thrown")))
        del it
        it = kind(5)
        try:
            it.throw(KeyError("before it began"))
        except KeyError:
            leaf()
        it = kind(5)
        next(it)
        try:
            it.throw(ValueError("not caught"))
        except ValueError:
            leaf()
        it = kind(5)
        next(it)
        del it
    for _ in range(3):
        try:
            for _ in raising():
                leaf()
        except ValueError:
            leaf()
    kept = [generator(3) for _ in range(10)]
    for it in kept:
        next(it)
    for it in reversed(kept):
        next(it)
    sum(1 for it in kept for _ in it)
    print(list(zip(generator(3), generator(2), (i for i in generator(4)))))
    print(max(generator(4)), sorted(generator(4), key=lambda i: leaf() or -i))


def left_over():
    """Generators that the end of the program finds suspended: each calls leaf once more then."""
    global kept
    kept = [generator(3) for _ in range(5)]
    for it in kept:
        next(it)
    leaves(10)


# ---- exceptions that pass C code ---------------------------------------------------------------------------------------


def through_c():
    """Raised by what C functions call: they end by an exception, or keep it."""
    def key(n):
        leaf()
        if n == 3:
            raise ValueError("three")
        return -n

    class Bad:
        def __eq__(self, other):
            leaf()
            raise KeyError("eq")

        def __hash__(self):
            return 1

        def __getattr__(self, name):
            leaf()
            raise AttributeError(name)

        def __iter__(self):
            leaf()
            return iter(int, 1) if count < 0 else self

        def __next__(self):
            leaf()
            raise StopIteration

        def __repr__(self):
            leaf()
            raise OSError("repr")

    bad = Bad()
    for _ in range(10):
        for attempt in (lambda: sorted([5, 4, 3, 2], key=key), lambda: list(map(key, [1, 2, 3])),
                        lambda: {bad: 1}.get(Bad()), lambda: [Bad()].index(bad), lambda: repr([bad]),
                        lambda: "%r" % bad, lambda: min([3], key=key), lambda: "x".join(map(key, [1])),
                        lambda: __import__("no_such_module"), lambda: int("x"), lambda: exec("key(3)", {"key": key})):
            try:
                attempt()
            except Exception as error:
                leaf()
                last = type(error).__name__
        print(last, hasattr(bad, "missing"), getattr(bad, "missing", 1), list(bad))


def destructors():
    """An exception in __del__ goes to a hook; the function ends by it all the same."""
    class Dies:
        def __del__(self):
            leaf()
            raise ValueError("in __del__")

    raised = []
    sys.unraisablehook = lambda what: raised.append(type(what.exc_value).__name__)
    for _ in range(20):
        Dies()
        one, two = Dies(), Dies()
        one.other, two.other = two, one
        del one, two
        __import__("gc").collect()
    print(len(raised), set(raised))


def callbacks():
    """Python called by C called by Python, by ctypes; an exception in it is printed, and the C function goes on."""
    import ctypes

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    raised = []
    sys.unraisablehook = lambda what: raised.append(type(what.exc_value).__name__)

    def compare(a, b):
        leaf()
        if fails and a[0] == 7:
            raise ValueError("seven")
        return (a[0] > b[0]) - (a[0] < b[0])

    sort = ctypes.CDLL(None).qsort
    sort.restype = None
    for fails in (False, True):
        numbers = (ctypes.c_int * 20)(*[i * 7 % 20 for i in range(20)])
        sort(numbers, 20, 4, kind(compare))
        print(list(numbers) if not fails else len(numbers))
    print(set(raised))


def recursion():
    """To the limit, which raises at a call that does not take place. Through C functions the limit comes earlier on 3.11
    under any profile function: nothing reports that."""
    def deep(n):
        leaf()
        return deep(n + 1) + 1

    class Deep:
        def __getattr__(self, name):
            return getattr(self, name + "x")

    sys.setrecursionlimit(300)
    for _ in range(20):
        for attempt in (lambda: deep(0), lambda: Deep().a):
            try:
                attempt()
            except RecursionError:
                leaf()
    leaves(10)


# ---- threads -----------------------------------------------------------------------------------------------------------


def exits():
    """sys.exit and exceptions in threads end the thread."""
    def ends(how):
        leaf()
        if how == 0:
            sys.exit(3)
        if how == 1:
            raise ValueError("in a thread")
        if how == 2:
            raise SystemExit
        leaf()

    threading.excepthook = lambda what: leaf()
    for how in range(4):
        for _ in range(5):
            thread = threading.Thread(target=ends, args=(how,))
            thread.start()
            thread.join()
    print("exits")
    leaf()
    print(count)
    sys.exit(7)


def raised_in_threads():
    """PyThreadState_SetAsyncExc: an exception from outside, at any place."""
    import ctypes
    import time

    class Stop(Exception):
        pass

    ended = []
    calls = [0]

    def forever():
        try:
            while True:
                work()
        except Stop:
            ended.append(1)

    def work():
        calls[0] += 1

    for _ in range(10):
        thread = threading.Thread(target=forever)
        thread.start()
        time.sleep(0.002)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stop))
        thread.join()
    print(len(ended))


# ---- coroutines --------------------------------------------------------------------------------------------------------


async def asynchronous(n):
    for i in range(n):
        leaf()
        yield i


async def tasks(module, sleep, cancelled):
    """The same with each library: gathering, cancelling, asynchronous generators and contexts."""
    class Context:
        async def __aenter__(self):
            await sleep(0)
            leaf()

        async def __aexit__(self, *error):
            await sleep(0)
            leaf()
            return error[0] is ValueError

    async def one(n):
        for _ in range(n):
            leaf()
            await sleep(0)
        return n

    async def fails():
        async with Context():
            await one(2)
            raise ValueError("fails")

    async def waits():
        try:
            leaf()
            await sleep(1000)
        except cancelled:
            leaf()
            raise
        finally:
            leaf()

    await fails()
    async for i in asynchronous(5):
        await one(i)
    async for i in asynchronous(5):
        if i == 2:
            break
    print([i async for i in asynchronous(4)])
    it = asynchronous(3)
    print(await it.__anext__())
    await it.aclose()
    return one, waits


async def by_asyncio():
    import asyncio

    one, waits = await tasks(asyncio, asyncio.sleep, asyncio.CancelledError)
    print(await asyncio.gather(*[one(n) for n in range(10)]))
    task = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        leaf()
    try:
        await asyncio.wait_for(waits(), 0.01)
    except asyncio.TimeoutError:
        leaf()
    loop = asyncio.get_running_loop()
    print(await loop.run_in_executor(None, leaves, 10))
    loop.call_soon(leaf)
    loop.call_later(0.001, leaf)
    await asyncio.sleep(0.02)


def with_asyncio():
    import asyncio

    asyncio.run(by_asyncio())


def with_uvloop():
    import asyncio
    import uvloop

    uvloop.install()
    asyncio.run(by_asyncio())


def with_trio():
    import trio

    async def main():
        one, waits = await tasks(trio, trio.sleep, trio.Cancelled)
        async with trio.open_nursery() as nursery:
            for n in range(10):
                nursery.start_soon(one, n)
        with trio.move_on_after(0.01):
            await waits()
        await trio.to_thread.run_sync(leaves, 10)

    trio.run(main)


# ---- code objects ------------------------------------------------------------------------------------------------------


def made_and_freed():
    """Code objects without end: each call is of a new one, and the memory of one is the next one's."""
    import os

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    n = int(sys.argv[2])
    before = 0
    for i in range(n):
        names = {"leaf": leaf}
        exec("def f%d():\n    leaf()\nf%d()" % (i % 1000, i % 1000), names)
        if i == n // 4:
            before = resident()
    grown = resident() - before
    print("grown" if grown > 8 << 20 else "not grown")


def replaced():
    """Functions that get other code and other names, and methods that get other functions."""
    def first():
        leaf()

    def second():
        leaf()
        leaf()

    class Has:
        def method(self):
            leaf()

    for _ in range(50):
        first()
        first.__code__ = second.__code__
        first()
        first.__name__ = first.__qualname__ = "renamed"
        first()
        first.__code__ = first.__code__.replace(co_name="other", co_firstlineno=1)
        first()
        Has().method()
        Has.method, Has.kept = second_method, Has.method
        Has().method()
        Has().kept()
        Has.method = Has.kept

        def first():
            leaf()
    import builtins
    real = builtins.len
    builtins.len = lambda of: leaf() or real(of)
    print(sum(len("xx") for _ in range(10)))
    builtins.len = real


def second_method(self):
    leaf()
    leaf()


# ---- what belongs to the program ---------------------------------------------------------------------------------------


def answers_itself():
    """Classes that answer for their names, tracebacks and attributes with code of their own. It runs when it would."""
    class Meta(type):
        @property
        def __name__(cls):
            print("asked for __name__")
            return "x"

        def __getattribute__(cls, name):
            print("class asked for", name)
            return super().__getattribute__(name)

    class Error(Exception, metaclass=Meta):
        def __getattribute__(self, name):
            print("error asked for", name)
            return super().__getattribute__(name)

        @property
        def __traceback__(self):
            print("asked for __traceback__")

    class Thread(threading.Thread):
        def __getattribute__(self, name):
            if name in ("_name", "_native_id"):
                asked.append(name)
            return super().__getattribute__(name)

    def raises():
        leaf()
        raise Error()

    def passes():
        try:
            raises()
        finally:
            leaf()

    asked = []
    for _ in range(3):
        try:
            passes()
        except Exception:
            leaf()
    thread = Thread(target=leaves, args=(3,), name="own")
    thread.start()
    thread.name = "new"
    thread.join()
    print(asked)


def named_like():
    """A file of the program is called threading.py, too, with functions called like those that evprof looks at."""
    source = """
def name():
    leaf()
def _bootstrap_inner():
    leaf()
class Own:
    def __getattribute__(self, name):
        print("asked for", name)
        raise KeyError(name)
    def _bootstrap_inner(self):
        leaf()
    def name(self, other):
        leaf()
def deep(n):
    a = b = c = d = n
    return deep(n - 1) if n else name()
"""
    names = {"leaf": leaf}
    exec(compile(source, "/somewhere/threading.py", "exec"), names)
    for n in range(20):
        names["deep"](n)
        names["name"]()
        names["_bootstrap_inner"]()
        names["Own"]._bootstrap_inner(names["Own"]())
        names["Own"].name(names["Own"](), 5)
        names["Own"].name(None, object())


kept = ()
globals()[sys.argv[1]]()
print(count + len(kept))
