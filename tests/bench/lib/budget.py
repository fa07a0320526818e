"""What a budget costs, and what its estimates are worth, over programs of pyperformance with a fixed number of loops, and
over services and sessions of a fixed length, as people run them.

Bare and each budget run in turn. Cost is CPU time of program and collector together, at one speed of the machine (speed.py):
programs of pyperformance keep to one processor, services and sessions to none. Two exact recordings of the same work
are the oracle of the counts: what caches, addresses and garbage collections decide differs between the two, and is not judged.
"""
import json
import os
import subprocess

from . import speed, stats, target

BUDGETS = ("2%", "5%", "20%")
JUDGED = "5%"
PROGRAMS = """async_generators async_tree barnes_hut bpe_tokeniser chaos comprehensions coroutines crypto_pyaes deepcopy deltablue
fannkuch float generators go hexiom json_dumps json_loads logging mdp meteor_contest nbody nqueens pathlib pickle pidigits pprint
pyflate raytrace regex_compile richards richards_super scimark spectral_norm telco tomli_loads typing_runtime_protocols
unpack_sequence xml_etree""".split()
# The bench's own: what they do, some ten seconds of it, and which packages of the interpreter they need
# (tests/interpreters/packages.sh).
REAL = {"asyncio_service": (["130000"], None), "celery_tasks": (["25000"], "-services"), "django_load": (["8000"], "-services"),
        "flask_load": (["9000"], "-services"), "pandas_session": (["900"], "-peaks"), "sympy_session": (["--repeat", "24"], "")}
ARGUMENTS = {"async_tree": ["none"], "sqlglot_v2": ["normalize"], "logging": ["format"], "pickle": ["--pure-python", "pickle"]}
RUN = os.path.join(target.BENCH, "pyperf_loops", "run.py")
SOURCES = os.path.join(target.packages("pyperformance"), "pyperformance", "data-files", "benchmarks")


def words(program):
    """What runs a program: one of pyperformance by pyperf_loops/run.py, a session by harness.py."""
    if program in REAL:
        return [*([target.HARNESS] if "--repeat" in REAL[program][0] else []), target.program(program), *REAL[program][0]]
    return [RUN, os.path.join(SOURCES, "bm_" + program, "run_benchmark.py")] + ARGUMENTS.get(program, [])


def packages(interpreter, program):
    """The folder with the packages of a program, or None."""
    needed = REAL.get(program, ((), None))[1]
    return needed if needed is None else target.packages("3.%d%s" % (interpreter.minor, needed))


def said(*command):
    done = subprocess.run([target.EVPROF, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def functions(trace):
    return {(row["file"], row["line"], row["function"]): row for row in said("report", "--json", trace)["functions"]}


def account(trace):
    """What recording has cost by its own account, in percent, and the longest mean of a function that was left out, in us."""
    processes = [one for one in said("info", "--quick", "--json", trace)["processes"] if "recording_percent" in one]
    return [max([one[key] for one in processes], default=0) for key in ("recording_percent", "longest_left_out_us")]


def judge(exact, found):
    """Counts of functions: those that differ between the two exact recordings; of the others the estimates, those with an
    interval, those that are right; the exact ones, those that are right."""
    counts = {"vary": 0, "estimates": 0, "with_interval": 0, "within": 0, "exact": 0, "equal": 0}
    for place, row in found.items():
        truth, again = (one.get(place, {}).get("ncalls", 0) for one in exact)
        if truth != again:
            counts["vary"] += 1
        elif not row.get("estimated"):
            counts["exact"] += 1
            counts["equal"] += row["ncalls"] == truth
        else:
            counts["estimates"] += 1
            if row.get("ncalls_error") is not None:
                counts["with_interval"] += 1
                counts["within"] += abs(row["ncalls"] - truth) <= row["ncalls_error"]
    return counts


def measure_program(interpreter, program, rounds, scratch, probes):
    folder = packages(interpreter, program)
    env = target.environment(BENCH_SECONDS="1.5", **({"PYTHONPATH": folder} if folder else {}))
    loops, cpu = "", None
    if program not in REAL:
        cpu = max(probes.pipes)
        env["BENCH_CPU"] = str(cpu)
        env["BENCH_LOOPS"] = loops = target.last_line(target.run_whole(interpreter, words(program), env).out)
    evprof = [target.EVPROF, "run", "-q", "-o", scratch.template()]
    exact = []
    # A budget is one more variable of the environment, over which programs loop.
    as_long = {**env, "BENCH_EXACT": "1"}
    for _ in range(2):
        target.run_whole(interpreter, words(program), as_long, evprof)
        exact.append(functions(scratch.take()[-1]))
        scratch.clear()
    names = ["bare", *BUDGETS]
    work = {name: [] for name in names}
    bare, judged, accounts = [], [], []
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            prefix = evprof + ["--budget", name] if name != "bare" else ()
            result, done = probes.work(lambda: target.run_whole(interpreter, words(program), env, prefix), cpu)
            work[name].append(done)
            if name == "bare":
                bare.append(result.cpu_s)
            elif name == JUDGED:
                trace = scratch.take()[-1]
                judged.append(judge(exact, functions(trace)))
                accounts.append(account(trace))
            scratch.clear()
    return {"python": interpreter.name, "program": program, "loops": loops, "bare_s": stats.spread(bare),
            "added": {name: stats.spread([w / b - 1 for w, b in zip(work[name], work["bare"])]) for name in BUDGETS},
            "judged": {key: sum(one[key] for one in judged) for key in judged[0]},
            "account": stats.spread([percent / 100 for percent, _ in accounts]), "longest_us": max(us for _, us in accounts)}


def measure(rows, interpreters, rounds, programs, scratch, progress, failures):
    if not os.path.isdir(SOURCES):
        failures.append("budget: pyperformance is not there; EVPROF_TEST_ALL=1 sh tests/interpreters/packages.sh fetches it")
        return
    probes = speed.Probes()
    for interpreter in interpreters:
        if interpreter.minor < 9:
            continue
        for program in programs or [*PROGRAMS, *REAL]:
            if not os.path.isdir(packages(interpreter, program) or SOURCES):
                continue
            progress("budget: Python %s, %s" % (interpreter.name, program))
            try:
                rows.append(measure_program(interpreter, program, rounds, scratch, probes))
            except target.Failed as error:
                failures.append("budget, Python %s: %s: %s" % (interpreter.name, program, error))
