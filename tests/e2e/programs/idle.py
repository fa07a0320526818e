"""idle.py LIBRARY [EVPROF]: a thread of C code (entering.c) enters Python, calls works(), which sleeps, and leaves it, but stays.

Prints what evprof stack says then; without EVPROF how long works() took, and that only after it has been idle for twice as long.
"""
import ctypes
import os
import subprocess
import sys
import time

took = []


def works():
    begin = time.perf_counter()
    time.sleep(0.3)
    took.append(time.perf_counter() - begin)


library = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
ctypes.PyDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too
address = [ctypes.cast(getattr(api, name), ctypes.c_void_p)
           for name in ("PyGILState_Ensure", "PyEval_SaveThread", "PyRun_SimpleString")]
if library.stay_in_thread(*address, b"import __main__; __main__.works()") != 0:
    sys.exit("there is no such thread")
if sys.argv[2:]:
    subprocess.check_call([sys.argv[2], "stack", str(os.getpid())])
else:
    time.sleep(0.6)
    print("works %.6f" % took[0])
