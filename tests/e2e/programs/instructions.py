"""instructions.py KIND ROUNDS UNUSED: what test_instructions.c counts: calls of Python functions with one C call each, or allocations.

Up to UNUSED functions are made between two others, which have other addresses then."""
import sys

STEPS = 10000
LEAVES = 20


def make(number):
    """A function of its own. A call takes ten instructions more if another id stands in the place of its own, which one of them may meet."""
    names = {}
    exec("def leaf_%d(text):\n    return len(text)" % number, names)
    return names["leaf_%d" % number]


kept = []
for number in range(LEAVES):
    kept.append([make(number) for _ in range(number * 7 % (int(sys.argv[3]) + 1) + 1)])


def calls(leaves=[made[0] for made in kept]):
    for _ in range(STEPS // LEAVES):
        for leaf in leaves:
            leaf("abc")


def memory():
    for _ in range(STEPS):
        [None] * 50


# Many packages try this, and go on without it: the rounds after the first one have nothing of it.
sys.modules["greenlet"] = None
try:
    import greenlet
except ImportError:
    pass
for _ in range(int(sys.argv[2])):
    globals()[sys.argv[1]]()
