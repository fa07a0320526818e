"""%load_ext evprof in a notebook, and %%evprof at the top of a cell. docs/notebook.md describes both.

Where the library was not preloaded into the kernel, it is loaded by the first cell that is recorded.
"""
import argparse
import ast
import glob
import html
import importlib
import shlex
import sys
import threading
from typing import Any, Dict, List, NoReturn, Optional, Set, Tuple

from ._window import find_edges, own_pids, pause, this_thread
from .errors import EvprofError
from .trace import Trace, load

_LARGEST_PAGE = 32 << 20  # what browsers still take in a cell, as a text
_NO_AWAIT = "evprof: a cell with await at its top cannot be recorded; run the coroutine by asyncio.run() in a thread"


class CellProfile:
    """What %%evprof recorded of a cell. A notebook shows it as a table and a page with timeline and flame graph.

    path: of the trace, which has all recorded cells of the kernel; it goes with the kernel unless EVPROF_OUTPUT names one.
    """

    def __init__(self, path: str, edges: Tuple[int, int], hidden: Set[str], threads: Set[int], style: Any) -> None:
        """edges: of pause(); hidden: files of the kernel's functions; threads: the kernel's own."""
        self.path = path
        self._style = style
        with load(path) as trace:
            start, end = find_edges(trace, edges[0], edges[1], this_thread(), (1, 0))
            self._filters: Dict[str, Any] = {
                "start": start, "end": end, "processes": own_pids(trace),
                "threads": [thread.tid for thread in trace.threads if thread.tid not in threads],
                "exclude": sorted(glob.escape(name) for name in hidden)}

    def trace(self) -> Trace:
        """The trace, as evprof.load() opens it, with the cell's filters: its methods show the cell only.

        EvprofFileError: the trace is gone.
        """
        return load(self.path, **self._filters)

    def report(self, sort: str = "time", limit: Optional[int] = None) -> str:
        """cProfile's table of the cell, times in seconds; sort and limit (rows) as in Trace.report()."""
        with self.trace() as trace:
            return trace.report(sort=sort, limit=limit)

    def page(self) -> str:
        """The HTML page of `evprof export` of the cell: timeline, flame graph, table."""
        with self.trace() as trace:
            return trace.flame("html")

    def __repr__(self) -> str:
        return self.report(self._style.sort, self._style.rows)

    def _repr_html_(self) -> str:
        page = self.page()
        table = "<pre>%s</pre>" % html.escape(repr(self))
        if len(page) > _LARGEST_PAGE:
            return table + "<p>The timeline has %d MiB: too much for a cell. <code>evprof export %s -o cell.html</code></p>" % (
                len(page) >> 20, html.escape(shlex.quote(self.path)))
        return table + '<iframe title="evprof" style="width: 100%%; height: %dpx; border: 0" srcdoc="%s"></iframe>' % (
            self._style.height, html.escape(page))


class _Words(argparse.ArgumentParser):
    """Errors are exceptions: the kernel goes on."""

    def error(self, message: str) -> NoReturn:
        raise EvprofError("evprof: %%%%evprof: %s" % message)


def _parser() -> _Words:
    parser = _Words(prog="%%evprof", add_help=False, description="Records a cell, and shows its functions, timeline and flame graph.")
    parser.add_argument("-s", "--sort", default="time", help="order of the table, as in evprof report")
    parser.add_argument("-n", "--rows", type=int, default=20, help="rows of the table")
    parser.add_argument("-r", "--result", metavar="NAME", help="keep what was recorded in this variable, an evprof.notebook.CellProfile")
    parser.add_argument("--height", type=int, default=600, help="of the page, in pixels")
    return parser


def _compiled(shell: Any, cell: str) -> Tuple[Any, Any]:
    """The code of a cell, and that of the expression at its end; None: there is none, or its value is not wanted."""
    source = shell.transform_cell(cell)
    name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
    return shell.compile(tree, name, "exec"), last


def _files_below() -> Set[str]:
    """The files of the functions that run now."""
    files, frame = {pause.__code__.co_filename}, sys._getframe()
    while frame:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back  # type: ignore[assignment]
    return files


class _Magic:
    """%%evprof of one kernel."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._threads = {thread.native_id for thread in threading.enumerate() if thread.native_id} - {this_thread()}
        self._recording: Any = importlib.import_module("evprof.recording")

    def __call__(self, line: str, cell: str) -> Any:
        __tracebackhide__ = True  # IPython leaves the function out of the cell's tracebacks
        style = _parser().parse_args(shlex.split(line))
        try:
            code, last = _compiled(self._shell, cell)
        except SyntaxError as error:
            if "await" not in str(error) and "async" not in str(error):
                raise
            raise EvprofError(_NO_AWAIT) from None
        profile = self._recording.profile()
        try:
            profile.start()
        except (ImportError, RuntimeError) as error:
            print(error, file=sys.stderr)
        edges: List[int] = [pause()]
        try:
            return self._run(code, last)
        finally:
            edges.append(pause())
            profile.stop()
            if profile.path:
                self._show(CellProfile(profile.path, (edges[0], edges[1]), _files_below(), self._threads, style), style.result)
            else:
                print("evprof: nothing was recorded", file=sys.stderr)

    def _run(self, code: Any, last: Any) -> Any:
        __tracebackhide__ = True
        exec(code, self._shell.user_ns)
        return eval(last, self._shell.user_ns) if last else None

    def _show(self, profile: CellProfile, name: Optional[str]) -> None:
        if name:
            self._shell.user_ns[name] = profile
        display = importlib.import_module("IPython.display")
        display.display(profile)


def load_ipython_extension(shell: Any) -> None:
    """%load_ext evprof: adds %%evprof to the kernel."""
    magic = _Magic(shell)

    def evprof(line: str, cell: str) -> Any:
        __tracebackhide__ = True
        return magic(line, cell)

    evprof.__doc__ = _parser().format_help()
    shell.register_magic_function(evprof, "cell", "evprof")
