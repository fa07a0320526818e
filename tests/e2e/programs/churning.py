"""Looks at itself while threads begin and end: python churning.py EVPROF.

Five threads wait all the time: each look has to be one, and has to have these. Prints what was not so, or "same".
"""
import ctypes
import json
import os
import subprocess
import sys
import threading

EVPROF, LOOKS, PARKED = sys.argv[1], 30, 5
ctypes.PyDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too
never = threading.Event()


def parked():
    never.wait()


def ends():
    pass


def churns():
    while True:
        threads = [threading.Thread(target=ends) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def look():
    """How many threads are in parked(), or the line that says why there is no answer."""
    tool = subprocess.Popen([EVPROF, "stack", "--json", str(os.getpid())], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text, complaint = tool.communicate()
    if tool.returncode:
        return complaint.decode()
    (process,) = json.loads(text.decode())["processes"]
    return sum("parked" in [frame["function"] for frame in thread["frames"]] for thread in process["threads"])


for target in [parked] * PARKED + [churns] * 2:
    threading.Thread(target=target, daemon=True).start()
differences = [seen for seen in (look() for _ in range(LOOKS)) if seen != PARKED]
print(ascii(differences) if differences else "same")
sys.stdout.flush()
os._exit(0)
