"""evprof.fleet: the traces of many hosts, on Spark. docs/fleet.md leads there.

    spark = evprof.fleet.session()
    evprof.fleet.read(spark, "/mnt/traces", "calls")      a DataFrame of *.evp where they are
    evprof.fleet.functions(spark, "/mnt/traces")          and analyses of them, as DataFrames

    python -m evprof.fleet functions /mnt/traces          the same as tables of text, or with --json

Times are ns. Needs pyspark 4 and pyarrow: pip install 'evprof[fleet]'. Arguments that do not fit raise EvprofError; those of
read(), and files that are not traces, are found in a worker of Spark, whose exceptions have that line in their text.
"""
import math
import sys
from typing import Any, Iterator, List

from . import _fleet_source as source
from ._needs import needs
from .errors import EvprofError

#: What read() gives.
TABLES = source.tables()
_FUNCTION = ["service", "file", "line", "name"]
_LN_FLOOR = 0.05  # durations that differ by less are alike, whatever the others are
_SHUFFLE = "spark.sql.shuffle.partitions"
_NORMAL = 0.6745  # median absolute deviation of a normal distribution


def _functions() -> Any:
    return needs("pyspark.sql.functions", "a fleet", "pyspark")


def session(master: str = "local[*]", name: str = "evprof-fleet") -> Any:
    """A SparkSession on this machine, or on the cluster at master ("spark://HOST:7077").

    On this machine it listens on the loopback interface only, and has no page.
    """
    builder = needs("pyspark.sql", "a fleet", "pyspark").SparkSession.builder.master(master).appName(name)
    for key, value in (("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false")):
        builder = builder.config(key, value)
    if master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.getOrCreate()
    if master.startswith("local") and not spark.sparkContext.getConf().contains(_SHUFFLE):
        spark.conf.set(_SHUFFLE, 2 * spark.sparkContext.defaultParallelism)  # 200 tasks for a thousand rows take longer than these
    return spark


def read(spark: Any, path: str, table: str = "calls", **options: Any) -> Any:
    """The traces (*.evp) below a folder, or s3://BUCKET/PREFIX, as a DataFrame; each row has day, service, version, host and trace before these columns:

    traces     start, duration, processes, complete, damage: what is missing, or ""; each trace is read whole
    calls      as evprof export writes them (docs/queries.md); parent is an id of the same trace
    functions  as evprof report counts them, for each process: pid, file, line, name, calls, primitive_calls, own, cumulative
    memory     for each process: pid, file, line, name, allocations, bytes, peak_bytes, end_bytes
    stacks     for each process: pid, stack (folded, without pid and tid), value

    service is the name of the program and host that of the recording, unless folders are named service=, host=, version= or
    day=. Options are the filters include, exclude, exclude_syspath, min_duration, max_depth, start and end of evprof.load(), one
    of each; weight of stacks; service; part_bytes: calls of a trace that is larger are read by several tasks, and smaller traces
    share one (16 MiB); skip_unreadable: files that are not traces are left out, or else they end the job.
    """
    spark.dataSource.register(source.EvprofDataSource)
    reader = spark.read.format("evprof").option("path", path).option("table", table)
    for name, value in options.items():
        reader = reader.option(name, {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else str(value))
    return reader.load()


# --- functions ---

def _report_name(F: Any) -> Any:
    """The name of a call's function in evprof report, which names C functions as cProfile does, but for the module of its type."""
    method = F.concat(F.lit("<method '"), F.regexp_extract("name", r"([^.]*)$", 1), F.lit("' of '"),
                      F.regexp_extract("name", r"^(.*)\.[^.]*$", 1), F.lit("' objects>"))
    plain = F.concat(F.lit("<built-in method "), F.when(F.col("mod") == "", "").otherwise(F.concat("mod", F.lit("."))), "name",
                     F.lit(">"))
    of_c = F.when((F.col("mod") == "") & F.col("name").contains("."), method).otherwise(plain)
    return F.when(F.col("lineno") < 0, of_c).otherwise(F.col("name"))


def functions(spark: Any, path: str, percentiles: bool = True, **options: Any) -> Any:
    """Functions of each service over all hosts, the most own time first: file, line, name, calls, primitive_calls, own, cumulative,
    hosts, processes. The sums are those of evprof report on the same traces.

    percentiles: p50, p90, p99, max of the durations of their calls, which reads each call; of 10,000 calls in order one is the
    most that a percentile is off. Null where no call was recorded (samples).
    """
    F, key = _functions(), ["service", "file", "line", "key"]
    counted = read(spark, path, "functions", **options).groupBy(*_FUNCTION).agg(
        *(F.sum(name).alias(name) for name in ("calls", "primitive_calls", "own", "cumulative")),
        F.countDistinct("host").alias("hosts"), F.countDistinct("trace", "pid").alias("processes"))
    if percentiles:
        calls = read(spark, path, "calls", **options).where("kind <> 'frame'")
        # By what each call has; names are made of the few groups.
        of_calls = calls.groupBy("service", "mod", "lineno", "name").agg(
            F.percentile_approx("duration", [0.5, 0.9, 0.99], 10000).alias("p"), F.max("duration").alias("max"))
        of_calls = of_calls.select("service", F.when(F.col("lineno") < 0, "~").otherwise(F.col("mod")).alias("file"),
                                   F.greatest("lineno", F.lit(0)).alias("line"), _report_name(F).alias("key"), "p", "max")
        parts = [F.col("p")[number].alias(name) for number, name in enumerate(("p50", "p90", "p99"))]
        of_type = r"^(<method '.*' of ')(?:.*\.)?([^.]*' objects>)$"
        counted = counted.withColumn("key", F.regexp_replace("name", of_type, "$1$2"))
        counted = counted.join(of_calls.select(*key, *parts, "max"), key, "left").drop("key")
    return counted.orderBy(F.desc("own"), *_FUNCTION)


# --- a test that tells noise from change ---

def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1.0)) or tiny)
    result = d
    for m in range(1, 500):
        for factor in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                       -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1.0 / ((1.0 + factor * d) or tiny)
            c = (1.0 + factor / c) or tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return result


