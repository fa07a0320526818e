"""The pytest plugin: `pytest --evprof`, and the mark evprof. docs/pytest.md describes both.

    pytest --evprof                 records the run; spans name tests, phases and fixtures; the slowest are printed at the end
    @pytest.mark.evprof(max_calls={"app.db:query": 20})    fails the test where it calls the function more often

pip installs it as an entry point; from the source tree: pytest -p evprof.pytest_plugin. Where the library was not preloaded, it is
loaded when pytest begins. Without --evprof only tests with limits are recorded, into a temporary file.
"""
import glob
import importlib
import inspect
import os
import re
import time
from typing import Any, Dict, Generator, Iterable, List, Optional, Set, Tuple

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._limits import Limits, Window

_ROWS = 10
_NAME_BYTES = 200  # of the name of a file, before a number and the suffix
_LATE = ("the library was loaded by pytest, so programs that tests start are not recorded; `evprof run -- pytest --evprof` records "
         "them")

#: evprof.recording. It is imported when something is to be recorded.
_recording: Any = None


def _recorder() -> Any:
    global _recording
    if _recording is None:
        _recording = importlib.import_module("evprof.recording")
    return _recording


def pytest_addoption(parser: Any) -> None:
    """The options."""
    group = parser.getgroup("evprof", "the profiler evprof")
    group.addoption("--evprof", action="store_true",
                    help="record the run, with spans of tests, phases and fixtures, and show the slowest tests and functions")
    group.addoption("--evprof-rows", type=int, default=_ROWS, metavar="N", help="rows of the two tables (default: 10)")
    group.addoption("--evprof-dir", metavar="DIR", help="record the run, and write a trace of each test into this folder")


def pytest_configure(config: Any) -> None:
    """The mark, and recording."""
    config.addinivalue_line("markers", 'evprof(max_calls={"MODULE:FUNCTION": N}, max_time="200ms", max_memory="24MB", '
                            "max_allocations=N, max_leak=BYTES, warmups=N): fail the test if it needs more (docs/pytest.md)")
    session = _Session(config)
    if _records(config):
        config.pluginmanager.register(session, "evprof-session")
        if session.is_controller:
            config.pluginmanager.register(_Controller(session), "evprof-controller")
        elif session.begin():
            config.pluginmanager.register(_Spans(session), "evprof-spans")
    if not session.is_controller:
        config.pluginmanager.register(_LimitedTests(session), "evprof-limits")


def _records(config: Any) -> bool:
    """Whether the run is recorded, not only tests with limits."""
    return bool(config.getoption("evprof") or config.getoption("evprof_dir"))


def file_names(nodeids: Iterable[str]) -> Dict[str, str]:
    """A name for the trace of each test, without its suffix: the node id, with hyphens for what is not a letter, a digit or one of _.=+,@. No
    two are the same, whatever the case of letters; those of a run do not depend on the order of its tests.

    >>> from evprof.pytest_plugin import file_names
    >>> sorted(file_names(["tests/test_db.py::test_page[50]", "test_a.py::test[x/y]", "test_a.py::test[x y]"]).values())
    ['test_a.py-test-x-y', 'test_a.py-test-x-y-2', 'tests-test_db.py-test_page-50']
    """
    taken: Set[str] = set()
    return {nodeid: _free_name(nodeid, taken) for nodeid in sorted(set(nodeids))}


def _free_name(nodeid: str, taken: Set[str]) -> str:
    plain = re.sub(r"[^\w.=+,@]+", "-", nodeid).strip("-.").encode("utf-8", "replace")[:_NAME_BYTES].decode("utf-8", "ignore") or "test"
    name, number = plain, 1
    while name.casefold() in taken:
        number += 1
        name = "%s-%d" % (plain, number)
    taken.add(name.casefold())
    return name


