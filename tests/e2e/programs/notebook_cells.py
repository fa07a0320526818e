"""notebook_cells.py PAGE: executes a notebook with %%evprof in a kernel of this Python, and compares what its cells show with what they
counted. Writes the output of one cell as a page. Used by test_notebook.c. Prints "as counted".
"""
import ast
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
    "too large": "import html, os, re, shlex, subprocess\n"
                 "from evprof._paths import find\n"
                 "page, profile.page = profile.page, lambda: ' ' * (33 << 20)\n"
                 "shown, profile.page = profile._repr_html_(), page\n"
                 "command = shlex.split(html.unescape(re.search('<code>(.*)</code>', shown).group(1)))\n"
                 "subprocess.call([find(command[0])] + command[1:], stderr=subprocess.DEVNULL, env={**os.environ, 'LD_PRELOAD': ''})\n"
                 "re.search('([0-9]+) function calls', shown).group(1), re.search('\"calls\":([0-9]+)', open(command[-1]).read()).group(1)",
    "await": "%%evprof -n 50 -r awaited\n"
             "import asyncio\n"
             "async def step(number):\n"
             "    await asyncio.sleep(0.01)\n"
             "    return work(number)\n"
             "await step(4)\n"
             "sum([number for number in await asyncio.gather(*[step(number) for number in range(1, 6)], step(9)) for number in number])",
    "await fails": "%%evprof\nawait step(2)\n1 // 0",
    "await silently": "%%evprof --sort calls\nasync with asyncio.Lock():\n    work(3)\nawait step(1);",
    "awaited": "[row.calls for row in awaited.trace().functions() if row.name == 'work'], awaited.report(limit=1, strip_dirs=True)",
    "option": "%%evprof --colour\npass",
    "order": "%%evprof -s WRONG\nran = 1",
    "rows": "%%evprof -n -1\nran = 1",
    "name": "%%evprof -r 1x\nran = 1",
    "ran": "'ran' in globals()",
    "beginnings": "%%evprof -s cumul,nca -n 0\nwork(1)",
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
for name in ("load", "define", "unrecorded", "recorded", "counted", "between", "sorted", "empty", "columns", "too large", "await", "await silently",
             "awaited", "ran", "beginnings", "after"):
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
same("calls in a page that was too large", *ast.literal_eval(texts(cells["too large"])[0]))
short = texts(cells["sorted"])
same("a line that ends with a semicolon has no value", len(short), 1)
same("rows of a table", len(re.findall(r"^ +\d.*\)$|^ +\d.*\}$", short[0], re.M)), 1)
same("the error of a cell", [error.ename for error in errors(cells["raises"])], ["ZeroDivisionError"])
same("calls until then", calls_of(texts(cells["raises"])[0], "work"), 1)
table, value = texts(cells["await"])
same("the value of a cell that awaits", value, str(sum(map(sum, map(range, (1, 2, 3, 4, 5, 9))))))
same("its calls of work()", calls_of(table, "work"), 7)
for part in ("ipykernel", "IPython", "tornado", "zmq", "evprof"):
    if re.search(r"[/\\]%s[/\\]" % part, table):
        sys.exit("the kernel is in the table of a cell that awaits: " + table)
same("the error of a cell that awaits", [error.ename for error in errors(cells["await fails"])], ["ZeroDivisionError"])
same("its calls until then", calls_of(texts(cells["await fails"])[0], "work"), 1)
same("no value behind a semicolon", len(texts(cells["await silently"])), 1)
same("its calls", calls_of(texts(cells["await silently"])[0], "work"), 2)
if not texts(cells["awaited"])[0].startswith("([7],"):
    sys.exit("awaited.trace(): %s" % texts(cells["awaited"]))
if not any("--colour" in error.evalue for error in errors(cells["option"])):
    sys.exit("the cell option: %s" % cells["option"].outputs)
for name, wanted in (("order", '"WRONG" is not known'), ("rows", "it is a whole number from 0, not '-1'"), ("name", "not '1x'")):
    if [wanted in error.evalue for error in errors(cells[name])] != [True] or len(cells[name].outputs) != 1:
        sys.exit("the cell %s: %s" % (name, cells[name].outputs))
same("whether cells with wrong options ran", texts(cells["ran"])[0], "False")
late = [output.text for cell in cells.values() for output in cell.outputs if output.get("name") == "stderr"]
same("lines on stderr", len(late), 0 if os.environ.get("LD_PRELOAD") else 1)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    # browser.c waits for evprof.ready, which the page within has.
    file.write("<!DOCTYPE html><meta charset=utf-8><link rel=icon href=data:,>" + texts(cells["recorded"], "text/html")[0] +
               "<script>(function wait() { const inner = document.querySelector('iframe').contentWindow;"
               " if (inner.evprof && inner.evprof.ready) globalThis.evprof = inner.evprof; else setTimeout(wait, 20); })()</script>")
print("as counted")
