"""confines_itself.py prctl|syscall|execute: puts on a filter that kills at calls that it does not make itself, and works on.

execute NAME: what it executes does, and only that is recorded; the filter kills at the call of this name, or at none.
"""
import ctypes
import os
import platform
import struct
import sys
import threading

import known

# memfd_create, socket, connect, sendmsg, pidfd_open, kill, seccomp; in the order of the last one
NUMBERS = {"x86_64": (319, 41, 42, 46, 434, 62, 317), "aarch64": (279, 198, 203, 211, 434, 129, 277)}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000

NAMES = "memfd_create socket connect sendmsg pidfd_open kill".split()

numbers = NUMBERS[platform.machine()]
if sys.argv[1] == "execute":
    numbers = [number for number, name in zip(numbers, NAMES) if name in sys.argv[2:]] + [numbers[-1]]
steps = [(LOAD, 0, 0, 0)]
for number in numbers[:-1]:
    steps += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, KILL_PROCESS)]
steps.append((RETURN, 0, 0, ALLOW))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
print("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
if sys.argv[1] != "syscall":
    print("filter", libc.prctl(PR_SET_SECCOMP, 2, program))
else:
    print("filter", libc.syscall(numbers[-1], 1, 0, program))
if sys.argv[1] == "execute":
    sys.stdout.flush()
    del os.environ["EVPROF"]
    os.execv(sys.executable, [sys.executable, known.__file__])
known.everything()
thread = threading.Thread(target=known.everything)
thread.start()
thread.join()
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    known.everything()
    os._exit(3)
print("child", os.waitpid(pid, 0)[1])
