"""Finds interpreters and runs programs in them, bare or under a profiler. Everybody in lib/ uses this.

Interpreters are those that tests/interpreters/find.sh names; some of them live in a file system root of their own.
"""
import atexit
import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BENCH = os.path.join(REPO, "tests", "bench")
HARNESS = os.path.join(BENCH, "harness.py")
WORKLOADS = os.path.join(os.path.dirname(REPO), "shared", "workloads")
BUILD = os.environ.get("EVPROF_BUILD") or os.path.join(REPO, "build")  # make bench says which
LIBRARY = os.path.join(BUILD, "libevprof.so")
COLLECTOR = os.path.join(BUILD, "evprof-collector")
EVPROF = os.path.join(BUILD, "evprof")
EMPTY_HOOK = os.path.join(BUILD, "bench", "libemptyhook.so")
MALLOCS = os.path.join(BUILD, "bench", "libmallocs.so")
LEAST_HOOK = os.path.join(BUILD, "bench", "libleasthook.so")
LEAST_PYTHON_MEMORY = os.path.join(BUILD, "bench", "libleastpython.so")
LEAST_MALLOC = os.path.join(BUILD, "bench", "libleastmalloc.so")
EMPTY_MEMORY = os.path.join(BUILD, "bench", "libemptymemory.so")
WHOLE = os.path.join(BUILD, "bench", "whole")

FIRST_MINOR = 8  # PySys_AddAuditHook, by which the empty hook starts
TIMEOUT_S = 300

Result = collections.namedtuple("Result", "status out err wall_s cpu_s peak_kib")


class Failed(Exception):
    """A run that did not end as it should; the text goes into the report."""


class Interpreter:
    """One line of tests/interpreters/find.sh. `command` starts it; `minor` is the N of 3.N."""

    def __init__(self, line):
        self.full_version, self.name, version, features, *self.command = line.split("\t")
        self.minor = int(version.split(".")[1])
        self.features = features.split(",")

    @classmethod
    def at(cls, other, path):
        """The same interpreter by another path."""
        copy = cls.__new__(cls)
        copy.__dict__.update(other.__dict__, command=other.command[:-1] + [path])
        return copy

    def has(self, module):
        if module in self.features:
            return True
        return not run(self, ["-c", "import " + module], environment()).status


def find(wanted, messages):
    """What find.sh finds, without the versions that the bench does not compare: free-threaded ones only where asked for."""
    env = environment()
    if wanted:
        env["EVPROF_TEST_PYTHONS"] = " ".join(wanted)
    script = os.path.join(REPO, "tests", "interpreters", "find.sh")
    done = subprocess.run(["sh", script], env=env, stdout=subprocess.PIPE, text=True)
    found = []
    for line in done.stdout.splitlines():
        if line.endswith("\tmissing"):
            version = line.split()[0]
            if wanted or (not version.endswith("t") and int(version.split(".")[1]) >= FIRST_MINOR):
                messages.append("Python %s: not found, not measured" % version)
        elif line.split("\t")[1].startswith("3.") and (wanted or "freethreaded" not in line.split("\t")[3].split(",")):
            found.append(Interpreter(line))
    return found


def discover(wanted, messages):
    """One interpreter of each minor version, the one with sympy first; all that `wanted` names by version or name."""
    found = find(wanted, messages)
    if any("-" in name for name in wanted):
        return found
    first = {}
    for interpreter in sorted(found, key=lambda i: "sympy" not in i.features):
        if interpreter.minor >= FIRST_MINOR or wanted:
            first.setdefault(interpreter.minor, interpreter)
    return [first[minor] for minor in sorted(first)]


