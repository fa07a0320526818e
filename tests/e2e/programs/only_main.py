"""only_main.py PROGRAM: runs main() of a program of ../counted, once, alike under cProfile and evprof run --program-only.
The garbage collector rests: when it runs depends on how much was allocated."""
import gc
import importlib.util
import os
import sys

gc.disable()
# python -m cProfile has the working directory in the path, too, and each import looks there.
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path not in ("", here)]
spec = importlib.util.spec_from_file_location("counted", sys.argv[1])
program = importlib.util.module_from_spec(spec)
sys.modules["counted"] = program
spec.loader.exec_module(program)
program.wrap = lambda function: function
program.main()
