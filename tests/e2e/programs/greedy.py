"""Takes as much of everything as it is said to need: memory, descriptors, a file, a child. Tells what it got."""
import os
import subprocess
import sys

import known

known.everything()
try:
    blocks = [bytearray(1 << 20) for _ in range(160)]
    print("memory", len(blocks))
except MemoryError:
    print("no memory")
files = []
try:
    for _ in range(6):
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print("descriptors", len(files))
for fd in files:
    os.close(fd)
with open("greedy.out", "wb") as file:
    file.write(b"x" * 15000)
print("file", os.path.getsize("greedy.out"))
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    known.everything()
    os._exit(3)
print("child", os.waitpid(pid, 0)[1])
try:
    print("program", subprocess.call([sys.executable, "-c", "import sys; sys.exit(4)"], stderr=subprocess.DEVNULL))
except OSError as error:
    print("no program", error)
