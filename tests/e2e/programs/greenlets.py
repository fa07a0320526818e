"""greenlets.py WHAT: each greenlet has a stack of its own, and switches in the middle of calls. Counts are printed last, as
"function calls", one a line: what was called how often, each of them never within itself."""
import sys

counts = {}


def counted(function):
    """Counts without a frame of its own in between: by the function's first statement."""
    counts[function.__name__] = 0
    return function


def note(name):
    counts[name] += 1


@counted
def leaf():
    note("leaf")


@counted
def rest(switch):
    note("rest")
    leaf()
    switch()
    leaf()


@counted
def inner(switch, n):
    note("inner")
    for _ in range(n):
        rest(switch)


@counted
def outer(switch, n):
    note("outer")
    inner(switch, n)
    leaf()


def plain():
    """A ring of greenlets, in turns, of different length; one ends by an exception, one is killed, one never begins."""
    import greenlet

    alive = []
    main = greenlet.getcurrent()

    def switch():
        main.switch()

    class Stop(Exception):
        pass

    def fails():
        outer(switch, 2)
        raise Stop

    def body(n):
        def run():
            outer(switch, n)
        return run

    alive = [greenlet.greenlet(body(n)) for n in range(1, 8)] + [greenlet.greenlet(fails)]
    while alive:
        for one in list(alive):
            try:
                one.switch()
            except Stop:
                leaf()
            if one.dead:
                alive.remove(one)
    killed = greenlet.greenlet(body(5))
    killed.switch()
    killed.throw()
    thrown = greenlet.greenlet(body(5))
    thrown.switch()
    try:
        thrown.throw(Stop)
    except Stop:
        leaf()
    greenlet.greenlet(body(5))
    left = greenlet.greenlet(body(5))
    left.switch()
    del left  # killed when it is collected
    nested()
    threads()


def nested():
    """A greenlet made and switched to within another, whose parent it is."""
    import greenlet

    def below():
        outer(lambda: greenlet.getcurrent().parent.switch(), 3)

    def above():
        child = greenlet.greenlet(below)
        while not child.dead:
            child.switch()
            leaf()

    one = greenlet.greenlet(above)
    one.switch()


def threads():
    import threading

    import greenlet

    def whole():
        main = greenlet.getcurrent()
        many = [greenlet.greenlet(lambda: outer(main.switch, 3)) for _ in range(3)]
        while not all(one.dead for one in many):
            for one in many:
                if not one.dead:
                    one.switch()

    started = [threading.Thread(target=whole) for _ in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def with_gevent():
    import gevent
    import gevent.queue

    def worker(n):
        outer(lambda: gevent.sleep(0), n)

    gevent.joinall([gevent.spawn(worker, n) for n in range(1, 20)])
    queue = gevent.queue.Queue()

    def produces():
        for i in range(10):
            queue.put(i)
            rest(lambda: gevent.sleep(0))

    def consumes():
        for _ in range(10):
            queue.get()
            leaf()

    gevent.joinall([gevent.spawn(consumes), gevent.spawn(produces)])
    late = gevent.spawn(worker, 1000)
    gevent.sleep(0.01)
    late.kill()
    with gevent.Timeout(0.01, False):
        outer(lambda: gevent.sleep(10), 1)


def with_generators():
    """Greenlets that switch within generators, and generators that several greenlets go on with."""
    import greenlet

    main = greenlet.getcurrent()

    def numbers(n):
        for i in range(n):
            rest(main.switch)
            yield i

    def consumes():
        for _ in numbers(5):
            leaf()

    shared = iter(range(0))

    def shares():
        for _ in shared:
            main.switch()
            leaf()

    many = [greenlet.greenlet(consumes) for _ in range(5)]
    while not all(one.dead for one in many):
        for one in many:
            if not one.dead:
                one.switch()

    def plain_numbers(n):
        for i in range(n):
            leaf()
            yield i

    shared = plain_numbers(20)
    many = [greenlet.greenlet(shares) for _ in range(3)]
    while not all(one.dead for one in many):
        for one in many:
            if not one.dead:
                one.switch()


def imported_late():
    """The first import fails. The next one comes after more calls than evprof looks for the module at."""

    class Refuses(object):
        @staticmethod
        def find_spec(name, *_):
            if name == "greenlet":
                raise ImportError(name)

    sys.meta_path.insert(0, Refuses)
    try:
        import greenlet  # noqa: F401
    except ImportError:
        del sys.meta_path[0]
    for _ in range(110000):
        leaf()
    plain()


class Row(object):
    @counted
    def __getitem__(self, place):
        note("__getitem__")
        if place % 50 == 49:
            self.switch()
        return place


def with_subscripts():
    """Subscripts of sequences written in Python, before and after a switch in the function that has them, and below it."""
    import greenlet

    main = greenlet.getcurrent()
    row = Row()
    row.switch = main.switch

    @counted
    def switches():
        note("switches")
        main.switch()

    @counted
    def sums(n):
        note("sums")
        for place in range(n):
            row[place]
        main.switch()
        for place in range(n):
            row[place]
        switches()
        return sum(row[place] for place in range(n))

    many = [greenlet.greenlet(sums) for _ in range(5)]
    for i, one in enumerate(many):
        one.switch(20 * i + 20)
    while not all(one.dead for one in many):
        for one in many:
            if not one.dead:
                one.switch()
                row[0]


globals()[sys.argv[1]]()
for name in sorted(counts):
    print(name, counts[name])
