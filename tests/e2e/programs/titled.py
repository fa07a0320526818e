"""titled.py: what setproctitle does: the process writes another command line over its own, shorter and with zeros behind it.
Forks two workers; each has its own title and says what the system shows of it."""
import ctypes
import os
import sys
import time


def place_of_arguments():
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[45]), int(fields[46])


def set_title(text):
    begin, end = place_of_arguments()
    room = end - begin
    ctypes.memmove(begin, text.encode()[:room - 1].ljust(room, b"\0"), room)


def shown():
    with open("/proc/self/cmdline", "rb") as file:
        return file.read().rstrip(b"\0").decode()


def worker(number):
    set_title("titled: worker %d" % number)
    print(os.getpid(), shown(), flush=True)
    for _ in range(4):
        time.sleep(.1)
    os._exit(0)


set_title("titled: main")
print(os.getpid(), shown(), flush=True)
time.sleep(.1)
children = []
for number in range(2):
    pid = os.fork()
    if pid == 0:
        worker(number)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
time.sleep(.1)
