"""stretch.py EVPROF TRACE: the csv of a stretch is that part of the csv of the whole, wherever in the calls the stretch begins."""
import subprocess
import sys


def rows(*options):
    command = [sys.argv[1], "export", "-f", "csv", "--since-start", "-o", "-", sys.argv[2]] + list(options)
    return subprocess.check_output(command).decode().splitlines()[1:]


def time(row):
    return int(row[:row.index(",")])


def pid(row):
    return row.rsplit(",", 2)[1]


whole = rows()
times = [time(row) for row in whole]
child = next(number for number, row in enumerate(whole) if pid(row) != pid(whole[0]))
starts = [len(whole) * part // 10 for part in range(1, 10)] + [child - 1000, child, child + 700, len(whole) - 100]
processes = set()
for start in starts:
    since, until = times[start], times[min(start + 3000, len(whole) - 1)] + 1
    wanted = [row for row, ns in zip(whole, times) if since <= ns < until]
    found = rows("--from", str(since), "--to", str(until))
    processes |= {len({pid(row) for row in found})}
    for want, have in zip(wanted, found):
        if want != have:
            sys.exit("%d to %d ns: %s instead of %s" % (since, until, have, want))
    if len(wanted) != len(found):
        sys.exit("%d to %d ns: %d rows instead of %d" % (since, until, len(found), len(wanted)))
if 2 not in processes:
    sys.exit("no stretch holds both processes")
print("%d stretches of %d rows are the same" % (len(starts), len(whole)))
