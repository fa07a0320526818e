"""Runs the containers of kubernetes.yaml without a container engine: each in mount and pid namespaces of its own. For test_sidecar.c.

    pod.py FOLDER BUILD PYTHON WORK PROGRAM

FOLDER has Dockerfile, kubernetes.yaml and sidecar.sh. The volumes of the YAML are folders of WORK, mounted where the containers want them;
below these places nothing else of this machine is seen. The program's pid namespace is inside the sidecar's, as the sidecar sees the
processes of the pod (shareProcessNamespace). Images are this machine's files. Run as the first process of a pid namespace.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

from ruamel.yaml import YAML


def entry_point(folder):
    """The file of the image that the sidecar runs."""
    with open(os.path.join(folder, "Dockerfile")) as file:
        return json.loads(re.search(r"^ENTRYPOINT (.*)$", file.read(), re.M).group(1))[0]


def mounted(container, volumes, hidden):
    """The words that give what follows the container's mounts, and hide what it has no volume for."""
    places = [(volumes[one["name"]], one["mountPath"]) for one in container["volumeMounts"]]
    script = "set -e\n"
    for parent in {os.path.dirname(place) for _, place in places}:
        script += "mount -t tmpfs none %s\n" % parent  # its folders are not made on this machine
    for source, place in places:
        script += "mkdir -p %s && mount --bind '%s' %s\n" % (place, source, place)
    script += "".join("mount -t tmpfs none %s\n" % place for place in hidden) + 'exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def main(folder, build, python, work, program):
    assert os.getpid() == 1, os.getpid()
    pod = YAML(typ="safe").load(open(os.path.join(folder, "kubernetes.yaml")))["spec"]
    assert pod["shareProcessNamespace"] is True
    (sidecar,), (app,) = pod["initContainers"], pod["containers"]
    volumes = {one["name"]: os.path.join(work, "volumes", one["name"]) for one in pod["volumes"]}
    image, own = os.path.join(work, "image"), os.path.join(work, "app")
    for path in [image, own] + list(volumes.values()):
        os.makedirs(path)
    for name in ("libevprof.so", "evprof-collector", "evprof-symbols"):
        shutil.copy(os.path.join(build, name), image)
    shutil.copy(os.path.join(folder, "sidecar.sh"), image)
    shutil.copy(program, own)
    start = os.path.join(image, os.path.basename(entry_point(folder)))
    environment = {"PATH": os.environ["PATH"], "HOME": "/"}
    collector = subprocess.Popen(mounted(sidecar, volumes, [own]) + [start], env=environment)
    probe = mounted(sidecar, volumes, []) + sidecar["startupProbe"]["exec"]["command"]
    for _ in range(300):
        if subprocess.call(probe) == 0:
            break
        assert collector.poll() is None, collector.returncode
        time.sleep(0.1)
    variables = {one["name"]: one["value"] for one in app["env"]}
    words = ["unshare", "--pid", "--fork", "--mount-proc"] + mounted(app, volumes, [image])
    # The variables are the container's, not those of what makes it.
    words += ["env"] + ["%s=%s" % item for item in variables.items()] + [python, os.path.join(own, os.path.basename(program))]
    status = subprocess.call(words, env=environment)
    print("status", status, flush=True)
    for _ in range(300):
        if any(name.endswith(".evp") for name in os.listdir(volumes["traces"])):
            break
        time.sleep(0.1)
    collector.terminate()
    print("collector", collector.wait(), flush=True)


main(*sys.argv[1:])
