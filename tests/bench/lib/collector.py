"""The collector of a program at full speed: losses, waiting, CPU, memory, and bytes an event on disk.

The collector runs as a host's daemon that is a child of the bench, so that its CPU time is the kernel's own figure.
"""
import os
import re
import signal
import struct
import subprocess
import tempfile
import threading
import time

from . import target

END = struct.Struct("<IIQQQII")  # struct trace_end of include/evprof/trace.h
END_MAGIC = 0x444E4545


class Daemon:
    """A running evprof-collector; a context manager. `cpu_s` and `peak_kib` are there after the end."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.peaks_kib = []
        self.cpu_s = self.peak_kib = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="evprof-bench-")
        self.socket = os.path.join(self.folder.name, "s")
        self.errors = tempfile.TemporaryFile()
        argv = [target.COLLECTOR, "--socket", self.socket, "--output-dir", self.scratch.path]
        self.process = subprocess.Popen(argv, env=target.environment(), stdout=self.errors, stderr=self.errors)
        try:
            self.await_socket()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.stopping = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        return self

    def await_socket(self):
        for _ in range(200):
            if os.path.exists(self.socket):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.errors.seek(0)
        raise target.Failed("evprof-collector: " + target.last_line(self.errors.read().decode("utf-8", "replace")))

    def peak(self):
        """VmHWM in KiB, or None when the process is gone."""
        try:
            with open("/proc/%d/status" % self.process.pid) as file:
                found = re.search(r"^VmHWM:\s+(\d+) kB", file.read(), re.M)
        except OSError:
            return None
        return int(found.group(1)) if found else None

    def early_peak(self):
        """The peak after a fifth of the time, or None for a run that was too short."""
        return self.peaks_kib[len(self.peaks_kib) // 5] if len(self.peaks_kib) > 10 else None

    def watch(self):
        while not self.stopping.wait(0.25):
            peak = self.peak()
            if peak:
                self.peaks_kib.append(peak)

    def __exit__(self, *exception):
        self.stopping.set()
        self.watcher.join()
        self.peak_kib = self.peak()
        self.process.send_signal(signal.SIGTERM)
        alarm = threading.Timer(60, self.process.kill)
        alarm.start()
        _, status, usage = os.wait4(self.process.pid, 0)
        alarm.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.folder.cleanup()


def totals(path):
    """(events, lost) of a complete trace, from its last bytes. Raises Failed where the end is missing."""
    with open(path, "rb") as file:
        file.seek(-END.size, os.SEEK_END)
        magic, _, _, events, lost, _, _ = END.unpack(file.read())
    if magic != END_MAGIC:
        raise target.Failed("the trace is not complete: " + path)
    return events, lost


def waits_of(path):
    """(times, us) that threads of the program waited for room in their rings, as they counted it themselves."""
    processes = target.info([path], "--quick")["processes"]
    return sum(p["waits"] for p in processes), sum(p["waited_us"] for p in processes)


def session(interpreter, name, events, scratch, repeat=1):
    """One program with a daemon of its own."""
    scratch.clear()
    with Daemon(scratch) as daemon:
        env = target.preloaded(scratch.template(), events, daemon.socket)
        measured = target.harness(interpreter, target.program(name), env, None, repeat)
    traces = scratch.take()
    if len(traces) != 1:
        raise target.Failed("%d trace files after one program; expected one" % len(traces))
    count, lost = totals(traces[0])
    size = os.path.getsize(traces[0])
    waits, waited_us = waits_of(traces[0])
    scratch.clear()
    return {
        "python": interpreter.name, "program": name, "events_asked": events, "repeat": repeat,
        "events": count, "lost": lost, "size_bytes": size,
        "wall_s": measured["wall"], "waits": waits, "waited_s": waited_us / 1e6,
        "program_cpu_s": measured["total_cpu"], "collector_cpu_s": daemon.cpu_s,
        "collector_status": daemon.process.returncode,
        "peak_kib": daemon.peak_kib, "peak_early_kib": daemon.early_peak(),
    }


def sizes(interpreter, name, scratch):
    """Bytes an event: of calls alone, and what the allocations add to them."""
    calls = session(interpreter, name, "call,c_call", scratch)
    both = session(interpreter, name, "call,c_call,mem", scratch)
    calls["bytes_per_call_event"] = calls["size_bytes"] / max(1, calls["events"])
    memory = both["events"] - calls["events"]
    both["bytes_per_memory_event"] = (both["size_bytes"] - calls["size_bytes"]) / max(1, memory)
    return [calls, both]


def measure(rows, interpreters, long_repeat, scratch, progress, failures):
    for interpreter in interpreters:
        names = ["calls", "alloc"] + (["sympy_session"] if interpreter.has("sympy") else [])
        try:
            for name in names:
                progress("collector: Python %s, %s" % (interpreter.name, name))
                rows += sizes(interpreter, name, scratch)
            progress("collector: Python %s, calls %d times over" % (interpreter.name, long_repeat))
            rows.append(session(interpreter, "calls", "call,c_call", scratch, long_repeat))
        except target.Failed as error:
            failures.append("collector, Python %s: %s" % (interpreter.name, error))
