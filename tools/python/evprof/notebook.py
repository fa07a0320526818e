"""%load_ext evprof in a notebook, and %%evprof at the top of a cell. docs/notebook.md describes both.

Where the library was not preloaded into the kernel, it is loaded by the first cell that is recorded.
"""
import argparse
import ast
import glob
import html
import importlib
import inspect
import os
import shlex
import sys
import threading
from typing import Any, Callable, Dict, List, NoReturn, Optional, Set, Tuple

from ._tool import Option, report
from ._window import pids_of, this_thread
from .errors import EvprofError
from .trace import Trace, load, tool_words

_LARGEST_PAGE = 32 << 20  # what browsers still take in a cell, as a text
_MAGIC = "get_ipython().run_cell_magic('evprof',"  # what IPython makes of %%evprof
#: What runs in the kernel's loop while a cell awaits.
_KERNEL = ("IPython", "anyio", "asyncio", "comm", "ipykernel", "jupyter_client", "selectors", "tornado", "traitlets", "zmq")


class CellProfile:
    """What %%evprof recorded of a cell. A notebook shows it as a table and a page with timeline and flame graph.

    path: of the trace, which has all recorded cells of the kernel; it goes with the kernel unless EVPROF_OUTPUT names one.
    """

    def __init__(self, profile: Any, hidden: Set[str], threads: Set[int], style: Any) -> None:
        """profile: of the cell; hidden: patterns of the kernel's functions; threads: the kernel's own."""
        self.path: str = profile.path
        self._style = style
        with load(self.path) as trace:
            start, end = profile._edges(trace)[0]
            pids = pids_of(trace, os.getpid())
            self._filters: Dict[str, Any] = {
                "start": start, "end": end, "processes": pids,
                "threads": [thread.tid for thread in trace.threads if thread.process.pid in pids and thread.tid not in threads],
                "exclude": sorted(hidden)}

    def trace(self) -> Trace:
        """The trace, as evprof.load() opens it, with the cell's filters: its methods show the cell only.

        EvprofFileError: the trace is gone.
        """
        return load(self.path, **self._filters)

    def report(self, *options: str, **named: Option) -> str:
        """cProfile's table of the cell, times in seconds; the arguments are those of Trace.report()."""
        with self.trace() as trace:
            return trace.report(*options, **named)

    def page(self) -> str:
        """The HTML page of `evprof export` of the cell: timeline, flame graph, table."""
        with self.trace() as trace:
            return trace.flame("html")

    def __repr__(self) -> str:
        return self.report(sort=self._style.sort, limit=self._style.rows)

    def _repr_html_(self) -> str:
        page = self.page()
        table = "<pre>%s</pre>" % html.escape(repr(self))
        if len(page) > _LARGEST_PAGE:
            words = ["evprof", "export", *tool_words(self._filters), self.path, "-o", "cell.html"]
            return table + "<p>The timeline has %d MiB: too much for a cell. <code>%s</code></p>" % (
                len(page) >> 20, html.escape(" ".join(map(shlex.quote, words))))
        return table + '<iframe title="evprof" style="width: 100%%; height: %dpx; border: 0" srcdoc="%s"></iframe>' % (
            self._style.height, html.escape(page))


class _Words(argparse.ArgumentParser):
    """Errors are exceptions: the kernel goes on."""

    def error(self, message: str) -> NoReturn:
        raise EvprofError("evprof: %%%%evprof: %s" % message)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("it is a whole number from 0, not %r" % text)
    return int(text)


def _name(text: str) -> str:
    if not text.isidentifier():
        raise argparse.ArgumentTypeError("it is the name of a variable, not %r" % text)
    return text


def _parser() -> _Words:
    parser = _Words(prog="%%evprof", add_help=False, description="Records a cell, and shows its functions, timeline and flame graph.")
    parser.add_argument("-s", "--sort", default="time", help="order of the table, as in evprof report")
    parser.add_argument("-n", "--rows", type=_number, default=20, help="rows of the table")
    parser.add_argument("-r", "--result", metavar="NAME", type=_name, help="keep what was recorded in this variable, an evprof.notebook.CellProfile")
    parser.add_argument("--height", type=int, default=600, help="of the page, in pixels")
    return parser


def _style_of(line: str) -> Any:
    """The options of a cell. EvprofError: one is wrong, and the cell does not run."""
    style = _parser().parse_args(shlex.split(line))
    report("", ["--sort=" + style.sort, "--help"])  # the tool knows its orders
    return style


