"""own_instructions.py FOLDER FOLDER: how many instructions of libevprof.so the second run took more than the first. A folder has
callgrind's files (https://valgrind.org/docs/manual/cl-format.html) of a program and of the processes that it started."""
import glob
import os
import sys


def own(path):
    """The costs of the lines of functions in the library, without those of what these call."""
    names, current, called, total = {}, "", False, 0
    with open(path) as file:
        for line in file:
            if line.startswith(("ob=", "cob=")):
                number, _, name = line.partition("=")[2].strip().partition(" ")
                names[number] = name or names[number]
                current = names[number] if line.startswith("ob=") else current
            elif line.startswith("calls="):
                called = True
            elif line[0].isdigit() or line[0] in "+-*":
                total += int(line.split()[1]) if not called and current.endswith("/libevprof.so") else 0
                called = False
    return total


def of(folder):
    return max(map(own, glob.glob(os.path.join(folder, "counts.*"))))


print(of(sys.argv[2]) - of(sys.argv[1]))
