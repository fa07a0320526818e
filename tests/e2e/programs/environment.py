"""Prints its environment as the program sees it, and as its children do, evprof's own variables aside."""
import os
import subprocess
import sys


def own(name):
    return name in ("LD_PRELOAD", "PWD") or name.startswith("EVPROF_")  # PWD is the shell's, before us


if __name__ == "__main__":
    print(sorted(item for item in os.environ.items() if not own(item[0])))
    print(sys.argv, sys.flags.isolated, sys.flags.ignore_environment, sys.flags.no_site)
    sys.stdout.flush()
    text = subprocess.check_output(["env"]).decode()
    print(sorted(line for line in text.split("\n") if not own(line) and not line.startswith(("_=", "LD_PRELOAD=", "PWD="))))
