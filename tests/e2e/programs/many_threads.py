"""Starts N short threads, a few at a time."""
import sys
import threading

import known


def one():
    known.work(10)


def main(count):
    for _ in range(count // 8):
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


main(int(sys.argv[1]))
