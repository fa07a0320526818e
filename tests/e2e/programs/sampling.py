"""What a sampler is to see; prints what the program itself knows of it."""
import mmap
import os
import struct
import subprocess
import sys
import threading
import time

if sys.version_info < (3, 7):
    def thread_time():
        return time.clock_gettime(3)  # CLOCK_THREAD_CPUTIME_ID
else:
    thread_time = time.thread_time


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))


def short():
    spin(0.15)


def long():
    spin(0.45)


def ünïcode_例():
    time.sleep(0.2)


def times():
    """Three functions of different length, over and over."""
    took = {}
    for _ in range(3):
        for function in short, long, ünïcode_例:
            begin = time.perf_counter()
            function()
            took[function] = took.get(function, 0) + time.perf_counter() - begin
    for function, seconds in took.items():
        print(function.__name__, "%.6f" % seconds)


def lines():
    """A line that takes long, in the middle of others."""
    x = took = 0
    for i in range(3):
        begin = time.perf_counter()
        time.sleep(0.2); line = sys._getframe().f_lineno
        took += time.perf_counter() - begin
        x -= i
    print(line, "%.6f" % took)


def calls():
    """Two calls of one function, one after the other, the second four times as long: prints the line of the first."""
    for _ in range(3):
        begin = time.perf_counter()
        spin(0.1); line = sys._getframe().f_lineno
        middle = time.perf_counter()
        spin(0.4)
        print(line, "%.6f %.6f" % (middle - begin, time.perf_counter() - middle))


def many_calls():
    """Calls of one function, of which some end while their caller is read: prints how many."""
    for _ in range(600):
        spin(0.001)
        sum(range(500))
        spin(0.001)
        sum(range(500))
    print(1200)


def compiled_anew():
    """A function that is compiled for each call, as template engines do: prints how long all calls took."""
    kept, took = [], 0
    for _ in range(150):
        names = {"spin": spin}
        exec(compile("def made():\n    spin(0.01)\n", "made.py", "exec"), names)
        kept.append(names["made"])
        begin = time.perf_counter()
        names["made"]()
        took += time.perf_counter() - begin
    print("%.6f" % took)


def brief():
    time.sleep(0.012)


def children():
    """Children that live for about one interval of the sampler: prints what they slept in all."""
    shared = mmap.mmap(-1, 4096)
    slept = 0
    for _ in range(40):
        pid = os.fork()
        if not pid:
            begin = time.perf_counter()
            brief()
            shared[:8] = struct.pack("d", time.perf_counter() - begin)
            os._exit(0)
        os.waitpid(pid, 0)
        slept += struct.unpack("d", shared[:8])[0]
    print("%.6f" % slept)


def cpu():
    """Prints what it ran."""
    begin = thread_time()
    short()
    time.sleep(0.3)
    print("%.6f" % (thread_time() - begin))


def timed(function):
    """Says how long each call of a function took, by one write, as threads and processes do so side by side."""
    def call(*arguments):
        begin = time.perf_counter()
        result = function(*arguments)
        os.write(1, ("%s %.6f\n" % (function.__name__, time.perf_counter() - begin)).encode())
        return result
    return call


@timed
def in_thread(number):
    time.sleep(0.5)


@timed
def in_child():
    time.sleep(0.5)


def tree():
    """Threads, a forked child that has threads, another one from a thread, a program that is started, and one that replaces."""
    threads = [threading.Thread(target=in_thread, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(7)
    os.write(1, b"status %d\n" % (os.waitpid(pid, 0)[1] >> 8))
    forked = []

    def fork():
        pid = os.fork()
        if not pid:
            in_child()
            os._exit(0)
        forked.append(pid)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    os.waitpid(forked[0], 0)
    program = "import time\ndef %s():\n time.sleep(1)\nbegin = time.perf_counter()\n%s()\nprint('%s', time.perf_counter() - begin)"
    subprocess.check_call([sys.executable, "-c", program.replace("%s", "started")])
    os.execv(sys.executable, [sys.executable, "-c", program.replace("%s", "replaced")])


def named():
    """Threads of many names, and a fork in one: prints each one's id and last name."""
    modern = sys.version_info >= (3, 8)  # threads have their id from then on

    def print_name(thread):
        tid = thread.native_id if modern else 0
        os.write(1, ("%d %s\n" % (tid, thread.name)).encode("utf-8"))

    def renamed():
        if modern:
            threading.current_thread().name = "new nàme"
        spin(0.2)

    def forks():
        pid = os.fork() if modern else 0
        spin(0.2)
        if modern and not pid:
            os.write(1, ("%d %s\n" % (os.getpid(), threading.current_thread().name)).encode("utf-8"))
            os._exit(0)
        if pid:
            os.waitpid(pid, 0)

    def waits():
        later.wait()
        spin(0.2)

    later = threading.Event()
    threads = [threading.Thread(target=target, name=name) for target, name in
               [(lambda: spin(0.2), "a name of more than fifteen bytes"), (lambda: spin(0.2), "ünïcode_例"),
                (waits, None), (renamed, "old"), (forks, "forks")]]
    for thread in threads:
        thread.start()
    if modern:
        threads[2].name = "by another"
        threading.main_thread().name = "first"
    later.set()
    for thread in threads:
        thread.join()
    for thread in threads + [threading.main_thread()]:
        print_name(thread)


def before():
    begin = time.perf_counter()
    spin(0.8)
    print("before", "%.6f" % (time.perf_counter() - begin), file=sys.stdout or sys.stderr, flush=True)


def closed():
    """In an image that begins without stdin and stdout."""
    os.close(0)
    os.close(1)
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), "before"])


def stopped():
    """What runs between evprof_stop() and evprof_start() is nobody's."""
    import ctypes

    evprof = ctypes.CDLL(None)
    before()
    if hasattr(evprof, "evprof_stop"):
        evprof.evprof_stop()
    long()
    if hasattr(evprof, "evprof_start"):
        evprof.evprof_start()
    time.sleep(0.2)
    in_child()


def anew():
    """Says in a file that it runs, and then does so for a time."""
    before()
    open("begun", "w").close()
    before()
    for _ in range(4):
        long()


def unsampled():
    """Somebody ends its sampler; it runs on."""
    before()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                arguments = file.read().split(b"\0")
        except OSError:
            continue
        if b"--sample" in arguments and any(a.startswith(b"%d:" % os.getpid()) for a in arguments):
            os.kill(int(pid), 9)
    long()
    long()


def hook_compat():
    """Nothing is set that the program could see: its own profiler has all to itself. And a fork with other threads warns as bare."""
    import cProfile
    import gc
    import pstats

    print(sys.getprofile(), sys.gettrace())
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(100):
        in_order()
    profile.disable()
    print(sorted((name[2], value[0]) for name, value in pstats.Stats(profile).stats.items()))
    if hasattr(sys, "monitoring"):
        print([sys.monitoring.get_tool(tool) for tool in range(6)])
    print(len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task")))
    gc.collect()
    pid = os.fork()
    if not pid:
        os._exit(0)
    print(os.waitpid(pid, 0)[1])


def in_order():
    return [abs(x) for x in range(3)]


def depth():
    """A stack of thousands."""
    sys.setrecursionlimit(20000)
    threading.stack_size(256 << 20)

    def deeper(n):
        if n:
            return deeper(n - 1)
        time.sleep(0.5)

    thread = threading.Thread(target=timed(deeper), args=(3000,))
    thread.start()
    thread.join()


def many():
    """Many threads that come and go."""
    for _ in range(5):
        threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


globals()[sys.argv[1]]()
