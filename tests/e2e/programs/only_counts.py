"""only_counts.py STATS FILE: writes what python -m cProfile -o STATS counted as count.py does, less what it adds itself:
the exec() by which it calls the program, and the call that ends the profile."""
import json
import pstats
import sys

rows = []
for (file, line, name), (primitive, total, _, _, _) in sorted(pstats.Stats(sys.argv[1]).stats.items()):
    if name == "<method 'disable' of '_lsprof.Profiler' objects>":
        assert total == 1, total
        continue
    if name == "<built-in method builtins.exec>":
        total -= 1
    if total:
        rows.append([file, line, name, total, primitive])
with open(sys.argv[2], "w") as file:
    json.dump(rows, file, indent=0)
