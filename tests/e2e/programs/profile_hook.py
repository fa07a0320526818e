"""profile_hook.py WHAT: what programs do to the profile and trace hooks. Each prints what its functions got and, in the
last line, how often leaf() was called, which it counts itself."""
import functools
import os
import signal
import sys
import threading

count = 0


def leaf():
    global count
    count += 1


def leaves(n):
    for _ in range(n):
        leaf()


def generator(n):
    for i in range(n):
        leaf()
        yield i


def length():
    return len("abc")


def index():
    return [].index(1)


class Log:
    """The events that a profile function gets of this file."""

    def __init__(self):
        self.lines = []

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename == __file__:
            name = argument.__name__ if event.startswith("c_") else ""
            self.lines.append("%s %s %d %s" % (event, frame.f_code.co_name, frame.f_lineno, name))

    def show(self):
        counts = {}
        for line in self.lines:
            counts[line] = counts.get(line, 0) + 1
        print("events", len(self.lines))
        for line in sorted(counts):
            print("  ", counts[line], line)


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


# ---- functions that raise ----------------------------------------------------------------------------------------------


def refusing(event, name):
    """A profile or trace function that raises, the first time that this event comes."""
    left = [1]

    def refuse(frame, what, argument):
        subject = argument.__name__ if what.startswith("c_") else frame.f_code.co_name
        if left[0] and (what, subject) == (event, name):
            left[0] = 0
            raise ValueError("refused %s %s" % (event, name))
        return refuse
    return refuse


REFUSED = {"leaf": lambda: leaves(3), "generator": lambda: list(generator(3)), "len": length, "index": index}


def attempt(event, name):
    try:
        print(event, name, REFUSED[name]())
    except ValueError as error:
        print(event, name, "raised", error)


def profile_raises():
    for event, name in (("call", "leaf"), ("return", "leaf"), ("c_call", "len"), ("c_return", "len"), ("c_call", "index"),
                        ("c_exception", "index"), ("return", "index"), ("call", "generator"), ("return", "generator")):
        leaves(5)
        sys.setprofile(refusing(event, name))
        attempt(event, name)
        print(sys.getprofile() is None)
        sys.setprofile(None)
    leaves(5)


def trace_raises():
    """Alone, and with a profile function."""
    global count
    for event, name in (("call", "leaf"), ("line", "leaf"), ("return", "leaf"), ("exception", "index"), ("return", "index"),
                        ("call", "generator"), ("line", "generator"), ("return", "generator")):
        for log in (None, Log()):
            leaves(5)
            sys.setprofile(log)
            sys.settrace(refusing(event, name))
            attempt(event, name)
            print(sys.gettrace() is None)
            sys.settrace(None)
            sys.setprofile(None)
            count += (event, name) == ("line", "leaf")  # it was called, and came no further
            if log:
                log.show()
    leaves(5)


def recurses():
    """A profile function that has no end."""
    def down():
        down()

    def function(frame, event, argument):
        if frame.f_code.co_name == "leaf":
            down()

    for _ in range(2):
        sys.setprofile(function)
        try:
            leaves(3)
        except RecursionError:
            print("recursion", sys.getprofile())
        leaves(3)


def not_callable():
    for wrong in (lambda: None, 3, "x", object()):
        sys.setprofile(wrong)
        try:
            leaf()
        except TypeError:
            print("TypeError", sys.getprofile())
    for arguments in ((), (1, 2)):
        try:
            sys.setprofile(*arguments)
        except TypeError as error:
            print(error)
    leaves(5)


def at_exit():
    """The function that refuses is set when the program ends."""
    import atexit

    def attempt():
        try:
            leaf()
        except ValueError as error:
            print("raised", error)
        leaves(3)
        print(count)

    atexit.register(attempt)
    atexit.register(sys.setprofile, refusing("call", "leaf"))
    leaves(4)


# ---- functions that are exchanged --------------------------------------------------------------------------------------


