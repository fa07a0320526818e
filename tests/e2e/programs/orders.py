"""Gives orders at random to many processes: python orders.py EVPROF_FOLDER SECONDS PROCESSES SEED KIND[,KIND...].

Keeps PROCESSES workers (under_orders.py) of the KINDs running for SECONDS. "whole" records to a daemon from its start, "kept" keeps its
last seconds there, and "bare" runs without evprof. Meanwhile processes are stopped, started, marked, copied, attached to and detached from, or
record other events, in any order. At the end each trace is read (evprof dump) and each rule of the workers is held against it: the stacks of
all threads, the number of calls in each call that is whole, and the requests of each process that was never stopped. Prints what it found as
JSON: "wrong" is a list of sentences.
"""
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER, SECONDS, PROCESSES, SEED = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
KINDS = sys.argv[5].split(",")
EVPROF = os.path.join(FOLDER, "evprof")
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "under_orders.py")
TAG = "ORDERS_TAG=%d.%d" % (os.getpid(), SEED)
CALLED_BY = {"leaf": "step", "step": "request"}
CALLS = {"step": ("leaf", 5), "request": ("step", 3)}

EVENTS = ["call", "call,c_call", "call,exception", "call,line"]  # calls are counted, so they are always recorded

TO_JOIN = 2  # seconds until a worker gets its first order
TO_FOLLOW = 60  # seconds until an image that goes on has followed an order

chance = random.Random(SEED)
directory = tempfile.mkdtemp(prefix="orders.", dir=os.getcwd())
traces = os.path.join(directory, "traces")
log = os.path.join(directory, "log")
wrong = []
done = collections.Counter()


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVPROF", "LD_PRELOAD"))}
    kept.update(more)
    name, _, value = TAG.partition("=")
    kept[name] = value
    return kept