def environment(**more):
    """The bench's own environment without anything that changes the program or evprof."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVPROF", "PYTHON", "LD_"))}
    kept.update(PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1", **more)
    return kept


def preloaded(output, events=None, socket=None):
    """The environment of a program under evprof."""
    more = {"LD_PRELOAD": LIBRARY, "EVPROF_OUTPUT": output}
    if events:
        more["EVPROF_EVENTS"] = events
    if socket:
        more["EVPROF_SOCKET"] = socket
    return environment(**more)


def run(interpreter, arguments, env, prefix=(), end=signal.SIGKILL):
    """Runs the interpreter (or, with None, the arguments alone) to its end. Never raises for what the program did."""
    argv = list(prefix) + (interpreter.command if interpreter else []) + list(arguments)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before = time.perf_counter()
        process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        alarm = threading.Timer(TIMEOUT_S, process.send_signal, [end])
        alarm.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:  # the bench is interrupted
            process.send_signal(end)
            raise
        finally:
            alarm.cancel()
        wall = time.perf_counter() - before
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Result(process.returncode, texts[0], texts[1], wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def run_whole(interpreter, arguments, env, prefix=()):
    """run(), with the CPU time and the memory of everything that the run leaves behind, such as its collector; see whole.c.
    Raises Failed if it does not end with 0."""
    with tempfile.NamedTemporaryFile("r") as file:
        result = run(interpreter, arguments, env, [WHOLE, file.name, *prefix], signal.SIGALRM)
        figures = file.read().split()
    if not figures:
        raise Failed("a process that it has left behind does not end")
    if result.status:
        raise Failed("status %d: %s" % (result.status, last_line(result.err)))
    return result._replace(cpu_s=float(figures[0]), peak_kib=int(figures[1]))


def packages(name):
    """A folder that tests/interpreters/packages.sh fetches."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.environ.get("TEST_PACKAGES") or os.path.join(cache, "evprof", "packages"), name)


def info(paths, *options):
    """What `evprof info` says of traces."""
    done = subprocess.run([EVPROF, "info", "--json", *options, *paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "(no output)"


def measured_line(text):
    """What the harness wrote; py-spy may write something after it."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed("no figures in: " + last_line(text))
    return lines[-1]


def harness(interpreter, program, env, profiler=None, repeat=1, prefix=()):
    """One measured run: {"wall", "cpu", "python", "stderr", "total_cpu"}. Raises Failed."""
    arguments = [HARNESS, program, "--repeat", str(repeat)] + (["--with", profiler] if profiler else [])
    result = run(interpreter, arguments, env, prefix)
    if result.status:
        raise Failed("status %d: %s" % (result.status, last_line(result.err)))
    measured = json.loads(measured_line(result.out))
    measured.update(stderr=result.err, total_cpu=result.cpu_s)
    return measured


def program(name):
    """The path of a program. Those that shared/workloads has are copied, for interpreters that see this tree only."""
    shared = os.path.join(WORKLOADS, name + ".py")
    if not os.path.isfile(shared):
        return os.path.join(BENCH, "programs", name + ".py")
    copy = os.path.join(BUILD, "bench", name + ".py")
    shutil.copyfile(shared, copy)
    return copy


class Scratch:
    """A directory for trace files that is emptied as it is used."""

    def __init__(self, keep=False):
        parent = os.path.join(BUILD, "bench")
        os.makedirs(parent, exist_ok=True)
        self.path = tempfile.mkdtemp(prefix="traces-", dir=parent)
        if not keep:
            atexit.register(shutil.rmtree, self.path, True)

    def template(self):
        return os.path.join(self.path, "%n-%p.evp")

    def take(self):
        """Paths of the traces that are there, newest last."""
        return sorted(glob.glob(os.path.join(self.path, "**", "*.evp"), recursive=True), key=os.path.getmtime)

    def clear(self):
        for path in self.take():
            os.unlink(path)


def built():
    """What of evprof is missing, as a list of paths."""
    return [os.path.relpath(path, REPO) for path in (LIBRARY, COLLECTOR) if not os.access(path, os.R_OK)]


def build_hooks():
    os.makedirs(os.path.dirname(EMPTY_HOOK), exist_ok=True)
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    library = ["-fPIC", "-shared", "-ldl", "-lpthread"]
    for made, name, more in ((EMPTY_HOOK, "empty_hook.c", library), (LEAST_HOOK, "least_hook.c", library),
                             (LEAST_PYTHON_MEMORY, "least_memory.c", library + ["-DPYTHON_ALLOCATORS"]),
                             (LEAST_MALLOC, "least_memory.c", library + ["-DMALLOC"]),
                             (EMPTY_MEMORY, "least_memory.c", library + ["-DPYTHON_ALLOCATORS", "-DMALLOC", "-DEMPTY"]),
                             (MALLOCS, "native_mallocs.c", library), (WHOLE, "whole.c", [])):
        done = subprocess.run(compiler + flags + ["-o", made, os.path.join(BENCH, name)] + more)
        if done.returncode:
            sys.exit("bench: %s does not compile; set CC to a C compiler" % name)
