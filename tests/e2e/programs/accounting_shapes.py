"""Four threads, one after the other, of which every event is known: `accounting_shapes.py TIMES`. Ids go to "threads".

Generators that are sent to and thrown into, recursion, methods of C that are bound for their calls, blocks that come and
go, and functions of a file that may be left out.
"""
import _thread
import gc
import os
import sys
import threading
import time


def produce(count):
    for i in range(count):
        try:
            yield [i] * 40
        except ValueError:
            yield None


def delegate(count):
    yield from produce(count)


def recurse(n):
    return [n] * 30 if n == 0 else recurse(n - 1)


class Thing:
    def __init__(self, number):
        self.number = number
        self.text = "%d" % (number + 1000)


def catch(number):
    try:
        raise KeyError(number)
    except KeyError:
        return None


left_out = {}
exec(compile("def left_out(n):\n    return len([n] * 20)\n", "left_out.py", "exec"), left_out)


def step(i):
    words = []
    for item in delegate(3):
        words.append(item)
    generator = produce(2)
    next(generator)
    generator.throw(ValueError())
    generator.close()
    recurse(4)
    Thing(i)
    catch(i)
    left_out["left_out"](i)
    "a,b,c".split(",")
    words.clear()


def worker(ids, number, times, ended):
    ids[number] = threading.get_native_id()
    for i in range(times):
        step(i)
    ended.release()


def main(times):
    gc.disable()
    sys.setswitchinterval(60)  # which thread frees what both have is no chance then
    step(0)
    ids = [0] * 5  # the last is that of the first thread, with which Python does some things once
    for number in range(-1, 4):
        lock = _thread.allocate_lock()
        lock.acquire()
        _thread.start_new_thread(worker, (ids, number, times, lock))
        lock.acquire()
        while os.path.exists("/proc/self/task/%d" % ids[number]):
            time.sleep(0.001)
    with open("threads", "w") as file:
        file.write(" ".join(str(tid) for tid in ids[:4]))
    print("accounted", times)


if __name__ == "__main__":
    with open("oracle", "r+b") as file:
        file.write(os.getpid().to_bytes(8, "little"))
    main(int(sys.argv[1]))
