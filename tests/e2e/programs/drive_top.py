"""drive_top.py PID COMMAND...: runs evprof top on a terminal of tmux, presses keys and reads the screen. Prints "right", or what is wrong."""
import os
import subprocess
import sys
import tempfile
import time

pid, command = sys.argv[1], sys.argv[2:]
os.environ.pop("TMUX", None)
socket = os.path.join(tempfile.mkdtemp(), "tmux")


def tmux(*arguments):
    return subprocess.run(("tmux", "-S", socket, "-f", "/dev/null") + arguments, stdout=subprocess.PIPE, universal_newlines=True).stdout


def await_screen(what, test):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        lines = tmux("capture-pane", "-p", "-t", "top").split("\n")
        if test(lines):
            return lines
        time.sleep(0.1)
    print("%s; the screen is\n%s" % (what, "\n".join(lines)))
    tmux("kill-server")
    sys.exit(1)


def press(*keys):
    tmux("send-keys", "-t", "top", *keys)


def rows(lines):
    """What follows the two titles, without the line at the bottom."""
    return [line for line in lines[2:23] if line.strip()]


tmux("new-session", "-d", "-s", "top", "-x", "100", "-y", "24", "sh -c '%s; echo left with $?; sleep 60'" % " ".join(command))
lines = await_screen("functions are shown", lambda lines: lines[0].startswith("evprof top ") and any("leaf " in line for line in lines))
assert "1 process, " in lines[0] and "%own" in lines[1], lines
press("c")
await_screen("sorted by calls", lambda lines: rows(lines) and "  leaf " in rows(lines)[0] and "sorted by calls" in lines[23])
press("/", "o", "u", "t", "e", "r", "Enter")
await_screen("the filter leaves one row", lambda lines: len(rows(lines)) == 1 and "  outer " in rows(lines)[0])
press("Enter")
lines = await_screen("its callers and callees", lambda lines: any(line.startswith("callers of outer") for line in lines))
press("/", *["BSpace"] * 5 + ["Enter"])
lines = await_screen("the callees are there", lambda lines: "callees" in lines and any(
    "  leaf " in line for line in lines[lines.index("callees"):]) and any("<module>" in line for line in lines[:lines.index("callees")]))
press("BSpace")
await_screen("back", lambda lines: "callees" not in lines and any("  leaf " in line for line in lines))
press("p")
await_screen("processes", lambda lines: "program" in lines[1] and len(rows(lines)) == 1 and rows(lines)[0].split()[0] == pid)
press("h")
await_screen("threads", lambda lines: "thread" in lines[1] and rows(lines)[0].split()[:2] == [pid, pid])
press("?")
await_screen("the keys", lambda lines: any(line.strip().startswith("q ") for line in lines))
press("q")
await_screen("the page again", lambda lines: "thread" in lines[1])
press("Space")
lines = await_screen("stopped", lambda lines: "stopped" in lines[23])
time.sleep(1.5)
now = tmux("capture-pane", "-p", "-t", "top").split("\n")
assert now[0] == lines[0], (now[0], lines[0])
press("q")
await_screen("left", lambda lines: any("left with 0" in line for line in lines))
tmux("kill-server")
print("right")
