"""may_not_peek.py PROGRAM [ARGUMENT...]: becomes that Python program where process_vm_readv is refused, as in old containers."""
import errno
import os
import sys

import seccomp_filter

seccomp_filter.put_on("prctl", ["process_vm_readv", "process_vm_writev"], seccomp_filter.ERROR | errno.EPERM)
os.execv(sys.executable, [sys.executable] + sys.argv[1:])
