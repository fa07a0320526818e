"""notebook_cells.py PAGE: executes a notebook with %%evprof in a kernel of this Python, and compares what its cells show with what they
counted. Writes the output of one cell as a page. Used by test_notebook.c. Prints "as counted".
"""
import json
import os
import re
import sys

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

CELLS = {
    "load": "%load_ext evprof",
    "define": "calls = 0\n"
              "def work(number):\n"
              "    global calls\n"
              "    calls += 1\n"
              "    return sorted(range(number), key=lambda value: -value)\n"
              "def before():\n"
              "    pass\n"
              "before()",
    "unrecorded": "work(5)",
    "recorded": "%%evprof -n 50 -r profile\n"
                "calls = 0\n"
                "import threading\n"
                "for number in range(20):\n"
                "    work(number)\n"
                "threads = [threading.Thread(target=work, args=(3,), name='of the cell') for _ in range(2)]\n"
                "[thread.start() for thread in threads]\n"
                "[thread.join() for thread in threads]\n"
                "work(7)[0]",
    "counted": "calls",
    "between": "before()",
    "sorted": "%%evprof --sort calls -n 1\nwork(4);",
    "raises": "%%evprof\nwork(2)\n1 // 0",
    "empty": "%%evprof\npass",
    "columns": "[row.calls for row in profile.trace().functions() if row.name == 'work'], "
               "len([row for row in profile.trace().calls() if row.name == '<lambda>'])",
    "await": "%%evprof\nimport asyncio\nawait asyncio.sleep(0)",
    "option": "%%evprof --colour\npass",
    "after": "work(1)",
}


def execute():
    kernel = os.path.abspath("jupyter/kernels/this")
    os.makedirs(kernel)
    with open(kernel + "/kernel.json", "w") as file:
        json.dump({"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "this",
                   "language": "python"}, file)
    os.environ["JUPYTER_PATH"] = os.path.abspath("jupyter")
    config = Config()
    config.KernelManager.transport = "ipc"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    NotebookClient(notebook, kernel_name="this", timeout=100, startup_timeout=100, allow_errors=True, config=config).execute()
    return dict(zip(CELLS, notebook.cells))


def texts(cell, kind="text/plain"):
    return [output["data"][kind] for output in cell.outputs if kind in output.get("data", {})]


def errors(cell):
    return [output for output in cell.outputs if output.output_type == "error"]


def calls_of(table, name):
    found = re.findall(r"^ *(\d+)(?:/\d+)? .*\(%s\)$" % re.escape(name), table, re.M)
    return sum(map(int, found))


def same(what, one, other):
    if one != other:
        sys.exit("%s: %r, not %r" % (what, one, other))


cells = execute()
for name in ("load", "define", "unrecorded", "recorded", "counted", "between", "sorted", "empty", "columns", "after"):
    same("errors of the cell " + name, [error.evalue for error in errors(cells[name])], [])
table, value = texts(cells["recorded"])
counted = int(texts(cells["counted"])[0])
same("the cell's own count", counted, 23)
same("the value of the last line", value, "6")
same("calls of work()", calls_of(table, "work"), counted)
same("calls of its key", calls_of(table, "<lambda>"), sum(range(20)) + 2 * 3 + 7)
same("calls of what another cell calls", calls_of(table, "before"), 0)
for part in ("ipykernel", "IPython", "tornado", "evprof"):
    if re.search(r"[/\\]%s[/\\]" % part, table):
        sys.exit("the kernel is in the table: " + table)
same("profile.trace()", texts(cells["columns"])[0], "([%d], %d)" % (counted, sum(range(20)) + 2 * 3 + 7))
short = texts(cells["sorted"])
same("a line that ends with a semicolon has no value", len(short), 1)
same("rows of a table", len(re.findall(r"^ +\d.*\)$|^ +\d.*\}$", short[0], re.M)), 1)
same("the error of a cell", [error.ename for error in errors(cells["raises"])], ["ZeroDivisionError"])
same("calls until then", calls_of(texts(cells["raises"])[0], "work"), 1)
for name, wanted in (("await", "await at its top"), ("option", "--colour")):
    if not any(wanted in error.evalue for error in errors(cells[name])):
        sys.exit("the cell %s: %s" % (name, cells[name].outputs))
late = [output.text for cell in cells.values() for output in cell.outputs if output.get("name") == "stderr"]
same("lines on stderr", len(late), 0 if os.environ.get("LD_PRELOAD") else 1)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    # browser.c waits for evprof.ready, which the page within has.
    file.write("<!DOCTYPE html><meta charset=utf-8><link rel=icon href=data:,>" + texts(cells["recorded"], "text/html")[0] +
               "<script>(function wait() { const inner = document.querySelector('iframe').contentWindow;"
               " if (inner.evprof && inner.evprof.ready) globalThis.evprof = inner.evprof; else setTimeout(wait, 20); })()</script>")
print("as counted")
