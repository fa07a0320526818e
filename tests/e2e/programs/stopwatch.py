"""Times itself: for each function of many calls its name and the shortest of its runs, in nanoseconds."""
from time import perf_counter as clock


class Point:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x

    @property
    def abscissa(self):
        return self.x


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def counting(n):
    for i in range(n):
        yield i


def recursion():
    fib(13)


def methods():
    points = []
    for i in range(400):
        points.append(Point(i).get())


def generator():
    for i in counting(1500):
        pass


def lengths():
    items = [1, 2]
    for i in range(1500):
        len(items)


def classes():
    for i in range(700):
        str(i)
        int(i)


def properties():
    point = Point(1)
    for i in range(700):
        point.abscissa


for function in (recursion, methods, generator, lengths, classes, properties):
    shortest = 1e9
    for turn in range(60):
        # Each run is a function of its own, so that a report has it by itself.
        scope = {"function": function}
        exec("def %s_%d():\n    function()" % (function.__name__, turn), scope)
        run = scope["%s_%d" % (function.__name__, turn)]
        start = clock()
        run()
        shortest = min(shortest, clock() - start)
    print(function.__name__, int(shortest * 1e9))
