"""Has evprof sample it from outside: python sampled_outside.py EVPROF TRACE SECONDS. Prints as JSON what it saw of itself.

While it is sampled, long() spins three times as long as short(), and both are measured; a thread waits in waits(). "before" and "during" are
its descriptors, threads, mapped files and tracer.
"""
import json
import os
import subprocess
import sys
import threading
import time

EVPROF, TRACE, SECONDS = sys.argv[1:4]
over = threading.Event()


def spin(seconds):
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        pass
    return time.perf_counter() - begin


def warm():
    return spin(0.5)


def short():
    return spin(0.5)


def long():
    return spin(1.5)


def waits():
    over.wait()


def tracer():
    with open("/proc/self/status") as status:
        return [line.split()[1] for line in status if line.startswith("TracerPid:")]


def look():
    with open("/proc/self/maps") as maps:
        files = sorted({line.split()[5] for line in maps if "/" in line})
    return {"descriptors": sorted(os.listdir("/proc/self/fd")), "threads": sorted(os.listdir("/proc/self/task")), "files": files,
            "tracer": tracer()}


threading.Thread(target=waits).start()
tool = subprocess.Popen([EVPROF, "attach", "--sample=200", "--for", SECONDS, "-o", TRACE, str(os.getpid())], stderr=subprocess.PIPE)
before = look()
said = tool.stderr.readline().decode()
warm()  # the sampler starts
during = look()
spent = {"short": short(), "long": long()}
said += tool.stderr.read().decode()
status = tool.wait()
over.set()
print(json.dumps({"before": before, "during": during, "status": status, "said": said, "spent": spent}))
