"""A shell on a terminal of its own: runs its arguments as a job, types at it and says what came."""
import os
import pty
import signal
import sys
import time


def wait_for(word, count=1):
    for _ in range(2000):
        if os.path.exists("got") and open("got").read().split().count(word) >= count:
            return
        time.sleep(0.01)
    sys.exit("no %s within 20 s" % word)


def job():
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpgid(0))
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])


def shell():
    """The leader of the session: notes in the file `shell` how its job stops and ends, and lets it go on."""
    notes = os.open("shell", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    child = os.fork()
    if child == 0:
        job()
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os.write(notes, b"ended %d\n" % (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -status))
            os._exit(0)
        os.write(notes, b"stopped\n")
        os.killpg(child, signal.SIGCONT)


pid, terminal = pty.fork()
if pid == 0:
    shell()
wait_for("ready")
os.write(terminal, b"\x03")
wait_for("SIGINT")
os.write(terminal, b"\x1c")
wait_for("SIGQUIT")
os.write(terminal, b"\x1a")
wait_for("SIGCONT")
job_pid = int(open("/proc/%d/task/%d/children" % (pid, pid)).read().split()[0])
os.kill(job_pid, signal.SIGUSR2)
wait_for("SIGCONT", 2)
time.sleep(0.2)
os.kill(job_pid, signal.SIGTERM)
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
print(" ".join(open("got").read().split()), "/", " ".join(open("shell").read().split()))
