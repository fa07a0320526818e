"""refuses.py ERROR CALL,... COMMAND [ARGUMENT...]: becomes that command where the kernel refuses these calls, as in old containers.

"python" in the command stands for the interpreter that runs this.
"""
import errno
import os
import sys

import seccomp_filter

seccomp_filter.put_on("prctl", sys.argv[2].split(","), seccomp_filter.ERROR | getattr(errno, sys.argv[1]))
os.environ.pop("EVPROF", None)  # which is 0 for this program
command = [sys.executable if word == "python" else word for word in sys.argv[3:]]
os.execv(command[0], command)
