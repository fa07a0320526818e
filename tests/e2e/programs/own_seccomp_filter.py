"""own_seccomp_filter.py prctl|syscall|thread|execute: puts on a filter that kills at calls that it does not make itself, and works on.

thread: on one thread alone, which ends the process.
execute NAME: what it executes does, and only that is recorded; the filter kills at the call of this name, or at none.
"""
import os
import sys
import threading

import known
import seccomp_filter

calls = ["memfd_create", "socket", "connect", "sendmsg", "pidfd_open", "kill"]
way = sys.argv[1]
if way == "execute":
    calls = [call for call in calls if call in sys.argv[2:]]
if way == "thread":
    def work():
        seccomp_filter.put_on("prctl", calls, seccomp_filter.KILL_PROCESS)
        known.everything()
        sys.stdout.flush()
        os._exit(3)
    known.everything()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
seccomp_filter.put_on("syscall" if way == "syscall" else "prctl", calls, seccomp_filter.KILL_PROCESS)
if way == "execute":
    del os.environ["EVPROF"]
    os.execv(sys.executable, [sys.executable, known.__file__])
known.everything()
thread = threading.Thread(target=known.everything)
thread.start()
thread.join()
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    known.everything()
    os._exit(3)
print("child", os.waitpid(pid, 0)[1])
