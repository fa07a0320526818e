"""What sampling costs the program, and the sampler: EVPROF_EVENTS=sample at two rates, compared with the bare program and py-spy.

The sampler is no child of the bench: its CPU time is what /proc said of it last.
"""
import os
import shutil
import threading

from . import stats, target

RATES = 100, 1000


class Samplers:
    """Looks for samplers while the program runs; a context manager. cpu_s is there after the end."""

    def __enter__(self):
        self.ticks = {}
        self.stopping = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        return self

    def look(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    if b"\0--sample\0" not in file.read():
                        continue
                with open("/proc/%s/stat" % pid) as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            self.ticks[pid] = int(fields[11]) + int(fields[12])  # utime, stime

    def watch(self):
        while not self.stopping.wait(0.1):
            self.look()

    def __exit__(self, *exception):
        self.stopping.set()
        self.watcher.join()
        self.cpu_s = sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")


def variants(scratch):
    """Name -> (environment, prefix)."""
    setups = {"bare": (target.environment(), ())}
    for rate in RATES:
        env = dict(target.preloaded(scratch.template(), "sample"), EVPROF_SAMPLE_RATE=str(rate))
        setups["at %d" % rate] = (env, ())
    py_spy = shutil.which("py-spy") or os.path.expanduser("~/.cache/evprof/py-spy/bin/py-spy")
    if os.access(py_spy, os.X_OK):
        prefix = (py_spy, "record", "--rate", "100", "--format", "raw", "--output", "/dev/null", "--")
        setups["py-spy at 100"] = (target.environment(), prefix)
    return setups


def session(interpreter, name, setups, rounds, scratch):
    samples = {variant: {"wall": [], "cpu": [], "sampler": []} for variant in setups}
    names = list(setups)
    for turn in range(rounds):
        for variant in names[turn % len(names):] + names[:turn % len(names)]:
            env, prefix = setups[variant]
            with Samplers() as samplers:
                measured = target.harness(interpreter, target.program(name), env, None, 3, prefix)
            samples[variant]["wall"].append(measured["wall"])
            samples[variant]["cpu"].append(measured["cpu"])
            samples[variant]["sampler"].append(samplers.cpu_s / measured["wall"])
            scratch.clear()
    return samples


def measure(rows, interpreters, rounds, programs, scratch, progress, failures):
    setups = variants(scratch)
    for interpreter in interpreters:
        for name in programs:
            progress("sampling: Python %s, %s" % (interpreter.name, name))
            try:
                samples = session(interpreter, name, setups, rounds, scratch)
            except target.Failed as error:
                failures.append("sampling, Python %s: %s" % (interpreter.name, error))
                continue
            for variant in list(setups)[1:]:
                rows.append({
                    "python": interpreter.name, "program": name, "variant": variant,
                    "wall_of_bare": stats.ratio(samples[variant]["wall"], samples["bare"]["wall"]),
                    "cpu_of_bare": stats.ratio(samples[variant]["cpu"], samples["bare"]["cpu"]),
                    "sampler_cpu": stats.spread(samples[variant]["sampler"]),
                })
