"""Calls moments.c (first argument: the library) as the further arguments say."""
import atexit
import ctypes
import os
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
what = sys.argv[2]


def fork_turns(turns):
    """The child of a fork of a program whose threads allocate goes on allocating, in C and in Python."""
    failures = 0
    for turn in range(turns):
        pid = os.fork()
        if pid == 0:
            library.moments_turns(200)
            kept = [[bytes(number + turn)] for number in range(300)]
            thread = threading.Thread(target=library.moments_turns, args=(200,))
            thread.start()
            thread.join()
            os._exit(len(kept) != 300)
        failures += os.waitpid(pid, 0)[1] != 0
    return failures


def fork_in_thread(turns):
    threads = [threading.Thread(target=library.moments_turns, args=(1 << 30,), daemon=True) for _ in range(2)]
    results = []
    forking = threading.Thread(target=lambda: results.append(fork_turns(turns)))
    library.moments_churn(1)
    for thread in threads + [forking]:
        thread.start()
    forking.join()
    library.moments_churn(0)
    print("failed", results[0])
    sys.stdout.flush()
    os._exit(0)  # two threads go on


if what == "ends":
    atexit.register(library.moments_make, 20)
    library.moments_thread_ends(int(sys.argv[3]))
    library.moments_process_ends()
elif what == "crash":
    import faulthandler
    faulthandler.enable()
    library.moments_crash()
elif what == "fork":
    fork_in_thread(int(sys.argv[3]))
elif what == "interrupted":
    library.moments_interrupted(int(sys.argv[3]), ctypes.c_long(int(sys.argv[4])), int(sys.argv[5]))
sys.stdout.flush()
