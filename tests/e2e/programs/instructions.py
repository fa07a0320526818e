"""instructions.py KIND ROUNDS: what test_instructions.c counts: calls of Python functions with one C call each, or allocations."""
import sys

STEPS = 10000


def leaf(text):
    return len(text)


def calls():
    for _ in range(STEPS):
        leaf("abc")


def memory():
    for _ in range(STEPS):
        [None] * 50


for _ in range(int(sys.argv[2])):
    globals()[sys.argv[1]]()
