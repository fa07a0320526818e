#!/usr/bin/env python3
"""run_cpython.py [--python COMMAND] [--all] [--listener] [--results DIRECTORY] [--spare-bare] [--jobs N] [--timeout S]
[--events LIST] [--table FILE] [MODULE...]

Runs modules of CPython's own test suite bare and under evprof and compares what came of every single test. The modules are
those that touch what evprof touches, unless some are named, or all are asked for. Status 0: no test ended otherwise, known
reasons aside (KNOWN).

    tests/suites/run_cpython.py --python python3.11 test_sys test_threading
    tests/suites/run_cpython.py --python python3.11 --all --spare-bare --results /tmp/3.11 --jobs 2

With --listener a test is not run under evprof but with listener/sitecustomize.py: what fails then, too, fails under any
listener. A child that does not look at PYTHONPATH is not listened to.

COMMAND may have arguments ("in-root.sh ROOT /usr/bin/python3.15"; Debian's Pythons have their tests in libpython3.15-testsuite,
and need python3.15-venv for test_venv and test_ensurepip). Not part of `make test`: it takes an hour.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile

import suites

MODULES = """
test_sys test_sys_setprofile test_sys_settrace test_monitoring test_threading test_thread test_threading_local
test_generators test_coroutines test_asyncgen test_exceptions test_gc test_capi test_embed test_faulthandler
test_tracemalloc test_fork1 test_os test_subprocess test_concurrent_futures test_signal test_threadsignals test_atexit
test_audit test_code test_cprofile test_profile test_pstats test_trace test_bdb test_pdb test_contextlib test_weakref
test_descr test_interpreters test__xxsubinterpreters test__interpreters test__xxinterpchannels test_import test_inspect
test_dis test_frame test_call test_scope test_sqlite test_sqlite3 test_ctypes test_site test_cmd_line test_unraisablehook
test_raise test_with test_yield_from test_generator_stop test_finalization test_multiprocessing_main_handling
test_runpy test_context test_contextlib_async test_sys_setrecursionlimit test_functools test_itertools test_traceback
test_types test_super test_asyncio.test_tasks test_asyncio.test_events test_asyncio.test_subprocess
test_asyncio.test_futures test_importlib.test_threaded_import test_importlib.test_locks
""".split()

# regrtest's statuses where it did not run a module, because this machine lacks what it needs.
NOTHING_RAN = (0, 4)

# What differs, and why: (expression for the test, lowest and highest minor version, reason). "CPython" and "any listener":
# the same tests fail without evprof where another tool listens to the same events, which was run. "evprof": it is evprof.
KNOWN = [
    (r"test_sneaky_frame_object$", 11, 11,
     "any listener: 3.11 makes a frame object for each event of a profile function, and the collector counts them"),
    (r"test_set_nomemory$", 12, 99,
     "any listener: from 3.12 on the interpreter allocates an int for events of sys.monitoring; here it may not"),
    (r"test_get_traced_memory$", 12, 13,
     "any listener: an event of sys.monitoring comes with an int for where in the code, which tracemalloc counts: 28 or 32 bytes"),
    (r"test_no_unwind_for_shim_frame$|test_assign_init_code$|test_class_call_specialization_user_type$"
     r"|test_dis\..*(specialize|loop_quicken|super_instructions)$", 11, 99,
     "any listener: looks for specialized opcodes"),
    (r"test_opcache\..*test_(push_init_frame_fails|specialize_call_function_ex_py(_fail)?|call_list_append|load_super_attr)$",
     14, 15, "any listener: looks for specialized opcodes"),
    (r"test_pdb\.|test_pdb_set_trace(_nested)?$|test_set_trace_with_skip$|test_connect_and_basic_commands$", 13, 15,
     "any listener: from 3.13 on pdb.set_trace() stops one line later"),
    (r"TestSupport\.test_recursion$", 11, 11,
     "any listener: counts on what is left of the recursion limit, of which 3.11 takes more for a call that is listened to"),
    (r"CSimpleQueueTest\.test_reentrancy$", 9, 9,
     "any listener: counts on the collector running in the middle of put(), where a listener's calls make it run elsewhere"),
    (r"test_jit_is_active$", 15, 15, "any listener: asks whether code runs compiled, which no code does that is listened to"),
    (r"test_debugmallocstats$", 8, 99,
     "evprof's allocators: sys._debugmallocstats reports pymalloc only where none stands before it (tracemalloc: the same)"),
    (r"test_(pythonmalloc|xdev)$", 8, 99,
     "evprof's allocators: the test asks for the allocator's name, which only Python's own have (tracemalloc: the same)"),
]

# Left out of both runs, because the process would not live to run the others: (test, module, versions, reason).
LEFT_OUT = [
    ("test_in_thread", "test__xxsubinterpreters", 11, 11, "CPython: 3.11.7 never ends it, bare"),
    ("test_in_threaded_subinterpreter", "test__xxsubinterpreters", 11, 11, "CPython: 3.11.7 never ends it, bare"),
    ("test_from_other_thread", "test__xxsubinterpreters", 11, 11, "CPython: 3.11.7 never ends it, bare"),
    ("test_in_thread", "test_interpreters", 11, 11, "CPython: 3.11.7 never ends it, bare"),
    ("test_from_other_thread", "test_interpreters", 11, 11, "CPython: 3.11.7 never ends it, bare"),
    ("*jit_frames*", "test_c_stack_unwind", 15, 15,
     "any listener: waits until code is compiled, which no code is that is listened to"),
    ("test_manual_unwind_finds_expected_frames", "test_c_stack_unwind", 15, 15,
     "any listener: waits until code is compiled, which no code is that is listened to"),
    ("ThreadedVSOCKSocketStreamTest", "test_socket", 8, 11,
     "this machine: has vsock, but no way to connect to itself by it; until 3.11 the test waits forever then, bare"),
    ("test_pendingcalls_threaded", "test_capi", 11, 11,
     "any listener: 3.11 loops forever in a pending call that finds another pending (cProfile too), now and then"),
    ("test_invalid_bytecode", "test_code", 15, 15,
     "any listener: 3.15.0 crashes in invalid bytecode under sys.monitoring"),
]


def version_of(command):
    out = subprocess.run(command + ["-c", "import sys; print(*sys.version_info[:3])"], stdout=subprocess.PIPE, check=True)
    return tuple(map(int, out.stdout.split()))


def existing(command, modules):
    """Those that this version has; a folder whose modules regrtest runs one by one, as these. What regrtest does not list is
    looked for; that may import a folder which does not bear it, as where another build is wanted."""
    code = ("import importlib.util, sys, unittest\n"
            "for name in sys.argv[1:]:\n"
            "    try:\n"
            "        if importlib.util.find_spec('test.' + name): print(name)\n"
            "    except (ImportError, unittest.SkipTest): pass\n")
    listed = all_modules(command)
    parts = {name: [one for one in listed if one == name or one.startswith(name + ".")] for name in modules}
    others = [name for name in modules if not parts[name]]
    out = subprocess.run(command + ["-c", code] + others, stdout=subprocess.PIPE, check=True)
    found = set(out.stdout.decode().split())
    return [one for name in modules for one in parts[name] or [name][:name in found]]


def all_modules(command):
    """Every module that regrtest finds, those last that take long because they wait."""
    out = subprocess.run(command + ["-m", "test", "--list-tests"], stdout=subprocess.PIPE, check=True)
    names = [re.sub(r"^test\.", "", name) for name in out.stdout.decode().split()]
    return sorted(names, key=lambda name: bool(re.match("test_(multiprocessing|concurrent_futures|asyncio)", name)))


def known_reason(test, minor):
    for expression, lowest, highest, why in KNOWN:
        if lowest <= minor <= highest and re.search(expression, test):
            return why
    return None


def without_known(bare, profiled, minor):
    """Takes tests that are known to differ out of both."""
    reasons = set()
    for test in sorted(set(profiled.outcomes) | set(bare.outcomes)):
        if profiled.outcomes.get(test) != bare.outcomes.get(test):
            why = known_reason(test, minor)
            if why:
                reasons.add(why)
                profiled.outcomes.pop(test, None)
                bare.outcomes.pop(test, None)
    return reasons


def left_out(module, minor):
    return [entry for entry in LEFT_OUT if entry[1] == module and entry[2] <= minor <= entry[3]]


def regrtest(module, minor, options):
    # No resources (network, large files, long ones): regrtest's default. A test of a package has its whole name.
    arguments = ["-m", "test", "-W", "--timeout", str(options.timeout), "--junit-xml", "@JUNIT"]
    for entry in left_out(module, minor):
        arguments += ["-i", entry[0]]
    return arguments + ["test." + module if "." in module else module]


def run_module(command, module, listened, options, minor):
    listener = {"PYTHONPATH": os.path.join(suites.HERE, "listener")} if listened and options.listener else None
    return suites.run_once(command + regrtest(module, minor, options), listened and not options.listener,
                           options.timeout + 30, options.events, environment=listener)


def list_cases(command, module, minor, options):
    """The tests that a bare Python finds in a module; none of them is run."""
    arguments = [one for one in regrtest(module, minor, options) if one != "-W"]
    at = arguments.index("--junit-xml")
    arguments[at:at + 2] = ["--list-cases"]

    def read(text):
        return {suites.case_name("", line): "listed" for line in text.splitlines() if re.match(r"\S+$", line)}
    return set(suites.run_once(command + arguments, False, options.timeout, "", read=read).outcomes)


def skipped_bare(command, module, names, minor, options):
    """Which of these tests a bare Python skips, too."""
    with tempfile.NamedTemporaryFile("w", suffix=".names") as file:
        file.write("".join(name.lstrip(".") + "\n" for name in names))
        file.flush()
        arguments = regrtest(module, minor, options)
        arguments[-1:-1] = ["--matchfile", file.name]
        return suites.run_once(command + arguments, False, options.timeout + 30, "").having("skipped")


def name_subtests(run):
    """In regrtest's results a subtest that failed has no name, and its test is not among them; the report names both."""
    run.outcomes.pop(suites.case_name("", ""), None)
    for kind, test, place in re.findall(r"^(FAIL|ERROR): (\w+) \(([\w.]+)\)", run.text, re.M):
        name = suites.case_name("", place if place.endswith("." + test) else place + "." + test)
        run.outcomes[name] = "failed" if kind == "FAIL" else "error"


