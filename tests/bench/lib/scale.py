"""Many traces, and one large one: what each query takes, and how it grows with the events and the workers.

1,000 traces of ten processes each are made of one that is recorded here, and one of ten billion events of another one
(replicate.py). Time, CPU time, memory and bytes are those of all processes of a query.
"""
import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
import time

from . import replicate, target

HOSTS = (25, 50, 100)  # each has ten days, of a trace each
DAYS = 10
WORKERS = (1, 2)
DAY_NS = 86400 * 10**9
REQUESTS, LARGE_REQUESTS = 4, 11000
LARGE = 10**10
PARTS = (4, 2, 1)  # of the large trace
PR_SET_CHILD_SUBREAPER = 36
PROGRAM = os.path.join(target.BENCH, "programs", "pool.py")


def children():
    """The pids below this process."""
    parents, found, waiting = {}, [], [os.getpid()]
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    parents.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
            except OSError:
                pass
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def resident_kib():
    """Of all processes below this one; what several share counts once (Pss)."""
    total = 0
    for pid in children():
        try:
            with open("/proc/%d/smaps_rollup" % pid) as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            pass
    return total


def bytes_read():
    """By this process and all that it has waited for: what read() and pread() returned."""
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


class Watched:
    """Runs a command. seconds, cpu_s, peak_kib, read: of it and of all that it starts."""

    def __init__(self, words, env=None, limit_s=3600):
        self.peak_kib, self.done = 0, threading.Event()
        watcher = threading.Thread(target=self.watch)
        before, read, began = os.times(), bytes_read(), time.monotonic()
        watcher.start()
        try:
            child = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise target.Failed("%s takes more than %d s" % (" ".join(words[:6]), limit_s))
        finally:
            self.done.set()
            watcher.join()
        self.seconds, self.out = time.monotonic() - began, child.stdout
        self.reap()
        after = os.times()
        self.cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        self.read = bytes_read() - read
        if child.returncode:
            raise target.Failed("%s: status %d: %s" % (" ".join(words[:6]), child.returncode, target.last_line(child.stderr)))

    def watch(self):
        while not self.done.wait(0.2):
            self.peak_kib = max(self.peak_kib, resident_kib())

    @staticmethod
    def reap():
        """Orphans come to this process: Spark's Java."""
        while True:
            try:
                os.wait4(-1, 0)
            except ChildProcessError:
                return


