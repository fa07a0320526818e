"""small_stack.py WAY SIZE: works, then has a signal handler on an alternate stack of that size do what the way says."""
import ctypes
import sys

import known

known.everything()
library = ctypes.CDLL("./small_stack.so")
print("begins", flush=True)
print("came back", library.small_stack(sys.argv[1].encode(), ctypes.c_ulong(int(sys.argv[2]))))
known.everything()
