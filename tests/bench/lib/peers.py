"""The race: evprof and the other profilers of Python, over the same programs, with the settings that their authors recommend.

Every program runs bare and under each profiler in turn. Time and CPU time are those of everything that a run starts, with
what the profiler does at its end; then comes the time until its result can be read. Memory is the largest resident size
of the program, and of a collector.
"""
import mmap
import os
import re
import shutil

from . import budget, stats, target

OWN = ("alloc", "flask_load", "pool")  # of the bench, of a fixed length; the others are pyperformance's
NEED_PACKAGES = ("flask_load", "sqlglot_v2")
PROGRAMS = budget.PROGRAMS + ["sqlglot_v2", *OWN]
BARE_SECONDS = "1"


class Peer:
    """A profiler with its settings. words: what stands before the program's. In words, {} is the folder of the output."""

    def __init__(self, name, records, words, reader=None, kept=None, package=True, first=3, slow=False):
        self.name, self.records, self.words, self.reader, self.kept = name, records, words, reader, kept
        self.package, self.first, self.slow = package, first, slow  # the first 3.N; slow: takes minutes, and so runs once

    def command(self, interpreter, folder, program):
        """What is executed; program: the words after the interpreter."""
        words = [word.replace("{}", folder).replace("{program}", program[0]).replace("{peers}", packages(interpreter)[0])
                 for word in self.words]
        if self.words[:1] == ["-m"]:
            return interpreter.command + words + program
        return words + interpreter.command + program


def evprof(*options):
    return [target.EVPROF, "run", "-q", "-o", "{}/%n-%p.evp", *options]


def events_of_evprof(folder):
    """How many there are, and how many were lost."""
    info = target.info(files(folder))
    return info["events"], info["lost"]


def events_of_viztracer(folder):
    """A call is one event there."""
    count = 0
    for path in files(folder):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            count += 2 * sum(1 for _ in re.finditer(rb'"ph": ?"X"', text))
    return count, None


REPORT = [target.EVPROF, "report", "*"]
PEERS = [
    Peer("evprof, calls", "every call", evprof("--events", "call"), REPORT, events_of_evprof, package=False),
    Peer("evprof, calls and C calls", "every call, C call", evprof("--events", "call,c_call"), REPORT, events_of_evprof, package=False),
    Peer("evprof", "every call, C call, exception, allocation", evprof(), REPORT, events_of_evprof, package=False),
    Peer("evprof, within 5 %", "most calls exactly, the rest estimated", evprof("--budget", "5%"), REPORT, package=False),
    Peer("evprof, samples", "samples, 100 a second", evprof("--events", "sample"), REPORT, package=False),
    Peer("evprof, memory", "every allocation, malloc() too", evprof("--memory"), [target.EVPROF, "memory", "*"], package=False),
    Peer("trace0", "every call", ["-m", "trace0", "run", "-o", "{}/trace.pb"], first=13),
    Peer("VizTracer", "every call, C call: the last million", ["-m", "viztracer", "--quiet", "-o", "{}/trace.json"],
         kept=events_of_viztracer, first=10),
    Peer("cProfile", "totals of calls and C calls", ["-m", "cProfile", "-o", "{}/profile"],
         ["python", "-c", "import pstats, sys; pstats.Stats(sys.argv[1]).print_stats(20)", "*"], package=False),
    Peer("yappi", "totals of calls", ["-m", "yappi", "-o", "{}/profile"], slow=True),
    Peer("pyinstrument", "samples, 1,000 a second", ["-m", "pyinstrument", "-o", "{}/profile.html", "-r", "html"]),
    Peer("py-spy", "samples, 100 a second", ["{peers}/bin/py-spy", "record", "-o", "{}/profile.svg", "--"]),
    Peer("profiling.sampling", "samples, 1,000 a second", ["-m", "profiling.sampling", "run", "--flamegraph", "-o", "{}/profile.html"],
         package=False, first=15),
    Peer("scalene", "samples of CPU and memory, by line", ["-m", "scalene", "run", "-o", "{}/profile.json"]),
    Peer("memray", "every allocation, malloc() too", ["-m", "memray", "run", "-q", "-o", "{}/memray.bin"],
         ["python", "-m", "memray", "stats", "*"]),
    Peer("line_profiler", "totals of the program's lines", ["-m", "kernprof", "-q", "-l", "-p", "{program}", "-o", "{}/lines"],
         ["python", "-m", "line_profiler", "*"], slow=True),
    Peer("pprofile", "totals of all lines", ["-m", "pprofile", "-o", "{}/lines"], slow=True),
]
# What evprof promises: what the first adds, over what the second adds, on each program.
BOUNDS = (("evprof, calls", "trace0", 0.6), ("evprof, calls and C calls", "cProfile", 0.35), ("evprof, within 5 %", "trace0", 0.05))


def files(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]


def words(program):
    """What comes after the interpreter."""
    if program == "alloc":
        return [target.HARNESS, target.program("alloc")]
    if program in OWN:
        return [target.program(program), "400"]
    return budget.words(program)[1:]  # without run.py: a profiler by lines wants the program itself


