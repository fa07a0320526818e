"""Each kind of event once or a few times, recorded in version1.evp with EVPROF_EVENTS=call,line,cpu, by Python 3.13."""
import ctypes
import os
import threading
import time

evprof = ctypes.CDLL(None)
kept = []


def leaf(n):
    return abs(n)


def counted():
    for n in range(3):
        yield leaf(n)


def fails():
    try:
        raise KeyError("k")
    except KeyError:
        return None


def thrown():
    steps = counted()
    next(steps)
    try:
        steps.throw(ValueError)
    except ValueError:
        pass


def work():
    kept.append(bytearray(5000))
    list(counted())
    fails()
    thrown()


def main():
    work()
    thread = threading.Thread(target=work, name="second")
    thread.start()
    thread.join()
    evprof.evprof_mark(b"before the silence")
    time.sleep(0.3)
    work()
    evprof.evprof_stop()
    evprof.evprof_start()
    child = os.fork()
    if child == 0:
        try:
            os.execv("/nowhere", ["nowhere"])
        except OSError:
            work()
        os._exit(3)
    os.waitpid(child, 0)
    work()


main()
