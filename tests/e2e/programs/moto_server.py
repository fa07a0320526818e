"""moto_server: moto's S3 on the loopback interface, for drive_store.py and fleet/store.py. It has its objects in memory, and takes any key."""
import os
import re
import subprocess
import sys
import time

import boto3
import botocore.config

BUCKET = "traces"


def port_of(server, begin, log):
    """The port that the server writes into its log when it listens."""
    end = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < end:
        with open(log) as file:
            file.seek(begin)
            said = re.search(r"Running on http://127\.0\.0\.1:(\d+)\s", file.read())
        if said:
            return int(said[1])
        time.sleep(0.05)
    server.kill()
    sys.exit("moto's server does not listen; see " + log)


def start(log, port=0):
    """The server's process, its port (0: any), and a client after it has made the bucket. Requests are lines of the log."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with open(log, "a") as file:
        begin = file.seek(0, os.SEEK_END)
        server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=file)
    port = port_of(server, begin, log)
    client = boto3.client("s3", endpoint_url="http://127.0.0.1:%d" % port, aws_access_key_id="id", aws_secret_access_key="secret",
                          region_name="us-east-1", config=botocore.config.Config(s3={"addressing_style": "path"}))
    try:
        client.create_bucket(Bucket=BUCKET)
    except BaseException:
        server.kill()
        raise
    return server, port, client
