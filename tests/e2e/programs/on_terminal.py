"""on_terminal.py ROWS COLUMNS COMMAND...: runs it on a terminal of that size, prints what it shows, ends as it ends."""
import fcntl
import os
import pty
import struct
import sys
import termios

size = struct.pack("HHHH", int(sys.argv[1]), int(sys.argv[2]), 0, 0)
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    os.execvp(sys.argv[3], sys.argv[3:])
shown = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
_, status = os.waitpid(pid, 0)
os.write(1, shown.replace(b"\r\n", b"\n"))
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
