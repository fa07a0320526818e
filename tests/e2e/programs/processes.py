"""Children of every making, each with known work in a function of its own. `python processes.py KIND`"""
import os
import subprocess
import sys

import known

here = os.path.dirname(os.path.abspath(__file__))


def in_child(n=100):
    known.work(n)
    return n


def in_parent():
    known.work(10)


def forks():
    for i in range(3):
        pid = os.fork()
        if pid == 0:
            in_child()
            os._exit(i)
        in_parent()
        assert os.waitpid(pid, 0)[1] == i << 8


def pty_forks():
    pid, terminal = os.forkpty()
    if pid == 0:
        in_child()
        os._exit(3)
    try:
        while os.read(terminal, 100):
            pass
    except OSError:
        pass
    assert os.waitpid(pid, 0)[1] == 3 << 8
    forks()


def fork_of_fork():
    pid = os.fork()
    if pid == 0:
        inner = os.fork()
        in_child()
        if inner:
            os.waitpid(inner, 0)
        os._exit(0)
    os.waitpid(pid, 0)


def fork_in_thread():
    import threading
    thread = threading.Thread(target=forks)
    thread.start()
    thread.join()


def subprocesses():
    for _ in range(2):
        code = "import sys; sys.path.insert(0, %r); import processes; processes.in_child()" % here
        subprocess.check_call([sys.executable, "-c", code])
        in_parent()
    subprocess.check_call("true", shell=True)
    print(subprocess.check_output(["ls", here]).decode().split()[0])


def shell_between():
    code = "import sys; sys.path.insert(0, %r); import processes; processes.in_child()" % here
    subprocess.check_call(["sh", "-c", '"$0" -c "$1"; true', sys.executable, code])


def multiprocess(method):
    import multiprocessing
    context = multiprocessing.get_context(method)
    children = [context.Process(target=in_child) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0


def pool():
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as workers:
        print(sum(workers.map(in_child, [5] * 20, 1)))
        workers.close()
        workers.join()


def futures():
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2) as executor:
        print(sum(executor.map(in_child, [5] * 20)))


def execs():
    in_parent()
    sys.stdout.flush()
    code = "import sys; sys.path.insert(0, %r); import processes; processes.in_child(); sys.exit(7)" % here
    os.execv(sys.executable, [sys.executable, "-c", code])


def exec_fails():
    try:
        os.execv("/nonexistent/program", ["program"])
    except OSError:
        in_parent()
    in_child()


def exec_of_other():
    in_parent()
    sys.stdout.flush()
    os.execvp("sh", ["sh", "-c", "exit 8"])


def daemonise():
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        in_parent()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.closerange(0, 64)
    import time
    time.sleep(0.5)
    in_child()
    os._exit(0)


def spawned():
    code = "import sys; sys.path.insert(0, %r); import processes; processes.in_child()" % here
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    os.waitpid(pid, 0)


def cleared_environment():
    """A child that is given an environment without anything of ours is not followed."""
    code = "import sys; sys.path.insert(0, %r); import processes; processes.in_child()" % here
    subprocess.check_call([sys.executable, "-c", code], env={"PATH": os.environ["PATH"]})
    in_parent()


def killed_child():
    import signal
    pid = os.fork()
    if pid == 0:
        in_child()
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    in_parent()


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind in ("fork", "spawn", "forkserver"):
        multiprocess(kind)
    else:
        globals()[kind]()
    print("done", kind)