def itself():
    """A function that takes itself away at an event, or puts another in its place."""
    for event in ("call", "return", "c_call", "c_return", "c_exception"):
        for another in (None, Log()):
            seen = []

            def function(frame, what, argument):
                seen.append((what, frame.f_code.co_name))
                if what == event:
                    sys.setprofile(another)

            def work():
                leaves(2)
                length()
                try:
                    index()
                except ValueError:
                    leaves(2)
                length()

            sys.setprofile(function)
            work()
            print(event, sys.getprofile() is another, seen)
            sys.setprofile(None)
            if another:
                another.show()
            leaves(3)


def within():
    """Taken away within nested calls, set again outside, and the other way round."""
    log = Log()

    def deep(n, function):
        leaf()
        if n:
            deep(n - 1, function)
        else:
            sys.setprofile(function)
            length()
        leaf()

    for _ in range(2):
        sys.setprofile(log)
        deep(5, None)
        length()
        deep(3, log)
        deep(2, log)
        sys.setprofile(None)
    log.show()
    leaves(5)


def open_calls():
    """C calls that are running when the function comes and goes."""
    log = Log()

    def key(n):
        if n == 2:
            sys.setprofile(log)
        if n == 4:
            sys.setprofile(None)
        leaf()
        return -n

    for _ in range(2):
        print(sorted(range(6), key=key))
        print(max(range(3), key=lambda n: len("x")))
    print(list(map(key, range(6))))
    sys.setprofile(log)
    print(sorted(range(6), key=key), sys.getprofile() is None)
    print(sorted(range(4), key=key), sys.getprofile() is log)
    sys.setprofile(None)
    log.show()
    leaves(5)


def otherwise_called():
    """By other callers than the interpreter's loop."""
    log = Log()
    list(map(sys.setprofile, [log]))
    leaves(2)
    functools.partial(sys.setprofile, None)()
    leaves(3)
    [log].sort(key=sys.setprofile)
    leaves(2)
    sorted([None], key=sys.setprofile)
    in_thread(functools.partial(sys.setprofile, log))
    leaves(2)
    print(sys.getprofile())
    log.show()


def call_tracing():
    """The function sets itself as the profile function of what it calls."""
    seen = []

    def function(frame, event, argument):
        seen.append((event, frame.f_code.co_name))
        if event == "call" and frame.f_code.co_name == "leaf" and len(seen) < 8:
            sys.call_tracing(length, ())

    sys.setprofile(function)
    leaves(3)
    sys.setprofile(None)
    print(seen)
    leaves(5)


def in_handler():
    """By a signal handler."""
    log = Log()

    def handler(*arguments):
        sys.setprofile(None if sys.getprofile() else log)

    def work():
        leaves(2)
        os.kill(os.getpid(), signal.SIGUSR1)
        leaves(3)

    signal.signal(signal.SIGUSR1, handler)
    for _ in range(4):
        work()
    sys.setprofile(None)
    log.show()
    leaves(5)


def in_destructor():
    """By destructors: also by that of the function which is being taken away."""
    log = Log()

    class Sets:
        def __init__(self, function):
            self.function = function

        def __del__(self):
            try:
                sys.setprofile(self.function)
            except RuntimeError as error:  # 3.11: in the middle of another
                print(error)
            leaf()

        def __call__(self, *arguments):
            pass

    def work(function):
        leaf()
        Sets(function)
        leaf()

    for function in (log, None, log):
        work(function)
        leaves(2)
    sys.setprofile(None)
    log.show()
    sys.setprofile(Sets(log))
    leaves(2)
    sys.setprofile(None)
    leaves(3)
    print(sys.getprofile())
    leaves(5)


