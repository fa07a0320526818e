"""Python's start, stretched: in PYTHONPATH this takes the place of the first module that Python imports. It runs for
a second, before Python can run any program, then becomes the real package."""
import posix
import sys
import time

posix.write(2, b"starts\n")
end = time.time() + 1
while time.time() < end:
    pass

for folder in sys.path[1:]:
    try:
        source = __loader__.get_data(folder + "/encodings/__init__.py")
    except OSError:
        continue
    __path__ = [folder + "/encodings"]
    __file__ = __spec__.origin = __path__[0] + "/__init__.py"
    __spec__.submodule_search_locations = __path__
    exec(compile(source, __file__, "exec"))
    break
