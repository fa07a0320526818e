"""handles_urgent.py [EVPROF]: handles SIGURG itself while it works and is stopped and started. Prints each that it got: its own one."""
import os
import signal
import subprocess
import sys
import time


def leaf():
    pass


def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        for _ in range(100):
            leaf()


urgent = []
work(0.2)
before = signal.signal(signal.SIGURG, lambda number, frame: urgent.append(int(number)))
work(0.5)
for verb in ["stop", "start"] * (len(sys.argv) > 1):
    asking = subprocess.Popen([sys.argv[1], verb, str(os.getpid())], stderr=subprocess.DEVNULL)
    while asking.poll() is None:
        open(os.devnull).close()
        time.sleep(0.01)
    assert asking.returncode == 0
os.kill(os.getpid(), signal.SIGURG)
print(int(before), urgent)