def packages(interpreter):
    """Folders that tests/interpreters/packages.sh fetches: the other profilers, one that is a source file, flask."""
    return [target.packages(name) for name in ("3.%d-peers" % interpreter.minor, "pprofile", "3.%d-services" % interpreter.minor)]


def environment(interpreter):
    """The stand-in for pyperf comes first."""
    return target.environment(PYTHONPATH=os.pathsep.join([os.path.dirname(budget.RUN)] + packages(interpreter)))


def open_result(interpreter, peer, folder, env):
    """How long it takes to read the result: 0 where the profiler has written it for people."""
    if not peer.reader:
        return 0.0
    found = files(folder)
    command = [one for word in peer.reader for one in (found if word == "*" else [word.replace("{}", folder)])]
    result = target.run(interpreter, command[1:], env) if command[0] == "python" else target.run(None, command, env)
    if result.status:
        raise target.Failed("its reader: status %d: %s" % (result.status, target.last_line(result.err)))
    return result.wall_s


class Race:
    """One program."""

    def __init__(self, interpreter, program, peers, scratch):
        self.interpreter, self.program, self.peers, self.folder = interpreter, program, peers, os.path.join(scratch.path, "race")
        self.env = environment(interpreter)
        self.wall = {name: [] for name in [None] + [peer.name for peer in peers]}
        self.cpu = {name: [] for name in self.wall}
        self.rows, self.failed = {}, {}

    def calibrate(self):
        """How many loops take a second, bare."""
        if self.program not in OWN:
            self.env["BENCH_SECONDS"] = BARE_SECONDS
            argv = [budget.RUN] + words(self.program)
            self.env["BENCH_LOOPS"] = target.last_line(target.run_whole(self.interpreter, argv, self.env).out)

    def once(self, peer):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        name = peer and peer.name
        argv = words(self.program)
        command = peer.command(self.interpreter, self.folder, argv) if peer else self.interpreter.command + argv
        result = target.run_whole(None, command, self.env)
        self.wall[name].append(result.wall_s)
        self.cpu[name].append(result.cpu_s)
        if name in self.rows:
            return
        if peer and not files(self.folder):
            raise target.Failed("no output")
        size = sum(os.path.getsize(path) for path in files(self.folder))
        events, lost = peer.kept(self.folder) if peer and peer.kept else (None, None)
        self.rows[name] = {"peak_mib": result.peak_kib / 1024, "bytes": size, "events": events, "lost": lost,
                           "open_s": open_result(self.interpreter, peer, self.folder, self.env) if peer else 0.0}

    def run(self, rounds):
        order = [None] + self.peers
        for turn in range(rounds):
            for peer in order[turn % len(order):] + order[:turn % len(order)]:
                name = peer and peer.name
                if name in self.failed or peer and peer.slow and self.wall[name]:
                    continue
                try:
                    self.once(peer)
                except target.Failed as error:
                    if not peer:
                        raise
                    self.failed[name] = str(error).replace(os.path.expanduser("~"), "~")
        shutil.rmtree(self.folder, ignore_errors=True)

    def result(self, peer):
        row = {"python": self.interpreter.name, "program": self.program, "peer": peer.name, "records": peer.records,
               "bare_s": stats.spread(self.wall[None]), "bare_mib": self.rows[None]["peak_mib"]}
        if peer.name in self.failed:
            return dict(row, failed=self.failed[peer.name])
        row.update(self.rows[peer.name], wall=stats.ratio(self.wall[peer.name], self.wall[None]),
                   cpu=stats.ratio(self.cpu[peer.name], self.cpu[None]))
        for one, other, bound in BOUNDS:
            if peer.name == one and self.wall.get(other) and other not in self.failed:
                row["bound"] = {"of": other, "most": bound,
                                "ratio": stats.added_ratio(self.wall[None], self.wall[one], self.wall[other])}
        return row


def measure(rows, interpreters, rounds, programs, names, scratch, progress, failures):
    missing = [folder for folder in [budget.SOURCES] + packages(interpreters[0]) if not os.path.isdir(folder)]
    if missing:
        failures.append("peers: %s is not there; EVPROF_BENCH_PEERS=1 sh tests/interpreters/packages.sh fetches it" % missing[0])
        return
    for interpreter in interpreters:
        fetched = all(map(os.path.isdir, packages(interpreter)))
        peers = [peer for peer in PEERS if peer.first <= interpreter.minor and (fetched or not peer.package) and
                 (not names or peer.name in names)]
        for program in programs or PROGRAMS:
            if not fetched and program in NEED_PACKAGES:
                continue
            progress("peers: Python %s, %s" % (interpreter.name, program))
            race = Race(interpreter, program, peers, scratch)
            try:
                race.calibrate()
                race.run(rounds)
            except target.Failed as error:
                failures.append("peers, Python %s, %s: %s" % (interpreter.name, program, error))
                continue
            rows += [race.result(peer) for peer in peers]
