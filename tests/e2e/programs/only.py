"""A program of which all that it calls is known: `python only.py [END]`. It imports only what is imported already.
early() is called while the program runs, late() by what the end asks for."""
import sys


def leaf():
    pass


def early():
    for _ in range(77):
        leaf()


def late(*arguments):
    leaf()


def end_by(how):
    import os
    if how == "exit":
        sys.exit(3)
    if how == "exception":
        sys.excepthook = late
        raise ValueError(how)
    if how == "os_exit":
        os._exit(4)
    if how == "signal":
        os.kill(os.getpid(), 9)
    if how == "atexit":
        import atexit
        atexit.register(late)
    if how == "fork":
        import atexit
        atexit.register(late)
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            early()
    if how == "thread":
        import threading
        import time

        def run_on(main=threading.current_thread()):
            while main.is_alive():
                time.sleep(0.01)
            early()

        thread = threading.Thread(target=run_on)
        thread.start()
    if how == "stop":
        import atexit
        import ctypes
        library = ctypes.CDLL(None)
        if hasattr(library, "evprof_stop"):
            library.evprof_stop()
            early()
            library.evprof_start()
            early()
            library.evprof_stop()
            atexit.register(late)
            atexit.register(library.evprof_start)


early()
if len(sys.argv) > 1:
    end_by(sys.argv[1])
