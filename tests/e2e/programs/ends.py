"""Ends in the way that its argument names, after known work. The trace must hold the work whatever the end is."""
import ctypes
import os
import signal
import sys

import known


def last_words():
    known.work(100)


def end(how):
    if how == "exit3":
        sys.exit(3)
    if how == "text":
        sys.exit("a text")
    if how == "exception":
        raise ValueError("not caught")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "os_exit":
        os._exit(4)
    if how == "libc_exit":
        ctypes.CDLL(None).exit(5)
    if how == "abort":
        os.abort()
    if how == "segfault":
        ctypes.string_at(0)
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
        signal.pause()
    if how == "atexit":
        import atexit
        atexit.register(last_words)


if __name__ == "__main__":
    print("begin")
    sys.stdout.flush()
    known.everything()
    end(sys.argv[1])
