"""The build of a wheel: puts the programs and libraries of evprof into the package, in evprof/_bin.

EVPROF_WHEEL_BINARIES: a folder that has them (tools/packaging/wheel.sh); without it they are built by make, with the
compiler and the libraries of this machine. EVPROF_WHEEL_PLATFORM: the wheel's platform tag; without it this machine's.
"""
import os
import subprocess
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("evprof", "evprof-collector", "evprof-symbols", "libevprof.so", "libevprof-reader.so")


class BinariesHook(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version, build_data):
        """Adds the files to the wheel, and its tag: any Python 3, no ABI, this platform."""
        given = os.environ.get("EVPROF_WHEEL_BINARIES")
        folder = Path(given) if given else self._build()
        platform = os.environ.get("EVPROF_WHEEL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + platform
        for name in FILES:
            build_data["force_include"][str(folder / name)] = "evprof/_bin/" + name

    def _build(self):
        # A relative folder: make splits a path that has a space.
        subprocess.run(["make", "-C", self.root, "B=build", "all"], check=True)
        return Path(self.root) / "build"
