"""Filters of a trace: processes, threads, a time range, functions, long calls, outer calls. Without numpy.

Each filter has the meaning of the option of `evprof export` with its name: tools/replay/filter.c and include/evprof/filter.h are the
models. Called by model.Trace and table.py.
"""
import re

from . import patterns

_UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
_TIME = re.compile(r"\s*([0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)(|ns|us|ms|s)\Z")
_FAR_NS = 1 << 60
_LIBRARY = re.compile(r"/lib(?:64)?/python(?:3/|\s*[-+]?[0-9]+\.\s*[-+]?[0-9]+/)")
_DEPTH_MAX = (1 << 32) - 1
_LIBRARY_MODULES = frozenset("""
__future__ __hello__ _aix_support _android_support _apple_support _ast_unparse _bootlocale _bootsubprocess
_collections_abc _colorize _compat_pickle _compression _dummy_thread _ios_support
_markupbase _missing_stdlib_info _opcode_metadata _osx_support _py_abc _py_warnings _pydatetime _pydecimal
_pyio _pylong _pyrepl _sitebuiltins _strptime _threading_local _weakrefset abc aifc annotationlib antigravity
argparse ast asynchat asyncio asyncore base64 bdb binhex bisect bz2 cProfile calendar cgi cgitb chunk cmd code
codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars copy
copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest dummy_threading
email encodings ensurepip enum filecmp fileinput fnmatch formatter fractions ftplib functools genericpath
getopt getpass gettext glob graphlib gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib
inspect io ipaddress json keyword lib2to3 linecache locale logging lzma macpath macurl2path mailbox mailcap
mimetypes modulefinder multiprocessing netrc nntplib ntpath nturl2path numbers opcode operator optparse os
pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posixpath pprint profile profiling
pstats pty py_compile pyclbr pydoc pydoc_data queue quopri random re reprlib rlcompleter runpy sched secrets
selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver sqlite3
sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symbol
symtable sysconfig tabnanny tarfile telnetlib tempfile textwrap this threading timeit tkinter token tokenize
tomllib trace traceback tracemalloc tty turtle turtledemo types typing unittest urllib uu uuid venv warnings
wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zoneinfo
""".split())


def duration(value, what):
    """ns: a number, or a text such as "1500", "20us", "3ms", "1.5s". None stays."""
    if value is None:
        return None
    if isinstance(value, str):
        found = _TIME.match(value)
        if not found:
            raise ValueError('evprof: %s is a number of ns, or a text such as "20us", "3ms" or "1.5s", not "%s"'
                             % (what, value))
        scaled = float(found.group(1)) * _UNITS[found.group(2)]
        value = int(scaled + 0.5) if scaled <= _FAR_NS else _FAR_NS + 1
    value = int(value)
    if not 0 <= value <= _FAR_NS:
        raise ValueError("evprof: %s is from 0 to 2^60 ns, not %d" % (what, value))
    return value


def numbers(values):
    """One number or several as a set; None, which means all, stays."""
    if values is None:
        return None
    if isinstance(values, (int, str)) or not hasattr(values, "__iter__"):
        values = [values]
    return {int(value) for value in values}


def _texts(values):
    return [] if values is None else [values] if isinstance(values, str) else list(values)


def _compiled(values):
    found = []
    for text in _texts(values):
        try:
            found.append(patterns.matcher(text))
        except patterns.PatternError as error:
            raise ValueError('evprof: the pattern "%s" cannot be used: %s' % (text, error)) from None
    return found


def _is_frozen_library(file, module):
    """Frozen programs (PyInstaller) name a file by its place below sys.path: filter_is_frozen_library() is the model."""
    if file.startswith(("pyimod", "pyiboot", "pyi_rth_")):
        return True
    path = module.replace(".", "/")
    return file in (path + ".py", path + "/__init__.py") and module.split(".")[0] in _LIBRARY_MODULES


def in_syspath(file, module):
    """Is the file one that Python itself puts on sys.path: of the standard library, frozen, or of an installed package?"""
    return file.startswith("<frozen ") or "/site-packages/" in file or "/dist-packages/" in file or bool(
        _LIBRARY.search(file)) or (".zip/" in file and "/python3" in file) or _is_frozen_library(file, module)


def _names_of(file, name, qualified, module):
    """The names of a function that patterns look at, as bytes; none is empty."""
    texts = (file, name, qualified, module + "." + qualified if module else qualified)
    return [text.replace("\0", " ").encode("utf-8", "surrogatepass") for text in texts if text]


class FunctionFilter:
    """Which functions are shown."""

    def __init__(self, include, exclude, exclude_syspath):
        self._include, self._exclude = _compiled(include), _compiled(exclude)
        self._exclude_syspath = bool(exclude_syspath)

    def __bool__(self):
        return bool(self._include or self._exclude or self._exclude_syspath)

    def _takes(self, names):
        if any(matches(name) for matches in self._exclude for name in names):
            return False
        return not self._include or any(matches(name) for matches in self._include for name in names)

    def shows_code(self, code):
        """code: a model.Code, or None: a function without a name is shown unless something is to be included."""
        if code is None:
            return not self._include
        return self._takes(_names_of(code.file, code.name, code.qualname, code.module)) and not (
            self._exclude_syspath and in_syspath(code.file, code.module))

    def shows_c_function(self, function):
        if function is None:
            return not self._include
        qualified = function.cls + "." + function.name if function.cls else function.name
        return self._takes(_names_of("~", function.name, qualified, function.module))


def _all_there(wanted, there, what):
    """A number that was mistyped would look like a program that did nothing."""
    missing = (wanted or set()) - there
    if missing:
        raise ValueError("evprof: there is no %s %d in the trace" % (what, min(missing)))


class Filter:
    """All that to_numpy() was asked for. Times are those of CLOCK_MONOTONIC; None: no bound, or all."""

    def __init__(self, trace, processes=None, threads=None, start=None, end=None, include=None, exclude=None,
                 exclude_syspath=False, min_duration=None, max_depth=None):
        self.processes, self.threads = numbers(processes), numbers(threads)
        _all_there(self.processes, {process.pid for process in trace.processes}, "process")
        _all_there(self.threads, {thread.tid for thread in trace.threads}, "thread")
        start, end = duration(start, "start"), duration(end, "end")
        if start is not None and end is not None and start >= end:
            raise ValueError("evprof: end must be later than start")
        self.from_ns = None if start is None else trace.start_ns + start
        self.to_ns = None if end is None else trace.start_ns + end
        self.functions = FunctionFilter(include, exclude, exclude_syspath)
        self.min_ns = duration(min_duration, "min_duration") or 0
        self.max_depth = None if max_depth is None else min(int(max_depth), _DEPTH_MAX)
        if self.max_depth is not None and self.max_depth < 1:
            raise ValueError("evprof: max_depth is 1 or more, not %d" % self.max_depth)

    @property
    def narrows(self):
        """Are there functions or calls that are not shown?"""
        return bool(self.functions or self.min_ns or self.max_depth)

    def wants(self, thread):
        return (self.processes is None or thread.process.pid in self.processes) and (
            self.threads is None or thread.tid in self.threads)

    def places(self, thread):
        """Numbers of the first chunk that the stretch touches and of the first that is after it."""
        at, places = thread.process.line.at, thread.places
        first, end = 0, len(places)
        if self.from_ns is not None:
            first = next((n for n, place in enumerate(places) if at(place.last_ticks) >= self.from_ns), end)
        if self.to_ns is not None:
            end = next((n for n in range(first, end) if at(places[n].first_ticks) >= self.to_ns), end)
        return first, end
