"""frozen.py: modules as PyInstaller freezes them, whose code is named by the file's place below sys.path. Prints how often it
called what, and of which names."""
import importlib.machinery
import sys


class Frozen(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        path = self.get_filename(name)
        base = max((entry for entry in sys.path if entry and path.startswith(entry + "/")), key=len)
        return compile(self.get_data(path), path[len(base) + 1:], "exec", dont_inherit=True)


sys.frozen = True
sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook((Frozen, [".py"])))
sys.path_importer_cache.clear()
for module in [name for name in sys.modules if name in ("threading", "known") or name.split(".")[0] == "json"]:
    del sys.modules[module]

import json  # noqa: E402
import threading  # noqa: E402

import known  # noqa: E402


def serve(number):
    for i in range(number):
        known.work(json.loads("[3]", parse_int=int)[0])


threads = [threading.Thread(target=serve, args=(10,), name="frozen-%d" % i) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(threading.Thread.run.__code__.co_filename, json.loads.__code__.co_filename, known.work.__code__.co_filename)
