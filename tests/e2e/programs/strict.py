"""strict.py seccomp|counter|stopped: works, has the kernel forbid the time-stamp counter to this thread, and works on.

seccomp: by the strict mode, in which a thread can read, write, and end by the system call exit, which Python does not use.
stopped: as counter, while the recording is stopped.
"""
import ctypes
import os
import platform
import sys

import known

PR_SET_SECCOMP, PR_SET_TSC = 22, 26
SECCOMP_MODE_STRICT, PR_TSC_SIGSEGV = 1, 2
libc = ctypes.CDLL(None)
leave = libc.syscall, {"x86_64": 60, "aarch64": 93}[platform.machine()]

known.everything()
strict = sys.argv[1] == "seccomp"
if sys.argv[1] == "stopped" and hasattr(libc, "evprof_stop"):
    ctypes.PyDLL(None).evprof_stop()
if libc.prctl(PR_SET_SECCOMP if strict else PR_SET_TSC, SECCOMP_MODE_STRICT if strict else PR_TSC_SIGSEGV, 0, 0, 0):
    os.write(1, b"refused\n")
known.everything()
os.write(1, b"worked on\n")
leave[0](leave[1], 3)
