"""queries.py EVPROF PAGE: the program and the queries of docs/queries.md, run and compared with the answers there, to the digit but for
times (columns that end with _ms). Used by test_tables.c. Prints how many answers are the same.
"""
import os
import re
import subprocess
import sys
import tempfile

import duckdb

tool, page = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
files = dict(re.findall(r"^```(?:python|sql) (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
answers = re.findall(r"^\$ python ask.py (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
# Which column of a table is nobody's to know, as the columns of a row are separated by " | " only.
TIME = re.compile(r"\d+\.\d")


def comparable(answer):
    head, *rows = [line.split(" | ") for line in answer.strip("\n").split("\n")]
    times = [name.endswith("_ms") for name in head]
    for row in rows:
        if any(is_time and not TIME.fullmatch(value) for is_time, value in zip(times, row)):
            sys.exit("no time: %r" % (row,))
    return [head] + [["time" if is_time else value for is_time, value in zip(times, row)] for row in rows]


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, text in files.items():
        with open(name, "w") as file:
            file.write(text)
    subprocess.run([tool, "run", "-q", "--python", sys.executable, "-o", "shop.evp", "shop.py"], check=True)
    subprocess.run([tool, "export", "--format", "parquet", "--python", sys.executable, "shop.evp", "-o", "tables"], check=True)
    for name, wanted in answers:
        printed = subprocess.run([sys.executable, "ask.py", name], check=True, stdout=subprocess.PIPE).stdout.decode()
        if comparable(printed) != comparable(wanted):
            sys.exit("%s: the page has\n%sit is\n%s" % (name, wanted, printed))
print("%d answers are the same" % len(answers))
