"""Writes the name of each signal that it gets into the file `got`, and stops itself at SIGUSR2; ends at SIGTERM."""
import os
import signal
import sys
import time

got = os.open("got", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
names = sys.argv[1:]


def take(number, frame):
    os.write(got, (signal.Signals(number).name + "\n").encode())
    if number == signal.SIGUSR2:
        os.kill(os.getpid(), signal.SIGSTOP)
    if number == signal.SIGTERM:
        sys.exit(9)


for name in names:
    signal.signal(getattr(signal, name), take)
os.write(got, b"ready\n")
while True:
    time.sleep(0.05)  # signal.pause() would sleep on where a signal comes just before it