def student_p(t: float, freedom: float) -> float:
    """The probability that Student's t is at least as far from 0, on either side. freedom: degrees of freedom, above 0."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return min(1.0, front * _beta_fraction(a, b, x) / a)
    return max(0.0, 1.0 - front * _beta_fraction(b, a, 1 - x) / b)


def welch_p(n1: int, mean1: float, variance1: float, n2: int, mean2: float, variance2: float) -> Any:
    """Welch's test: the probability that two samples of one distribution have means that differ at least as much. None: a sample has
    fewer than two values, so nothing is known of its noise."""
    if min(n1 or 0, n2 or 0) < 2:
        return None
    e1, e2 = variance1 / n1, variance2 / n2
    if e1 + e2 <= 1e-24 * max(mean1 * mean1, mean2 * mean2):
        return 1.0 if abs(mean1 - mean2) <= 1e-12 * max(abs(mean1), abs(mean2)) else 0.0
    freedom = (e1 + e2) ** 2 / (e1 * e1 / (n1 - 1) + e2 * e2 / (n2 - 1))
    return student_p((mean1 - mean2) / math.sqrt(e1 + e2), freedom)


def slope_p(slope: float, r2: float, count: int) -> Any:
    """The probability of a line at least as steep where nothing grows. None: fewer than three points."""
    if count < 3:
        return None
    return 0.0 if r2 >= 1.0 and slope else student_p(math.sqrt(r2 * (count - 2) / (1.0 - r2)), count - 2) if r2 < 1.0 else 1.0


# --- regressions ---

def _request_condition(F: Any, request: str, file: str = "file") -> Any:
    """Whether a row is of the function that a request is: "FILE:FUNCTION", FILE with as much of its path as is wanted."""
    place, colon, name = request.rpartition(":")
    if not colon or not place or not name:
        raise EvprofError('evprof: a request is FILE:FUNCTION, not "%s"' % request)
    return (F.col("name") == name) & ((F.col(file) == place) | F.col(file).endswith("/" + place))


def _measures(F: Any, counted: Any, unit: List[str], request: str) -> Any:
    """Of each unit and function: requests of the unit (without a request its calls), per_request, own_per_call (ns), calls."""
    per = counted.groupBy(*unit).agg(F.sum(F.when(_request_condition(F, request), F.col("calls")) if request
                                           else F.col("calls")).alias("requests")).where("requests > 0")
    rows = counted.groupBy(*unit, "file", "line", "name").agg(F.sum("calls").alias("calls"), F.sum("own").alias("own"))
    rows = rows.where("calls > 0").join(per, unit)
    return rows.withColumn("per_request", F.col("calls") / F.col("requests")).withColumn("own_per_call", F.col("own") / F.col("calls"))


def _side(F: Any, rows: Any, unit: List[str], prefix: str) -> Any:
    """Means and variances over the processes of one version. A process that never called it has 0 calls a request."""
    processes = rows.select(*unit).distinct().groupBy("service").agg(F.count("*").alias("n"))
    log = F.log(F.greatest("own_per_call", F.lit(1.0)))
    sums = rows.groupBy(*_FUNCTION).agg(
        F.sum("per_request").alias("s"), F.sum(F.col("per_request") * F.col("per_request")).alias("q"),
        F.count("*").alias("ln_n"), F.avg(log).alias("ln_mean"), F.coalesce(F.var_samp(log), F.lit(0.0)).alias("ln_variance"))
    n, mean = F.col("n"), F.col("s") / F.col("n")
    variance = (F.col("q") - n * mean * mean) / F.greatest(n - 1, F.lit(1))
    # Rounding is no noise.
    variance = F.when(variance > 1e-12 * mean * mean, variance).otherwise(0.0)
    made = sums.join(processes, "service").select(*_FUNCTION, n, mean.alias("mean"), variance.alias("variance"), "ln_n", "ln_mean",
                                                  "ln_variance")
    return made.select(*_FUNCTION, *(F.col(name).alias(prefix + name) for name in made.columns[len(_FUNCTION):])), processes


def _compared(F: Any, both: Any, measure: str, prefix: str) -> Any:
    p = F.udf(lambda *values: welch_p(*values), "double")
    names = [side + prefix + name for side in ("before_", "after_") for name in ("n", "mean", "variance")]
    value = F.exp if prefix else (lambda column: column)
    return both.select(*_FUNCTION, F.lit(measure).alias("measure"),
                       value(F.col("before_%smean" % prefix)).alias("before"), value(F.col("after_%smean" % prefix)).alias("after"),
                       F.col(names[0]).alias("before_processes"), F.col(names[3]).alias("after_processes"), p(*names).alias("p"))


def regressions(spark: Any, path: str, before: str, after: str, request: str = "", alpha: float = 0.01, least: float = 0.05,
                **options: Any) -> Any:
    """What changed between two versions of services (folders version=BEFORE and version=AFTER), the largest change first: a row for
    each function and measure.

    measure: per_request, its calls a request (request: FILE:FUNCTION; without, of each call of its process), or own_per_call, its
    own time a call in ns, the geometric mean of the processes. before, after: the means over processes; ratio: after by before, or null;
    before_processes, after_processes: how many; p: of Welch's test over processes, of which each is one value, as the calls in one
    are not independent; q: p among all the rows, by Benjamini and Hochberg. verdict: changed, where q is below alpha and the ratio
    is at least `least` from 1; noise; or unknown, where a version has fewer than two processes.
    """
    F, window = _functions(), needs("pyspark.sql.window", "a fleet", "pyspark").Window
    unit = ["service", "host", "trace", "pid"]
    counted = read(spark, path, "functions", **options).persist()
    sides, processes = {}, {}
    for name, version in (("before_", before), ("after_", after)):
        rows = _measures(F, counted.where(F.col("version") == version), unit, request)
        sides[name], processes[name] = _side(F, rows, unit, name)
    both = sides["before_"].join(sides["after_"], _FUNCTION, "full")
    for name in ("before_", "after_"):  # a function that only one version has
        both = both.join(processes[name].withColumnRenamed("n", name + "all"), "service", "left")
        both = both.withColumn(name + "n", F.coalesce(name + "n", name + "all", F.lit(0)))
        both = both.fillna(0.0, [name + "mean", name + "variance"]).drop(name + "all")
    rows = _compared(F, both, "per_request", "").unionByName(_compared(F, both, "own_per_call", "ln_").where(
        "before is not null and after is not null"))
    ranked = window.orderBy(F.asc_nulls_last("p"))
    later = ranked.rowsBetween(window.currentRow, window.unboundedFollowing)
    count = F.count("p").over(window.partitionBy())
    rows = rows.withColumn("q", F.when(F.col("p").isNotNull(), F.col("p") * count / F.row_number().over(ranked)))
    rows = rows.withColumn("q", F.when(F.col("p").isNotNull(), F.least(F.lit(1.0), F.min("q").over(later))))
    rows = rows.withColumn("ratio", F.when(F.col("before") > 0, F.col("after") / F.col("before")))
    far = F.coalesce("ratio", F.lit(1e9))
    real = (F.col("q") < alpha) & ((far >= 1 + least) | (far <= 1 / (1 + least)))
    verdict = F.when(F.col("p").isNull(), "unknown").when(real, "changed").otherwise("noise")
    rows = rows.withColumn("verdict", verdict)
    return rows.orderBy(F.col("verdict") != "changed", F.desc(F.abs(F.log(F.greatest(far, F.lit(1e-9))))), "q", *_FUNCTION, "measure")


# --- outliers ---

def _unlike(F: Any, rows: Any, group: List[str], value: Any, threshold: float) -> Any:
    """Rows whose logarithm is far from the median of their group, by median absolute deviations; with median and score."""
    rows = rows.withColumn("ln", F.log(F.greatest(value, F.lit(1e-9))))
    rows = rows.join(rows.groupBy(*group).agg(F.median("ln").alias("middle"), F.count("*").alias("of")), group)
    rows = rows.join(rows.groupBy(*group).agg(F.median(F.abs(F.col("ln") - F.col("middle"))).alias("spread")), group)
    score = _NORMAL * (F.col("ln") - F.col("middle")) / F.greatest("spread", F.lit(_LN_FLOOR))
    rows = rows.withColumn("median", F.exp("middle")).withColumn("score", score)
    return rows.where(F.abs("score") > threshold).drop("ln", "middle", "spread").orderBy(F.desc(F.abs("score")))


def outliers(spark: Any, path: str, by: str = "process", request: str = "", threshold: float = 3.5, **options: Any) -> Any:
    """Hosts, processes or requests unlike the others of their service, the farthest first.

    by="host" and "process": a row for each of them, function and measure (as in regressions()): value; median: of all hosts or
    processes that call the function; of: their number; score: the distance of the logarithm from the median, in robust standard
    deviations, of at least 0.074 (7 %). by="request": a row for each call of request (FILE:FUNCTION), with host, trace, pid, tid,
    start and duration as value. threshold: the least score, on either side.
    """
    F = _functions()
    if by == "request":
        condition = _request_condition(F, request, "mod")
        calls = read(spark, path, "calls", **{**options, "include": request.rpartition(":")[2]}).where(condition)
        calls = calls.where("kind = 'call'").withColumnRenamed("duration", "value")
        rows = calls.select("service", "mod", "name", "host", "trace", "pid", "tid", "start", "value")
        return _unlike(F, rows, ["service", "mod", "name"], F.col("value"), threshold)
    if by not in ("host", "process"):
        raise EvprofError('evprof: outliers are by host, process or request, not "%s"' % by)
    unit = ["service", "host"] + (["trace", "pid"] if by == "process" else [])
    rows = _measures(F, read(spark, path, "functions", **options).persist(), unit, request)
    measures = [rows.select(*unit, "file", "line", "name", F.lit(name).alias("measure"), F.col(name).alias("value"))
                for name in ("per_request", "own_per_call")]
    return _unlike(F, measures[0].unionByName(measures[1]), _FUNCTION + ["measure"], F.col("value"), threshold)


# --- flame graph, leaks ---

def flame(spark: Any, path: str, weight: str = "time", **options: Any) -> Any:
    """The flame graph of each service: stack (folded) and value, merged over its processes. weight: that of Trace.flame()."""
    F = _functions()
    rows = read(spark, path, "stacks", weight=weight, **options)
    return rows.groupBy("service", "stack").agg(F.sum("value").alias("value")).orderBy("service", "stack")


def folded(rows: Any) -> Iterator[str]:
    """The lines of a flame(), for flamegraph.pl and speedscope; the service is the outermost frame."""
    for row in rows.toLocalIterator():
        yield "%s;%s %d" % (row.service, row.stack, row.value)


def leaks(spark: Any, path: str, alpha: float = 0.01, **options: Any) -> Any:
    """What grows from day to day, the most first: a row for each function of a service with memory that is alive at the end of
    traces. bytes_per_day: the slope of the line through the days, of the mean over a day's processes; first, last: on the first and
    last day, bytes; days; r2; p: of a line at least as steep where nothing grows. verdict: leak, where p is below alpha; noise; or
    unknown, with fewer than three days.
    """
    F = _functions()
    memory = read(spark, path, "memory", **options)
    days = memory.groupBy("service", "day").agg(F.countDistinct("trace", "pid").alias("processes"))
    days = days.withColumn("x", F.unix_date(F.to_date("day")))
    held = memory.where("end_bytes > 0").groupBy(*_FUNCTION, "day").agg(F.sum("end_bytes").alias("held"))
    # A day on which a function held nothing is a point, too.
    points = held.select(*_FUNCTION).distinct().join(days, "service").join(held, _FUNCTION + ["day"], "left")
    points = points.withColumn("y", F.coalesce("held", F.lit(0)) / F.col("processes"))
    rows = points.groupBy(*_FUNCTION).agg(
        F.regr_slope("y", "x").alias("bytes_per_day"), F.min_by("y", "x").alias("first"), F.max_by("y", "x").alias("last"),
        F.count("*").alias("days"), F.regr_r2("y", "x").alias("r2"))
    rows = rows.where("bytes_per_day > 0").withColumn("p", F.udf(lambda *values: slope_p(*values), "double")("bytes_per_day", "r2", "days"))
    verdict = F.when(F.col("p").isNull(), "unknown").when(F.col("p") < alpha, "leak").otherwise("noise")
    return rows.withColumn("verdict", verdict).orderBy(F.col("verdict") != "leak", F.desc("bytes_per_day"), *_FUNCTION)


if __name__ == "__main__":
    from evprof._fleet_main import main
    sys.exit(main(sys.argv[1:]))
