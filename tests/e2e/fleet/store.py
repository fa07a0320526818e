"""store.py EVPROF FOLDER [MASTER]: evprof.fleet on Spark reads the same of s3a:// as of the folder that was copied there. The store is
moto's server. Used by test_fleet.c. Records into FOLDER; prints "as in the folder".
"""
import collections
import os
import re
import subprocess
import sys

import evprof
from evprof import fleet

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(here, "..", "programs"))
import moto_server  # noqa: E402

tool, folder = sys.argv[1:3]
program = os.path.join(here, "..", "programs", "fleet.py")
log = os.path.join(folder, "moto.log")


def same(what, mine, theirs):
    if mine != theirs:
        sys.exit("%s: %r instead of %r" % (what, mine, theirs))


def record(client, place, *arguments):
    path = os.path.join(folder, "web", place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    subprocess.run([tool, "run", "-q", "--program-only", "-o", path, program, *map(str, arguments)], check=True)
    client.upload_file(path, moto_server.BUCKET, "all/web/" + place)


def record_all(client):
    for host in "ab":
        record(client, "day=2026-11-0%d/service=shop/version=1/host=%s/w.evp" % (1 + (host == "b"), host), 3, 5, 1000)
    record(client, "version=2/x y+z.evp", 4, 150, 1000)
    for key in ("all/web/.hidden.evp", "all/web/notes.txt", "all/web2/other.evp"):
        client.put_object(Bucket=moto_server.BUCKET, Key=key, Body=b"no trace")


def fetches():
    """How often each trace was read, whole or its end, since the last call."""
    with open(log) as file:
        found = collections.Counter(re.findall(r"GET /traces/(all/web/\S+\.evp) HTTP", file.read()))
    os.truncate(log, 0)
    return found


def rows_of(spark, place, table, **options):
    return sorted(map(repr, fleet.read(spark, place, table, **options).collect()))


def judge(spark):
    """All tables. Parts of one trace are tasks that follow each other in one process, which fetches it once."""
    web = os.path.join(folder, "web")
    for scheme, table in (("s3a", "traces"), ("s3a", "calls"), ("s3", "functions"), ("s3a", "memory"), ("s3a", "stacks")):
        mine = rows_of(spark, scheme + "://traces/all/web", table)
        same(table, (mine, len(mine) > 2), (rows_of(spark, web, table), True))
    rows = fleet.read(spark, "s3a://traces/all/web/", "calls", part_bytes=1000)
    same("many parts of three traces", rows.rdd.getNumPartitions() > 20, True)
    fetches()
    same("calls in parts", sorted(map(repr, rows.collect())), rows_of(spark, web, "calls", part_bytes=1000))
    read = fetches()
    same("each is fetched once, perhaps after a look at its end", (len(read), max(read.values()) <= 2), (3, True))
    same("functions", [row.asDict() for row in fleet.functions(spark, "s3a://traces/all/web").collect()],
         [row.asDict() for row in fleet.functions(spark, web).collect()])


def refused(what, line, make):
    try:
        make()
    except Exception as error:
        if line in str(error) and "/proc/self" not in str(error):
            return
        sys.exit("%s: %s" % (what, error))
    sys.exit("%s is not refused" % what)


def judge_errors(spark, client):
    refused("nothing", "it has no files *.evp", lambda: fleet.read(spark, "s3a://traces/none", "calls").count())
    refused("no bucket", "evprof: s3a://nothing/x: ", lambda: fleet.read(spark, "s3a://nothing/x", "calls").count())
    refused("no name", "there is no bucket", lambda: fleet.read(spark, "s3a://", "calls").count())
    refused("no trace", "s3a://traces/all/web2/other.evp: ", lambda: fleet.read(spark, "s3a://traces/all/web2", "traces").count())
    same("it is left out", fleet.read(spark, "s3a://traces/all", "traces", skip_unreadable=True).count(), 3)


def main():
    os.makedirs(folder, exist_ok=True)
    server, port, client = moto_server.start(log)
    try:
        os.environ.update(AWS_ENDPOINT_URL="http://127.0.0.1:%d" % port, AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret",
                          AWS_REGION="us-east-1")
        record_all(client)
        spark = fleet.session(*sys.argv[3:4])
        spark.sparkContext.setLogLevel("OFF")
        judge(spark)
        judge_errors(spark, client)
        spark.stop()
    finally:
        server.kill()
        server.wait()


main()
print("as in the folder")
