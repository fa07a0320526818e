"""Code of one life of lives.c: calls of its own, of the library and in a thread, an exception, generators."""
import json
import sys
import threading


def leaf(n):
    return n


def raises():
    raise ValueError


def numbers():
    yield 1
    yield 2


def work():
    for i in range(100):
        leaf(i)
    for _ in range(10):
        try:
            raises()
        except ValueError:
            pass
    sum(numbers())


class Counted:
    def method(self):
        return json.dumps({"life": life})


work()
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(Counted().method())
sys.stdout.flush()