class Worker:
    """A worker of one of the KINDS."""

    def __init__(self, number):
        self.kind = KINDS[number % len(KINDS)]
        more = {"PYTHONWARNINGS": "ignore"}  # of a fork with threads
        if self.kind != "bare":
            more.update({"LD_PRELOAD": os.path.join(FOLDER, "libevprof.so"), "EVPROF_EVENTS": "call",
                    "EVPROF_SOCKET": os.path.join(directory, "socket")})
        if self.kind == "kept":
            more["EVPROF_KEEP"] = "2s"
        self.process = subprocess.Popen([sys.executable, WORKER, log, "%.3f" % chance.uniform(2, 20), str(SEED + number)],
                                        env=environment(**more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.stopped, self.attached, self.unsure = False, None, None  # the latter two are images (start_of)
        self.began = time.monotonic()
        self.traces = 0

    def runs(self):
        return self.process.poll() is None

    def ended(self):
        """Its stderr has nothing but evprof's closing lines."""
        for line in self.process.stderr.read().decode("utf-8", "replace").splitlines():
            if not (line.startswith("evprof: ") and " events of " in line and ", 0 lost" in line):
                wrong.append("%s %d wrote: %s" % (self.kind, self.process.pid, line))
        self.process.stderr.close()


def evprof(*words):
    """The exit status and what it said."""
    ran = subprocess.run([EVPROF] + list(words), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return ran.returncode, ran.stdout.decode("utf-8", "replace").strip()


def attach_words(worker):
    worker.traces += 1
    output = os.path.join(traces, "attached-%d-%d.evp" % (worker.process.pid, worker.traces))
    return ["attach", "-q", "--events", "call", "-o", output]


def order(worker):
    """One order to one worker. One that ends or executes itself meanwhile need not follow; any other does, within TO_FOLLOW."""
    pid, socket = str(worker.process.pid), ["--socket", os.path.join(directory, "socket")]
    started, end = start_of(pid), time.monotonic() + TO_FOLLOW
    if worker.kind == "bare":
        name = "detach" if worker.attached == started else "attach"
        words = ["detach", "-q"] if name == "detach" else attach_words(worker)
    else:
        name = chance.choice(["stop", "start", "events", "mark", "snapshot"])
        words = {"events": ["start", "--events", chance.choice(EVENTS)] + socket,
                 "mark": ["mark"] + socket + ["a mark"],
                 "snapshot": ["snapshot", "-q", "-o", next_snapshot(pid)] + socket}.get(name, [name] + socket)
        worker.stopped = worker.stopped or name == "stop"
    status, said = evprof(*(words + [pid]))
    done[name] += 1
    done["too late"] += status != 0
    # An image that begins is not there yet, and one that ends no longer, for as long as the machine takes.
    while status != 0 and worker.runs() and started == start_of(pid) and started != worker.unsure:
        if time.monotonic() > end:
            wrong.append("%s of %s %s, which goes on, ended with %d: %s" % (name, worker.kind, pid, status, said))
            break
        time.sleep(0.5)
        status, said = evprof(*(words + [pid]))
    worker.attached = started if name == "attach" and status == 0 else None
    if started != start_of(pid):
        worker.unsure = start_of(pid)  # the order may have reached this image or the one before


def start_of(pid):
    """What differs between two images of a pid: the address of its first stack."""
    try:
        with open("/proc/%s/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[25]
    except OSError:
        return ""


def next_snapshot(pid):
    return os.path.join(traces, "snapshot-%s-%d.evp" % (pid, done["snapshot"]))


class Thread:
    """Follows the events of one thread of an image. A stack is a list of [name, calls made, whole]; None: not known."""

    def __init__(self, trace, pid):
        self.where, self.stack, self.pending = "%s, process %s" % (os.path.basename(trace), pid), [], 0

    def blame(self, text):
        wrong.append("%s: %s" % (self.where, text))

    def call(self, name):
        if self.stack is None:
            return
        above = self.stack[-1][0] if self.stack else None
        if name in CALLED_BY and above not in (CALLED_BY[name], None):
            self.blame("%s is called by %s" % (name, above))
        if self.stack:
            self.stack[-1][1][name] += 1
        self.stack.append([name, collections.Counter(), True])

    def back(self, name):
        if self.stack is None:
            return
        if not self.stack or self.stack[-1][0] != name:
            self.blame("%s returns, below %s" % (name, self.stack[-1][0] if self.stack else None))
            self.stack = []
            return
        _, calls, whole = self.stack.pop()
        if whole and name in CALLS and calls[CALLS[name][0]] != CALLS[name][1]:
            self.blame("%s called %s %d times" % (name, CALLS[name][0], calls[CALLS[name][0]]))

    def frame(self, name):
        above = self.stack[-1][0] if self.stack else None
        if name in CALLED_BY and above != CALLED_BY[name]:
            self.blame("in the stack %s is above %s" % (name, above))
        self.stack.append([name, collections.Counter(), False])


#: Kinds of events that begin and end a function.
BEGINS, ENDS = ("call", "resume", "throw"), ("return", "yield", "unwind")


def judge(trace):
    """Reads a trace. Returns how many requests each process began, and whether events are missing."""
    begun, threads, missing = collections.Counter(), {}, False
    ran = subprocess.Popen([EVPROF, "dump", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    for line in ran.stdout:
        _, pid, tid, kind, *rest = line.decode("utf-8", "replace").rstrip("\n").split("\t")
        if kind == "process_start":
            for key in [key for key in threads if key[0] == pid]:
                del threads[key]
        if kind in ("process_start", "thread_end"):
            threads.pop((pid, tid), None)
            continue
        thread = threads.get((pid, tid))
        if not thread:
            thread = threads[pid, tid] = Thread(trace, pid)
        if kind in BEGINS:
            begun[pid] += kind == "call" and rest[0] == "request"
            thread.call(rest[0])
        elif kind in ENDS:
            thread.back(rest[0])
        elif kind == "stack":
            thread.stack = []
        elif kind == "frame":
            thread.frame(rest[0])
        elif kind in ("pause", "gap"):
            missing = missing or kind == "gap"
            thread.stack = None
    said = ran.stderr.read().decode("utf-8", "replace")
    if ran.wait() != 0 or said:
        wrong.append("%s: dump ends with %d: %s" % (os.path.basename(trace), ran.returncode, said))
    return begun, missing


def judge_counts(begun, logged, stopped):
    """A process that recorded all the time has all its requests, even one that was killed."""
    for pid in logged:
        if pid not in stopped and begun[pid] != logged[pid]:
            wrong.append("process %s began %d requests, and %d are in its trace" % (pid, logged[pid], begun[pid]))


def read_log():
    """The requests of each process, over all its images."""
    logged = collections.Counter()
    with open(log) as lines:
        for line in lines:
            process = json.loads(line)
            logged[str(process["pid"])] += process["requests"]
            if process["before"] != process["after"]:
                wrong.append("process %d had descriptors and threads %s, and at its end %s"
                             % (process["pid"], process["before"], process["after"]))
    return logged


def left_behind():
    """The processes that have TAG in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                if TAG.encode() in file.read().split(b"\0") and int(pid) != os.getpid():
                    found.append(pid)
        except OSError:
            pass
    return found


def run_workers(workers):
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        running = [worker for worker in workers if worker.runs()]
        while len(running) < PROCESSES:
            running.append(Worker(number))
            workers.append(running[-1])
            number += 1
        ready = [worker for worker in running if time.monotonic() - worker.began > TO_JOIN]
        if ready:
            order(chance.choice(ready))
        time.sleep(chance.uniform(0, 0.05))


def main():
    os.mkdir(traces)
    daemon = subprocess.Popen([os.path.join(FOLDER, "evprof-collector"), "--socket", os.path.join(directory, "socket"),
                               "--output-dir", traces], env=environment())
    while not os.path.exists(os.path.join(directory, "socket")):
        time.sleep(0.01)
    workers = []
    try:
        run_workers(workers)
    finally:
        for worker in workers:
            worker.process.wait(60)
            worker.ended()
        daemon.terminate()
        daemon.wait(60)
    end = time.monotonic() + 10
    while left_behind() and time.monotonic() < end:
        time.sleep(0.1)
    wrong.extend("process %s is left behind" % pid for pid in left_behind())
    begun, missing = collections.Counter(), False
    names = sorted(os.listdir(traces))
    for name in names:
        found, gap = judge(os.path.join(traces, name))
        if name.startswith("evprof-"):
            begun.update(found)
        missing = missing or gap
    logged = read_log()
    unknown = {str(worker.process.pid) for worker in workers if worker.stopped or worker.kind != "whole"}
    children = set(logged) - {str(worker.process.pid) for worker in workers}
    judge_counts(begun, logged, unknown | children)
    if not wrong:
        shutil.rmtree(directory)
    print(json.dumps({"wrong": wrong[:20], "found": len(wrong), "done": done, "traces": len(names), "missing": missing,
                      "processes": len(logged), "requests": sum(begun.values())}))


main()
