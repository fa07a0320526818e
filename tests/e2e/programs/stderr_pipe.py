"""stderr_pipe.py broken|full: ends with a stderr that nobody reads any more, or that takes nothing more. Writes nothing to it."""
import os
import signal
import sys

reader, writer = os.pipe()
if sys.argv[1] == "broken":
    os.close(reader)
else:
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
os.dup2(writer, 2)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
print("ended")
