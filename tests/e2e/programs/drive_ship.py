"""drive_ship.py BUILD: a daemon, programs under it, and evprof ship with a command that fails: each finished trace arrives once, as it
is in the folder, those that are being written do not, and a restart sends nothing again. For test_ship.c. Prints "shipped".
"""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

build = sys.argv[1]
tool = os.path.join(build, "evprof")
SECRET, OTHER = "alice7", "alice8"
COMMAND = """#!/bin/sh
# Two failures of each trace, by status and by a signal; then it arrives.
echo "$2" >>tries
[ "$(grep -cxF "$2" tries)" = 1 ] && exit 3
[ "$(grep -cxF "$2" tries)" = 2 ] && kill -9 $$
[ -e "arrived/$2" ] && echo "$2" >>twice
cp "$1" "arrived/$2"
"""


def wait_for(what, holds):
    end = time.monotonic() + 120
    while not holds():
        if time.monotonic() > end:
            sys.exit("it does not happen: %s; %s, tries: %s" % (what, os.listdir("traces"), os.path.exists("tries") and
                                                                  open("tries").read().split()))
        time.sleep(0.05)


def traces(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".evp"))


def program(*words):
    environment = dict(os.environ, EVPROF_SOCKET=os.path.abspath("socket"), LD_PRELOAD=os.path.join(build, "libevprof.so"))
    return subprocess.Popen([sys.executable, *words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)


def ship(*options):
    return subprocess.Popen([tool, "ship", "--retry", "0.1", *options, "traces", "./command", "{}", "{name}"], stdin=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def ended(process, status):
    errors = process.communicate()[1].decode()
    if process.returncode != status:
        sys.exit("evprof ship ends with %d: %s" % (process.returncode, errors))
    return errors.splitlines()[-1]


def content(path):
    with open(path, "rb") as file:
        return file.read()


def judge(folder):
    daemon = subprocess.Popen([os.path.join(build, "evprof-collector"), "--socket", "socket", "--output-dir", "traces"],
                              stderr=subprocess.DEVNULL)
    try:
        wait_for("the socket", lambda: os.path.exists("socket"))
        shipper = ship("--until-closed")
        long = program("-c", "print('on', flush=True); input()")
        long.stdout.readline()
        for _ in range(3):
            program("-c", "pass").communicate()
        wait_for("three traces arrive", lambda: len(traces("arrived")) == 3)
        if len(traces("traces")) != 4:
            sys.exit("the folder has %s" % traces("traces"))
        long.communicate(b"\n")
        wait_for("the fourth arrives", lambda: len(traces("arrived")) == 4)
        said = ended(shipper, 0)  # its input is closed
        if said != "evprof ship: 4 shipped, 8 tries failed, 0 removed before, 0 left":
            sys.exit(said)
        for name in traces("traces"):
            if content(os.path.join("traces", name)) != content(os.path.join("arrived", name)):
                sys.exit("%s has arrived otherwise" % name)
        said = ended(ship("--once"), 0)
        if said != "evprof ship: 0 shipped, 0 tries failed, 0 removed before, 0 left" or os.path.exists("twice"):
            sys.exit("after a restart: " + said)
    finally:
        daemon.terminate()
        daemon.wait()


def judge_redacted():
    """A copy without the secret, which is also in the trace's name; the folder has the trace as it was. What goes before counts.

    Two traces whose names become the same arrive both: the names differ in what is appended.
    """
    shutil.rmtree("arrived")
    os.mkdir("arrived")
    subprocess.run([tool, "run", "-q", "-o", "traces/%s.evp" % SECRET, sys.executable, "-c", "def %s(): pass\n%s()" % (SECRET, SECRET)],
                   check=True)
    shutil.copy("traces/%s.evp" % SECRET, "traces/%s.evp" % OTHER)
    os.utime("traces/%s.evp" % OTHER, (1, 1))  # another trace would have another session; a copy at once may have the same time
    before = content("traces/%s.evp" % SECRET)
    wait_for("the copies arrive", lambda: ended(ship("--once", "-e", "alice[0-9]"), 0) and len(traces("arrived")) == 2)
    if not all(re.match(r"\*{6}-[0-9a-f]{16}\.evp\Z", name) for name in traces("arrived")):
        sys.exit("arrived is %s" % traces("arrived"))
    for name in traces("arrived"):
        if SECRET.encode() in content("arrived/" + name):
            sys.exit("the secret is in %s" % name)
        dumps = [subprocess.run([tool, "dump", path], check=True, stdout=subprocess.PIPE).stdout.decode()
                 for path in ("traces/%s.evp" % SECRET, "arrived/" + name)]
        if SECRET not in dumps[0] or dumps[0].replace(SECRET, "******") != dumps[1]:
            sys.exit("the copy is another trace")
    if content("traces/%s.evp" % SECRET) != before or os.path.exists("traces/.evprof-ship"):
        sys.exit("the folder has changed: %s" % os.listdir("traces"))


def judge_titled():
    """The first argument is a title with a secret, of which the trace has its name: neither leaves the host with --argv."""
    named = "worker__token_%s.evp" % SECRET
    before = traces("arrived")
    environment = dict(os.environ, EVPROF_OUTPUT=os.path.abspath("traces/%n.evp"), LD_PRELOAD=os.path.join(build, "libevprof.so"),
                       PYTHONHOME=sys.base_prefix)
    subprocess.run(["worker: token=" + SECRET, "-c", "pass"], executable=sys.executable, env=environment, check=True,
                   stderr=subprocess.DEVNULL)
    wait_for("it is named by its title", lambda: named in traces("traces"))
    wait_for("it arrives", lambda: ended(ship("--once", "--argv"), 0) and len(traces("arrived")) > len(before))
    came = [name for name in traces("arrived") if name not in before]
    info = subprocess.run([tool, "info", "--json", "arrived/" + came[0]], check=True, stdout=subprocess.PIPE).stdout.decode()
    if len(came) != 1 or not re.match(r"\*-[0-9a-f]{16}\.evp\Z", came[0]) or SECRET in info or '"worker: *"' not in info:
        sys.exit("of a titled program came %s: %s" % (came, info))


def judge_no_copy():
    """A folder that takes no copy: a line says why, and nothing is shipped."""
    script = 'mount --bind traces traces && mount -o remount,bind,ro traces && exec "$@"'
    apart = ["unshare", "-rm", "sh", "-c", script, "sh"]
    if subprocess.run(apart + ["true"], stderr=subprocess.DEVNULL).returncode:
        return
    shutil.copy("traces/%s.evp" % SECRET, "traces/more.evp")
    time.sleep(0.3)  # a new one may be written yet
    shipper = subprocess.Popen(apart + [tool, "ship", "--retry", "0.1", "-e", SECRET, "traces", "true"], stderr=subprocess.PIPE)
    line = shipper.stderr.readline().decode()
    shipper.terminate()
    ended(shipper, 1)
    os.unlink("traces/more.evp")
    if line != "evprof ship: cannot make traces/.evprof-ship: Read-only file system\n":
        sys.exit("of a folder that takes no copy: %s" % line)


def judge_removed():
    """Bounds of the folder come before: what is removed unshipped is counted."""
    shutil.copy(os.path.join("traces", traces("traces")[0]), "traces/lost.evp")
    with open("command", "w") as file:
        file.write("#!/bin/sh\necho try >>failing\nexit 1\n")
    shipper = ship()
    wait_for("a try fails", lambda: os.path.exists("failing"))
    os.unlink("traces/lost.evp")
    line = b""
    while b"was removed before it was shipped" not in line:
        line = shipper.stderr.readline()
        if not line:
            sys.exit("the removal is not reported")
    shipper.terminate()
    said = ended(shipper, 1)
    if not said.endswith("failed, 1 removed before, 0 left"):
        sys.exit(said)


def judge_daemon(folder):
    """evprof-collector --ship: also what is finished when the daemon ends."""
    for name in ("more", "came"):
        os.mkdir(name)
    daemon = subprocess.Popen([os.path.join(build, "evprof-collector"), "--socket", "other", "--output-dir", "more",
                               "--ship", 'name=$2; [ -z "$EVPROF_SHIP_COMMAND" ] && cp "$1" "%s/came/${name}"' % folder,
                               "--redact", SECRET, "--redact-argv"], stderr=subprocess.DEVNULL)
    wait_for("the other socket", lambda: os.path.exists("other"))
    environment = dict(os.environ, EVPROF_SOCKET=os.path.abspath("other"), LD_PRELOAD=os.path.join(build, "libevprof.so"))
    code = "def %s(): pass\n%s()\nprint('on', flush=True); input()" % (SECRET, SECRET)
    runs = subprocess.Popen([sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    runs.stdout.readline()
    daemon.terminate()
    if daemon.wait():
        sys.exit("the daemon ends with %d" % daemon.returncode)
    runs.communicate(b"\n")
    if len(traces("came")) != 1 or traces("came") != traces("more"):
        sys.exit("of the daemon came %s" % traces("came"))
    dump = subprocess.run([tool, "dump", "came/" + traces("came")[0]], stdout=subprocess.PIPE).stdout.decode()
    info = subprocess.run([tool, "info", "--json", "came/" + traces("came")[0]], stdout=subprocess.PIPE).stdout.decode()
    if "******" not in dump or SECRET in dump or SECRET in info or '"*"' not in info:
        sys.exit("the daemon's copy is not redacted")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name in ("traces", "arrived"):
        os.mkdir(name)
    with open("command", "w") as file:
        file.write(COMMAND)
    os.chmod("command", stat.S_IRWXU)
    judge(folder)
    judge_redacted()
    judge_titled()
    judge_no_copy()
    judge_removed()
    judge_daemon(folder)
    os.chdir("/")
print("shipped")
