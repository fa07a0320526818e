"""Works for some seconds (its argument), and says so."""
import sys
import time

import known

print("busy begins")
sys.stdout.flush()
end = time.time() + float(sys.argv[1])
while time.time() < end:
    known.work(100)
    time.sleep(0.001)
print("busy done")
