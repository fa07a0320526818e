"""Counts, in the file "oracle" that it shares with the test, each call of leaf() before it begins and after it has ended.

`counting.py ENTRIES WORD...`: ENTRIES threads ("4") or processes ("p4") call until the end that the words name:

    forever             ended from outside
    calls N             each calls so often
    seconds S           so long
    os_exit S, abort S, segfault S, exec S, exec_other S, cpu S
                        a thread ends the process N seconds after the first call (cpu: N whole seconds of its CPU time)
    memory              takes memory, in four processes, until there is none
    sleep               the main thread calls 100 times and sleeps
"""
import mmap
import os
import struct
import sys
import threading
import time


def leaf():
    pass


def open_oracle():
    with open("oracle", "r+b") as file:
        shared = mmap.mmap(file.fileno(), 4096)
    return memoryview(shared).cast("Q")


def call(words, entry, times, until):
    """The stores are of one word each: whoever reads them sees what was stored, whenever this process ends."""
    begun, ended, n = 2 + 2 * entry, 3 + 2 * entry, 0
    while n < times and time.time() < until:
        n += 1
        words[begun] = n
        leaf()
        words[ended] = n


def end(how, seconds, words):
    import ctypes
    while not words[2]:  # the main thread has not begun: on a busy machine this one may be far ahead
        time.sleep(0.001)
    time.sleep(seconds)
    if how == "os_exit":
        os._exit(7)
    if how == "abort":
        os.abort()
    if how == "segfault":
        ctypes.string_at(0)
    if how == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "import sys; sys.exit(9)"])
    if how == "exec_other":
        os.execvp("sh", ["sh", "-c", "exit 8"])


def take_memory():
    """In several processes, none of which has most of it."""
    parent = os.getpid()
    for _ in range(3):
        if os.fork() == 0:
            kept = bytearray(b"x" * (20 << 20))
            while kept and os.getppid() == parent:
                time.sleep(0.01)
            os._exit(0)
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
        time.sleep(0.002)


def forever_asleep():
    time.sleep(100)


def main(entries, how, value):
    words = open_oracle()
    times = int(value) if how == "calls" else 1 << 60
    until = time.time() + float(value) if how == "seconds" else 1e18
    forks = entries.startswith("p")
    count = int(entries.lstrip("p"))
    workers = []
    for entry in range(1, count):
        if not forks:
            workers.append(threading.Thread(target=call, args=(words, entry, times, until), daemon=True))
            workers[-1].start()
        elif os.fork() == 0:
            call(words, entry, times, until)
            os._exit(0)
    if how in ("os_exit", "abort", "segfault", "exec", "exec_other"):
        threading.Thread(target=end, args=(how, float(value), words), daemon=True).start()
    if how == "cpu":
        import resource
        resource.setrlimit(resource.RLIMIT_CPU, (int(value), int(value)))
    if how == "memory":
        threading.Thread(target=take_memory, daemon=True).start()
    words[0] = os.getpid()
    if how == "sleep":
        call(words, 0, 100, until)
        forever_asleep()
    call(words, 0, times, until)
    for worker in workers:
        worker.join()
    for _ in range(1, count if forks else 1):
        os.wait()
    print("counted", count)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "0")
