"""Has evprof stack print the stacks of its parked threads: python stacked.py EVPROF.

The oracle is faulthandler, which prints them itself, before and after: each thread's functions and lines are the same in all three.
The name of a thread is what it waits for, as --json names it. Ends with status 1 and a line for each difference.
"""
import ctypes
import faulthandler
import functools
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time

EVPROF = sys.argv[1]
C = ctypes.PyDLL(None)  # calls hold the GIL
held, pipe, differences = threading.Lock(), os.pipe(), []
held.acquire()
C.prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too


class Deep:
    def recurses(self, depth):
        if depth:
            return self.recurses(depth - 1)
        held.acquire()


class Names(threading.Thread):
    """A class of its own, with attributes, and a name that is no ASCII."""
    def __init__(self, target):
        super().__init__(name="lock \u00e9\u4e2d\U0001f40d", daemon=True)
        self.before, self.work = "before", target

    def run(self):
        self.work()


def sleeps():
    time.sleep(1000)


def waits():
    held.acquire()


def reads():
    os.read(pipe[0], 1)


def selects():
    select.select([pipe[0]], [], [])


def generator():
    with held:
        yield


def in_generator():
    for _ in (number for number in (next(generator()) for _ in range(1))):
        pass


def by_sorted():
    sorted([1], key=lambda number:
           held.acquire())


def in_exec():
    exec(compile("\n\n\ndef inner():\n    held.acquire()\ninner()", "<made here>", "exec"), {"held": held})


def in_with():
    try:
        1 / 0
    except ZeroDivisionError:
        functools.partial(
            held.acquire,
            True)()


def for_child():
    child = subprocess.Popen(["sleep", "1000"])
    children.append(child)
    os.waitpid(child.pid, 0)


def spins():
    while True:
        pass


def at_faulthandler():
    """The stacks of all threads but this one, by ident."""
    found, frames = {}, None
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        for line in file:
            head = re.match(r"(Current thread|Thread) (0x[0-9a-f]+)", line)
            frame = re.match(r'  File "(.*)", line (\d+) in (.*)', line)
            if head:
                frames = found.setdefault(int(head.group(2), 16), [])
            elif frame:
                frames.append([frame.group(1), int(frame.group(2)), frame.group(3)])
    return found


def at_evprof(text):
    (process,) = json.loads(text)["processes"]
    if process["pid"] != os.getpid() or process["python"] != "%d.%d.%d" % sys.version_info[:3]:
        differences.append("process: %s" % {name: process[name] for name in ("pid", "python")})
    return {thread["name"]: thread for thread in process["threads"]}


def compare(before, seen, after):
    for thread in threading.enumerate():
        if thread in (asker, spinner):
            continue
        its = seen.get(thread.name)
        frames = its and [[frame["file"], frame["line"], frame["function"]] for frame in its["frames"]]
        # faulthandler prints the innermost hundred, and names in ASCII
        if not its or before[thread.ident] != after[thread.ident] or frames[:100] != before[thread.ident] or not its["complete"]:
            differences.append("%s: evprof %s, faulthandler %s" % (ascii(thread.name), frames, before[thread.ident]))
        wanted = "lock" if thread is threading.main_thread() else thread.name.split()[0]
        if its and its["waits"] != wanted:
            differences.append("%s waits for %s (%s)" % (ascii(thread.name), its["waits"], its["detail"]))
        if hasattr(thread, "native_id") and its and its["tid"] != thread.native_id:
            differences.append("%s: thread %s" % (ascii(thread.name), its["tid"]))
    if len(seen["lock deep"]["frames"]) != 605:
        differences.append("%d frames in the deep one" % len(seen["lock deep"]["frames"]))


def count_running():
    """The threads that run, or would with a processor; this one is among them."""
    count = 0
    for tid in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/stat" % tid) as file:
            count += file.read().rpartition(") ")[2].startswith("R")
    return count


def await_parked():
    """Until each thread is in its last function, and stays at one line, and none would run."""
    before, count = None, 0
    while True:
        found = at_faulthandler()
        last = [found.get(thread.ident, [[None] * 3])[0][2] for thread in parked]
        if last == wanted and found == before and count == 1:
            return
        before, count = found, count_running()
        time.sleep(0.5)


def hold_gil():
    """While this thread waits for a child with the GIL, the other one waits for the GIL, without a look at it every 5 ms. What was seen.

    The other one may get the GIL before the wait begins.
    """
    script = 'for i in 1 2 3; do sleep 0.2; "$0" stack --json "$1" >"look-$i"; done'
    process = subprocess.Popen(["sh", "-c", script, EVPROF, str(os.getpid())])
    sys.setswitchinterval(10)
    C.waitpid(process.pid, None, 0)
    sys.setswitchinterval(0.005)
    process.wait()
    found = []
    for name in "look-1", "look-2", "look-3":
        with open(name) as file:
            seen = at_evprof(file.read())
        if seen["asker"]["waits"] == "child" and seen["asker"]["frames"][0]["function"] == "hold_gil":
            found.append((seen["spinner"]["waits"], seen["spinner"]["frames"][0]["function"]))
    return found


def asks():
    await_parked()
    before = at_faulthandler()
    text = subprocess.check_output([EVPROF, "stack", "--json", str(os.getpid())])
    compare(before, at_evprof(text.decode()), at_faulthandler())
    spinner.start()
    found = hold_gil() or hold_gil() or hold_gil() or hold_gil()
    if set(found) != {("gil", "spins")}:
        differences.append("spinner: %s" % found)
    for child in children:
        child.kill()
    print("\n".join(differences) or "same")
    sys.stdout.flush()
    os._exit(1 if differences else 0)


children = []
targets = [(sleeps, "sleep", "sleeps"), (waits, "lock plain", "waits"), (reads, "io read", "reads"), (selects, "io select", "selects"),
           (in_generator, "lock generator", "generator"), (by_sorted, "lock sorted", "<lambda>"), (in_exec, "lock exec", "inner"),
           (in_with, "lock with", "in_with"), (for_child, "child", "for_child"),
           (lambda: Deep().recurses(600), "lock deep", "recurses")]
parked = [threading.Thread(target=target, name=name, daemon=True) for target, name, _ in targets] + [Names(waits)]
wanted = [last for _, _, last in targets] + ["waits"]  # the function that each is in
for thread in parked:
    thread.start()
asker, spinner = (threading.Thread(target=target, name=name, daemon=True) for target, name in ((asks, "asker"), (spins, "spinner")))
asker.start()
held.acquire()