def record(interpreter, path, requests):
    done = subprocess.run([target.EVPROF, "run", "-q", "--events", "call,c_call,mem", "-o", path, interpreter.command[0], PROGRAM,
                           str(requests)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=target.environment())
    if done.returncode:
        raise target.Failed("scale: %s" % target.last_line(done.stderr))
    return replicate.Source(path)


def make_traces(source, folder):
    """A folder for each number of hosts, with the traces of the smaller one in it, too."""
    for host in range(HOSTS[-1]):
        for day in range(DAYS):
            inner = os.path.join("version=%d" % (1 + day * 2 // DAYS), "day=2026-11-%02d" % (day + 1), "host=h%03d" % host)
            path = os.path.join(folder, str(HOSTS[-1]), inner, "pool.evp")
            os.makedirs(os.path.dirname(path))
            replicate.replicate(source, path, 1, "h%03d" % host, host * DAYS + day, day * DAY_NS)
            for hosts in HOSTS[:-1]:
                if host < hosts:
                    os.makedirs(os.path.join(folder, str(hosts), inner))
                    os.link(path, os.path.join(folder, str(hosts), inner, "pool.evp"))


def traces(folder):
    return sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)


def fleet_environment(interpreter):
    """None: PySpark is not there."""
    paths = [os.path.join(target.REPO, "tools", "python")] + [target.packages(name) for name in ("3.11", "fleet")]
    if not all(map(os.path.isdir, paths)) or not shutil.which("java") or interpreter.minor != 11:
        return None
    return dict(os.environ, PYTHONPATH=os.pathsep.join(paths),
                EVPROF_READER_LIBRARY=os.path.join(target.BUILD, "libevprof-reader.so"), SPARK_LOCAL_IP="127.0.0.1",
                PYSPARK_PYTHON=interpreter.command[0], PYTHONDONTWRITEBYTECODE="1")


FLEET = (["functions"], ["regressions", "--before", "1", "--after", "2", "--request", "pool.py:page"], ["outliers", "--by", "host"],
         ["flame"], ["leaks"])


class Measurement:
    def __init__(self, rows, progress, failures):
        self.rows, self.progress, self.failures = rows, progress, failures

    def query(self, name, of, events, workers, words, env=None):
        self.progress("scale: %s, %s" % (name, of))
        try:
            done = Watched(words, env)
        except target.Failed as error:
            self.failures.append("scale: %s" % error)
            return None
        self.rows.append({"query": name, "of": of, "events": events, "workers": workers, "seconds": done.seconds,
                          "cpu_s": done.cpu_s, "peak_mib": done.peak_kib / 1024, "read": done.read})
        return done.out


def calls(out):
    """The number that a report begins with."""
    return int(out.split(None, 1)[0])


def expect_calls(measurement, out, copies, path):
    """The copies have this multiple of the calls of the recorded trace."""
    if out is not None:
        whole = calls(Watched([target.EVPROF, "report", path]).out)
        if calls(out) != copies * whole:
            measurement.failures.append("scale: %d calls instead of %d times %d" % (calls(out), copies, whole))


def many(measurement, interpreter, folder):
    recorded = os.path.join(folder, "one.evp")
    source = record(interpreter, recorded, REQUESTS)
    make_traces(source, folder)
    env = fleet_environment(interpreter)
    if not env:
        measurement.failures.append("scale: no Spark: it wants Java, Python 3.11 and EVPROF_TEST_ALL=1 sh tests/interpreters/packages.sh")
    for hosts in HOSTS:
        part, count = os.path.join(folder, str(hosts)), hosts * DAYS
        of, events = "%d traces" % count, count * source.events
        out = measurement.query("report", of, events, 1, [target.EVPROF, "report", *traces(part)])
        expect_calls(measurement, out, count, recorded)
        for words in FLEET if env else ():
            for workers in WORKERS if hosts == HOSTS[0] else WORKERS[-1:]:
                measurement.query("fleet " + words[0], of, events, workers,
                                  [interpreter.command[0], "-m", "evprof.fleet", words[0], part, *words[1:], "--json",
                                   "--master", "local[%d]" % workers], env)


def one(measurement, interpreter, folder):
    recorded = os.path.join(folder, "one.evp")
    source = record(interpreter, recorded, LARGE_REQUESTS)
    for part in PARTS:
        copies = -(-LARGE // source.events // part)
        path, events = os.path.join(folder, "large", "large.evp"), copies * source.events
        os.makedirs(os.path.dirname(path), exist_ok=True)
        size = replicate.replicate(source, path, copies, "h000", 0, 0)
        of = "a trace of %.2f billion events, %.1f GB" % (events / 1e9, size / 1e9)
        measurement.query("info", of, events, 1, [target.EVPROF, "info", path])
        expect_calls(measurement, measurement.query("report", of, events, 1, [target.EVPROF, "report", path]), copies, recorded)
        measurement.query("a millisecond of it", of, events, 1,
                          [target.EVPROF, "export", "--format", "folded", "--from", "500ms", "--to", "501ms", "-o", "/dev/null", path])
        os.unlink(path)


def measure(rows, interpreters, progress, failures):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    some = [i for i in interpreters if i.minor == 11] or interpreters[-1:]
    for part in (many, one):
        folder = tempfile.mkdtemp(prefix="evprof-scale.")
        try:
            part(Measurement(rows, progress, failures), some[0], folder)
        except target.Failed as error:
            failures.append(str(error))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