def _worker(config: Any) -> str:
    """The name of this worker of pytest-xdist; "": it is none."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def _output(worker: str) -> str:
    """EVPROF_OUTPUT. The traces of workers have different names."""
    given = os.environ.get("EVPROF_OUTPUT") or "evprof-pytest-%p.evp"
    if not worker or "%p" in given:
        return given
    stem, extension = os.path.splitext(given)
    return "%s-%s%s" % (stem, worker, extension)


class _Session:
    """Recording of this process. late: pytest has loaded the library; problem: why nothing is recorded."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.worker = _worker(config)
        self.is_controller = not self.worker and bool(getattr(config.option, "tx", None))
        self.late = False
        self.problem = ""
        self.traces: List[str] = []
        self.folder = os.path.abspath(config.getoption("evprof_dir")) if config.getoption("evprof_dir") else ""
        self.cuts = 0  # traces of tests
        self.no_cuts = ""  # why there are none, or not all
        self._spans: List[Tuple[str, int]] = []  # node id and number of the span of each test
        self._pid = os.getpid()
        self._tests: Dict[str, Dict[str, float]] = {}
        self.worker_traces: Dict[str, str] = {}  # of each worker that has reported a test, by its name
        self.crashed: List[str] = []  # workers that ended without a word about their trace

    def begin(self, scratch: bool = False) -> bool:
        """Starts recording. scratch: into a file that goes with the process. False: it cannot be; problem says why."""
        if os.environ.get("EVPROF") == "0":
            self.problem = "EVPROF=0"
            return False
        os.environ.setdefault("EVPROF_ON_FULL", "wait:60000")  # counts are to be exact
        try:
            recorder = _recorder()
            if recorder.active():
                return True
            output: Optional[str] = _output(self.worker)
            if scratch and not recorder.trace_path():
                output = recorder._make_scratch()
            self.late = recorder.begin(output, None) or self.late
        except (ImportError, RuntimeError) as error:
            self.problem = str(error)
            return False
        if not recorder.active():
            self.problem = "this process cannot be recorded any more"
        return not self.problem

    def flushed(self) -> Optional[str]:
        """The path of the trace, which has everything until now; None: nothing is recorded, or it is not complete."""
        recorder = _recorder()
        return recorder.trace_path() if recorder._flush() else None

    def add(self, trace: Optional[str]) -> None:
        """A trace of this run."""
        if trace and trace not in self.traces:
            self.traces.append(trace)

    def note_test(self, nodeid: str, number: Optional[int]) -> None:
        """The span of a test has begun."""
        if self.folder and number:
            self._spans.append((nodeid, number))

    def _cut(self, path: Optional[str], nodeids: List[str]) -> None:
        """Writes the trace of each test. nodeids: of all tests of the run, which each worker knows."""
        if not self._spans or os.getpid() != self._pid:
            return
        names = file_names(nodeids + [nodeid for nodeid, _ in self._spans])
        taken = {name.casefold() for name in names.values()}
        paths: Dict[int, str] = {}
        seen: Set[str] = set()
        for nodeid, number in self._spans:
            name = _free_name(nodeid, taken) if nodeid in seen else names[nodeid]  # a test that is run again
            paths[number] = os.path.join(self.folder, name + ".evp")
            seen.add(nodeid)
        try:
            if path is None:
                raise ValueError("evprof: the trace is not complete: the collector does not answer")
            os.makedirs(self.folder, exist_ok=True)
            from .trace import load
            with load(path) as trace:
                self.cuts = len(trace._cut_spans(self._pid, paths))
            if self.cuts < len(paths):
                self.no_cuts = "the spans of %d tests are not in the trace" % (len(paths) - self.cuts)
        except (ImportError, OSError, ValueError, MemoryError) as error:
            self.no_cuts = str(error)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        """The trace is complete from here on."""
        if self.is_controller or not _recorder().active():
            return
        path = self.flushed()
        if self.late:
            _recorder()._patient.evprof_finish()
        if self.folder:
            self._cut(path, [item.nodeid for item in getattr(session, "items", [])])
        if self.worker:
            self.config.workeroutput["evprof"] = {"path": path, "late": self.late, "cuts": self.cuts, "no_cuts": self.no_cuts}
        else:
            self.add(path)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Generator[None, Any, None]:
        """A worker says with each test where its trace is: if it crashes, it cannot say so at its end."""
        outcome = yield
        if self.worker and outcome.excinfo is None:
            outcome.get_result().evprof_trace = _recorder().trace_path()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Adds up the phases of a test; those of the workers come here, too."""
        trace = getattr(report, "evprof_trace", None)
        if trace and hasattr(report, "node"):
            self.worker_traces[report.node.gateway.id] = trace
        if hasattr(report, "context"):  # a subtest: its time is in that of its test
            return
        phases = self._tests.setdefault(report.nodeid, {})
        phases[report.when] = phases.get(report.when, 0) + report.duration

    @pytest.hookimpl(optionalhook=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The tables."""
        if self.worker:
            return
        rows = self.config.getoption("evprof_rows")
        terminalreporter.section("evprof")
        for line in self._slowest_tests(rows) + self._slowest_functions(rows):
            terminalreporter.write_line(line)
        for path in self.traces:
            terminalreporter.write_line("trace: %s; show it with: evprof report %s" % (path, path))
        if self.cuts:
            terminalreporter.write_line("traces of %d tests: %s" % (self.cuts, self.folder))
        for worker in self.crashed:
            terminalreporter.write_line("the trace of %s, which crashed before its first test, is not in the tables" % worker)
        if self.no_cuts:
            terminalreporter.write_line("traces of tests are missing: %s" % self.no_cuts)
        if self.problem:
            terminalreporter.write_line("nothing was recorded: %s" % self.problem)
        elif not self.traces:
            terminalreporter.write_line("no trace was written")
        elif self.late:
            terminalreporter.write_line(_LATE)

    def _slowest_tests(self, rows: int) -> List[str]:
        tests = sorted(self._tests.items(), key=lambda test: -sum(test[1].values()))[:rows]
        if not tests:
            return []
        lines = ["slowest tests, in seconds", "   total   setup    call  teardown"]
        for nodeid, phases in tests:
            lines.append("%8.3f%8.3f%8.3f%10.3f  %s" % (sum(phases.values()), phases.get("setup", 0), phases.get("call", 0),
                                                        phases.get("teardown", 0), nodeid))
        return lines

    def _slowest_functions(self, rows: int) -> List[str]:
        try:
            functions = slowest_functions(self.traces, str(self.config.rootpath))[:rows]
        except (ImportError, ValueError) as error:
            return [str(error)]
        if not functions:
            return []
        lines = ["slowest functions below %s, in seconds; own: with Python's and installed packages'" % self.config.rootpath,
                 "     own  cumulative     calls"]
        for (file, line, name), (calls, own, cumulative) in functions:
            where = "%s:%d(%s)" % (os.path.relpath(file), line, name) if line else name
            lines.append("%8.3f%12.3f%10d  %s" % (own / 1e9, cumulative / 1e9, calls, where))
        return lines


