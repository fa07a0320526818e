"""The commands that pip installs: this process becomes the program evprof, or the collector. And its report as a text."""
import os
import subprocess
import sys
from typing import Any, Iterable, List, Mapping, Union

from ._paths import find
from .errors import EvprofError
from .text import Text

_REPORTED = (0, 1, 3)  # exit statuses; 1, 3: something is missing of the trace, or still being written

_SELECTING = ("process", "thread", "include")  # without the option everything is selected

#: The value of an option of the tool.
Option = Union[None, bool, int, float, str, Iterable[Union[int, float, str]]]


def _word(name: str, value: Union[int, float, str]) -> str:
    if value is True:
        return "--" + name
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "--%s=%s" % (name, value)


def option_words(options: Mapping[str, Option]) -> List[str]:
    """Options of the tool from arguments with names: strip_dirs=True is --strip-dirs, limit=5 is --limit=5, a list is the option once
    for each of its values. None and False are no option. The tool knows which options there are. EvprofError: the list of what is to be
    shown is empty.

    >>> from evprof._tool import option_words
    >>> option_words({"limit": 5, "include": ["a*", "b*"], "reverse": False, "strip_dirs": True})
    ['--limit=5', '--include=a*', '--include=b*', '--strip-dirs']
    """
    words: List[str] = []
    for name, given in options.items():
        # numpy's numbers are no numbers to isinstance().
        values: Any = [given] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)  # type: ignore[arg-type]
        if name in _SELECTING and not values:
            raise EvprofError("evprof: %s is an empty list" % name)
        words += [_word(name.replace("_", "-"), value) for value in values if value is not None and value is not False]
    return words


def report(path: str, words: List[str]) -> Text:
    """What `evprof report` prints of a trace. Raises EvprofError with its line if it refuses an option or the trace."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    tool = subprocess.Popen([find("evprof"), "report", *words, "--", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=environment)
    table, errors = tool.communicate()
    if tool.returncode not in _REPORTED:
        lines = errors.decode("utf-8", "replace").splitlines()
        # Before the error there may be notes, as of a trace that is still being written.
        raise EvprofError(lines[-1] if lines else "evprof: report ended with status %d" % tool.returncode)
    return Text(table.decode("utf-8", "replace"))


def words_for(arguments: List[str]) -> List[str]:
    """The tool's arguments. `run` gets this Python for scripts, -m and -c, `export` for tables; an option of the user comes later and
    counts."""
    if arguments[:1] in (["run"], ["export"]) and sys.executable:
        return [arguments[0], "--python", sys.executable] + arguments[1:]
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
