"""What somebody who looks costs: a recorded program with `evprof top` refreshed each second, and without, in turns.

The collector is a daemon, so its CPU time is the kernel's own figure. The program's own CPU time is compared, too.
"""
import os
import subprocess
import threading

from . import collector, stats, target

EVENTS = "call,c_call"
REPEAT = 5  # a program of some seconds: a refresh is one in a second


class Viewer:
    """`evprof top` of all processes of a daemon, whenever there is one; a context manager. `cpu_s` is there after the end."""

    def __init__(self, socket):
        self.argv = [target.EVPROF, "top", "--lines", "--socket", socket]
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.cpu_s = 0.0

    def __enter__(self):
        self.thread.start()
        return self

    def look(self):
        while not self.stopping.wait(0.05):
            process = subprocess.Popen(self.argv, env=target.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ended = threading.Thread(target=self.end_with_us, args=(process,), daemon=True)
            ended.start()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_s += usage.ru_utime + usage.ru_stime

    def end_with_us(self, process):
        self.stopping.wait()
        if process.returncode is None:
            process.terminate()

    def __exit__(self, *exception):
        self.stopping.set()
        self.thread.join()


def run(interpreter, name, looked_at, scratch):
    """One program with a daemon of its own: seconds of the collector, the viewer and the program."""
    scratch.clear()
    with collector.Daemon(scratch) as daemon:
        env = target.preloaded(scratch.template(), EVENTS, daemon.socket)
        if not looked_at:
            return daemon, None, target.harness(interpreter, target.program(name), env, None, REPEAT)
        with Viewer(daemon.socket) as viewer:
            return daemon, viewer, target.harness(interpreter, target.program(name), env, None, REPEAT)


def session(interpreter, name, rounds, scratch):
    samples = {looked_at: {"collector": [], "cpu": []} for looked_at in (False, True)}
    shares = []
    for turn in range(rounds):
        for looked_at in (False, True) if turn % 2 else (True, False):
            daemon, viewer, measured = run(interpreter, name, looked_at, scratch)
            samples[looked_at]["collector"].append(daemon.cpu_s)
            samples[looked_at]["cpu"].append(measured["cpu"])
            if viewer:
                shares.append(viewer.cpu_s / measured["wall"])
    scratch.clear()
    return samples, shares


def measure(rows, interpreters, rounds, programs, scratch, progress, failures):
    for interpreter in interpreters:
        for name in programs:
            progress("live: Python %s, %s" % (interpreter.name, name))
            try:
                samples, shares = session(interpreter, name, rounds, scratch)
            except target.Failed as error:
                failures.append("live, Python %s: %s" % (interpreter.name, error))
                continue
            rows.append({"python": interpreter.name, "program": name, "viewer_share": stats.spread(shares)})
            for what in ("collector", "cpu"):
                rows[-1][what + "_of_unseen"] = stats.ratio(samples[True][what], samples[False][what])