def slowest_functions(paths: List[str], root: str) -> List[Tuple[Tuple[str, int, str], Tuple[int, int, int]]]:
    """The Python functions below a folder, of several traces, added up, the longest own time first: (file, line, name), (calls, own
    and cumulative ns).

    Other functions, C functions, this package, the standard library and installed packages are left out: their time is their callers' own.
    EvprofError: a trace cannot be read.

    >>> from evprof.pytest_plugin import slowest_functions
    >>> [calls for (file, line, name), (calls, own, cumulative) in slowest_functions([trace_path], "/") if name == "leaf"]
    [1000]
    """
    from ._paths import OWN_FUNCTIONS
    from .trace import load
    found: Dict[Tuple[str, int, str], Tuple[int, int, int]] = {}
    for path in paths:
        with load(path, exclude_syspath=True, include=glob.escape(root.rstrip("/")) + "/*", exclude=OWN_FUNCTIONS) as trace:
            for row in trace.functions():
                if not row.calls:
                    continue
                key = (row.file, row.line, row.name)
                calls, own, cumulative = found.get(key, (0, 0, 0))
                found[key] = (calls + row.calls, own + row.own, cumulative + row.cumulative)
    return sorted(found.items(), key=lambda item: (-item[1][1], item[0]))


class _Controller:
    """pytest-xdist's process without tests: takes the traces of its workers."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker has ended."""
        found = getattr(node, "workeroutput", {}).get("evprof")
        if found:
            self._session.late = self._session.late or found["late"]
            self._session.cuts += found["cuts"]
            self._session.no_cuts = self._session.no_cuts or found["no_cuts"]
            self._session.add(found["path"])
        elif node.gateway.id in self._session.worker_traces:
            self._session.add(self._session.worker_traces[node.gateway.id])
        elif error:
            self._session.crashed.append(node.gateway.id)


