"""docstrings.py TRACE: the examples in the package's docstrings, run, and that each public name has a docstring. Used by test_table.c.

Examples of a package that this Python has not are left out, and named. Prints the number of examples that ran.
"""
import doctest
import importlib
import importlib.util
import inspect
import sys

NEEDS = {"to_numpy": "numpy", "to_dataframe": "pandas", "to_arrow": "pyarrow", "batches": "pyarrow", "call_batches": "pyarrow", "to_parquet": "pyarrow",
         "to_tables": "pyarrow", "export_tables": "pyarrow",
         "to_polars": "polars", "plot_events": "matplotlib", "plot_memory": "matplotlib", "plot_functions": "matplotlib"}


def missing(name):
    """The package that the example with this name needs and that is not here."""
    package = NEEDS.get(name.rpartition(".")[2])
    try:
        if package:
            importlib.import_module(package)
            importlib.import_module("numpy")
    except ImportError:
        return package
    return None


ran, absent, without = 0, set(), []
PLUGINS = [plugin for plugin, package in (("pytest_plugin", "pytest"), ("otel", "opentelemetry"), ("sentry", "sentry_sdk"))
           if importlib.util.find_spec(package) is not None]
# recording comes last: from then on the library is in the process.
for name in ["errors", "table", "text", "_tool", "trace", "tables", "_limits", "_watch", "wsgi", "asgi"] + PLUGINS + ["recording"]:
    module = importlib.import_module("evprof." + name)
    for test in doctest.DocTestFinder(exclude_empty=False).find(module, extraglobs={"trace_path": sys.argv[1]}):
        public = not any(part.startswith("_") for part in test.name.split(".")[1:])
        if public and not test.docstring:
            without.append(test.name)
        if not test.examples:
            continue
        package = missing(test.name)
        if package:
            absent.add(package)
            continue
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        if doctest.DocTestRunner(optionflags=flags).run(test).failed:
            sys.exit(1)
        ran += len(test.examples)
evprof = importlib.import_module("evprof")
for name in evprof.__all__:
    one = getattr(evprof, name)
    if name != "EVENTS" and ">>>" not in (one.__doc__ or ""):
        without.append("an example of " + name)
    for part, member in inspect.getmembers(one) if name in ("Table", "Trace", "profile") else ():
        if not part.startswith("_") and ">>>" not in (member.__doc__ or ""):
            without.append("an example of %s.%s" % (name, part))
if without:
    sys.exit("there is no docstring: " + ", ".join(without))
print("%d examples%s" % (ran, "; without " + ", ".join(sorted(absent)) if absent else ""))
