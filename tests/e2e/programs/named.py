"""Spans, marks and counters in two threads and a child of a fork, in a program that does little else: for test_table.c."""
import os
import threading

import evprof


def work(name):
    for i in range(30):
        with evprof.span(name, i=i):
            evprof.counter("queue, \"%s\"" % name, i / 7)
            with evprof.span("inner"):
                evprof.mark("here")


def main():
    thread = threading.Thread(target=work, args=("next to it",))
    thread.start()
    work("in front")
    thread.join()
    with evprof.span("around the fork"):
        child = os.fork()
        if child == 0:
            work("in the child")
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


main()
