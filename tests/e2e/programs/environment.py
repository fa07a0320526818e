"""Prints its environment as the program sees it, and as its children do."""
import os
import subprocess
import sys

own = ("LD_PRELOAD", "EVPROF_SESSION")

if __name__ == "__main__":
    print(sorted(item for item in os.environ.items() if item[0] not in own))
    print(sys.argv, sys.flags.isolated, sys.flags.ignore_environment, sys.flags.no_site)
    sys.stdout.flush()
    text = subprocess.check_output(["env"]).decode()
    print(sorted(line for line in text.split("\n") if line.split("=")[0] not in own + ("_",)))
