"""How fast the processors are while a program runs on them.

On a machine that others use, too, the same program takes half as much CPU time again a minute later. A probe on each processor
takes part in that: CPU time times the mean speed meanwhile is the work that was done, which such a machine does not change. Of
twelve runs of one program, during a suite of tests, CPU times differed by 12 % (standard deviation), their work by 1.3 %.
"""
import os
import statistics
import struct
import subprocess
import sys

from . import target

PROBE = os.path.join(target.BENCH, "speed_probe.py")
SAMPLE = struct.calcsize("d")


class Probes:
    """One process for each processor, 4 % of it. They end with the bench: nobody reads their pipes then."""

    def __init__(self):
        self.pipes = {}
        for cpu in sorted(os.sched_getaffinity(0)):
            process = subprocess.Popen([sys.executable, PROBE, str(cpu)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            os.set_blocking(process.stdout.fileno(), False)
            self.pipes[cpu] = process.stdout

    def read(self, cpu=None):
        """Samples of all processors, or of one, since the last time."""
        read = []
        for one, pipe in self.pipes.items():
            samples = pipe.read() or b""
            if cpu in (None, one):
                read += struct.unpack("%dd" % (len(samples) // SAMPLE), samples)
        return read

    def work(self, run, cpu=None):
        """What run() returns, and the work of its CPU time: on all processors, or on one of them that it keeps to."""
        self.read()
        result = run()
        samples = self.read(cpu)
        if not samples:
            raise target.Failed("no probe of the machine's speed has run meanwhile")
        return result, result.cpu_s * statistics.mean(samples)
