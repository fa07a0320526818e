"""Modules that are imported, reloaded, found in archives and by an importer of the program's own, and run."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pkgutil
import runpy
import shutil
import sys
import tempfile
import types
import zipfile

NAMES = ("counted_plain", "counted_package", "counted_package.inner", "counted_zipped", "counted_virtual", "counted_broken")


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "counted_virtual" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec("def named():\n    return __name__\n", module.__dict__)


def write(folder):
    os.mkdir(os.path.join(folder, "counted_package"))
    for name, text in (("counted_plain.py", "import counted_package.inner as inner\ndef named():\n    return inner.named()\n"),
                       ("counted_package/__init__.py", "from .inner import named\ndef __getattr__(name):\n    return name\n"),
                       ("counted_package/inner.py", "def named():\n    return __name__\n"),
                       ("counted_package/__main__.py", "from . import named\nresult = named()\n"),
                       ("counted_broken.py", "import counted_missing\n")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    with zipfile.ZipFile(os.path.join(folder, "counted.zip"), "w") as archive:
        archive.writestr(zipfile.ZipInfo("counted_zipped.py", (2020, 1, 1, 0, 0, 0)), "def named():\n    return __file__\n")


def imported(folder):
    plain = importlib.import_module("counted_plain")
    results = [plain.named(), __import__("counted_package.inner").inner.named(), importlib.import_module("counted_zipped").named()]
    results.append(importlib.import_module("counted_virtual").named())
    importlib.reload(plain)
    for name in ("counted_broken", "counted_missing"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            results.append(error.name)
    spec = importlib.util.spec_from_file_location("by_hand", os.path.join(folder, "counted_package", "inner.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results.append(module.named())
    results.append([info.name for info in pkgutil.iter_modules([folder])])
    results.append(runpy.run_module("counted_package")["result"])
    results.append(isinstance(plain, types.ModuleType))
    return results


def main():
    # The same name in both runs that are compared.
    folder = tempfile.gettempdir() + "/evprof-counted-imports-%d" % os.getppid()
    os.mkdir(folder)
    sys.path_importer_cache.clear()
    importer, before, written = Importer(), list(sys.path), sys.dont_write_bytecode
    try:
        write(folder)
        sys.dont_write_bytecode = True
        sys.path[:0] = [folder, folder + "/counted.zip"]
        sys.meta_path.insert(0, importer)
        importlib.invalidate_caches()
        return imported(folder)
    finally:
        sys.dont_write_bytecode = written
        sys.meta_path.remove(importer)
        sys.path[:] = before
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.path_importer_cache.clear()
        shutil.rmtree(folder)
