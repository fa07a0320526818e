"""suites.py: what run_cpython.py and run_packages.py share: running a test suite bare and under evprof, comparing what came
of each test, and the table. Not run by itself."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("EVPROF_BUILD") or os.path.join(HERE, "..", "..", "build")
ROOT_ENTRY = os.path.join(HERE, "..", "interpreters", "in-root.sh")


class Run:
    """One run of a suite: how each test ended, and how the whole did."""

    def __init__(self, status, seconds, outcomes, text, evprof_lines):
        self.status = status        # of the process; "timeout"
        self.seconds = seconds
        self.outcomes = outcomes    # test -> "passed", "failed", "error", "skipped"
        self.text = text            # what it wrote, to look at
        self.evprof_lines = evprof_lines

    def having(self, *outcomes):
        return {name for name, outcome in self.outcomes.items() if outcome in outcomes}

    def bad(self):
        return self.having("failed", "error")

    def events(self):
        """Recorded and lost, as the closing lines say."""
        found = re.findall(r"^evprof: (\d+) events? of .*?(\d+) lost", "\n".join(self.evprof_lines), re.M)
        return sum(int(one[0]) for one in found), sum(int(one[1]) for one in found)


def case_name(classname, name):
    """Addresses in the names of tests differ from run to run."""
    full = "%s.%s" % (classname, name)
    return re.sub(r"0x[0-9a-f]+", "0x", full) if full != "." else "(subtests, which have no name)"


def read_junit(path):
    outcomes = {}
    try:
        tree = xml.parse(path)
    except (OSError, xml.ParseError):
        return outcomes
    for case in tree.iter("testcase"):
        name = case_name(case.get("classname") or "", case.get("name") or "")
        kinds = {child.tag for child in case}
        outcome = ("error" if "error" in kinds else "failed" if "failure" in kinds else
                   "skipped" if "skipped" in kinds or case.get("status") == "notrun" or case.get("result") == "skipped"
                   else "passed")
        outcomes[name] = outcome if outcomes.get(name, "passed") == "passed" else outcomes[name]
    return outcomes


def mend_signals():
    """A program that a shell starts in the background, or by nohup, ignores signals, and so would all Pythons that it starts:
    tests that interrupt themselves wait forever. What is caught is at its default again after an exec."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def run_once(command, preload, timeout, events, junit_name=None, read=None, environment=None):
    """command: a list, in which "@JUNIT" stands for the path that the results are to be written to."""
    folder = tempfile.mkdtemp(prefix="evprof-suite.")
    junit = os.path.join(folder, junit_name or "results.xml")
    variables = dict(os.environ, TMPDIR=folder, **(environment or {}))
    variables.pop("LD_PRELOAD", None)
    variables.pop("EVPROF_BUILD", None)  # for us; evprof knows no such variable
    if preload:
        variables["LD_PRELOAD"] = os.path.abspath(os.path.join(BUILD, "libevprof.so"))
        variables["EVPROF_OUTPUT"] = os.path.join(folder, "trace.evp")
        if events:
            variables["EVPROF_EVENTS"] = events
    begin = time.monotonic()
    log = open(os.path.join(folder, "log"), "wb+")
    process = subprocess.Popen([one.replace("@JUNIT", junit) for one in command], cwd=folder, env=variables,
                               stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        status = "timeout"
    seconds = time.monotonic() - begin
    try:
        os.killpg(process.pid, signal.SIGKILL)  # this run's own session; whatever it left behind
    except ProcessLookupError:
        pass
    process.wait()
    log.seek(0)
    text = log.read().decode("utf-8", "replace")
    log.close()
    outcomes = read(text) if read else read_junit(junit)
    lines = [line for line in text.splitlines() if line.startswith("evprof:")]
    shutil.rmtree(folder, ignore_errors=True)
    return Run(status, seconds, outcomes, text, lines)


def both(path, run, may_spare_bare):
    """(bare, under evprof): what run(preload) gives; kept at path, or taken from there. No bare run, and None, where
    may_spare_bare(the run under evprof)."""
    if path and os.path.exists(path):
        with open(path) as file:
            return [one and Run(**one) for one in json.load(file)]
    profiled = run(True)
    bare = None if may_spare_bare(profiled) else run(False)
    if path:
        with open(path + ".part", "w") as file:
            json.dump([one and vars(one) for one in (bare, profiled)], file, indent=0)
        os.rename(path + ".part", path)
    return bare, profiled


def add_arguments(parser, what):
    """Adds the options of both programs; what: what one run runs."""
    parser.add_argument("--results", help="keep what came of each %s there, and do not run again what has some" % what)
    parser.add_argument("--spare-bare", action="store_true", help="no bare run of a %s that passes wholly under evprof, as "
                        "far as a bare listing shows that nothing was left out" % what)
    parser.add_argument("--jobs", type=int, default=1, help="%ss that run at once" % what)
    parser.add_argument("--timeout", type=int, default=300, help="for one %s, in seconds" % what)
    parser.add_argument("--events", default="", help="EVPROF_EVENTS; all by default")
    parser.add_argument("--table", help="write the table there")


def losses(profiled):
    recorded, lost = profiled.events()
    return ["%d events lost, %d recorded" % (lost, recorded)] if lost else []


def is_worse(difference):
    """Whether a difference counts against evprof. One that was not compared does, too."""
    return bool(difference) and not difference.startswith("fails only bare")


def tail(text, lines=25):
    return "\n".join("    " + line for line in text.splitlines()[-lines:])


def compare(bare, profiled, nothing_ran=()):
    """What is worse under evprof, in words; "" where nothing is. nothing_ran: statuses that say that nothing was to run."""
    if not bare.outcomes and not profiled.outcomes and bare.status == profiled.status and bare.status in nothing_ran:
        return ""
    if not bare.outcomes:
        return "NOT COMPARED: no results bare (status %s)" % bare.status
    said = []
    if not profiled.outcomes:
        said.append("no results under evprof")
    new = sorted(profiled.bad() - bare.bad())
    if new:
        said.append("fails only under evprof: " + ", ".join(new))
    other = sorted(name for name in set(bare.outcomes) ^ set(profiled.outcomes))
    if other and bare.outcomes and profiled.outcomes:
        said.append("%d tests ran in one only: %s" % (len(other), ", ".join(other[:5])))
    if bare.status != profiled.status and not new:
        said.append("status %s, not %s" % (profiled.status, bare.status))
    skipped = sorted(name for name, one in profiled.outcomes.items()
                     if one == "skipped" and bare.outcomes.get(name) == "passed")
    if skipped:
        said.append("skipped only under evprof: " + ", ".join(skipped[:5]))
    gone = sorted(bare.bad() - profiled.bad())
    if gone:
        said.append("fails only bare: " + ", ".join(gone[:5]))
    return "; ".join(said)


class Table:
    """One line a suite, as it comes; the whole in Markdown at the end."""

    HEADS = ("suite", "tests", "failed bare", "failed under evprof", "bare s", "evprof s", "difference")

    def __init__(self, title):
        self.title = title
        self.rows = []
        print("| " + " | ".join(self.HEADS) + " |\n|" + "---|" * len(self.HEADS), flush=True)

    def add(self, name, bare, profiled, difference):
        """bare: None where the suite was not run bare."""
        row = (name, str(len((bare or profiled).outcomes)), str(len(bare.bad())) if bare else "not run",
               str(len(profiled.bad())), "%.1f" % bare.seconds if bare else "", "%.1f" % profiled.seconds,
               difference or "none")
        self.rows.append(row)
        print("| " + " | ".join(row) + " |", flush=True)

    def write(self, path):
        with open(path, "w") as file:
            file.write("# %s\n\n| %s |\n|%s\n" % (self.title, " | ".join(self.HEADS), "---|" * len(self.HEADS)))
            for row in self.rows:
                file.write("| " + " | ".join(row) + " |\n")
