#!/usr/bin/env python3
"""run_packages.py --venv DIRECTORY [--python COMMAND] [--results DIRECTORY] [--spare-bare] [--jobs N] [--timeout S]
[--events LIST] [--table FILE] [SUITE...]

Runs the test suites of numpy, gevent, uvloop and greenlet bare and under evprof, by pytest, a file at a time, and compares
what came of every single test. The virtual environment is made with COMMAND where it is not there, and the packages are
installed into it by pip. Status 0: no test failed under evprof only. Not part of `make test`: it takes hours.

    tests/suites/run_packages.py --venv /tmp/venv --python python3.12 --results /tmp/packages --spare-bare numpy.linalg uvloop
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tarfile

import suites

PACKAGES = "pytest hypothesis numpy gevent greenlet uvloop aiohttp psutil objgraph setuptools pyOpenSSL meson".split()
IMPORTED_AS = {"pyOpenSSL": "OpenSSL", "meson": "mesonbuild"}

NO_TESTS = 5  # pytest's status
WHOLE = "(the program, by its status)"

# What may differ, and why: (expressions for the suite and the test, reason).
KNOWN = [
    (r"gevent.tests.test__hub_join_timeout$|gevent.tests.test__core_timer$",
     r"Test(Again)?\.test_(callback|event|later|ref_arg|timeout)$|test_resolution$",
     "the load: compares spans of some 50 ms; on a loaded machine it fails bare, too, in some runs"),
]


def make_environment(venv, python):
    inner = os.path.join(venv, "bin", "python")
    if not os.path.exists(inner):
        subprocess.run([python, "-m", "venv", venv], check=True)
    probe = "import " + ", ".join(IMPORTED_AS.get(name, name) for name in PACKAGES)
    if subprocess.run([inner, "-c", probe], stderr=subprocess.DEVNULL).returncode:
        subprocess.run([inner, "-m", "pip", "install", "-q", "--only-binary=:all:"] + PACKAGES, check=True)
    return inner


def uvloop_tests(venv, python):
    """Its wheel has no tests. The folder that holds them alone (the rest of the source would be imported in place of what is
    installed), or None where they cannot be had."""
    found = glob.glob(os.path.join(venv, "uvloop-*", "tests"))
    if not found:
        subprocess.run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "uvloop", "-d", venv, "uvloop"],
                       stdout=subprocess.DEVNULL)
        for archive in glob.glob(os.path.join(venv, "uvloop-*.tar.gz")):
            with tarfile.open(archive) as tar:
                tar.extractall(venv, [one for one in tar if one.name.split("/")[1:2] == ["tests"]])
        found = glob.glob(os.path.join(venv, "uvloop-*", "tests"))
    return found[0] if found else None


def find_suites(venv, python):
    """Suite -> what pytest is to run: one for each file of tests."""
    site = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages"))[0]
    found = {}
    for pattern in ("numpy/**/tests/test_*.py", "gevent/tests/test_*.py", "greenlet/tests/test_*.py"):
        for path in sorted(glob.glob(os.path.join(site, pattern), recursive=True)):
            name = os.path.relpath(path, site)[:-len(".py")].replace("/", ".")
            # What numpy.test() leaves out by default, too.
            found[name] = ["--pyargs", name] + (["-m", "not slow"] if name.startswith("numpy") else [])
    for path in sorted(glob.glob(os.path.join(uvloop_tests(venv, python) or "/nonexistent", "test_*.py"))):
        # Tests that redirect the descriptors of the standard streams do not bear pytest's doing the same.
        found["uvloop." + os.path.basename(path)[:-len(".py")]] = ["-s", path]
    return found


def run_pytest(python, arguments, preload, options):
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml", "@JUNIT"]
    path = os.path.dirname(python) + os.pathsep + os.environ.get("PATH", os.defpath)  # f2py's tests call meson
    return suites.run_once(command + arguments, preload, options.timeout, options.events, environment={"PATH": path})


def broke_off(run):
    """pytest, while collecting, or in the middle because a test forks or exits."""
    return bool({suites.case_name("", ""), suites.case_name("pytest", "internal")} & set(run.outcomes))


def is_for_pytest(run):
    """Not where it found no tests, or broke off."""
    return bool(run.outcomes or run.status != NO_TESTS) and not broke_off(run)


def run_suite(python, name, arguments, preload, options):
    """Files of gevent's that are not for pytest are programs; their status counts."""
    run = run_pytest(python, arguments, preload, options)
    if name.startswith("gevent") and not is_for_pytest(run):
        run = suites.run_once([python, "-m", name], preload, options.timeout, options.events)
        run.outcomes = {WHOLE: "failed" if run.status else "passed"}
    return run