def may_spare_bare(command, module, profiled, minor, options):
    """Whether a bare run could show no difference: where every test that a bare Python lists has passed, or was skipped
    and is skipped bare, too. What passes under evprof and fails bare is no fault of evprof's."""
    if profiled.status != 0 or not profiled.outcomes or profiled.bad():
        return False
    if list_cases(command, module, minor, options) != set(profiled.outcomes):
        return False
    skipped = profiled.having("skipped")
    return not skipped or skipped_bare(command, module, skipped, minor, options) == skipped


def both(command, module, minor, options):
    path = options.results and os.path.join(options.results, module + ".json")

    def run(preload):
        return run_module(command, module, preload, options, minor)

    def may_spare(profiled):
        return options.spare_bare and may_spare_bare(command, module, profiled, minor, options)
    return suites.both(path, run, may_spare)


def difference_of(bare, profiled, module, minor):
    """(what is worse under evprof, the same with what is known and with the losses)."""
    reasons = set()
    difference = ""
    if bare:
        name_subtests(bare)
        name_subtests(profiled)
        reasons = without_known(bare, profiled, minor)
        if reasons and profiled.outcomes and profiled.bad() <= bare.bad():
            profiled.status = bare.status  # it failed for these only
        difference = suites.compare(bare, profiled, NOTHING_RAN)
    remarks = ["known: " + why for why in sorted(reasons)]
    remarks += ["left out: %s (%s)" % (entry[0], entry[4]) for entry in left_out(module, minor)]
    return difference, "; ".join(filter(None, [difference] + remarks + suites.losses(profiled)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--all", action="store_true", help="every module that regrtest finds")
    parser.add_argument("--listener", action="store_true", help="in place of evprof, listen by the interpreter's own means")
    suites.add_arguments(parser, "module")
    parser.add_argument("modules", nargs="*")
    return parser.parse_args()


def main():
    options = parse_arguments()
    suites.mend_signals()
    command = shlex.split(options.python)
    version = version_of(command)
    if options.results:
        os.makedirs(options.results, exist_ok=True)
    modules = all_modules(command) if options.all else existing(command, options.modules or MODULES)
    table = suites.Table("CPython %d.%d.%d's own tests, bare and under evprof" % version)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for module, (bare, profiled) in zip(modules, pool.map(lambda one: both(command, one, version[1], options), modules)):
            difference, remarks = difference_of(bare, profiled, module, version[1])
            failures += suites.is_worse(difference)
            table.add(module, bare, profiled, remarks)
    if options.table:
        table.write(options.table)
    print("%d modules, %d differ" % (len(table.rows), failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
