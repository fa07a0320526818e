#!/usr/bin/env python3
"""write_results.py SECTION... > results.md

Writes the tables of what run_cpython.py and run_packages.py have kept with --results.

SECTION is VERSION=DIRECTORY@LIBRARY[,DIRECTORY@LIBRARY...], with VERSION "3.11.7" for a Python's own tests or
"packages-3.12.1". LIBRARY says with which library those results came about, as it is to be read ("commit b94de04"). A
suite that is in several directories is taken from the first. Where modules.txt in the first one names all suites that there
are, those of which there is no result are named, too.

    tests/suites/write_results.py '3.11.7=/tmp/3.11@commit b94de04' > tests/suites/results.md
"""
import glob
import json
import os
import sys
import textwrap

import run_cpython
import run_packages
import suites

HEAD = """# Other people's test suites, bare and under evprof

Made by `write_results.py` from what `run_cpython.py` and `run_packages.py` kept, on a shared machine of 2 cores under load.
Each single test's outcome is compared. All kinds of events were recorded. The library is named with each group. A suite that
passed wholly under evprof was not run bare, if a bare Python lists the same tests and skips the same ones.

- "any listener": the same tests fail without evprof, where another tool listens to the same events (each was run).
- "evprof": it is evprof that makes the difference.
- "NOT COMPARED": the suite gave no results bare on this machine, so nothing is known.
- "left out": in both runs.
- Of numpy's tests those marked slow are left out, as numpy.test() does; of those of f2py, which need a compiler, few others are.
- With the library of 15:03 the runs ignored SIGINT, having been started in the background: tests that interrupt themselves
  failed in both.
- "events lost": more than the program waited for the collector on the loaded machine; counted, and no matter to the tests.
- Without a reason: a difference that is open."""

ROW = "| %s | %d | %s | %d | %s |\n"


class Section:
    def __init__(self, text):
        self.version, _, rest = text.partition("=")
        self.packages = self.version.startswith("packages-")
        self.sources = [one.partition("@")[::2] for one in rest.split(",")]

    def title(self):
        if self.packages:
            return "Packages (numpy, gevent, uvloop, greenlet) on Python " + self.version[len("packages-"):]
        return "CPython " + self.version

    def remarks_of(self, name, bare, profiled):
        """As the program that ran it reports them: (what is worse, the same with reasons)."""
        if self.packages:
            return run_packages.difference_of(name, bare, profiled)
        return run_cpython.difference_of(bare, profiled, name, int(self.version.split(".")[1]))

    def existing(self):
        """All suites there are, or None where that is not known."""
        path = os.path.join(self.sources[0][0], "modules.txt")
        if not os.path.exists(path):
            return None
        with open(path) as file:
            return file.read().split()


def read_directory(directory):
    """Suite -> (bare or None, under evprof)."""
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.json"))):
        with open(path) as file:
            found[os.path.basename(path)[:-len(".json")]] = [one and suites.Run(**one) for one in json.load(file)]
    return found


def read_section(section):
    """[(library, {suite: runs})]: each suite once; a folder of modules not with these."""
    groups = []
    taken = set()
    existing = section.existing()
    for directory, library in section.sources:
        runs = {name: both for name, both in read_directory(directory).items()
                if name not in taken and (existing is None or name in existing)}
        taken |= set(runs)
        groups.append((library, runs))
    return groups


def wrapped(text):
    return "\n" + textwrap.fill(text, 128, break_long_words=False, break_on_hyphens=False) + "\n"


def write_group(out, section, library, runs):
    """Returns how many differ without a known reason."""
    rows, same, tests, worse = [], [], 0, 0
    for name, (bare, profiled) in sorted(runs.items()):
        tests += len(profiled.outcomes)
        bad_bare = str(len(bare.bad())) if bare else "not run"  # before the known ones are taken out
        bad = len(profiled.bad())
        difference, remarks = section.remarks_of(name, bare, profiled)
        worse += suites.is_worse(difference)
        if remarks:
            rows.append(ROW % (name, len(profiled.outcomes), bad_bare, bad, remarks.replace("|", "\\|")))
        else:
            same.append(name)
    out.write("\nLibrary: %s. %d suites, %d tests; without a remark: %d; with a difference that has no known reason, or not "
              "compared: %d.\n" % (library, len(runs), tests, len(same), worse))
    if rows:
        out.write("\n| suite | tests | failed bare | failed under evprof | difference |\n|---|---|---|---|---|\n")
        out.writelines(rows)
    if same:
        out.write(wrapped("None in: " + ", ".join(same) + "."))


def write_section(out, section):
    out.write("\n## %s\n" % section.title())
    groups = read_section(section)
    for library, runs in groups:
        if runs:
            write_group(out, section, library, runs)
    missing = sorted(set(section.existing() or []).difference(*(runs for _, runs in groups)))
    if missing:
        out.write(wrapped("Not run (%d): %s." % (len(missing), ", ".join(missing))))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.stdout.write(HEAD + "\n")
    for text in sys.argv[1:]:
        write_section(sys.stdout, Section(text))


if __name__ == "__main__":
    main()
