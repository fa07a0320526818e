"""interpreters.py WHAT: sub-interpreters, by whichever module this version has. Each runs known.work(50) in a file of its own
name (sub.py) or of known.py, as it says."""
import os
import sys
import threading

import known

HERE = os.path.dirname(os.path.abspath(known.__file__))
CODE = """
import sys
sys.path.insert(0, %r)
import known
known.work(50)
""" % HERE


class Old:
    """_xxsubinterpreters, 3.8 to 3.12."""

    def __init__(self, module):
        self.module = module

    def create(self, own_gil):
        try:
            return self.module.create(isolated=own_gil)
        except TypeError:
            return self.module.create()

    def run(self, interpreter, code):
        self.module.run_string(interpreter, code)

    def destroy(self, interpreter):
        self.module.destroy(interpreter)


class New(Old):
    """_interpreters, from 3.13 on."""

    def create(self, own_gil):
        return self.module.create("isolated" if own_gil else "legacy")

    def run(self, interpreter, code):
        failed = self.module.exec(interpreter, code)
        assert not failed, failed


def interpreters():
    try:
        import _interpreters
        return New(_interpreters)
    except ImportError:
        pass
    import _xxsubinterpreters
    return Old(_xxsubinterpreters)


def one(own_gil=False):
    """Several, one after another: the next may get the memory of the one before."""
    api = interpreters()
    known.work(100)
    for _ in range(5):
        interpreter = api.create(own_gil)
        api.run(interpreter, CODE)
        api.run(interpreter, "known.work(50)")
        api.destroy(interpreter)
    known.work(100)
    print("done")


def one_own():
    one(True)


def many(own_gil=False):
    """All at once, and more than a handful."""
    api = interpreters()
    alive = [api.create(own_gil) for _ in range(20)]
    for interpreter in alive:
        api.run(interpreter, CODE)
    for interpreter in alive:
        api.run(interpreter, "known.work(50)")
        api.destroy(interpreter)
    known.work(100)
    print("done")


def many_own():
    many(True)


def threads(own_gil=False):
    """Each in a thread of its own, at once."""
    api = interpreters()

    def whole():
        for _ in range(3):
            interpreter = api.create(own_gil)
            api.run(interpreter, CODE)
            for _ in range(20):
                api.run(interpreter, "known.work(50)")
            api.destroy(interpreter)

    started = [threading.Thread(target=whole) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    print("done")


def threads_own():
    threads(True)


def inner_threads():
    """Threads within a sub-interpreter, which allows them where it has the common GIL."""
    api = interpreters()
    interpreter = api.create(False)
    api.run(interpreter, CODE)
    api.run(interpreter, """
import threading
threads = [threading.Thread(target=known.work, args=(100,)) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
    api.destroy(interpreter)
    print("done")


def pool():
    """concurrent.futures' pool of interpreters (3.14)."""
    from concurrent.futures import InterpreterPoolExecutor
    with InterpreterPoolExecutor(max_workers=3) as executor:
        print(list(executor.map(known.work, [100] * 9)))


def call():
    """A function that another one makes is called in another interpreter (3.14): its code must have no state."""
    from concurrent import interpreters as api

    def nested(path, n):
        import sys
        sys.path.insert(0, path)
        import known
        known.work(n)
        return n

    interpreter = api.create()
    for n in 50, 60, 70:
        nested(HERE, n)
        print(interpreter.call(nested, HERE, n))
    interpreter.close()


DEFINING = """
from concurrent_names import define
define(%d, %d)
"""


def defining_own():
    """Interpreters with a GIL each define functions at once, by the thousand, and let every other one die."""
    import tempfile

    api = interpreters()
    source = """
import json
def define(number, n):
    kept = []
    for i in range(n):
        names = {}
        name = "f%d_%d" % (number, i)
        exec("def %s(x):\\n    return abs(x)\\n%s(1)" % (name, name), names)
        function = names[name]
        kept.append(function)
        function(-2)
        if i % 2:
            kept.pop(i // 2)
        try:
            json.loads(str(i))
            raise type("E%d_%d" % (number, i % 100), (Exception,), {})
        except Exception:
            pass
    for function in kept:
        function(3)
"""
    number, n = int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "concurrent_names.py"), "w") as file:
            file.write(source)

        def whole(which):
            interpreter = api.create(True)
            api.run(interpreter, "import sys\nsys.path.insert(0, %r)" % folder)
            api.run(interpreter, DEFINING % (which, n))
            api.destroy(interpreter)

        started = [threading.Thread(target=whole, args=(which,)) for which in range(number)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    print("done")


globals()[sys.argv[1]]()
