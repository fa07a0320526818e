"""Frees every other one of many blocks of malloc(), and prints the bytes that glibc has free in its heap; 0: it cannot say."""
import ctypes
import os


class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
                                                     "fordblks", "keepcost")]


libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
blocks = [libc.malloc(1000) for i in range(60000)]
for block in blocks:
    libc.memset(block, 1, 1000)
for block in blocks[::2]:
    libc.free(block)
free = 0
if hasattr(libc, "mallinfo2"):
    libc.mallinfo2.restype = Info
    free = libc.mallinfo2().fordblks
print(free, flush=True)
os._exit(0)
