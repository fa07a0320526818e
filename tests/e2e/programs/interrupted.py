"""Counts as counting.py does, and ends by os._exit() while signals come in, more than 3000 a second."""
import os
import signal
import time

import counting

words = counting.open_oracle()
words[0] = os.getpid()
counting.call(words, 0, 1000, 1e18)
time.sleep(0.4)
print("interrupted", flush=True)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
os._exit(0)
