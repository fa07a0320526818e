"""Threads that do the same things at the same time, one part by name. The test knows what each of them does."""
import gc
import os
import queue
import sys
import threading
import time

THREADS = 8


def together(work, count=THREADS):
    """Calls work(0), work(1), ... each in a thread of its own, all at once."""
    gate = threading.Barrier(count)

    def whole(number):
        gate.wait()
        work(number)

    threads = [threading.Thread(target=whole, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def leaf(number):
    return abs(number)


def fails():
    raise KeyError("as it should")


def grows(count):
    for number in range(count):
        yield number


def counts():
    """Calls, C calls, exceptions and generators: those of each thread are known."""

    def work(number):
        for i in range(20000):
            leaf(i)
        for _ in range(100):
            try:
                fails()
            except KeyError:
                pass
        for _ in grows(50):
            pass

    together(work)


def definitions():
    """Two threads meet 600 functions for the first time at the same moment, and 200 classes of exceptions."""
    names = {}
    exec("\n".join("def first_%d(): return len('')" % i for i in range(600)), names)
    classes = [type("Error%d" % i, (Exception,), {}) for i in range(200)]
    at = [0, 0]

    def meet(number, place):
        at[number] = place
        while at[1 - number] < place:
            time.sleep(0)

    def work(number):
        for i in range(600):
            meet(number, i)
            names["first_%d" % i]()
        for i, one in enumerate(classes):
            meet(number, 600 + i)
            try:
                raise one
            except one:
                pass

    together(work, 2)


def memory():
    """Blocks of a size that nobody else takes; half of them are given back by another thread."""
    others = [queue.SimpleQueue() for _ in range(THREADS)]

    def work(number):
        for _ in range(300):
            own = bytes(54321)
            others[(number + 1) % THREADS].put(bytes(54321))
            del own
        for _ in range(300):
            others[number].get()

    together(work)


def codes():
    """Functions that are made, called and dropped, while another thread collects garbage."""
    done = threading.Event()

    def collect():
        while not done.is_set():
            gc.collect()
            done.wait(0.002)

    def work(number):
        for i in range(200):
            names = {}
            exec("def made_%d_%d(): pass" % (number, i), names)
            names.popitem()[1]()

    collector = threading.Thread(target=collect)
    collector.start()
    together(work)
    done.set()
    collector.join()


def forks():
    """Children of several threads, while others call."""

    def work(number):
        for i in range(300):
            leaf(i)
        if number % 2:
            return
        for _ in range(5):
            pid = os.fork()
            if not pid:
                for i in range(7):
                    leaf(i)
                os._exit(0)
            os.waitpid(pid, 0)

    together(work)


def tools():
    """The ids of sys.monitoring are taken and given back while threads call."""
    done = threading.Event()

    def work(number):
        if number:
            while not done.is_set():
                for i in range(100):
                    leaf(i)
            return
        for _ in range(5):
            for tool in range(6):
                sys.monitoring.use_tool_id(tool, "a tool")
            for tool in range(6):
                sys.monitoring.free_tool_id(tool)
            time.sleep(0.001)
        done.set()

    together(work, 3)


def switched():
    """An extension that is not made to do without the GIL has Python take it, while threads call."""

    def work(number):
        for i in range(20000):
            leaf(i)
            if number == 0 and i == 1000:
                import needs_gil

                print(needs_gil.answer(), sys._is_gil_enabled())

    together(work)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done")
