"""budget.py KIND SECONDS - runs for that much CPU time, and prints how often each of its functions was called, as JSON."""
import json
import os
import sys
import threading
import time

kind, limit = sys.argv[1], float(sys.argv[2])


class Counts(object):
    def __init__(self):
        self.tiny = self.other = self.long_one = self.raises = self.fib = self.steps = self.long_loop = 0


counts = Counts()


def tiny(x):
    counts.tiny += 1
    return abs(x)


def other(x):
    counts.other += 1
    return x


def raises():
    counts.raises += 1
    raise KeyError


def fib(n):
    counts.fib += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def steps(n):
    for i in range(n):
        counts.steps += 1
        yield i


def long_one():
    counts.long_one += 1
    return sum([tiny(i) for i in range(300)])


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


def second():
    for i in range(300):
        other(i)


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


begin = time.process_time()
if kind == "threads":
    in_threads(begin + limit)
elif kind == "phases":
    until(begin + limit / 2, work)
    until(begin + limit, second)
elif kind == "loops":
    until(begin + limit, long_loop)
elif kind == "fork":
    until(begin + limit / 2, work)
    child = os.fork()
    if child == 0:
        counts = Counts()
        begin = time.process_time()
    until(begin + limit, work)
    if child:
        os.waitpid(child, 0)
elif kind == "stop":
    import evprof

    until(begin + limit / 2, work)
    evprof.stop()
    bare, counts = counts, Counts()
    until(begin + limit, work)
    counts = bare
    evprof.start()
    until(begin + limit * 1.5, work)
else:
    until(begin + limit, work)
result = vars(counts)
result["<built-in method builtins.abs>"] = counts.tiny + 50000 * counts.long_loop
print(json.dumps(result), flush=True)
