"""judge_summary.py STDERR REPORT PEAK BYTES: whether the summary of evprof run has the numbers of the other verbs.

STDERR: the run's; REPORT: report --json; PEAK: the output of check --max-alloc; BYTES: of the trace."""
import json
import re
import sys

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def same(value, unit, exact, what):
    """Three digits are shown."""
    shown = float(value) * UNITS[unit]
    if abs(shown - exact) > max(0.006 * exact, UNITS[unit] / 2 if unit in ("ns", "B") else 0):
        sys.exit("%s: %s %s is not %s" % (what, value, unit, exact))


def main():
    lines = [line[10:] for line in open(sys.argv[1], errors="replace") if line.startswith("evprof:   ")]
    report = json.load(open(sys.argv[2]))
    shown = [re.match(r"(?:own time| ) +([0-9.]+) (ns|us|ms|s)  (\S+)", line) for line in lines]
    shown = [match.groups() for match in shown if match]
    wanted = sorted((row["tottime_ns"] for row in report["functions"]), reverse=True)[:5]
    assert len(shown) == 5 and len(wanted) == 5, lines
    names = {row["tottime_ns"]: row["function"] for row in report["functions"]}
    for (value, unit, name), exact in zip(shown, wanted):
        same(value, unit, exact, name)
        plain = re.sub(r"<(?:built-in method|method) '?(.*?)'?(?: of .*)?>", r"\1", names[exact])
        assert plain.split(".")[-1] in name, (plain, name)
    memory = re.search(r"^memory +([0-9.]+) (\S+) at the peak", "".join(lines), re.M)
    same(memory[1], memory[2], int(re.search(r": (\d+) bytes", open(sys.argv[3]).read())[1]), "memory")
    recording = re.search(r"^recording +(\d+) events, ([0-9.]+) (\S+) of trace(.*)", "".join(lines), re.M)
    same(recording[2], recording[3], int(sys.argv[4]), "recording")
    calibrated = re.match(r", ([0-9.]+) (\S+) of the time", recording[4])
    if calibrated:
        left = json.load(open(sys.argv[5]))
        same(calibrated[1], calibrated[2], round((report["tottime"] - left["tottime"]) * 1e9), "calibrated")
    print("the numbers agree", "with calibration" if calibrated else "")


main()
