"""What Python runs before the program, and what it runs after it. cProfile's own modules are imported here, so that a
program imports as many with cProfile as without."""
import atexit
import cProfile
import optparse
import pstats
import runpy


def before():
    pass


def after():
    pass


before()
atexit.register(after)