def may_spare_bare(python, arguments, profiled, options):
    """Whether a bare run could show no difference: where all tests that a bare pytest collects have passed."""
    if profiled.status != 0 or profiled.having("passed") != set(profiled.outcomes):
        return False
    if set(profiled.outcomes) == {WHOLE}:
        return True
    listing = suites.run_once([python, "-m", "pytest", "-q", "--collect-only"] + arguments, False, options.timeout, "")
    collected = re.search(r"^(?:(\d+)/)?(\d+) tests? collected", listing.text, re.M)
    return bool(collected) and int(collected.group(1) or collected.group(2)) == len(profiled.outcomes)


def both(python, name, arguments, options):
    path = options.results and os.path.join(options.results, name + ".json")

    def run(preload):
        return run_suite(python, name, arguments, preload, options)

    def may_spare(profiled):
        return options.spare_bare and may_spare_bare(python, arguments, profiled, options)
    return suites.both(path, run, may_spare)


def without_known(name, bare, profiled):
    """Takes tests that are known to differ out of both."""
    reasons = set()
    for suite, test, why in KNOWN:
        differ = [one for one in bare.bad() ^ profiled.bad() if re.search(suite, name) and re.search(test, one)]
        for one in differ:
            reasons.add(why)
            bare.outcomes.pop(one, None)
            profiled.outcomes.pop(one, None)
    if reasons and profiled.bad() <= bare.bad():
        profiled.status = bare.status  # it failed for these only
    return sorted(reasons)


def difference_of(name, bare, profiled):
    """(what is worse under evprof, the same with what is known and with the losses)."""
    if bare and broke_off(bare):
        difference = "NOT COMPARED: pytest broke off bare: " + "".join(re.findall(r"^ERROR.* - (.*)", bare.text, re.M)[:1])
        return difference, difference
    known = without_known(name, bare, profiled) if bare else []
    difference = suites.compare(bare, profiled, (0, NO_TESTS)) if bare else ""
    remarks = [difference] + ["known: " + why for why in known] + suites.losses(profiled)
    return difference, "; ".join(filter(None, remarks))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", required=True)
    parser.add_argument("--python", default=sys.executable)
    suites.add_arguments(parser, "file")
    parser.add_argument("suites", nargs="*", help="what names begin with: numpy.linalg gevent uvloop.test_tcp")
    return parser.parse_args()


def main():
    options = parse_arguments()
    suites.mend_signals()
    venv = os.path.abspath(options.venv)
    python = make_environment(venv, options.python)
    if options.results:
        os.makedirs(options.results, exist_ok=True)
    version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"],
                             stdout=subprocess.PIPE).stdout.decode().strip()
    wanted = [(name, arguments) for name, arguments in find_suites(venv, python).items()
              if name.startswith(tuple(options.suites or [""]))]
    table = suites.Table("Packages' own tests on Python %s, bare and under evprof" % version)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda one: both(python, one[0], one[1], options), wanted)
        for (name, _), (bare, profiled) in zip(wanted, runs):
            difference, remarks = difference_of(name, bare, profiled)
            failures += suites.is_worse(difference)
            table.add(name, bare, profiled, remarks)
    if options.table:
        table.write(options.table)
    print("%d suites, %d differ" % (len(table.rows), failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
