"""pickled.py TRACE: rows and exceptions go from one process to another. Used by test_table.c."""
import pickle
import subprocess
import sys

import evprof


def made(path):
    """Rows, and what there is instead where a path is wrong."""
    found = [list(evprof.load(path).functions())[0], list(evprof.load(path).calls())[0]]
    for wrong in ("/nonexistent.evp", "/", sys.argv[0]):
        try:
            evprof.load(wrong)
        except evprof.EvprofError as error:
            found.append(error)
    return found


def described(one):
    return type(one).__name__, str(one), getattr(one, "_fields", None), getattr(one, "errno", None), getattr(one, "filename", None)


if len(sys.argv) == 3:
    sys.stdout.buffer.write(pickle.dumps(made(sys.argv[1]), int(sys.argv[2])))
    sys.exit()
mine = made(sys.argv[1])
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    theirs = pickle.loads(subprocess.check_output([sys.executable] + sys.argv + [str(protocol)]))
    assert list(map(described, theirs)) == list(map(described, mine)), (theirs, mine)
    assert isinstance(theirs[2], FileNotFoundError) and theirs[0].calls == mine[0].calls
    assert list(map(type, theirs)) == list(map(type, mine))
print("the same")
