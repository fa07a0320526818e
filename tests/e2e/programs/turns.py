"""turns.py LIBRARY OWN: a thread of C code (turns.c) serves two sub-interpreters in turn; prints its number of calls."""
import ctypes
import sys

APP = b"""
def leaf():
    return len("leaf")

def app():
    return leaf() + leaf()
"""
library = ctypes.PyDLL(sys.argv[1])
print(library.take_turns(APP, 30, int(sys.argv[2])))
