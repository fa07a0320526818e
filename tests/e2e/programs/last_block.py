"""A function of C allocates a block of a size of its own and waits for ever, until the process is killed."""
import os

reading, writing = os.pipe()
os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", "sleep 0.5; kill -9 %d" % os.getpid())
os.read(reading, 54321)
