"""small_stack.py LIBRARY WAY SIZE: works, then does what the way says in a signal handler, on a stack of that size."""
import ctypes
import sys

import known

known.everything()
library = ctypes.CDLL(sys.argv[1])
print("begins", flush=True)
print("came back", library.small_stack(sys.argv[2].encode(), ctypes.c_ulong(int(sys.argv[3]))))
known.everything()
