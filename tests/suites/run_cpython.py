#!/usr/bin/env python3
"""run_cpython.py [--python COMMAND] [--timeout S] [--events LIST] [--table FILE] [--logs DIRECTORY] [MODULE...]

Runs modules of CPython's own test suite bare and under evprof and compares what came of every single test. The modules are
those that touch what evprof touches, unless some are named. Status 0: no test ended otherwise, known reasons aside (KNOWN).

    tests/suites/run_cpython.py --python ~/.pyenv/versions/3.11.7/bin/python test_sys test_threading

COMMAND may have arguments ("in-root.sh ROOT /usr/bin/python3.15"). Not part of `make test`: it takes an hour.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

import suites

MODULES = """
test_sys test_sys_setprofile test_sys_settrace test_monitoring test_threading test_thread test_threading_local
test_generators test_coroutines test_asyncgen test_exceptions test_gc test_capi test_embed test_faulthandler
test_tracemalloc test_fork1 test_os test_subprocess test_concurrent_futures test_signal test_threadsignals test_atexit
test_audit test_code test_cprofile test_profile test_pstats test_trace test_bdb test_pdb test_contextlib test_weakref
test_descr test_socket test_interpreters test__xxsubinterpreters test__interpreters test__xxinterpchannels test_import
test_inspect test_dis test_frame test_call test_scope test_sqlite test_sqlite3 test_ctypes test_site test_cmd_line test_type_cache
test_unraisablehook test_raise test_with test_yield_from test_generator_stop test_finalization test_peepholer
test_multiprocessing_main_handling test_multiprocessing_forkserver test_dynamicclassattribute test_runpy test_io
test_exception_hierarchy test_exception_variations test_context test_contextlib_async test_lltrace test_perf_profiler
test_sys_setrecursionlimit test_recursion test_reprlib test_richcmp test_defaultdict test_deque test_dict test_functools
test_itertools test_opcache test_patma test_super test_tokenize test_traceback test_types test_unicode_identifiers
test_asyncio.test_tasks test_asyncio.test_events test_asyncio.test_subprocess test_importlib
""".split()

# What differs for a reason that is not evprof's to mend: (expression for the test, lowest and highest minor version, why).
KNOWN = []


def version_of(command):
    out = subprocess.run(command + ["-c", "import sys; print(*sys.version_info[:3])"], stdout=subprocess.PIPE, check=True)
    return tuple(map(int, out.stdout.split()))


def existing(command, modules):
    """Those that this version has, as its regrtest calls them."""
    code = ("import importlib.util, sys\n"
            "for name in sys.argv[1:]:\n"
            "    try:\n"
            "        if importlib.util.find_spec('test.' + name): print(name)\n"
            "    except ImportError: pass\n")
    out = subprocess.run(command + ["-c", code] + modules, stdout=subprocess.PIPE, check=True)
    return out.stdout.decode().split()


def known_reason(test, minor):
    for expression, lowest, highest, why in KNOWN:
        if lowest <= minor <= highest and re.search(expression, test):
            return why
    return None


def without_known(bare, profiled, minor):
    """Takes tests that are known to differ out of both."""
    reasons = set()
    for test in list(profiled.outcomes):
        if profiled.outcomes[test] != bare.outcomes.get(test):
            why = known_reason(test, minor)
            if why:
                reasons.add(why)
                profiled.outcomes.pop(test)
                bare.outcomes.pop(test, None)
    return reasons


def run_module(command, module, preload, options):
    # No resources (network, large files, long ones): regrtest's default. A test of a package has its whole name.
    arguments = ["-m", "test", "-W", "--timeout", str(options.timeout), "--junit-xml", "@JUNIT",
                 "test." + module if "." in module else module]
    return suites.run_once(command + arguments, preload, options.timeout + 30, options.events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--timeout", type=int, default=300, help="for one module, in seconds")
    parser.add_argument("--events", default="", help="EVPROF_EVENTS; all by default")
    parser.add_argument("--table", help="write the table there")
    parser.add_argument("--logs", help="write what a module that differs said there")
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    command = shlex.split(options.python)
    version = version_of(command)
    table = suites.Table("CPython %d.%d.%d's own tests, bare and under evprof" % version)
    failures = 0
    for module in existing(command, options.modules or MODULES):
        bare = run_module(command, module, False, options)
        profiled = run_module(command, module, True, options)
        texts = bare.text, profiled.text
        reasons = without_known(bare, profiled, version[1])
        if reasons and not profiled.bad() and profiled.status != bare.status:
            profiled.status = bare.status  # it failed for these only
        difference = suites.compare(bare, profiled)
        if difference and not any(part.startswith("fails only bare") for part in [difference]):
            failures += 1
        if difference and options.logs:
            os.makedirs(options.logs, exist_ok=True)
            for kind, text in zip(("bare", "evprof"), texts):
                with open(os.path.join(options.logs, "%d.%d-%s.%s" % (version[0], version[1], module, kind)), "w") as file:
                    file.write(text)
        table.add(module, bare, profiled, "; ".join(filter(None, [difference] + ["known: " + why for why in reasons])))
    if options.table:
        table.write(options.table)
    print("%d modules, %d differ" % (len(table.rows), failures))
    sys.exit(1 if failures else 0)


main()
