"""refuses_untraced.py COMMAND...: becomes the command, under a filter that refuses clone() with CLONE_UNTRACED, as qemu-user does."""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, JUMP_IF_ANY, RETURN = 0x20, 0x15, 0x45, 0x06
ERROR, ALLOW = 0x00050000, 0x7FFF0000
CLONE, CLONE_UNTRACED = {"x86_64": 56, "aarch64": 220}[platform.machine()], 0x00800000
ARGUMENT = 16  # of struct seccomp_data: the low half of the first argument

steps = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 3, CLONE), (LOAD, 0, 0, ARGUMENT), (JUMP_IF_ANY, 0, 1, CLONE_UNTRACED),
         (RETURN, 0, 0, ERROR | errno.EINVAL), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0
assert libc.syscall(CLONE, CLONE_UNTRACED | 17, 0, 0, 0, 0) == -1 and ctypes.get_errno() == errno.EINVAL
os.execv(sys.argv[1], sys.argv[1:])
