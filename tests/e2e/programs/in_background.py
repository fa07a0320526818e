"""in_background.py COMMAND...: runs it as a background job of a terminal that stops those that write (stty tostop).

Prints what the terminal shows, and whether the job was stopped; ends as it ends.
"""
import os
import signal
import sys
import termios

from shown_on_terminal import shown_on


def shell():
    modes = termios.tcgetattr(0)
    modes[3] |= termios.TOSTOP
    termios.tcsetattr(0, termios.TCSANOW, modes)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.execvp(sys.argv[1], sys.argv[1:])
    _, status = os.waitpid(job, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        print("stopped by", os.WSTOPSIG(status), flush=True)
        os.kill(job, signal.SIGKILL)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


shown, status = shown_on(shell)
os.write(1, shown)
sys.exit(os.WEXITSTATUS(status))
