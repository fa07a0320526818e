"""The commands that pip installs: this process becomes the program evprof, or the collector."""
import os
import sys
from typing import List

from ._paths import find


def words_for(arguments: List[str]) -> List[str]:
    """The tool's arguments. `run` gets this Python for scripts, -m and -c; an option of the user comes later and counts."""
    if arguments[:1] == ["run"] and sys.executable:
        return ["run", "--python", sys.executable] + arguments[1:]
    return arguments


def _become(name: str, arguments: List[str]) -> int:
    try:
        path = find(name)
        os.execv(path, [name] + arguments)
    except (ImportError, OSError) as error:
        text = str(error) if isinstance(error, ImportError) else "evprof: cannot run %s: %s" % (path, error.strerror)
        print(text, file=sys.stderr)
    return 126


def run_tool(arguments: List[str]) -> int:
    """Replaces this process by the tool. Returns only on failure: the exit status."""
    return _become("evprof", words_for(arguments))


def main() -> int:
    """The command evprof."""
    return run_tool(sys.argv[1:])


def collector() -> int:
    """The command evprof-collector."""
    return _become("evprof-collector", sys.argv[1:])
