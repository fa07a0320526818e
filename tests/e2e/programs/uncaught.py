"""Exceptions that go uncaught: in a thread, and in the main program; each after a batch of its own. Others are caught, or
end a thread as it should. Argument: seconds between the two.
"""
import sys
import threading
import time


def batch_of(name):
    names = {}
    exec("def batch_%s():\n    pass\n" % name, names)
    names["batch_%s" % name]()


def leaves():
    batch_of("leaves")
    sys.exit(3)


def raises():
    batch_of("thread")
    raise ValueError("in a thread")


def run(target):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()


try:
    raise KeyError("caught")
except KeyError:
    run(leaves)
time.sleep(0.3)
run(raises)
time.sleep(float(sys.argv[1]))
batch_of("main")
raise KeyError("in the program")
