"""pstats_oracle.py: what Python itself says about calls, callers and the tables that pstats prints of them.

profile PROGRAM FILE   runs PROGRAM's main() under cProfile, the second time it runs, and writes what pstats reads
compare OURS THEIRS    loads two such files with pstats and prints what differs in calls, primitive calls and callers
shape OURS THEIRS      whether the objects in both files are made of the same types, in the same places
print FILE CASES       for each line of CASES, the options of an evprof report, prints what pstats prints of FILE

How main() is run and why is said in count.py. Where cProfile has two entries of one name (code that was made twice), the
file here has their sum; cProfile's own file would keep one of them.
"""
import cProfile
import gc
import importlib.util
import marshal
import re
import sys

# What count.py and this file put around main() and around threads, and the call that ends a profile, which is in it.
OURS = re.compile(r"(/count\.py|/pstats_oracle\.py):|_lsprof\.Profiler")


# ---- profile

def load(path):
    spec = importlib.util.spec_from_file_location("counted", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["counted"] = module
    spec.loader.exec_module(module)
    return module


def profile(path, target):
    program = load(path)
    for name in getattr(program, "NEEDS", []):
        __import__(name)
    program.wrap = lambda function: function
    program.main()
    gc.collect()
    gc.disable()
    profiler = cProfile.Profile()
    profiler.enable()
    program.main()
    profiler.disable()
    with open(target, "wb") as file:
        marshal.dump(added_up(profiler.getstats()), file)


def label(code):
    return ("~", 0, code) if isinstance(code, str) else (code.co_filename, code.co_firstlineno, code.co_name)


def added_up(entries):
    """As cProfile.Profile.create_stats(), but for entries of the same name."""
    stats = {}
    for entry in entries:
        nc = entry.callcount
        add(stats, label(entry.code), (nc - entry.reccallcount, nc, entry.inlinetime, entry.totaltime))
    stats = {key: numbers + ({},) for key, numbers in stats.items()}
    for entry in entries:
        for called in entry.calls or ():
            if label(called.code) in stats:
                nc = called.callcount
                add(stats[label(called.code)][4], label(entry.code),
                    (nc, nc - called.reccallcount, called.inlinetime, called.totaltime))
    return stats


def add(numbers, key, more):
    numbers[key] = tuple(a + b for a, b in zip(numbers.get(key, (0,) * len(more)), more))


# ---- compare

def plain(function):
    """The name without addresses, which differ from run to run."""
    return "%s:%d:%s" % (function[0], function[1], re.sub(r" at 0x[0-9a-f]+", "", function[2]))


def bare(name):
    """cProfile names a bound C method by what its type has under that name when it is first called."""
    if not name.startswith("~:0:"):
        return name
    found = re.search(r"(?:method|function) '?([^ '>]+)", name)
    return "~:0:any " + (found.group(1).split(".")[-1] if found else name)


def counts(path):
    """Calls, by function and by caller and function."""
    import pstats
    found = {}
    for function, (cc, nc, tt, ct, callers) in pstats.Stats(path).stats.items():
        name = plain(function)
        if OURS.search(name):
            continue
        if nc:
            add(found, (name,), (nc, cc))
        for caller, (calls, primitive, _, _) in callers.items():
            if calls and not OURS.search(plain(caller)):
                add(found, (plain(caller), name), (calls, primitive))
    return found


def by_bare_names(found):
    result = {}
    for key, numbers in found.items():
        add(result, tuple(bare(name) for name in key), numbers)
    return result


def differing(ours, theirs):
    return ({key: value for key, value in ours.items() if theirs.get(key) != value},
            {key: value for key, value in theirs.items() if ours.get(key) != value})


def compare(ours, theirs):
    ours, theirs = counts(ours), counts(theirs)
    print(len(theirs))
    ours, theirs = differing(ours, theirs)
    ours, theirs = differing(by_bare_names(ours), by_bare_names(theirs))
    for key in sorted(set(ours) | set(theirs)):
        print(" -> ".join(key), "evprof", ours.get(key), "cProfile", theirs.get(key))


# ---- shape

def types(thing):
    """The types in a file, one example of each kind of part."""
    if isinstance(thing, dict):
        return "{%s}" % ", ".join(sorted({"%s: %s" % (types(key), types(value)) for key, value in thing.items()}))
    if isinstance(thing, tuple):
        return "(%s)" % ", ".join(types(part) for part in thing)
    return type(thing).__name__


def shape(ours, theirs):
    for path in ours, theirs:
        with open(path, "rb") as file:
            found = types(marshal.load(file))
        # Functions that nobody calls have no callers: an empty dictionary, once.
        print(found.replace("{}", "{...}"))


# ---- print

def restriction(text):
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    if re.fullmatch(r"[0-9]*\.[0-9]*", text):
        return float(text)
    return text


def sort_key(text):
    return [int(text)] if re.fullmatch(r"-?[0-9]+", text) else text.split(",")


def print_case(path, line):
    import argparse
    import pstats
    parser = argparse.ArgumentParser()
    parser.add_argument("--sort", default="time")
    parser.add_argument("--restrict", action="append", default=[])
    for flag in "--reverse", "--callers", "--callees", "--strip-dirs":
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args(line.split())
    stats = pstats.Stats(path)
    stats.files = []
    if options.strip_dirs:
        stats.strip_dirs()
    stats.sort_stats(*sort_key(options.sort))
    if options.reverse:
        stats.reverse_order()
    restrictions = [restriction(text) for text in options.restrict]
    if options.callers:
        stats.print_callers(*restrictions)
    if options.callees:
        stats.print_callees(*restrictions)
    if not options.callers and not options.callees:
        stats.print_stats(*restrictions)


def print_cases(path, cases):
    with open(cases) as file:
        for line in file.read().splitlines():
            print("=== " + line)
            print_case(path, line)


{"profile": profile, "compare": compare, "shape": shape, "print": print_cases}[sys.argv[1]](*sys.argv[2:])
