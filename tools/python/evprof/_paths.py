"""Where the files of evprof are that are not Python: the tool, the collector, the libraries."""
import glob
import os
import sys
from typing import Iterator

_HERE = os.path.dirname(os.path.abspath(__file__))
#: A pattern of the package's own functions, for a filter.
OWN_FUNCTIONS = glob.escape(_HERE) + "/*"


def _above(levels: int) -> str:
    path = _HERE
    for _ in range(levels):
        path = os.path.dirname(path)
    return path


def _places(name: str) -> Iterator[str]:
    yield os.path.join(_HERE, "_bin", name)  # pip
    # `make install`: the package is PREFIX/lib/evprof/python/evprof.
    yield os.path.join(_above(2), name)
    yield os.path.join(_above(4), "bin", name)
    # The source tree: tools/python/evprof.
    yield os.path.join(_above(3), "build", name)
    # A distribution's package: the modules are where all are.
    for prefix in (sys.prefix, sys.base_prefix):
        yield os.path.join(prefix, "lib", "evprof", name)
        yield os.path.join(prefix, "bin", name)


def find(name: str) -> str:
    """The path of a file of evprof: "evprof", "libevprof.so", ...

    The package's own folder comes first, then where `make install` puts it. Raises ImportError if it is in none of them.
    """
    for place in _places(name):
        if os.path.isfile(place):
            return place
    raise ImportError("evprof: there is no %s in %s, and none is installed; install evprof anew" % (name, _HERE))
