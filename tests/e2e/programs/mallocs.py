"""Calls mallocs.c (first argument: the library) as the further arguments say."""
import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_DEEPBIND if "deepbind" in sys.argv else 0)
what = sys.argv[2]


def called(number):
    return number


def calls(turns):
    for number in range(turns):
        called(number)
        len("")


if what == "threads":
    library.mallocs_threads(int(sys.argv[3]), int(sys.argv[4]))
elif what == "end":
    library.mallocs_end()
elif what == "cancelled":
    library.mallocs_cancelled()
elif what == "fork":
    library.mallocs_fork(int(sys.argv[3]))
elif what == "exit":
    library.mallocs_at_exit()
elif what == "storm":
    library.mallocs_storm(ctypes.c_long(int(sys.argv[3])))
    calls(int(sys.argv[4]))
    library.mallocs_storm(ctypes.c_long(0))
elif what == "failing":
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    library.mallocs_failing(ctypes.c_size_t(8 << 30))
elif what == "keep":
    library.mallocs_keep.restype = ctypes.c_void_p
    for number in range(10):
        library.mallocs_keep(ctypes.c_size_t(5000011 + number))
sys.stdout.flush()
