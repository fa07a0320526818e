"""on_terminal.py ROWS COLUMNS COMMAND...: runs it on a terminal of that size, prints what it shows, ends as it ends."""
import fcntl
import os
import struct
import sys
import termios

from shown_on_terminal import shown_on


def command():
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", int(sys.argv[1]), int(sys.argv[2]), 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])


shown, status = shown_on(command)
os.write(1, shown.replace(b"\r\n", b"\n"))
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
