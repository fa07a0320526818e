"""shown_on(child): what a new terminal shows of child(), which does not return, and the status of its process."""
import os
import pty


def shown_on(child):
    pid, terminal = pty.fork()
    if pid == 0:
        child()
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    return shown, os.waitpid(pid, 0)[1]
