"""limits_itself.py FUNCTION MEBIBYTES WORD...: limits its own address space, takes most of it, and goes on as counting.py.

FUNCTION file_size: limits the size of its files, and a larger one ends it, as it does programs that are not Python.
"""
import resource
import signal
import sys

import counting

mebibytes = int(sys.argv[2])
limits = (mebibytes << 20, mebibytes << 20)
if sys.argv[1] == "file_size":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    counting.main(*sys.argv[3:])
    sys.exit()
if sys.argv[1] == "prlimit":
    resource.prlimit(0, resource.RLIMIT_AS, limits)
else:
    resource.setrlimit(resource.RLIMIT_AS, limits)
blocks = [bytearray(1 << 20) for _ in range(mebibytes - 90)]
print("blocks", len(blocks), resource.getrlimit(resource.RLIMIT_AS))
del blocks
counting.main(*sys.argv[3:])