class _Spans:
    """A span for each test, phase and fixture."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, None]:
        """A test, by its node id."""
        with _recording.span(item.nodeid) as span:
            self._session.note_test(item.nodeid, span._open)
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> Generator[None, Any, None]:
        """The phase with the setup of the test's fixtures."""
        with _recording.span("setup", test=item.nodeid):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, None]:
        """The phase with the test itself."""
        with _recording.span("call", test=item.nodeid):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: Any) -> Generator[None, Any, None]:
        """The phase with the end of fixtures that no later test needs."""
        with _recording.span("teardown", test=item.nodeid):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, None]:
        """A fixture. What follows its yield has a span of its own."""
        name, about = "fixture " + fixturedef.argname, {"scope": fixturedef.scope, "test": request.node.nodeid}
        ends: List[Any] = []
        if _yields(fixturedef.func):
            fixturedef.addfinalizer(lambda: ends.pop().__exit__() if ends else None)  # finalizers run last to first
        with _recording.span(name, when="setup", **about):
            yield
        if _yields(fixturedef.func):
            fixturedef.addfinalizer(lambda: ends.append(_recording.span(name, when="teardown", **about).__enter__()))


def _yields(function: Any) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


class _LimitedTests:
    """Fails tests whose limits do not hold."""

    def __init__(self, session: _Session) -> None:
        self._session = session
        self._limits: Dict[str, "Limits"] = {}

    def pytest_collection_modifyitems(self, items: List[Any]) -> None:
        """Reads all marks before the first test runs, so that a wrong one ends the run at once."""
        for item in items:
            if item.get_closest_marker("evprof") is None:
                continue
            from ._limits import parse
            try:
                limits = parse(item.iter_markers("evprof"))
            except ValueError as error:
                raise pytest.UsageError("%s: %s" % (item.nodeid, error)) from None
            if limits.any:
                self._limits[item.nodeid] = limits

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, None]:
        """Measures the call phase of a test, without its fixtures."""
        limits = self._limits.get(item.nodeid)
        if limits is None:
            yield
            return
        for _ in range(limits.warmups):
            item.runtest()
        alone = not _recorder().active()
        if not self._session.begin(scratch=alone and not _records(item.config)):
            item.warn(pytest.PytestWarning("evprof: limits are not checked: %s" % self._session.problem))
            yield
            return
        window = _Watch(item)
        outcome = yield
        found = window.end()
        try:
            if outcome.excinfo is None:
                self._judge(item, limits, found, outcome)
        finally:
            if alone:
                _recorder().stop()

    def _judge(self, item: Any, limits: "Limits", window: "Window", outcome: Any) -> None:
        from ._limits import failures
        path = self._session.flushed()
        try:
            if path is None:
                raise ValueError("evprof: the trace is not complete: the collector does not answer")
            lines, absent = failures(limits, window, path)
        except ValueError as error:
            lines, absent = ["the limits cannot be checked: %s" % error], []
        for function in absent:
            item.warn(pytest.PytestWarning("evprof: %s was not called; is that its name?" % function))
        if lines:
            _fail(outcome, pytest.fail.Exception("evprof: limits of %s\n%s" % (item.nodeid, "\n".join(
                line if line.startswith(" ") else "  " + line for line in lines)), pytrace=False))

    def pytest_unconfigure(self) -> None:
        """Removes the trace that nobody asked to keep."""
        if _recording is not None and self._session.late:
            _recording._remove_scratch()


class _Watch:
    """Begins when it is made. The cyclic garbage of earlier tests is no part of it, nor is that of this one a leak."""

    def __init__(self, item: Any) -> None:
        import gc
        from ._limits import frame_of
        from ._window import pause
        self._collect = gc.collect
        self._pause = pause
        self._frame = frame_of(getattr(item, "obj", None))
        gc.collect()
        self._start = pause()
        self._began = time.perf_counter_ns()

    def end(self) -> "Window":
        """What was measured."""
        from ._limits import Window
        from ._window import this_thread
        elapsed = time.perf_counter_ns() - self._began
        self._collect()
        return Window(self._start, self._pause(), elapsed, this_thread(), self._frame)


def _fail(outcome: Any, error: BaseException) -> None:
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(error)
    else:  # pluggy before 1.1
        outcome._excinfo = (type(error), error, error.__traceback__)
