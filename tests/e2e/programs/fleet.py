"""fleet.py QUERIES SLEEP_MS KEPT [SLOW]: requests of a service, for test_fleet.c. Each of 12 pages makes QUERIES queries and sleeps; KEPT
bytes stay allocated; the page number SLOW takes 3 s more."""
import sys
import threading
import time

kept = []


def query(number):
    return sum(range(number))


def page(number):
    for i in range(queries):
        query(i)
    time.sleep(sleep_ms / 1000)
    if number == slow:
        time.sleep(3)


def keep(size):
    kept.append(bytearray(size))


def work():
    for number in range(12):
        page(number)


queries, sleep_ms, size = (int(word) for word in sys.argv[1:4])
slow = int(sys.argv[4]) if len(sys.argv) > 4 else -1
keep(size)
thread = threading.Thread(target=work, name="worker-7")
thread.start()
thread.join()
