"""run.py RUN_BENCHMARK [ARGUMENT...] - runs a benchmark's run_benchmark.py with the pyperf.py of this folder."""
import os
import runpy
import sys

import pyperf

sys.argv = sys.argv[1:]
sys.path.insert(1, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
print(",".join(map(str, pyperf.loops_run)))
