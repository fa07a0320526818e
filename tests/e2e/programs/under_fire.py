"""All that writes into the shared memory, for the given number of seconds: calls of functions that are always new,
threads that begin and end, allocations, exceptions, deep stacks, forks. Prints nothing that depends on the time."""
import os
import sys
import threading
import time


def deep(n):
    return n and 1 + deep(n - 1)


def raises():
    try:
        raise KeyError([bytearray(64) for _ in range(8)])
    except KeyError:
        return 1


def fresh(number):
    names = {}
    exec("def f_%d():\n    return %d" % (number, number), names)
    return names["f_%d" % number]()


def turn(number):
    threads = [threading.Thread(target=deep, args=(50,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(20):
        assert fresh(20 * number + i) == 20 * number + i
        assert raises() and deep(30) == 30
    for thread in threads:
        thread.join()


end = time.time() + float(sys.argv[1])
number = 0
while time.time() < end:
    turn(number)
    number += 1
    if number % 40 == 0:
        pid = os.fork()
        if not pid:
            turn(number)
            os._exit(7)
        assert os.waitpid(pid, 0)[1] == 7 << 8
print("unharmed")
sys.exit(3)
