"""Starts as root and gives that up, then spoils what its shared memory says of where things are.

Prints the users and the capabilities of its sampler, before and after.
"""
import ctypes
import os
import sys
import threading
import time

USER = 65534


def find_sampler():
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as file:
                if b"\0--sample\0%d:" % os.getpid() in file.read():
                    return int(entry)
        except OSError:
            pass
    return None


def status(pid, *names):
    with open("/proc/%d/status" % pid) as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return " ".join(lines[name].replace("\t", " ") for name in names)


def spin(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass


def spoil(size):
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split()
            if "/memfd:evprof" in line and fields[1].startswith("rw") and int(fields[2], 16) == 0:
                ctypes.memset(int(fields[0].split("-")[0], 16), 0x41, size)
                return
    sys.exit("no shared memory")


sampler = find_sampler()
while not sampler:
    spin(0.01)
    sampler = find_sampler()
spin(0.2)
print(status(sampler, "Uid", "Gid"))
os.setgroups([])
os.setresgid(USER, USER, USER)
os.setresuid(USER, USER, USER)
spoil(int(sys.argv[1]))
threads = [threading.Thread(target=spin, args=(0.5,)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
spin(0.3)
print(status(sampler, "Uid", "Gid", "CapPrm", "CapEff", "Groups").strip())
