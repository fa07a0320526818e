"""Sets the C library's errno and looks at it again after Python code, allocations and C calls ran."""
import ctypes

import known

libc = ctypes.CDLL(None)
libc.__errno_location.restype = ctypes.POINTER(ctypes.c_int)
errno = libc.__errno_location()


def probe(n):
    for i in range(n):
        known.leaf()
        [].append(i)
    return [bytearray(i) for i in range(2000)]


def main():
    probe(1000)
    wrong = 0
    for value in range(1, 60):
        errno[0] = value
        probe(3000)
        if errno[0] != value:
            wrong += 1
    print("wrong", wrong)


main()