def in_generators():
    """By generators that go on where another function, or thread, is."""
    log = Log()

    def sets(function):
        leaf()
        sys.setprofile(function)
        yield 1
        leaf()
        sys.setprofile(None)
        yield 2
        leaf()
        sys.setprofile(function)

    for _ in range(2):
        print(list(sets(log)))
        sys.setprofile(None)
    it = sets(log)
    in_thread(lambda: print(next(it)))
    print(next(it), sys.getprofile())
    in_thread(lambda: print(list(it)))
    print(sys.getprofile())
    it = sets(log)
    in_thread(lambda: next(it))
    it.close()
    print(len(log.lines) > 10)
    leaves(5)


def by_timer():
    """Exchanged wherever the program is."""
    times = [0]

    def handler(*arguments):
        times[0] += 1
        sys.setprofile(None if sys.getprofile() else ignore)

    def ignore(*arguments):
        pass

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while times[0] < 100:
        leaves(10)
        length()
        list(generator(3))
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.setprofile(None)


def interrupted():
    """A signal handler raises wherever the program is: also where a generator goes on."""
    class Now(Exception):
        pass

    def handler(*arguments):
        raise Now

    def forever():
        while True:
            yield
            length()

    def outer():
        yield from forever()

    signal.signal(signal.SIGALRM, handler)
    for _ in range(200):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
            for _ in outer():
                pass
        except Now:
            leaf()


# ---- threads and other profilers -----------------------------------------------------------------------------------------


def threading_during():
    """threading.setprofile while threads run."""
    log, gate = Log(), threading.Event()

    def early():
        gate.wait()
        leaves(10)

    first = threading.Thread(target=early)
    first.start()
    threading.setprofile(log)
    for _ in range(2):
        in_thread(lambda: leaves(10))
    threading.setprofile(None)
    in_thread(lambda: leaves(10))
    gate.set()
    first.join()
    print(sum("leaf" in line for line in log.lines))
    leaves(5)


def stats_of(profile):
    profile.create_stats()
    print(sorted((key[2], value[:2]) for key, value in profile.stats.items()))


def cprofile_in_many():
    """From 3.12 on there is one at a time."""
    import cProfile

    profiles = [cProfile.Profile() for _ in range(4)]

    def whole(profile):
        for _ in range(3):
            profile.enable()
            leaves(20)
            length()
            list(generator(3))
            profile.disable()
            leaves(7)

    threads = [threading.Thread(target=whole, args=(profile,)) for profile in profiles]
    interval = sys.getswitchinterval()
    if sys.version_info >= (3, 12):
        sys.setswitchinterval(60)  # it gets events of the main thread, too, if that goes on meanwhile
    for thread in threads:
        thread.start()
        if sys.version_info >= (3, 12):
            thread.join()
    sys.setswitchinterval(interval)
    for thread in threads:
        thread.join()
    for profile in profiles:
        stats_of(profile)


def cprofile_among():
    """Two of them, and a profile function, that take each other's place."""
    import cProfile

    def enable(profile):
        try:
            profile.enable()
        except ValueError as error:
            print(error)

    one, two, log = cProfile.Profile(), cProfile.Profile(), Log()
    enable(one)
    leaves(2)
    enable(two)
    leaves(3)
    one.disable()
    leaves(4)
    two.disable()
    leaves(5)
    enable(one)
    sys.setprofile(log)
    leaves(2)
    one.disable()
    print(sys.getprofile() is log)
    leaves(2)
    sys.setprofile(None)
    log.show()
    sys.setprofile(log)
    enable(two)
    leaves(2)
    two.disable()
    sys.setprofile(None)
    log.show()
    stats_of(one)
    stats_of(two)
    leaves(5)


def forked():
    """The child of a fork goes on with its parent's function."""
    global count
    log = Log()
    sys.setprofile(log)
    leaves(2)
    pid = os.fork()
    leaves(3)
    if not pid:
        sys.setprofile(None)
        leaves(2)
        os._exit(len(log.lines))
    print(os.waitpid(pid, 0)[1] >> 8)
    sys.setprofile(None)
    log.show()
    count += 5


globals()[sys.argv[1]]()
print(count)