def _awaits(shell: Any, cell: str) -> bool:
    """Whether IPython would run the cell in the kernel's loop, because it has await at its top."""
    try:
        return bool(shell.should_run_async(cell, transformed_cell=shell.transform_cell(cell)))
    except Exception:  # running the cell raises it again, with a traceback
        return False


def _compiled(shell: Any, cell: str, awaits: bool) -> Tuple[Any, Any]:
    """The code of a cell, and that of the expression at its end; None: there is none, or its value is not wanted."""
    source = shell.transform_cell(cell)
    name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    with shell.compile.extra_flags(getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0) if awaits else 0):
        tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            last = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
        return shell.compile(tree, name, "exec"), last


def _files_below() -> Set[str]:
    """Patterns of the files of the functions that run now."""
    files: Set[str] = set()
    frame = sys._getframe()
    while frame:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back  # type: ignore[assignment]
    return {glob.escape(name) for name in files}


def _files_of_kernel() -> Set[str]:
    """Patterns of the files of _KERNEL."""
    patterns = set()
    for name in _KERNEL:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if os.path.basename(file) == "__init__.py":
            patterns.add(glob.escape(os.path.dirname(file)) + "/*")
        elif file:
            patterns.add(glob.escape(file))
    return patterns


class _Recorded:
    """Records what runs in a with statement, and shows it as a cell."""

    def __init__(self, magic: "_Magic", style: Any, awaits: bool) -> None:
        self._magic, self._style, self._awaits = magic, style, awaits
        self._profile = magic.recording.profile()

    def __enter__(self) -> None:
        try:
            self._profile.start()
        except (ImportError, RuntimeError) as error:
            print(error, file=sys.stderr)

    def __exit__(self, *error: object) -> None:
        self._profile.stop()
        hidden = _files_below() | (_files_of_kernel() if self._awaits else set())
        if not self._profile.path:
            print("evprof: nothing was recorded", file=sys.stderr)
            return
        try:
            profile = CellProfile(self._profile, hidden, self._magic.threads, self._style)
        except RuntimeError as reason:  # what the cell raised is raised
            print(reason, file=sys.stderr)
            return
        self._magic.show(profile, self._style.result)


class _Magic:
    """%%evprof of one kernel. threads: the kernel's own."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.threads = {thread.native_id for thread in threading.enumerate() if thread.native_id} - {this_thread()}
        self.recording: Any = importlib.import_module("evprof.recording")

    def __call__(self, line: str, cell: str) -> Any:
        """The value of the cell; of one with await at its top a coroutine, which awaited() has IPython await."""
        __tracebackhide__ = True  # IPython leaves the function out of the cell's tracebacks
        style, awaits = _style_of(line), _awaits(self._shell, cell)
        code, last = _compiled(self._shell, cell, awaits)
        recorded = _Recorded(self, style, awaits)
        return self._run_in_loop(recorded, code, last) if awaits else self._run(recorded, code, last)

    def _run(self, recorded: _Recorded, code: Any, last: Any) -> Any:
        __tracebackhide__ = True
        with recorded:
            exec(code, self._shell.user_ns)
            return eval(last, self._shell.user_ns) if last else None

    async def _run_in_loop(self, recorded: _Recorded, code: Any, last: Any) -> Any:
        __tracebackhide__ = True
        with recorded:
            for part in [code, last] if last else [code]:
                value = eval(part, self._shell.user_ns)
                if part.co_flags & inspect.CO_COROUTINE:
                    value = await value
            return value

    def awaited(self, lines: List[str]) -> List[str]:
        """An input transformer of IPython: %%evprof is awaited where its cell has await at its top, so IPython runs the cell in the
        kernel's loop, as it runs such a cell without %%evprof."""
        source = "".join(lines)
        if not source.startswith(_MAGIC):
            return lines
        call: Any = ast.parse(source).body[0]
        return ["await " + lines[0]] + lines[1:] if _awaits(self._shell, ast.literal_eval(call.value.args[2])) else lines

    def show(self, profile: CellProfile, name: Optional[str]) -> None:
        """Shows what was recorded, and keeps it in the variable of that name."""
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
    transformers: List[Callable[[List[str]], List[str]]] = shell.input_transformers_post
    transformers[:] = [one for one in transformers if not isinstance(getattr(one, "__self__", None), _Magic)] + [magic.awaited]
