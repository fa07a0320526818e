"""Functions that run, wait or do both; prints what each took in wall-clock time and in CPU time of its thread."""
import hashlib
import sys
import threading
import time

if sys.version_info < (3, 7):
    def thread_time():
        return time.clock_gettime(3)  # CLOCK_THREAD_CPUTIME_ID
else:
    thread_time = time.thread_time


def runs():
    end = thread_time() + 0.06
    while thread_time() < end:
        pass


DATA = b"x" * 20000000


def runs_in_c():
    hashlib.sha256(DATA).digest()


def waits():
    for _ in range(10):
        time.sleep(0.01)


def waits_for_another():
    lock = threading.Lock()

    def other():
        with lock:
            end = thread_time() + 0.02
            while thread_time() < end:
                pass

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        time.sleep(0.05)
    thread.join()


for function in runs, runs_in_c, waits, waits_for_another:
    wall, cpu = time.perf_counter(), thread_time()
    function()
    cpu, wall = thread_time() - cpu, time.perf_counter() - wall
    print(function.__name__, "%.6f" % wall, "%.6f" % cpu)
