"""entering.py LIBRARY: threads of C code (entering.c) enter Python again and again, each time with a new thread state."""
import ctypes
import sys

import known

library = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
address = [ctypes.cast(getattr(api, name), ctypes.c_void_p)
           for name in ("PyGILState_Ensure", "PyGILState_Release", "PyRun_SimpleString")]
print(library.enter_in_threads(*address, b"import known; known.work(5)", 4, 100))
