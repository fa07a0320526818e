"""Goes into a user namespace in which nobody has a number, as another user first where one is given; then forks."""
import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000


def leaf():
    pass


def work():
    for _ in range(100):
        leaf()


work()
if len(sys.argv) > 1:
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER):
    sys.exit("no user namespace: " + os.strerror(ctypes.get_errno()))
pid = os.fork()
work()
if not pid:
    os._exit(0)
print(os.waitpid(pid, 0)[1])
