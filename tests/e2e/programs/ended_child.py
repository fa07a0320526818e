"""A child takes 0.7 s for a call of job() and ends at once. Prints its pid. The parent runs until a file of the first argument, a
glob, is there, half a minute at most.
"""
import glob
import os
import sys
import time


def job():
    time.sleep(0.7)


def work_of_parent():
    time.sleep(0.02)


child = os.fork()
if not child:
    job()
    os._exit(0)
os.waitpid(child, 0)
ends = time.monotonic() + 30
while not glob.glob(sys.argv[1]) and time.monotonic() < ends:
    work_of_parent()
print(child)
