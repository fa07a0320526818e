"""Calls limits.c (first argument: the library) as the further arguments say."""
import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1])
library.limits_make_elsewhere.restype = ctypes.c_void_p
what = sys.argv[2]
STEP = 1000003


def keep_bytes(kept):
    kept.append(b"x" * STEP)


def keep_block():
    library.limits_step()


def steps(turns):
    """A block of Python's and one of C's in turn."""
    kept = []
    library.limits_open_oracle()
    for _ in range(turns):
        library.limits_begin(0)
        keep_bytes(kept)
        library.limits_end(0)
        keep_block()


def fill(kept):
    while True:
        kept.append(bytearray(10000019))


def memory_error(room):
    """Takes memory until there is none; goes on with what is free again."""
    import resource
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    kept = []
    try:
        fill(kept)
    except MemoryError as error:
        message = "MemoryError %s, %s" % (error.args, "some" if len(kept) > 3 else "none")
    library.limits_end_late()
    kept.clear()
    print(message, len(bytes(10000033)))


def map_much(count, size):
    """Reserves count times size bytes, and uses a page of each."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    private, anonymous, noreserve = 2, 0x20, 0x4000
    for number in range(count):
        at = libc.mmap(None, size, (number % 2) * 3, private | anonymous | noreserve, -1, 0)
        assert at and at != ctypes.c_void_p(-1).value
        assert not libc.mprotect(at, 4096, 3)
        ctypes.memset(at, 1, 4096)
    print("mapped", count * size)


def many(count, size):
    library.limits_many(ctypes.c_ulong(count), ctypes.c_ulong(size))


def unseen():
    evprof = ctypes.CDLL(None)
    evprof.evprof_stop()
    library.limits_make_unseen()
    evprof.evprof_start()
    library.limits_free_unseen()
    other = ctypes.CDLL(sys.argv[3], mode=os.RTLD_DEEPBIND)
    other.limits_make_elsewhere.restype = ctypes.c_void_p
    for number in range(1000):
        library.limits_free_elsewhere(ctypes.c_void_p(other.limits_make_elsewhere(ctypes.c_ulong(7001 + number))))
        other.limits_free_elsewhere(ctypes.c_void_p(library.limits_make_elsewhere(ctypes.c_ulong(9001 + number))))


if what == "steps":
    steps(int(sys.argv[3]))
elif what == "forever":
    library.limits_open_oracle()
    library.limits_forever(int(sys.argv[3]))
elif what == "memory_error":
    library.limits_begin_late()
    memory_error(int(sys.argv[3]))
elif what == "map":
    map_much(int(sys.argv[3]), int(sys.argv[4]))
elif what == "many":
    many(int(sys.argv[3]), int(sys.argv[4]))
elif what == "unseen":
    unseen()
sys.stdout.flush()
