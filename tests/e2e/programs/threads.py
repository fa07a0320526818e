"""Threads of every making, each with known work in a function of its own."""
import ctypes
import sys
import threading
import time

try:
    import _thread
except ImportError:
    import thread as _thread

import known


def by_threading(n):
    known.work(n)


def by_raw_thread(n, lock):
    known.work(n)
    lock.release()


def by_c_thread(_):
    known.work(300)
    return 0


def by_executor(n):
    known.work(n)
    return n


def nested():
    thread = threading.Thread(target=by_threading, args=(40,), name="inner")
    thread.start()
    thread.join()


def c_threads(library, count):
    """Made by C code that knows nothing of Python; it enters by the callback."""
    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(by_c_thread)
    create, join = library.pthread_create, library.pthread_join
    create.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    identities = [ctypes.c_ulong() for _ in range(count)]
    for identity in identities:
        assert create(ctypes.byref(identity), None, callback, None) == 0
    for identity in identities:
        join(identity, None)


def main():
    threads = [threading.Thread(target=by_threading, args=(100,), name="named-%d" % i) for i in range(4)]
    threads.append(threading.Thread(target=nested, name="outer"))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    locks = []
    for _ in range(3):
        lock = _thread.allocate_lock()
        lock.acquire()
        _thread.start_new_thread(by_raw_thread, (200, lock))
        locks.append(lock)
    for lock in locks:
        lock.acquire()
    time.sleep(0.2)  # a raw thread cannot be joined
    c_threads(ctypes.CDLL(None), 2)
    c_threads(ctypes.CDLL("libc.so.6" if ctypes.CDLL("libc.so.6").pthread_create else None), 2)
    if sys.version_info[0] > 2:
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(3) as pool:
            print(sum(pool.map(by_executor, [50] * 10)))
    time.sleep(0.3)  # join() waits for the end of Python's part of a thread, not for that of the thread
    print("done")


if __name__ == "__main__":
    main()
