"""How often a profiler wakes a processor for a program that does little: voluntary context switches of all its threads.

The collector and the sampler are no children of the bench: they are found by their program, as those that came with it.
"""
import os
import signal
import subprocess
import time

from . import sampling, target

PROGRAMS = {
    "asleep": "import time; time.sleep(1000)",
    "ten a second": "import time\ndef turn(): time.sleep(0.1)\nwhile True: turn()",
}
SETTLE_S = 3
SECONDS = 10


def collectors():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.samefile("/proc/%s/exe" % pid, target.COLLECTOR):
                found.add(int(pid))
        except OSError:
            continue
    return found


def switches(pid):
    count = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread)) as file:
            count += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return count


def cpu_s(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime


def session(interpreter, text, env, prefix):
    """Wake-ups and seconds of CPU, both a second."""
    others = collectors()
    argv = list(prefix) + interpreter.command + ["-c", text]
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE_S)
        pids = [process.pid] if prefix else collectors() - others
        if not pids or process.poll() is not None:
            raise target.Failed("no profiler runs with the program")
        before = sum(map(switches, pids)), sum(map(cpu_s, pids))
        time.sleep(SECONDS)
        after = sum(map(switches, pids)), sum(map(cpu_s, pids))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    return [(two - one) / SECONDS for one, two in zip(before, after)]


def measure(rows, interpreters, scratch, progress, failures):
    setups = dict(sampling.variants(scratch), exact=(target.preloaded(scratch.template()), ()))
    del setups["bare"]
    for interpreter in interpreters:
        for name, text in PROGRAMS.items():
            for variant, (env, prefix) in setups.items():
                progress("quiet: Python %s, %s, %s" % (interpreter.name, name, variant))
                try:
                    wakeups, cpu = session(interpreter, text, env, prefix)
                except (target.Failed, OSError) as error:
                    failures.append("quiet, Python %s: %s" % (interpreter.name, error))
                    continue
                rows.append({"python": interpreter.name, "program": name, "variant": variant, "wakeups": wakeups,
                             "cpu": cpu})
